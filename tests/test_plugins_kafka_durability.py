"""The Airflow plugin: it loads, its hook reads Connections, and its steps account for every source."""

from __future__ import annotations

import json
import re
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from durability.launch import spark
from tests.support.airflow import result, run_dag, run_in_airflow

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = str(ROOT / "plugins")


@pytest.fixture(autouse=True)
def plugins_on_path(monkeypatch):
    """As Airflow has it."""
    monkeypatch.syspath_prepend(PLUGINS)


def test_a_hook_gives_the_connections_settings(tmp_path):
    source = """
import json
from airflow import settings
settings.initialize()
from kafka_durability.hook import KafkaHook
from durability.errors import BadInput
seen = {}
for name in ("kafka_full", "kafka_host", "kafka_empty"):
    try:
        seen[name] = KafkaHook(name).settings()
    except BadInput as error:
        seen[name] = str(error)
print("RESULT", json.dumps(seen))
"""
    full = {"conn_type": "kafka", "extra": {"bootstrap.servers": "a:1,b:2", "security.protocol": "SSL"}}
    host = {"conn_type": "kafka", "host": "c", "port": 3, "login": "u", "password": "p"}
    output = run_in_airflow(
        tmp_path,
        source,
        AIRFLOW_CONN_KAFKA_FULL=json.dumps(full),
        AIRFLOW_CONN_KAFKA_HOST=json.dumps(host),
        AIRFLOW_CONN_KAFKA_EMPTY=json.dumps({"conn_type": "kafka"}),
    )
    assert result(output) == {
        "kafka_full": {"bootstrap.servers": "a:1,b:2", "security.protocol": "SSL"},
        "kafka_host": {"bootstrap.servers": "c:3", "sasl.username": "u", "sasl.password": "p"},
        "kafka_empty": "Connection kafka_empty, bootstrap.servers: missing; expected host:port in the extra",
    }


def test_a_fleet_is_dealt_into_as_many_groups_as_run_at_once(tmp_path):
    from kafka_durability.sources import deal, from_clusters

    rows = "".join(f"  - {{id: c{n}, connection: k, controllers: {{100: az1}}}}\n" for n in range(40))
    (tmp_path / "clusters.yaml").write_text(f"format: durability-clusters/1\nclusters:\n{rows}")
    groups = deal(from_clusters(tmp_path / "clusters.yaml"))
    assert [len(g) for g in groups] == [10] * 4
    assert sorted(s["name"] for g in groups for s in g) == sorted(f"c{n}" for n in range(40))
    assert json.loads(json.dumps(groups)) == groups


def test_a_fleet_without_a_cluster_is_skipped_and_not_failed(tmp_path):
    """As shipped: nobody has named a cluster yet, and the schedule runs."""
    (tmp_path / "clusters.yaml").write_text("format: durability-clusters/1\nclusters: []\n")
    conf = {"clusters": "clusters.yaml", "lake": str(tmp_path / "lake"), "out": "out"}
    states = run_dag(tmp_path, "health_pulse", conf)
    assert states == {"run": "success", "plan": "success", "discard": "success"} | dict.fromkeys(
        ("collect", "gate", "publish", "evaluate", "conclude"), "skipped"
    )


def test_a_group_that_brought_nothing_is_missing_by_name():
    from kafka_durability.operators import gather

    planned = [[{"name": "a"}, {"name": "b"}], [{"name": "c"}], [{"name": "d"}]]
    read = {"sources": ["a", "b"], "attempts": ["of a"], "failures": [{"cluster": "b", "reason": "refused", "at": "t"}]}
    got = gather(planned, [read])
    assert got["attempts"] == ["of a"]
    assert [f["cluster"] for f in got["failures"]] == ["b", "c", "d"]
    assert got["lost"] == [
        f"{name}: its collect task ended without a result; see that task's log" for name in ("c", "d")
    ]


class Recorder:
    """A lake that takes what is staged and keeps it in memory."""

    def stage(self, topology, **_):
        return type("Attempt", (), {"to_json": lambda self: json.dumps({"cluster": topology, "partitions": 0})})()


