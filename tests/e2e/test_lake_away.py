"""A lake on S3 with a PostgreSQL catalog, through all rooms: what it says is what a lake in a folder says."""

import json

import pytest

from durability.lake import tables
from durability.report.build import build
from durability.runtime import spark
from expectations import posture

MOMENT, LATER = "2026-11-21T02:00:00Z", "2026-11-21T02:05:00Z"


@pytest.mark.parametrize("lake", ["s3"], indirect=True)
def test_a_night_and_a_pulse(run, lake, tmp_path):
    assert run("nightly", MOMENT) == "complete"
    (plan,) = run.plans
    build(lake, plan, posture.flag(lake, plan, tmp_path / "report"), tmp_path / "report")
    told = json.loads((tmp_path / "report" / "findings.json").read_text())
    assert {f["cluster"] for f in told["findings"]} == {"eu", "us"}
    categories = {(f["resource"], f["category"]) for f in told["findings"] if f["control"] == "partition-health"}
    assert categories == {("shrunk", "at-min-isr"), ("shrunk", "under-replicated"), ("gone", "offline")}

    assert run("pulse", LATER) == "complete"
    counted = lake.scan(
        tables.HEALTH_COUNTERS, f"result_id = '{run.plans[-1].result_id}'", ["cluster", "topic", "offline"]
    )
    wholes = [row for row in counted.to_pylist() if row["topic"] is None]
    assert sorted((row["cluster"], row["offline"]) for row in wholes) == [("eu", 1), ("us", 1)]
    assert lake.scan(tables.PARTITIONS, columns=["cluster"]).num_rows == 6


def test_spark_on_s3_takes_what_iceberg_needs_for_it():
    on_s3, in_folder = (spark.jars(lake).split(",") for lake in ("s3://bucket/lake", "lake"))
    assert {path.rpartition("/")[2].rpartition("-")[0] for path in set(on_s3) - set(in_folder)} == {
        "iceberg-aws-bundle"
    }
