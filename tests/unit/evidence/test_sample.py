"""Samples of verdicts, from rows written by hand."""

from __future__ import annotations

import hashlib
import json
import shlex
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from durability.cli.app import app
from durability.errors import Refused
from durability.evidence import sample, sampled_facts
from durability.evidence.reperform import of_resource
from durability.lake import tables
from tests.support.schemas import unnamed

NIGHT = datetime(2026, 10, 1, 2, tzinfo=UTC)
NAMES = ("orders", "a'; rm -rf ~", "bell\x07")


def rows(lake, table, *given: dict, **shared) -> None:
    keys = {"cluster": "eu", "captured_at": NIGHT, "snapshot_id": "eu@1", **shared}
    lake.append(table, pa.Table.from_pylist([keys | row for row in given], table.arrow))


def run_row(number: int, status: str = "complete", verified: bool = True) -> dict:
    part = {"cluster": "eu", "snapshot_id": "eu@1", "attempt_id": "eu-1", "captured_at": NIGHT, "status": "accepted"}
    return {
        **{"run_id": f"run-{number}", "result_id": f"run-{number}:1", "kind": "nightly", "captured_at": NIGHT},
        **{"started_at": NIGHT, "finished_at": NIGHT.replace(hour=2 + number), "status": status, "verified": verified},
        **{"policy_name": "p", "policy_sha256": "0", "waivers": "[]", "snapshots": [part], "summary": "{}"},
    }


def finding(id: str, outcome: str, resource: str = "orders", **more) -> dict:
    return {
        **{"id": id, "control": "write-headroom", "resource_type": "topic", "resource": resource, "outcome": outcome},
        **{"observed": "{}", "change": None, **more},
    }


@pytest.fixture
def audited(lake):
    """Run 1 with 40 verdicts that count, and a newer run that is incomplete."""
    result = {"run_id": "run-1", "result_id": "run-1:1"}
    passing = [finding(f"p{n}", "PASS", f"topic-{n}") for n in range(35)]
    gone = finding("r", "PASS", change="resolved", why="fixed")
    waived = finding("w", "EXEMPT", change="resolved", why="waived")
    others = [finding("n", "NOT_APPLICABLE"), gone, waived, finding("u", "UNKNOWN", change="new")]
    failing = [finding(f"f{n}", "FAIL", name, severity="critical", change="new") for n, name in enumerate(NAMES)]
    rows(lake, tables.FINDINGS, *passing, *others, *failing, **result)
    rows(lake, tables.FINDINGS, finding("late", "FAIL"), run_id="run-2", result_id="run-2:1")
    attempt = {"attempt_id": "eu-1"}
    rows(lake, tables.CLUSTERS, {"kafka_version": "4.3.1", "quorum_mode": "kraft"}, **attempt)
    configs = {"configs": {"min.insync.replicas": "2"}, "config_sources": {"min.insync.replicas": "topic"}}
    rows(lake, tables.TOPICS, *({"topic": name, **configs} for name in NAMES), **attempt)
    partition = {"leader": 1, "replicas": [1, 2, 3], "isr": [1, 2], "elr": []}
    unread = {"partition": 1, "leader": None, "replicas": None, "isr": None, "elr": None, "unreadable": ["leader"]}
    rows(
        lake,
        tables.PARTITIONS,
        {"topic": NAMES[0], "partition": 0, **partition},
        {"topic": NAMES[0], **unread},
        **attempt,
    )
    racks = {1: ("az1", "named", True), 2: (None, "none", True), 3: (None, "unknown", False)}
    brokers = [{"broker": id, **dict(zip(("rack", "rack_state", "live"), of, strict=True))} for id, of in racks.items()]
    rows(lake, tables.BROKERS, *brokers, **attempt)
    for row in (run_row(1), run_row(2, "incomplete"), run_row(3, verified=False)):
        lake.commit_run(row)
    return lake


