"""The DAG remediate: planned and proven, approved by a person, applied to real brokers, and verified."""

from __future__ import annotations

import json

import pytest

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.lake import Lake
from durability.lake.change_table import CHANGES
from durability.report import change
from durability.topology import validate
from tests import ROOT
from tests.support.approval import run_approved
from tests.support.lake import accepted
from tests.support.schemas import problems

TOPIC = "remediated"


@pytest.fixture
def topic(kafka):
    """A topic of one replica, removed at the end: other tests expect that no topic has all its replicas in one rack."""
    seed.create_topics(kafka, [seed.Topic(TOPIC, ((1,), (3,)), {"min.insync.replicas": "1"})])
    seed.produce(kafka, TOPIC, ["one", "two", "three"])
    kafka.wait_for_full_isr()
    yield
    with kafka.admin() as admin:
        admin.delete_topics([TOPIC])


def seen(connection: dict) -> tuple[dict, list[str]]:
    """The topic as the cluster states it now, and the names of settings that it and the brokers have of their own."""
    document = collect("eu", connection).document
    [found] = [topic for topic in document["topics"] if topic["name"] == TOPIC]
    sources = [one["config_sources"] for one in (found, *document["brokers"])]
    return found, [name for one in sources for name, source in one.items() if source != "default"]


@pytest.mark.slow
@pytest.mark.usefixtures("topic")
def test_a_plan_is_approved_applied_and_verified(kafka, tmp_path, monkeypatch):
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    connection = {"bootstrap.servers": kafka.bootstrap}
    lake = Lake.open(str(tmp_path / "lake"))
    lake.ensure()
    topology = validate(collect("eu", connection).document, "eu")
    attempt = lake.stage(topology)
    lake.publish([attempt], accepted(attempt))
    lake.documents.keep(attempt, topology)
    clusters, out = tmp_path / "clusters.yaml", tmp_path / "out"
    clusters.write_text("format: durability-clusters/1\nclusters: [{id: eu, connection: kafka_eu}]\n")
    asked = {name: str(ROOT / "policies" / f"{name}.yaml") for name in ("policy", "waivers")}
    asked |= {"lake": lake.location, "out": str(out), "topology": None, "clusters": str(clusters), "cluster": "eu"}
    asked |= {"topic": TOPIC, "apply": True, "throttle": 10_000_000}
    environ = {
        "AIRFLOW_CONN_SPARK": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "AIRFLOW_CONN_KAFKA_EU": json.dumps({"conn_type": "kafka", "extra": connection | {"allow_changes": True}}),
    }
    states, asked_for = run_approved(tmp_path, "remediate", asked, "Approve", {"comment": "at night"}, **environ)
    assert set(states.values()) == {"success"}, states

    plan = change.read(out / "plan" / "eu")
    assert plan["targets"] and plan["proof"]["offered"]
    assert asked_for["defaults"] == ["Reject"] and plan["id"] in asked_for["subject"]
    assert "01-reassign" in asked_for["body"]

    found, own = seen(connection)
    assert all(len(set(p["replicas"])) == 3 and sorted(p["isr"]) == sorted(p["replicas"]) for p in found["partitions"])
    assert found["configs"]["min.insync.replicas"] == "2"
    assert "min.insync.replicas" in own and not [name for name in own if "throttled" in name]

    rows = lake.scan(CHANGES).to_pylist()
    assert {row["kind"] for row in rows} >= {"claim", "reassign", "throttle", "set-config"}
    assert {(row["plan"], row["approved_by"], row["comment"]) for row in rows} == {(plan["id"], "anna", "at night")}

    [file] = (out / "plan" / "applied+plans" / "eu").iterdir()
    applied = json.loads(file.read_text())
    assert problems("plan-applied", applied) == []
    assert (applied["plan"], applied["approved_by"]) == (plan["id"], "anna")
    assert applied["done"] == [step["id"] for step in plan["steps"]]
    assert {t["id"] for t in applied["targets"] if t["state"] == "gone"} >= set(plan["proof"]["mends"])
