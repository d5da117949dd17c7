"""Remediations can be followed: a script that bash takes and Kafka's own tools understand, or a sentence of advice; and
all of a topic's remedies speak of one target."""

import re
import shlex
import subprocess

import pytest

from durability.embedded_kafka import tools
from durability.report.words import is_script
from tests.support.joined import Part
from tests.support.judge import one, pick
from tests.support.policy import policy
from tests.support.topology import document
from tests.unit.spark_jobs.controls import test_acks, test_clusters, test_kips, test_oracle

TOOLS = {
    "kafka-topics": "TopicCommand",
    "kafka-configs": "ConfigCommand",
    "kafka-reassign-partitions": "ReassignPartitionsCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-features": "FeatureCommand",
}
HOSTILE = "az\n1; touch /tmp/x\u2028`id`"
BRICKS = "0:az1 1:az2 2:az3"
POLICY = policy("""
tiers:
  standard: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, replica_racks: 2}
  copies: {acked_copies: 2, survive: [broker]}
  five: {replication_factor: 5}
  spread: {acked_racks: 2, write_headroom: 1}
  much: {acked_copies: 3, write_headroom: 1}
  election: {min_insync_replicas: 2, write_headroom: 1, unclean_leader_election: false}
  nothing: {}
topics:
  - {match: {cluster: much}, tier: much}
  - {match: {cluster: no-numbers}, tier: election}
  - {match: {topic: "spread.*"}, tier: spread}
  - {match: {topic: "copies.*"}, tier: copies}
  - {match: {topic: "wide.*"}, tier: five}
  - {match: {topic: "nothing.*"}, tier: nothing}
  - {tier: standard}
""")
TARGETS = """
    topic           replicas isr    min
    payments        0,1      0,1    3
    clicks          0,1      0,1    1
    single          0        0      -
    ledger          0,1,2    0,1,2  3
    weak            0,1,2    0,1,2  1
    default         0,1,2    0,1,2  -
    rack            0,3,4    0,3,4  2
    good            0,1,2    0,1,2  2
    copies          0        0      1
    nothing.above   0,1      0,1    3
    nothing.one     0        0      1
    wide            0,1,2    0,1,2  1
"""
SIX = "0:az1 1:az2 2:az3 3:az1 4:az1"


def with_controllers(doc):
    doc["cluster"]["controllers"] = [{"id": 101, "configs": {}}]
    return doc


def hostile_rack():
    """A rack that is down and whose name wants to be run."""
    down = document("topic replicas isr\nt 0,1,2 1,2", brokers="0:az1! 1:az2 2:az3", cluster="rack")
    for broker in down["brokers"]:
        broker["rack"] = HOSTILE if broker["id"] != 2 else "az3"
    down["brokers"][1]["live"] = False
    return down


DOCUMENTS = [
    document(TARGETS, brokers=SIX, cluster="new", features={"eligible.leader.replicas.version": 0}),
    document(TARGETS, brokers=SIX, cluster="old", version="3.6"),
    document("topic replicas isr min\nt 0,1,2 0,1 -\nrack 0,3,2 0,3 2", brokers="0:az1 1:az2 2:az1! 3:az1",
             cluster="down"),
    document("topic replicas isr elr min\nt 0,1,2 0 1 3", brokers=BRICKS, cluster="elr",
             features={"eligible.leader.replicas.version": 1}),
    document("topic replicas\nt 0,1", brokers=f"0:{HOSTILE.split()[0]} 1:az2", cluster="hostile"),
    document("topic leader replicas isr min\nt 0 0,1,2 0 1\ngap 0 0,1,2 0 1\ngap - 0,1,2 1 1",
             brokers="0:az1 1:az2 2:az3", cluster="short", features={"eligible.leader.replicas.version": 0}),
    document("topic replicas isr min\nspread.t 0,1,2 0,1,2 2", brokers="0:a 1:a 2:a 3:a 4:b", cluster="lopsided"),
    document("topic replicas isr min\nspread.t 0,1,2 0,1,2 2", brokers="0:a 1:a 2:a 3:b 4:b", cluster="wide"),
    document("topic replicas isr min\nt 0,1,2 0,1,2 2", brokers="0:az1 1:az2 2:az3", cluster="much"),
    document("topic replicas isr min\ndefault 0,1,2 0,1,2 -\nown 0 0 1\nthree 0,1,2 0,1,2 3", brokers=BRICKS,
             cluster="whole", features={"eligible.leader.replicas.version": 0}),
    document("topic replicas isr min\nweak 0,1,2 0,1,2 1\nclicks 0,1 0,1 1\ndefault 0,1,2 0,1,2 -",
             brokers=BRICKS, cluster="0.10", version="0.10.2"),
    document("topic replicas isr\nt 0 0", brokers="0:az1 1:az2! 2:az3!", cluster="lone"),
    document("topic replicas isr min\nt 0,1,2 0,1,2 2", brokers="0 1 2", cluster="nowhere"),
    hostile_rack(),
    with_controllers(document(
        "topic replicas min\nt 0,1,2 two\nu 0,1,2 2", brokers=BRICKS, cluster="no-numbers",
        configs={"u": {"min.insync.racks": "many", "unclean.leader.election.enable": "perhaps"}},
    )),
]  # fmt: skip
PARTS = [Part("critical", POLICY, DOCUMENTS)]