def test_one_cluster_that_fails_costs_the_others_nothing(monkeypatch):
    from kafka_durability.collecting import collect_group

    import durability.collect
    from durability.errors import Unreachable

    def collect(name, settings, **_):
        if name == "gone":
            raise Unreachable("cluster gone: no answer")
        if name == "odd":
            raise KeyError("endpoint_type")
        return name

    def connect(connection):
        if connection == "unknown":
            raise LookupError("no such Connection")
        return {"bootstrap.servers": "x:1", "sasl.password": "hunter2"}

    monkeypatch.setattr(durability.collect, "collect", collect)
    group = [
        {"name": name, "connection": connection, "partitions": 1, "seconds": 60}
        for name, connection in [("good", "k"), ("gone", "k"), ("odd", "k"), ("lost", "unknown")]
    ]
    got = collect_group(Recorder(), group, connect, seconds=60)
    assert got["sources"] == ["good", "gone", "odd", "lost"]
    assert [a["cluster"] for a in got["attempts"]] == ["good"]
    assert {f["cluster"]: f["reason"] for f in got["failures"]} == {
        "gone": "cluster gone: no answer",
        "odd": "defect while reading: KeyError: 'endpoint_type'",
        "lost": "defect while reading: LookupError: no such Connection",
    }
    assert "hunter2" not in json.dumps(got)


def test_what_is_handed_over_comes_back_and_goes_when_it_is_old(tmp_path):
    import os

    from kafka_durability import handover

    context = {"dag": SimpleNamespace(dag_id="d"), "run_id": "manual__2026-11-21T02:00:00+00:00"}
    reference = handover.put(str(tmp_path), handover.run_of(context), "gate", {"a": [1]})
    assert ".." not in reference and ":" not in reference
    assert handover.get(str(tmp_path), reference) == {"a": [1]}
    handover.prune(str(tmp_path), "d", 30)
    assert handover.get(str(tmp_path), reference) == {"a": [1]}
    os.utime(tmp_path / handover.FOLDER / reference, (0, 0))
    handover.prune(str(tmp_path), "d", 30)
    with pytest.raises(FileNotFoundError):
        handover.get(str(tmp_path), reference)


def test_catalog_passwords_are_in_a_file_only_its_owner_reads(tmp_path):
    path = spark.write_properties(tmp_path / "p", {"a.password": "x\\y", "b": "c d"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "a.password x\\\\y\nb c d\n"
    assert "password" not in " ".join(sys.argv)


@pytest.mark.parametrize(("memory", "heap"), [("", "5g"), ("3g", "3g")])
def test_spark_defaults_count_before_what_is_tuned_and_after_what_is_needed(tmp_path, monkeypatch, memory, heap):
    defaults = "spark.driver.memory 5g\nspark.sql.extensions theirs\nspark.executor.memory 640m\nspark.cut short\\"
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("DURABILITY_SPARK_MEMORY", memory)
    file = spark.write_properties(tmp_path / "p", spark.settings(7_000_000))
    # As Spark reads it: of several lines about one thing the last.
    told = dict(line.split(" ", 1) for line in file.read_text().splitlines() if line)
    assert told["spark.driver.memory"] == heap
    assert told["spark.sql.extensions"] == spark.ALWAYS["spark.sql.extensions"]
    assert (told["spark.executor.memory"], told["spark.cut"]) == ("640m", "short\\")
    assert told["spark.sql.adaptive.enabled"] == "false"


@pytest.mark.parametrize(("partitions", "heap", "ours"), [(100, "1g", "Serial"), (7_000_000, "2500m", "Parallel")])
def test_a_smaller_heap_is_not_exceeded_by_the_first_size_of_ours(partitions, heap, ours, tmp_path, monkeypatch):
    monkeypatch.delenv("DURABILITY_SPARK_MEMORY", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    first = spark.write_properties(tmp_path / "without", spark.settings(partitions)).read_text()
    assert f"-Xms{heap}" in first and f"spark.driver.memory {heap}" in first
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory=700m\n")
    file = spark.write_properties(tmp_path / "with", spark.settings(partitions)).read_text()
    assert "-Xm" not in file and f"-XX:+Use{ours}GC" in file


def test_the_heap_that_is_asked_for_is_whole_from_the_start(monkeypatch):
    monkeypatch.setenv("DURABILITY_SPARK_MEMORY", "1200m")
    asked = spark.settings(7_000_000)
    assert asked["spark.driver.memory"] == "1200m"
    assert re.findall(r"-Xm\S+", asked[spark.DRIVER_OPTIONS]) == ["-Xms1200m"]
