"""The DAG failure_drill with `compare`: predicted, a broker killed while it waits, and seen partition by partition."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.lake import Lake
from tests import ROOT
from tests.support.airflow import run_dag
from tests.support.lake import publish
from tests.support.schemas import problems


@pytest.fixture
def topics(kafka):
    """Three topics, removed at the end: other tests kill racks, and expect that no topic has all its replicas in one."""
    two = {"min.insync.replicas": "2"}
    topics = [
        seed.Topic("compared", ((1, 3, 5), (3, 1, 5)), two),
        seed.Topic("compared-pair", ((3, 1),), two),
        seed.Topic("compared-alone", ((1,),), {}),
    ]
    seed.create_topics(kafka, topics)
    kafka.wait_for_full_isr()
    yield
    with kafka.admin() as admin:
        admin.delete_topics([topic.name for topic in topics])


@pytest.mark.slow
@pytest.mark.usefixtures("topics", "warm_spark")
def test_a_loss_that_happens_is_compared_with_its_prediction(kafka, tmp_path):
    connection = {"bootstrap.servers": kafka.bootstrap}
    lake = Lake.open(str(tmp_path / "lake"))
    lake.ensure()
    publish(lake, collect("eu", connection).document)
    clusters = tmp_path / "clusters.yaml"
    clusters.write_text("format: durability-clusters/1\nclusters: [{id: eu, connection: kafka_eu}]\n")
    out = tmp_path / "out"
    asked = {
        "cluster": "eu",
        "lose": ["broker:1"],
        "compare": True,
        "within": 5,
        "lake": lake.location,
        "out": str(out),
    }
    asked |= {"topology": None, "clusters": str(clusters)}
    asked |= {name: str(ROOT / "policies" / f"{name}.yaml") for name in ("policy", "waivers")}
    environ = {
        "AIRFLOW_CONN_SPARK": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "AIRFLOW_CONN_KAFKA_EU": json.dumps({"conn_type": "kafka", "extra": connection}),
    }
    with ThreadPoolExecutor(1) as beside:
        drill = beside.submit(run_dag, tmp_path, "failure_drill", asked, **environ)
        kafka.wait_until(lambda: drill.done() or (out / "whatif.json").exists(), "a prediction", 200)
        assert not (out / "drill.json").exists()
        kafka.kill_broker(1)
    assert set(drill.result().values()) == {"success"}
    found = json.loads((out / "drill.json").read_text())
    assert problems("drill", found) == []
    assert found["lose"]["brokers"] == [1] and found["differs"] == []
    assert found["agreement"] == 1.0 and found["agreed"] == found["compared"] >= 4
    with (out / "whatif.csv").open() as file:
        after = {(row["topic"], row["partition"]): row["after"] for row in csv.DictReader(file)}
    assert {key: after[key] for key in after if key[0].startswith("compared")} == {
        ("compared-pair", "0"): "rejects",
        ("compared-alone", "0"): "offline",
    }
