"""The DAG remediate: planned and proven, approved by a person, applied to real brokers under an application, and verified."""

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
from tests.support.acked_writer import AckedWriter
from tests.support.approval import run_approved
from tests.support.lake import accepted
from tests.support.schemas import problems

MIN = "min.insync.replicas"
TOPICS = [
    seed.Topic("remediated.one", ((1,), (3,)), {MIN: "1"}),
    seed.Topic("remediated.two", ((1, 2), (2, 3)), {MIN: "2"}),
    seed.Topic("remediated.spread", ((1, 4, 2), (3, 2, 5)), {MIN: "2"}),
    seed.Topic("remediated.above", ((2, 1), (5, 3)), {MIN: "3"}),
]
UNRACKED = 6


@pytest.fixture
def topics(kafka):
    """Topics with a finding each, and a broker without a rack. Both are as before at the end: other tests count on the racks."""
    settings = kafka._node(UNRACKED).home / "server.properties"
    before = settings.read_text()
    settings.write_text("".join(line for line in before.splitlines(keepends=True) if "broker.rack" not in line))
    try:
        kafka.roll([UNRACKED])
        seed.create_topics(kafka, TOPICS)
        kafka.wait_for_full_isr()
        yield
        with kafka.admin() as admin:
            admin.delete_topics([topic.name for topic in TOPICS])
    finally:
        settings.write_text(before)
        kafka.roll([UNRACKED])


def seen(connection: dict) -> tuple[list[dict], list[str]]:
    """The topics as the cluster states them now, and the names of settings that they and the brokers have of their own."""
    document = collect("eu", connection).document
    found = [topic for topic in document["topics"] if topic["name"].startswith("remediated.")]
    sources = [one["config_sources"] for one in (*found, *document["brokers"])]
    return found, [name for one in sources for name, source in one.items() if source != "default"]


@pytest.mark.slow
@pytest.mark.usefixtures("topics", "warm_spark")
def test_a_plan_changes_nothing_when_rejected_and_fixes_its_findings_when_approved(kafka, tmp_path, monkeypatch):
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
    environ = {
        "AIRFLOW_CONN_SPARK": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "AIRFLOW_CONN_KAFKA_EU": json.dumps({"conn_type": "kafka", "extra": connection | {"allow_changes": True}}),
    }
    # Each run is in a folder of its own, for its Airflow.
    for name in ("rejected", "approved"):
        (tmp_path / name).mkdir()
    asked |= {"apply": True, "throttle": 10_000_000}
    states, _ = run_approved(
        tmp_path / "rejected", "remediate", asked | {"topic": "remediated.*"}, "Reject", {}, **environ
    )
    skipped = dict.fromkeys(("apply", "restore", "verify"), "skipped")
    assert states == dict.fromkeys(("run", "plan", "report", "allowed", "approve"), "success") | skipped
    assert lake.scan(CHANGES).num_rows == 0
    plan = change.read(out / "plan" / "eu")
    assert plan["proof"]["offered"] and plan["proof"]["remains"] == []
    assert {step["kind"] for step in plan["steps"]} >= {"lower-min-isr", "reassign", "raise-min-isr"}

    form = {"comment": "at night"}
    asked |= {"plan": plan["id"]}
    partitions = [(topic.name, number) for topic in TOPICS for number, _ in enumerate(topic.assignments)]
    with AckedWriter(kafka.bootstrap, partitions) as application:
        states, shown = run_approved(tmp_path / "approved", "remediate", asked, "Approve", form, **environ)
        kafka.wait_until(application.accepted_by_all, "each partition accepts writes after the plan")
    assert set(states.values()) == {"success"}, states
    assert shown["defaults"] == ["Reject"] and plan["id"] in shown["subject"]
    assert "01-lower-min-isr" in shown["body"] and "The Connection has all of them." in shown["body"]

    found, own = seen(connection)
    racks = {1: "az1", 2: "az2", 3: "az3", 4: "az1", 5: "az2"}
    for partition in (partition for topic in found for partition in topic["partitions"]):
        assert UNRACKED not in partition["replicas"] and len(partition["replicas"]) == 3
        assert len({racks[broker] for broker in partition["replicas"]}) >= 2  # as the tier standard requires
        assert sorted(partition["isr"]) == sorted(partition["replicas"])
    assert [topic["configs"][MIN] for topic in found] == ["2"] * len(TOPICS)
    assert MIN in own and not [name for name in own if "throttled" in name]
    assert (application.refused(), application.lost()) == ([], set())

    rows = lake.scan(CHANGES).to_pylist()
    assert {row["kind"] for row in rows} >= {"claim", "reassign", "throttle", "set-config"}
    assert {(row["plan"], row["approved_by"], row["comment"]) for row in rows} == {(plan["id"], "anna", "at night")}

    [file] = (out / "plan" / "applied+plans" / "eu").iterdir()
    applied = json.loads(file.read_text())
    assert problems("plan-applied", applied) == []
    assert (applied["plan"], applied["approved_by"]) == (plan["id"], "anna")
    assert applied["done"] == [step["id"] for step in plan["steps"]]
    assert {t["state"] for t in applied["targets"]} == {"gone"}