def test_the_same_seed_picks_what_anybody_can_pick_by_hashing(audited):
    found = sample.document(audited, 7, 7, None)
    population = {"verdicts": 40, "FAIL": 3, "UNKNOWN": 1, "EXEMPT": 1, "PASS": 35}
    assert found["population"] == population and found["run"]["run_id"] == "run-1"
    ids = [*(f"p{n}" for n in range(35)), "w", "u", "f0", "f1", "f2"]
    expected = sorted(ids, key=lambda id: hashlib.sha256(f"7:eu:{id}".encode()).digest())[:7]
    assert [row["id"] for row in found["sample"]] == expected
    assert unnamed("sample", json.loads(json.dumps(sample.document(audited, 1_000, 7, None)))) == []
    assert unnamed("sample", {**found, "population": {"verdicts": -1}})
    assert sample.document(audited, 7, 8, None)["sample"] != found["sample"]


def test_facts_are_those_of_the_lake_and_unread_ones_are_unknown(audited):
    whole = {row["id"]: row for row in sample.document(audited, 1_000, 7, "eu")["sample"]}
    facts = whole["f0"]["facts"]
    assert (facts["min_insync_replicas"], facts["min_insync_replicas_source"]) == (2, "topic")
    first, second = facts["partitions"]
    assert (first["leader"], first["replicas"], first["isr"]) == (1, [1, 2, 3], [1, 2])
    assert second["leader"] is None and second["unreadable"] == ["leader"]
    assert whole["p1"]["facts"] is None and whole["p1"]["reason"] == sampled_facts.REMOVED
    said = list(sample.lines(sample.document(audited, 1_000, 7, "eu")))
    assert "   partition 1: leader unknown, replicas unknown, isr unknown, elr unknown" in said
    assert "   partition 0: leader 1, replicas 1,2,3, isr 1,2, elr none" in said


def test_racks_of_the_replicas_are_facts_that_a_command_shows(audited):
    """A verdict about racks can't be reperformed from broker ids."""
    found = sample.document(audited, 1_000, 7, None)
    (row,) = (row for row in found["sample"] if row["id"] == "f0")
    assert row["facts"]["brokers"][0] == {"broker": 1, "rack": "az1", "rack_state": "named", "live": True}
    said = "   brokers: 1 in rack az1; 2 without a rack; 3 in an unknown rack, down"
    assert said in list(sample.lines(found))
    assert 'kafka-broker-api-versions --bootstrap-server "$BOOTSTRAP"' in [c["command"] for c in row["commands"]]


def test_commands_quote_names_and_a_terminal_gets_no_control_character(audited):
    found = sample.document(audited, 1_000, 7, None)
    whole = {row["id"]: row["commands"] for row in found["sample"]}
    describe, configs, _ = (shlex.split(command["command"]) for command in whole["f1"])
    assert describe == ["kafka-topics", "--bootstrap-server", "$BOOTSTRAP", "--describe", "--topic", NAMES[1]]
    assert configs[0] == "kafka-configs" and configs[-2:] == ["--entity-name", NAMES[1]] and "--all" in configs
    assert whole["f2"] == []
    text = "\n".join(sample.lines(found))
    assert "\x07" not in text and "no command: the name has characters" in text


def test_old_releases_are_asked_through_zookeeper():
    describe, configs, _ = (row["command"] for row in of_resource("topic", "orders", "2.1.0"))
    assert '--zookeeper "$ZOOKEEPER"' in describe and '--zookeeper "$ZOOKEEPER"' in configs and "--all" not in configs
    assert of_resource("waiver", "x", "4.3.1") == []


def test_the_brokers_and_racks_that_a_tier_needs_are_shown_by_a_command():
    (racks,) = of_resource("tier", "critical", "4.3.1")
    assert racks == of_resource("topic", "orders", "4.3.1")[-1]


