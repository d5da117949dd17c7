"""The command `drill`: a document in miniature on real brokers that are killed. Its own test of predictions is `test_losses`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import psutil
import pytest
from typer.testing import CliRunner

from durability.cli.app import app
from durability.report import whatif
from tests.support.schemas import problems
from tests.support.topology import document

TABLE = """
    topic   leader replicas isr     min
    orders  1      1,2,3    1,2,3   2
    orders  2      2,3,1    2,3,1   2
    orders  2      2,4,3    2,4,3   2
    strict  1      1,2,3    1,2,3   3
    pair    1      1,4      1,4     1
    single  1      1        1       1
    logs    1      1,4,2    1,4,2   2
"""
BROKERS = "1:az1 4:az1 2:az2 3:az3"
SECONDS = 900


@pytest.fixture
def drawn(tmp_path):
    features = {"eligible.leader.replicas.version": 1}
    configs = {"logs": {"unclean.leader.election.enable": "true"}}
    made = document(TABLE, cluster="eu", brokers=BROKERS, features=features, configs=configs)
    path = tmp_path / "eu.json"
    path.write_text(json.dumps(made))
    return path


def options(drawn, lose: str) -> list[str]:
    return ["drill", "--lose", lose, "--topology", str(drawn), "--out", str(drawn.parent / "out")]


def written(drawn) -> dict:
    return json.loads((drawn.parent / "out" / "drill.json").read_text())


@pytest.mark.slow
@pytest.mark.usefixtures("warm_spark")
def test_the_loss_of_a_rack_is_rehearsed(drawn):
    command = [sys.executable, "-m", "durability.cli", *options(drawn, "rack:az1")]
    done = subprocess.run(command, cwd=drawn.parent, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Without rack:az1, in eu: 7 of 7 partitions agree with the prediction (100 %)." in done.stdout
    found = written(drawn)
    assert problems("drill", found) == []
    assert (found["compared"], found["agreed"], found["agreement"], found["differs"]) == (7, 7, 1.0, [])
    assert found["lose"]["brokers"] == [1, 4] and found["lose"]["controllers"] == [101]
    assert found["quorum"] == {"voters": 3, "left": 2, "needed": 2, "kept": True}
    assert found["fields"]["leader"] == found["fields"]["serves"] == {"compared": 7, "agreed": 7}
    # Without a leader, nobody can say who stays in the ISR.
    assert found["fields"]["isr"] == {"compared": 5, "agreed": 5}
    assert found["miniature"]["placements"] == 7 and found["miniature"]["left_out"] == []
    assert found["ledger"]["whole"] and found["ledger"]["acknowledged"] >= 14


@pytest.mark.slow
@pytest.mark.usefixtures("warm_spark")
def test_a_wrong_prediction_is_a_difference(drawn, monkeypatch):
    """The quorum is lost, too: what is wrong shows in what a record becomes, because metadata shows nothing."""
    right = whatif.rows

    def wrong(lake, plan):
        for row in right(lake, plan):
            yield row | {"now": "NONE"} if row["topic"] == "drill-0" else row

    monkeypatch.setattr(whatif, "rows", wrong)
    done = CliRunner().invoke(app, options(drawn, "broker:1,controller:101,controller:102"))
    assert done.exit_code == 1, done.output
    assert "6 of 7 partitions agree with the prediction (85.71 %)" in done.output
    assert "logs-0: serves predicted accepts, seen offline" in done.output
    found = written(drawn)
    assert problems("drill", found) == []
    assert [(entry["field"], entry["predicted"], entry["seen"]) for entry in found["differs"]] == [
        ("serves", "accepts", "offline"),
        ("error", None, "LEADER_NOT_AVAILABLE"),
    ]
    assert found["quorum"]["kept"] is False and "leader" not in found["fields"]
    assert {entry["field"] for entry in found["not_compared"]} == {"leader", "isr"}
    assert found["ledger"]["whole"]


def test_ctrl_c_ends_everything_that_was_started(drawn):
    command = [sys.executable, "-m", "durability.cli", *options(drawn, "broker:1")]
    running = subprocess.Popen(command, cwd=drawn.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert running.stdout is not None
    started: set[psutil.Process] = set()
    line = running.stdout.readline()
    assert "rebuild" in line, line + running.stdout.read()
    started |= set(psutil.Process(running.pid).children(recursive=True))
    assert len([p for p in started if "kafka.Kafka" in p.cmdline()]) == 7
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    deadline = time.monotonic() + 20
    while (left := [p for p in started if p.is_running()]) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []
    assert not (drawn.parent / "out" / "drill.json").exists()
