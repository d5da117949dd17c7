"""A prediction from the command line, and again through Airflow from the lake that the first one left."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

from durability.lake import Lake
from tests.support.lake import publish
from tests.support.schemas import problems
from tests.support.topology import document

TABLE = """
    topic     leader replicas isr   min
    payments  1      1,2,3    1,2,3 2
    payments  2      2,3,1    2,3   2
    cache     1      1        1     1
"""


def run(folder, name: str, *options: str) -> subprocess.CompletedProcess:
    out = () if "--out" in options else ("--out", str(folder / "out"))
    command = [sys.executable, "-m", "durability.cli", name, *out, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)


def predict(folder, *options: str) -> subprocess.CompletedProcess:
    return run(folder, "whatif", *options)


@pytest.mark.slow
@pytest.mark.usefixtures("warm_spark")
def test_a_loss_is_predicted_from_a_document_and_from_the_lake(tmp_path):
    clusters = tmp_path / "clusters"
    clusters.mkdir()
    for name in ("eu", "us"):
        (clusters / f"{name}.json").write_text(json.dumps(document(TABLE, cluster=name, brokers="1:az1 2:az2 3:az3")))
    lake = str(tmp_path / "lake")

    of_documents = ("--topology", str(clusters), "--lake", lake)
    refused = predict(tmp_path, "--lose", "broker:2", *of_documents)
    assert refused.returncode == 2
    assert "the input has several clusters; name one with --cluster: eu, us" in refused.stderr
    unknown = predict(tmp_path, "--lose", "rack:az4", "--cluster", "eu", *of_documents)
    assert unknown.returncode == 2 and "there are az1, az2, az3" in unknown.stderr
    assert [*tmp_path.iterdir()] == [clusters]

    done = predict(tmp_path, "--lose", "broker:2", "--cluster", "eu", *of_documents)
    assert done.returncode == 0, done.stderr
    assert "Without broker:2, in eu: 1 partition rejects acks=all writes" in done.stdout
    found = json.loads((tmp_path / "out" / "whatif.json").read_text())
    assert found["views"]["now"] == {"lost": 0, "at_risk": 0, "offline": 0, "rejects": 1, "accepts": 2, "unknown": 0}
    with (tmp_path / "out" / "whatif.csv").open() as file:
        [line] = csv.DictReader(file)
    assert (line["topic"], line["partition"], line["after"]) == ("payments", "1", "rejects")
    assert (line["error"], line["leader_before"], line["leader_after"]) == ("NOT_ENOUGH_REPLICAS", "2", "3")

    unknown = predict(tmp_path, "--lose", "broker:9", "--cluster", "eu", "--lake", lake)
    assert unknown.returncode == 2 and "there are 1, 2, 3" in unknown.stderr
    planned = run(tmp_path, "restart-plan", "--cluster", "eu", "--lake", lake)
    assert planned.returncode == 0, planned.stderr
    plan = json.loads((tmp_path / "out" / "restart.json").read_text())
    assert problems("restart", plan) == []
    assert "eu restarts in 3 waves: no plan has fewer." in planned.stdout
    assert (plan["bound"], plan["proven"], plan["by_rack"]["valid"]) == (3, True, True)
    assert plan["before"] == {"down": [], "unknown": [], "partitions_not_in_sync": 1}
    assert [(entry["topic"], entry["happens"]) for entry in plan["unavoidable"]] == [("cache", "offline")]

    # Through Airflow, from the older of two snapshots.
    (clusters / "us.json").unlink()
    publish(
        Lake.open(lake),
        document("topic replicas isr min\nlate 1 1 1", cluster="eu", captured_at="2026-11-22T02:00:00Z"),
    )
    again = ("--lose", "broker:2", "--topology", str(clusters), "--lake", lake, "--out", str(tmp_path / "drill"))
    drilled = predict(tmp_path, *again, "--airflow")
    assert drilled.returncode == 0, drilled.stderr
    assert "Without broker:2, in eu: 1 partition rejects acks=all writes" in drilled.stdout
    assert json.loads((tmp_path / "drill" / "whatif.json").read_text()) == found