def test_log_dirs_of_a_broker_are_facts_that_a_command_shows(audited):
    attempt = {"attempt_id": "eu-1"}
    down = {"broker": 9, "rack": "az1", "rack_state": "named", "live": False}
    disks = {"broker": 8, "rack": None, "rack_state": "none", "live": True, "offline_log_dirs": 1}
    rows(audited, tables.BROKERS, down, disks, **attempt)
    verdicts = [finding(f"b{id}", "FAIL", id, control="log-dirs", resource_type="broker") for id in ("8", "9")]
    rows(audited, tables.FINDINGS, *verdicts, run_id="run-1", result_id="run-1:1")
    found = sample.document(audited, 1_000, 7, None)
    whole = {row["id"]: row for row in found["sample"]}
    commands = [command["command"] for command in whole["b8"]["commands"]]
    assert 'kafka-log-dirs --bootstrap-server "$BOOTSTRAP" --describe --broker-list 8' in commands
    assert whole["b8"]["facts"]["offline_log_dirs"] == 1
    said = list(sample.lines(found))
    assert "   broker 8 without a rack, fenced unknown, kafka_version unknown, offline_log_dirs 1" in said
    # Kafka's tools ask a broker itself, so they fail for one that is down.
    assert [command["shows"] for command in whole["b9"]["commands"]] == ["brokers that are up, with their racks"]


def test_a_clusters_quorum_brokers_and_settings_are_facts(audited):
    attempt = {"attempt_id": "eu-1"}
    voters = {
        1: {"leader": True, "rack": "az1", "lag_ms": 0, "caught_up": True, "live": True},
        2: {"leader": False, "rack": None, "lag_ms": None, "caught_up": False, "live": False},
    }
    rows(
        audited,
        tables.CONTROLLERS,
        *({"controller": id, "role": "voter", **of} for id, of in voters.items()),
        **attempt,
    )
    settings = {
        "configs": {"default.replication.factor": "1"},
        "config_sources": {"default.replication.factor": "broker"},
    }
    rows(
        audited,
        tables.BROKERS,
        {"broker": 7, "rack": "az3", "rack_state": "named", "live": True, **settings},
        **attempt,
    )
    about = {"resource_type": "cluster", "resource": "eu"}
    verdicts = [
        finding(control, "FAIL", control=control, **about) for control in ("controller-quorum", "broker-defaults")
    ]
    of_fleet = finding("inventory-coverage", "FAIL", control="inventory-coverage", **about)
    rows(audited, tables.FINDINGS, *verdicts, of_fleet, run_id="run-1", result_id="run-1:1")
    found = sample.document(audited, 1_000, 7, None)
    assert unnamed("sample", json.loads(json.dumps(found))) == []
    whole = {row["id"]: row for row in found["sample"]}
    assert [one["controller"] for one in whole["controller-quorum"]["facts"]["controllers"]] == [1, 2]
    assert (whole["inventory-coverage"]["facts"], whole["inventory-coverage"]["reason"]) == (
        None,
        sampled_facts.NO_FACTS,
    )
    said = list(sample.lines(found))
    for line in (
        "controllers: 1 (voter, leader) in rack az1, lag_ms 0;"
        " 2 (voter) in an unknown rack, lag_ms unknown, never caught up, down",
        "brokers: 1 in rack az1; 2 without a rack; 3 in an unknown rack, down; 7 in rack az3",
        "broker 7: default.replication.factor 1, source broker",
        "broker 1: default.replication.factor has no value in the snapshot",
    ):
        assert f"   {line}" in said