@pytest.fixture(scope="module")
def targets(judged_once):
    """Findings and posture over TARGETS, on 4.3 with and without the ELR, and on 3.6."""
    judge, found = judged_once(*PARTS)
    return found, {(p["cluster"], p["topic"]): p for p in judge.posture()}


@pytest.fixture(scope="module")
def everything(targets, judged_once):
    """Remediations of all findings over the tests' fleets and over random clusters: each with one finding it belongs to."""
    found = list(targets[0])
    for module in (test_clusters, test_kips, test_acks, test_oracle):
        found += [finding for part in module.PARTS for finding in judged_once(part)[1]]
    return {f["remediation"]: f for f in found if f["remediation"]}


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Long options of Kafka's own tools by tool, out of their --help."""
    home = tmp_path_factory.mktemp("tools")
    known = {}
    for tool, name in TOOLS.items():
        command = tools.java("4.3.1", tools.main_class("4.3.1", name), heap_mb=96, home=home)
        asked = [["upgrade", "--help"], ["--help"]] if tool == "kafka-features" else [["--help"]]
        said = [subprocess.run([*command, *a], capture_output=True, text=True, timeout=60) for a in asked]
        known[tool] = {word for s in said for word in re.findall(r"--[a-z][a-z-]+", s.stdout + s.stderr)}
        assert "--bootstrap-server" in known[tool], said
    return known


LOOP = re.compile(
    r'for n in \{1\.\.300\}; do said=\$\((.*?)\) \|\| \{ echo "\$said"; said=Error; sleep 10; continue; \};'
    r' \[\[ \$said = \*"in progress"\* \]\] \|\| break; sleep 10; done'
    r' && \{ \[\[ \$said != \*"rather than"\* \]\] \|\| \{ sleep 10; said=\$\(\1\); \}; \}'
    r' && \[\[ \$said != Error \]\] && echo "\$said"'
)


NONE_RUNS = "No partition reassignments found"
HAS_RECORDS = """'"partition":"[\\w.-]+","size":'\\[1-9\\]"""
ASKED = re.compile(
    rf'said=\$\(([^)]*)\) && {{ \[\[ \$said = \*(?:"{NONE_RUNS}"|{HAS_RECORDS})\* \]\] \|\| ! echo (?:"\$said"|\'[^\']+\'); }}'
)


def commands(text):
    """The commands of a remedy. The loop around --verify, `&&`, and conditions are left out: that no reassignment runs, and that
    a broker has records of the partition that it is to lead."""
    lines = [line.removesuffix(" &&") for line in text.splitlines() if not line.startswith("#")]
    lines = [loop[1] if (loop := LOOP.fullmatch(line)) else line for line in lines]
    parts = [asked.groups() if (asked := ASKED.fullmatch(line)) else (line,) for line in lines]
    return [part for each in parts for part in each]


