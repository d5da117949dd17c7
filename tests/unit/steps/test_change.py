"""A plan of change from a document to its folder, proven with Spark; and what each file of the folder is for."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from durability.errors import NotOfCluster, Refused
from durability.plan.chosen import Chosen
from durability.remedies.change.model import Limits
from durability.report import change as report
from durability.steps import audit, change, undone
from durability.steps import proven as prove_step
from durability.steps.change_request import Request
from durability.steps.judged import Judged
from durability.steps.settings import Settings
from durability.topology import validate
from tests import ROOT
from tests.support import topology
from tests.support.judge import expressions
from tests.support.lake import attach
from tests.support.topology import document

CLUSTER = document(
    """
    topic    leader  replicas  isr    elr  min  bytes
    orders   1       1,2       1,2    -    2    1000
    orders   2       2,1       2,1    -    2    2000
    loner    1       1         1      -    2    500
    low      1       1,2,3     1,2,3  -    1    70
    racked   1       1,4       1,4    -    -    300
    unclean  3       3,4,5     3,4,5  -    2    40
    dead     1       1,7       1      -    1    40
    fine     1       1,2,3     1,2,3  -    2    10
    """,
    brokers="1:az1 2:az2 3:az3 4:az1 5:az2 6:az3 7:az2!",
    cluster="eu",
    configs={"unclean": {"unclean.leader.election.enable": "true"}},
)


@pytest.fixture
def plan(spark, tmp_path):
    """Makes a plan of a document, with its two evaluations in the test's Spark."""
    from spark_jobs import evaluate, lake_tables

    def submit(lake, evaluated):
        session = spark.newSession()
        attach(session, lake)
        evaluate.run(session, evaluated, lake_tables.reader(session, evaluated), lake_tables.append, expressions(False))

    def made(cluster: dict, **request) -> Path:
        folder = topology.write(tmp_path / "in", cluster)
        policies = {name: ROOT / "policies" / f"{name}.yaml" for name in ("policy", "waivers", "clusters")}
        settings = Settings(**policies, out=tmp_path / "out", lake=str(tmp_path / "out" / "lake"), topology=folder)
        reporter = prove_step.Silent()
        settings.open_lake().ensure()
        rows, _ = audit.snapshots(settings, lambda name: {}, reporter)
        wanted = Request(request.pop("chosen", Chosen()), request.pop("limits", Limits()), **request)
        scratch = tmp_path / f"proof-{len(list(tmp_path.iterdir()))}"
        return change.plan_change(settings, rows[0], wanted, submit, reporter, scratch)

    return made


def played(cluster: dict, place: Path, folder: str, ids) -> dict:
    """Replicas by partition, and overrides by topic and name, after the plan's files, read as Kafka's tools read them."""
    replicas = {(t["name"], p["partition"]): p["replicas"] for t in cluster["topics"] for p in t["partitions"]}
    overrides = {(t["name"], name): value for t in cluster["topics"] for name, value in t["configs"].items()}
    for id in ids:
        moves = place / folder / f"{id}.json"
        if moves.exists() and "reassign" in id:
            for row in json.loads(moves.read_text())["partitions"]:
                replicas[row["topic"], row["partition"]] = row["replicas"]
        script = (place / folder / f"{id}.sh").read_text()
        for command in re.findall(r"kafka-configs [^;&|()]*--alter [^;&|()]*", script):
            words = command.split()
            topic = words[words.index("--entity-name") + 1]
            if "--add-config" in words:
                name, value = words[words.index("--add-config") + 1].split("=")
                overrides[topic, name] = value
            else:
                overrides.pop((topic, words[words.index("--delete-config") + 1]))
    return {"replicas": replicas, "overrides": overrides}


