"""Spark and Python are one lake's readers and writers: each sees what the other committed, NULLs and all."""

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from pyiceberg.expressions import GreaterThanOrEqual

from durability.lake import iceberg, tables
from spark_jobs.session import table as name_of
from tests.support.lake import EVERYWHERE, publish
from tests.support.topology import document, healthy

pytestmark = EVERYWHERE
STREAM = {
    "group": "enrich",
    "type": "classic",
    "state": "Stable",
    "in_transition": False,
    "stateful_tasks": ["0_0"],
    "clients": [{"process": "p1", "tags": {"zone": "az1"}, "active": ["0_0"], "standby": []}],
}


def table(session, which):
    return session.table(name_of(session, which.name))


def normal(value):
    """Spark's rows and Python's as the same plain values."""
    if hasattr(value, "asDict"):
        return {name: normal(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: normal(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [normal(inner) for inner in value]
    if isinstance(value, bytearray):
        return bytes(value)
    return None if isinstance(value, datetime) else value


def test_spark_reads_every_fact_as_python_does(lake, session):
    publish(
        lake,
        document(
            "topic leader replicas isr elr bytes\norders 1 1,2,3 1,2 3 12\norders - 2,3 - - -",
            streams=[STREAM],
            features={"eligible.leader.replicas.version": 1},
            broker_configs={"min.insync.replicas": "2"},
            unreadable={
                "/brokers/3/configs": "dead",
                "/topics/orders/partitions/1/isr": "?",
                "/brokers/1/log_dirs": "?",
            },
        ),
    )
    for which in tables.FACTS:
        by_python = lake.scan(which)
        expected = by_python.to_pylist(maps_as_pydicts="strict")
        found = [normal(row) for row in table(session, which).collect()]
        key = str if which.name == "clusters" else lambda row: str(list(row.values())[4:6])
        assert sorted(found, key=key) == sorted(normal(expected), key=key), which.name


def test_python_reads_what_spark_wrote_and_spark_what_python_wrote_since(lake, session):
    assert table(session, tables.SNAPSHOTS).count() == 0
    publish(lake, healthy(cluster="a"), healthy(cluster="b"))
    assert table(session, tables.SNAPSHOTS).count() == 2

    moments = [datetime(2026, 11, day, tzinfo=UTC) for day in (21, 22)]
    rows = [("a", moment, "s", "run", "result", [1, None]) for moment in moments]
    schema = (
        "cluster string, captured_at timestamp, snapshot_id string, run_id string, result_id string, "
        "partitions array<int>"
    )
    frame = session.createDataFrame(rows, schema)
    target = table(session, tables.FINDINGS)
    missing = [field for field in target.schema if field.name not in frame.columns]
    complete = frame.selectExpr(
        "*", *(f"CAST(NULL AS {field.dataType.simpleString()}) {field.name}" for field in missing)
    )
    complete.select(target.columns).writeTo(name_of(session, "findings")).append()

    read = lake.scan(tables.FINDINGS, "run_id = 'run'")
    assert read.schema.equals(tables.FINDINGS.arrow)
    assert sorted(read["captured_at"].to_pylist()) == moments
    assert read["partitions"].to_pylist() == [[1, None]] * 2 and read["outcome"].null_count == 2
    assert len(lake._tables.committed(tables.FINDINGS, lake_day(22))) == 1


def lake_day(day):
    return GreaterThanOrEqual("captured_at", f"2026-11-{day}T00:00:00+00:00")


def test_spark_reads_a_table_that_got_a_column_after_its_files(lake, session, monkeypatch):
    publish(lake, healthy(cluster="before"))
    wider = replace(tables.TOPICS, columns=(*tables.TOPICS.columns, ("colour", pa.string())))
    monkeypatch.setattr(iceberg, "TABLES", tables.TABLES | {"topics": wider})
    lake.ensure()
    assert [row.colour for row in table(session, wider).collect()] == [None, None]
    assert lake.scan(wider)["colour"].to_pylist() == [None, None]