def test_throttles_and_moves_that_a_reassignment_left_are_facts(audited):
    attempt, rate, listed = (
        {"attempt_id": "eu-1"},
        "leader.replication.throttled.rate",
        "leader.replication.throttled.replicas",
    )
    ids = {8: ("1000", "cluster-default"), 9: ("9223372036854775807", "default")}
    brokers = [
        {"broker": id, "rack_state": "none", "live": True, "configs": {rate: value}, "config_sources": {rate: source}}
        | {"future_replicas": id - 8}
        for id, (value, source) in ids.items()
    ]
    rows(audited, tables.BROKERS, *brokers, **attempt)
    throttled = {"configs": {listed: "0:1"}, "config_sources": {listed: "topic"}}
    rows(audited, tables.TOPICS, {"topic": "slow-1", **throttled}, **attempt)
    moving = {"partition": 0, "leader": 1, "replicas": [1, 2, 3], "isr": [1], "elr": [], "adding": [3], "removing": [2]}
    rows(audited, tables.PARTITIONS, {"topic": "slow-1", **moving}, **attempt)
    observed = {"throttled_brokers": [8], "throttled_topics": ["slow-1", "gone"], "stuck": ["slow-1-0", "gone-3"]}
    verdict = finding(
        "left",
        "FAIL",
        "eu",
        control=sampled_facts.LEFTOVERS,
        resource_type="cluster",
        observed=json.dumps(observed),
    )
    rows(audited, tables.FINDINGS, verdict, run_id="run-1", result_id="run-1:1")
    found = sample.document(audited, 1_000, 7, None)
    (facts,) = (row["facts"] for row in found["sample"] if row["id"] == "left")
    assert [(one["resource"], one["value"]) for one in facts["throttles"]] == [("8", "1000"), ("slow-1", "0:1")]
    said = list(sample.lines(found))
    assert f"   broker 8: {rate} 1000, source cluster-default" in said
    assert f"   topic slow-1: {listed} 0:1, source topic" in said
    assert "   partition slow-1-0: leader 1, replicas 1,2,3, isr 1, elr none, adding 3, removing 2" in said
    assert "   partition gone-3: leader unknown, replicas unknown, isr unknown, elr unknown" in said
    assert unnamed("sample", json.loads(json.dumps(found))) == []
    # Broker 8 moves none. The lake doesn't know it of the others.
    moves = "1 on broker 9, unknown on broker 1, unknown on broker 2, unknown on broker 3"
    assert f"   replicas that move to another log dir: {moves}" in said


def test_the_tasks_of_an_applications_clients_are_facts(audited):
    client = {"process": "p1", "tags": {"zone": "a"}, "active": ["0_0"], "standby": []}
    group = {"group": "app", "type": "classic", "state": "Stable", "in_transition": False, "stateful_tasks": ["0_0"]}
    rows(audited, tables.GROUPS, {**group, "clients": [client, client | {"tags": None}]}, attempt_id="eu-1")
    verdicts = [
        finding(f"a-{name}", "FAIL", name, control="standby-replicas", resource_type="application")
        for name in ("app", "gone")
    ]
    rows(audited, tables.FINDINGS, *verdicts, run_id="run-1", result_id="run-1:1")
    found = sample.document(audited, 1_000, 7, None)
    whole = {row["id"]: row for row in found["sample"]}
    assert whole["a-app"]["facts"]["clients"][0] == client
    assert whole["a-gone"]["reason"] == sampled_facts.REMOVED
    said = list(sample.lines(found))
    assert "   type classic, state Stable, in_transition False" in said
    assert "   client p1: tags zone=a, active 0_0, standby none" in said
    assert "   client p1: tags unknown, active 0_0, standby none" in said


def test_the_command_prints_json_and_refuses_what_it_cannot_do(audited, lake, tmp_path):
    def run(*arguments: str):
        return CliRunner().invoke(app, ["sample", *arguments], env={"LAKE": ""})

    done = run("--n", "3", "--seed", "7", "--lake", audited.location, "--json")
    assert done.exit_code == 0 and len(json.loads(done.output)["sample"]) == 3
    for arguments, said in (
        (("--n", "0", "--lake", audited.location), "--n 0: expected a whole number from 1 to 1,000"),
        (("--seed", "x", "--lake", audited.location), "--seed x: expected a whole number"),
        (("--cluster", "us", "--lake", audited.location), "has no cluster us; it has eu"),
        (("--lake", str(tmp_path / "none")), "no lake there"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 2 and said in refused.output


def test_a_lake_without_a_complete_verified_run_is_refused(lake):
    lake.commit_run(run_row(2, "incomplete"))
    with pytest.raises(Refused, match="no nightly run that is complete and verified"):
        sample.document(lake, 1, 1, None)