def test_a_plan_of_a_document_and_the_way_back(plan, tmp_path):
    place = plan(CLUSTER, limits=Limits(partitions=2))
    content = report.read(place)
    assert content["proof"]["offered"], content["proof"]
    assert content["proof"]["new"] == [] and content["proof"]["harms"] == []
    ids = [step["id"] for step in content["steps"]]
    kinds = [step["kind"] for step in content["steps"]]
    assert kinds[0] == "wait" and kinds[-1] == "elect-leaders"
    assert all(step["partitions"] <= 2 for step in content["steps"] if step["kind"] == "reassign")

    # The planned topology is what the files lead to.
    planned = json.loads((place / "planned.json").read_text())
    validate(planned, "planned.json")
    there = played(planned, place, "steps", [])
    assert played(CLUSTER, place, "steps", ids) == there
    # The undo of all steps, the last one first, restores the document.
    before = played(CLUSTER, place, "steps", [])
    back = played(planned, place, "undo", reversed(ids))
    assert back == before
    for script in [*place.glob("steps/*.sh"), *place.glob("undo/*.sh")]:
        subprocess.run(["bash", "-n", script], check=True)

    # A plan from there to here, and a folder that was edited.
    way_back = report.read(plan({**planned, "cluster": {**planned["cluster"]}}, undo=undone.of_folder(place)))
    assert way_back["undoes"] == content["id"] != way_back["id"]
    assert way_back["proof"]["offered"], way_back["proof"]
    own = tmp_path / "out" / "plan" / "eu"
    again = played(planned, own, "steps", [step["id"] for step in way_back["steps"]])
    assert again == before
    [earlier] = (tmp_path / "out" / "plan" / report.EARLIER / "eu").iterdir()
    assert report.read(earlier) == content
    moves = next(earlier.glob("steps/*.json"))
    moves.write_text(moves.read_text() + "\n")
    with pytest.raises(Refused, match="edited"):
        report.read(earlier)


def test_a_topic_that_more_replicas_would_make_worse_is_left_out(plan):
    """With two replicas in rack a and min.insync.replicas 2, all acknowledged records may be in that rack."""
    two_racks = document("topic replicas min\nconnect-configs 1,3 2\nloner 1 1", cluster="eu", brokers="1:a 2:a 3:b")
    made = report.read(plan(two_racks))
    assert made["proof"]["offered"] and made["proof"]["new"] == []
    assert {topic for step in made["steps"] for topic in step["topics"]} == {"loner"}
    [left] = made["left_out"]
    assert left["topic"] == "connect-configs" and left["why"].startswith(
        "its steps would cause a finding or make it worse:"
    )
    assert "acks=all guarantees 2 copies in 1 rack in the worst case" in left["why"], left["why"]


def test_only_verdicts_of_the_planned_topology_prove_a_plan(monkeypatch, tmp_path):
    from durability.findings import words
    from durability.remedies.change.draft import draft
    from tests.unit.remedies.test_change import FACTS, inputs

    def row(id, control):
        return {
            "id": id,
            "control": control,
            "resource_type": "topic",
            "resource": "t",
            "outcome": "FAIL",
            "severity": "warning",
            "partitions": [0],
        }

    opened = {"a": row("a", "replication-factor"), "h": row("h", "partition-health")}
    judged = Judged(None, FACTS, opened, frozenset({"other"}), disputed=frozenset(), cross_checked=True)
    drafted = draft(inputs(document("topic replicas\nt 1", brokers="1 2 3"), {"t": (3, None)}))
    monkeypatch.setattr(words, "remediation", lambda finding: None)

    def proven(**after):
        results = Judged(None, FACTS, {}, **{"closed": frozenset(), **after})
        made = prove_step.Drafted({"cluster": "c"}, judged, drafted, ["a", "h"], datetime.now(UTC))
        return prove_step._proven(made, lambda: {"c": results})

    assert proven().harms and not proven().offered
    gone = proven(closed=frozenset({"other"}))
    assert gone.mends == () and not gone.offered and gone.cross_checked
    assert proven(closed=frozenset({"a"})).mends == ("a",)
    # A control with a finding per category has no verdict with the same id once that category is gone.
    healthy = frozenset({("partition-health", "topic", "t")})
    assert proven(closed=frozenset({"a"}), resources=healthy).mends == ("a", "h")