def test_every_remediation_is_advice_or_a_script_of_kafkas_own_commands(everything, options):
    scripts = [text for text in everything if is_script(text)]
    assert len(scripts) > 30
    assert len({everything[text]["control"] for text in scripts}) >= 10
    for text in scripts:
        checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, ""), text
        for line in commands(text):
            words = shlex.split(line, comments=True)
            assert words[0] in TOOLS, line
            if words[1:3] == ["--zookeeper", "$ZOOKEEPER"]:
                continue
            assert words[1:3] == ["--bootstrap-server", "$BOOTSTRAP"], line
            used = {w for w in words if w.startswith("--")}
            assert used <= options[words[0]], (line, used - options[words[0]])
            assert not re.search(r"[;&|<>`]|\$\(", line), line
    for text in set(everything) - set(scripts):
        assert "\n" not in text and not re.search(r"kafka-\w+|--\w|\$BOOTSTRAP", text), text


def test_bash_runs_just_the_commands(everything, tmp_path):
    """Each tool replaced by one that notes its arguments: what bash runs is what the lines say, whatever the comments hold."""
    for tool in TOOLS:
        answer = f"""[[ $* != *--list* ]] || echo "{NONE_RUNS}"
            [[ $* != *--topic-list* ]] || echo '{{"partition":"'"${{*: -1}}"-{{0..9}}'","size":70}}'"""
        (tmp_path / tool).write_text(f'#!/bin/bash\necho "${{0##*/}} $*" >> "$NOTED"\n{answer}\n')
        (tmp_path / tool).chmod(0o755)
    noted = tmp_path / "noted"
    scripts = [text for text in everything if is_script(text)]
    hostile = [text for text in scripts if "touch" in text]
    assert hostile, "a rack's name is in a comment"
    asking = [text for text in scripts if NONE_RUNS in text][:3]
    electing = [text for text in scripts if '"size":' in text][:3]
    assert asking and electing
    for text in [*hostile, *asking, *electing, *scripts[:: max(1, len(scripts) // 25)]]:
        noted.write_text("")
        env = {"PATH": f"{tmp_path}:/bin:/usr/bin", "NOTED": str(noted), "BOOTSTRAP": "b:9092", "ZOOKEEPER": "z:2181"}
        done = subprocess.run(["bash"], input=text, text=True, capture_output=True, env=env, cwd=tmp_path)
        assert (done.returncode, done.stdout.replace(NONE_RUNS, "").strip(), done.stderr) == (0, "", ""), text
        wanted = [
            " ".join(shlex.split(c, comments=True)).replace("$BOOTSTRAP", "b:9092").replace("$ZOOKEEPER", "z:2181")
            for c in commands(text)
        ]
        assert noted.read_text().splitlines() == wanted


@pytest.mark.parametrize(
    ("topic", "replicas", "least", "reassign"),
    [
        ("payments", 3, 2, True),
        ("clicks", 3, 2, True),
        ("single", 3, 2, True),
        ("ledger", 4, 3, True),
        ("weak", 3, 2, False),
        ("default", 3, 2, False),
        ("rack", 3, 2, True),
        ("good", 3, 2, False),
        ("copies", 3, 2, True),
        ("nothing.above", 2, 2, False),
        ("nothing.one", 1, 1, False),
        ("wide", 5, 1, True),
    ],
)
def test_a_topic_has_one_target(targets, topic, replicas, least, reassign):
    for cluster in ("new", "old"):
        row = targets[1][(cluster, topic)]
        assert (row["target_replication_factor"], row["target_min_insync_replicas"], row["reassign"]) == (
            *(replicas, least),
            reassign,
        )


ABOUT_COPIES = ("replication-factor", "min-insync-replicas", "min-isr-within-replication-factor", "write-headroom")


def test_all_findings_of_a_topic_ask_for_the_same(targets):
    for cluster in ("new", "old"):
        for topic in ("payments", "clicks", "single", "ledger", "weak", "nothing.above"):
            mine = [f for f in pick(targets[0], cluster=cluster, resource=topic, outcome="FAIL")]
            texts = {f["remediation"] for f in mine if f["control"] in ABOUT_COPIES}
            assert len(texts) == 1, (cluster, topic, texts)


def remedy(targets, cluster, topic, control):
    return one(targets[0], cluster=cluster, resource=topic, control=control, outcome="FAIL")["remediation"]


def test_what_is_lowered_says_what_that_costs(targets):
    kept = remedy(targets, "new", "nothing.above", "min-isr-within-replication-factor")
    assert "Brokers already enforce no more than this" in kept and "give the topic 3 replicas" in kept
    assert commands(kept)[-1].endswith("--entity-name nothing.above --add-config min.insync.replicas=2")
    assert kept.splitlines()[-1].endswith("--entity-name nothing.above --add-config min.insync.replicas=3")
    assert kept.splitlines()[-1].startswith("# To undo it, when all replicas are in sync: kafka-configs")
    outage = remedy(targets, "old", "payments", "min-isr-within-replication-factor")
    assert "As configured now, every acks=all write is rejected" in outage
    # Lowered before replicas are added, which count at once: otherwise what passes now would be refused.
    lines = commands(outage)
    assert lines[0].endswith("--entity-name payments --add-config min.insync.replicas=2")
    assert "--execute --throttle" in lines[1] and lines[1].endswith("plans/old/payments.json")
    assert "--verify" in lines[2]
    assert "guarantees 2 copies instead of 3" in remedy(targets, "whole", "three", "write-headroom")


def test_a_replica_is_added_before_a_minimum_is_lowered(targets):
    ledger = remedy(targets, "new", "ledger", "write-headroom")
    assert "--execute" in ledger and "--add-config" not in ledger


def test_a_plan_that_names_a_broker_that_is_down_waits_for_it(targets):
    text = remedy(targets, "down", "rack", "replica-rack-spread")
    assert "First start broker 2, or, if it is gone for good, move these replicas" in text
    assert not is_script(text) and "plans/" not in text
    assert "First start" not in remedy(targets, "new", "rack", "replica-rack-spread")


def test_what_is_raised_waits_for_the_replicas(targets):
    clicks = remedy(targets, "new", "clicks", "min-insync-replicas")
    assert [c.split()[0] for c in commands(clicks)] == ["kafka-reassign-partitions"] * 2
    assert clicks.endswith("audit again: then set min.insync.replicas=2.")
    single = remedy(targets, "new", "single", "replication-factor")
    assert "audit again: then set min.insync.replicas=2" in single and "kafka-configs" not in single


def test_what_would_be_refused_now_is_no_command(targets):
    first = {"t": "the out-of-sync replicas: with 1 in sync", "gap": "a leader for the partitions that have none"}
    for topic, words in first.items():
        text = remedy(targets, "short", topic, "min-insync-replicas")
        assert not is_script(text) and f"First bring back {words}" in text
    assert "bring back" not in remedy(targets, "new", "weak", "min-insync-replicas")


def test_racks_of_unequal_size(targets):
    """Two acknowledged racks and headroom: of `lopsided`, only one replica can stand outside the rack a."""
    found, posture = targets
    (tier,) = pick(found, cluster="lopsided", control="policy-feasible", resource="spread")
    assert (tier["outcome"], tier["message"]) == (
        "FAIL",
        "2 brokers required outside the racks with most brokers (1 of them), the cluster has 1 there",
    )
    acked = one(found, cluster="lopsided", control="acked-durability", resource="spread.t")
    assert acked["cause"] == tier["cause"] and acked["remediation"].startswith("Add brokers or racks")
    row = posture["lopsided", "spread.t"]
    assert (row["target_replication_factor"], row["target_acked_racks"], row["reassign"]) == (3, None, False)
    # Two brokers outside are enough: four replicas, two in each rack, of which three span both.
    row = posture["wide", "spread.t"]
    assert (row["target_replication_factor"], row["target_min_insync_replicas"], row["reassign"]) == (4, 3, True)
    assert one(found, cluster="wide", control="acked-durability", resource="spread.t")["cause"] == "placement"


def test_where_no_broker_names_a_rack_that_is_what_to_mend(targets):
    tier = one(targets[0], cluster="nowhere", control="policy-feasible", resource="standard")
    assert (tier["outcome"], tier["message"]) == ("FAIL", "2 racks required, no broker has broker.rack")
    assert tier["remediation"].startswith("Set broker.rack in server.properties of brokers 0, 1, 2")


def test_what_more_brokers_would_mend_has_the_policys_cause(targets):
    tier = one(targets[0], cluster="much", control="policy-feasible", resource="much")
    assert tier["message"] == "4 brokers required, the cluster has 3"
    acked = one(targets[0], cluster="much", control="acked-durability", resource="t")
    assert acked["cause"] == tier["cause"]
    assert acked["remediation"].startswith("Add brokers or racks")


def test_a_weak_default_is_mended_once_unless_a_topic_that_inherits_it_would_reject_writes(targets):
    for control, resource in (("min-insync-replicas", "default"), ("broker-defaults", "whole")):
        (command,) = commands(remedy(targets, "whole", resource, control))
        assert command.endswith("--entity-type brokers --entity-default --add-config min.insync.replicas=2")
    # `single` inherits it too, and has one replica.
    text = remedy(targets, "new", "default", "min-insync-replicas")
    assert commands(text)[-1].endswith("--entity-type topics --entity-name default --add-config min.insync.replicas=2")
    cluster = remedy(targets, "new", "new", "broker-defaults")
    assert "--entity-default" not in cluster and "topic single would inherit it" in cluster


def test_an_old_release_gets_its_own_tools(targets):
    old = remedy(targets, "0.10", "weak", "min-insync-replicas")
    assert commands(old) == [
        'kafka-configs --zookeeper "$ZOOKEEPER" --alter --entity-type topics --entity-name weak'
        " --add-config min.insync.replicas=2"
    ]
    plan = commands(remedy(targets, "0.10", "clicks", "replication-factor"))
    assert [c.split(" --")[1] for c in plan] == ['zookeeper "$ZOOKEEPER"'] * 2
    assert "min.insync.replicas=2 in server.properties of every broker" in remedy(
        targets, "0.10", "0.10", "broker-defaults"
    )


def test_a_plan_is_named_only_if_it_was_made(targets):
    text = remedy(targets, "lone", "t", "replication-factor")
    assert "There is no plan for this topic (the live brokers and their racks don't suffice)" in text
    assert "plans/" not in text and not is_script(text)


def test_nothing_is_changed_that_would_wipe_an_elr(targets):
    mine = pick(targets[0], cluster="elr", resource="t", outcome="FAIL")
    assert {"kafka-configs" in f["remediation"] for f in mine} == {False}
    assert remedy(targets, "elr", "t", "write-headroom").startswith("Don't change min.insync.replicas now")


def test_more_brokers_than_there_are_is_advice(targets):
    assert remedy(targets, "hostile", "t", "replication-factor").startswith(
        "Add brokers (3 required, the cluster has 2)"
    )


def test_the_elr_is_switched_on_after_its_min_isr_and_not_while_replicas_are_missing(targets):
    whole = one(targets[0], cluster="whole", control="eligible-leader-replicas")["remediation"]
    assert [c.split()[0] for c in commands(whole)] == ["kafka-configs", "kafka-features"]
    assert commands(whole)[0].endswith("--entity-default --add-config min.insync.replicas=2")
    assert "min.insync.replicas=2 &&\n" in whole, "without it, the upgrade must not run"
    # `single` inherits the value, and has one replica.
    new = one(targets[0], cluster="new", control="eligible-leader-replicas")["remediation"]
    assert [c.split()[0] for c in commands(new)] == ["kafka-configs", "kafka-features"]
    # A topic with one replica inherits the value, so it isn't raised here.
    assert commands(new)[0].endswith("--entity-default --add-config min.insync.replicas=1")
    assert one(targets[0], cluster="down", control="eligible-leader-replicas")["remediation"].startswith("Not now")


def test_a_value_that_is_no_number_is_named(targets):
    found = pick(targets[0], cluster="no-numbers")
    for control in ("min-insync-replicas", "write-headroom", "partition-health"):
        finding = one(found, control=control, resource="t")
        assert (finding["outcome"], finding["message"]) == (
            "UNKNOWN",
            f"{control} can't be evaluated: min.insync.replicas is not a number of at least 1: two",
        )
    assert "neither true nor false: perhaps" in one(found, control="unclean-leader-election", resource="u")["message"]
    assert "not a number: many" in one(found, control="min-insync-racks-valid", resource="u")["message"]