def test_topics_that_refute_a_plan_are_left_out_and_the_rest_is_proven_again(monkeypatch):
    from durability.findings import words
    from durability.remedies.change.draft import draft
    from tests.unit.remedies.test_change import FACTS, inputs

    def row(topic, control="replication-factor", severity="warning", resource_type="topic"):
        return {
            "id": f"{topic}-{control}",
            "control": control,
            "resource_type": resource_type,
            "resource": topic,
            "outcome": "FAIL",
            "severity": severity,
            "partitions": [0],
        }

    monkeypatch.setattr(words, "remediation", lambda finding: None)
    monkeypatch.setattr(words, "message", lambda finding: f"{finding['control']} is {finding['severity']}")
    wanted = inputs(document("topic replicas\nt 1\nu 1\nv 1", brokers="1 2 3"), dict.fromkeys("tuv", (3, None)))
    opened = {one["id"]: one for one in map(row, "tuv")}
    judged = Judged(None, FACTS, opened, frozenset(), cross_checked=True)
    first = prove_step.Drafted({"cluster": "c"}, judged, draft(wanted), list(opened), datetime.now(UTC), inputs=wanted)

    def proven(*worse):
        """The plan after results that have the findings `worse[attempt]`, and which topics each attempt changes."""
        tried = []

        def results(drafted, attempt):
            assert attempt == len(tried)
            tried.append({move.topic for step in drafted.draft.change.steps for move in step.moves})
            left = {one["id"]: one for one in map(row, {"t", "u", "v"} - tried[-1])}
            new = {one["id"]: one for one in worse[attempt]} if attempt < len(worse) else {}
            return {"c": Judged(None, FACTS, left | new, frozenset(opened) - left.keys())}

        drafted, proof = prove_step.proven(first, results)
        return drafted.draft, proof, tried

    loss, health = (row("t", control) for control in ("rack-loss", "broker-loss"))
    made, proof, tried = proven([loss, {**health, "severity": "critical"}], [row("u", "rack-loss")])
    assert tried == [{"t", "u", "v"}, {"u", "v"}, {"v"}]
    assert (proof.offered, proof.new, proof.mends) == (True, (), ("v-replication-factor",))
    causes = "its steps would cause a finding or make it worse: {}"
    assert dict(made.left_out) == {
        "t": causes.format("broker-loss is critical"),
        "u": causes.format("rack-loss is warning"),
    }
    assert dict(proof.remains)["t-replication-factor"] == dict(made.left_out)["t"]
    # It isn't tried for ever, and not if leaving out topics can't help.
    _, proof, tried = proven(*[[row(topic, "rack-loss")] for topic in "tuv"])
    assert len(tried) == prove_step.ATTEMPTS and not proof.offered and proof.new
    for other in (row("other", "rack-loss"), row("1", "broker-rack", resource_type="broker")):
        _, proof, tried = proven([other, loss])
        assert len(tried) == 1 and not proof.offered and len(proof.new) == 2
    # If no topic is left, there is nothing to prove.
    made, proof, tried = proven([row(topic, "rack-loss") for topic in "tuv"])
    assert len(tried) == 1 and made.change.steps == () and dict(made.left_out).keys() == {"t", "u", "v"}
    assert not proof.offered and proof.new == ()


def test_planned_topologies_are_evaluated_together_and_one_that_is_rejected_costs_itself(monkeypatch, tmp_path):
    from durability.steps import evaluate

    def drafted(cluster, steps=True):
        planned = SimpleNamespace(planned={"cluster": {"id": cluster}}, steps=steps)
        return SimpleNamespace(draft=SimpleNamespace(change=planned))

    def snapshots(own, connect, reporter):
        ids = [json.loads(file.read_text())["cluster"]["id"] for file in sorted(own.topology.iterdir())]
        return [
            {"cluster": id, "status": {"us": "rejected"}.get(id, "accepted"), "reason": "no brokers"} for id in ids
        ], []

    def plan_evaluation(own, kind, run_id, attempt, rows, problems):
        parts = [SimpleNamespace(cluster=row["cluster"]) for row in rows]
        return Evaluated(parts, parts)

    @dataclass(frozen=True)
    class Evaluated:
        snapshots: list
        judged: list

    ran = []
    monkeypatch.setattr(audit, "snapshots", snapshots)
    monkeypatch.setattr(evaluate, "plan_evaluation", plan_evaluation)
    monkeypatch.setattr(prove_step, "results_of", lambda lake, plan: [part.cluster for part in plan.snapshots])
    policies = {name: ROOT / "policies" / f"{name}.yaml" for name in ("policy", "waivers", "clusters")}
    settings = Settings(**policies, out=tmp_path / "out", lake=str(tmp_path / "lake"), topology=None)
    made = [drafted("asia"), drafted("eu"), drafted("us"), drafted("za", steps=False)]
    found = prove_step.planned_results(settings, made, lambda lake, plan: ran.append(plan), tmp_path / "scratch")
    assert len(ran) == 1 and found.keys() == {"asia", "eu", "us"}
    assert (found["asia"], found["eu"]) == (["asia"], ["eu"])
    assert "us: its snapshot can't be used: no brokers" in str(found["us"])


def test_open_findings_are_named_also_if_the_cluster_has_none_of_the_chosen_ones(monkeypatch, tmp_path):
    monkeypatch.setattr(change, "_document", lambda *_: {"topics": []})
    monkeypatch.setattr(change, "of_snapshot", lambda *_: Judged(None, None, {"aaaa1": {"id": "aaaa1"}}, frozenset()))
    opened: set[str] = set()
    asked = Request(Chosen(findings=("aaaa2",)), Limits())
    with pytest.raises(NotOfCluster):
        change.draft_change(SimpleNamespace(open_lake=lambda: None), {}, asked, None, prove_step.Silent(), opened)
    assert opened == {"aaaa1"}
