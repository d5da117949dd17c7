"""The gate of a rolling restart, against a real cluster that is whole, broken, and whole again."""

import time

import pytest
from typer.testing import CliRunner

from durability.cli.app import app
from durability.collect import collect
from durability.embedded_kafka import seed


@pytest.fixture
def said(kafka, tmp_path):
    def run(brokers: str):
        options = ["--bootstrap", kafka.bootstrap, "--brokers", brokers, "--out", str(tmp_path)]
        return CliRunner().invoke(app, ["restart-check", *options])

    return run


def test_a_wave_goes_while_the_cluster_is_whole_and_waits_while_it_is_not(kafka, said):
    racks = [[b for b, rack in kafka.spec.brokers.items() if rack == name] for name in ("az1", "az2", "az3")]
    spread = tuple(rack[0] for rack in racks)
    seed.create_topics(kafka, [seed.Topic("restart-check", (spread,), {"min.insync.replicas": "2"})])
    kafka.wait_for_full_isr()
    one, two = str(spread[0]), f"{spread[0]},{spread[1]}"
    assert said(one).exit_code == 0 and f"go: nodes {one}" in said(one).output
    refused = said(two)
    assert refused.exit_code == 1 and "wait: acks=all writes would be rejected" in refused.output
    kafka.stop_broker(spread[2])
    waiting = said(one)
    assert waiting.exit_code == 1
    assert f"wait: brokers are down: {spread[2]}" in waiting.output and "the ISR isn't whole" in waiting.output
    kafka.restore()
    assert said(one).exit_code == 0


def test_a_controller_that_was_killed_a_moment_ago_keeps_the_next_one_running(kafka, said):
    """A scripted roll: one controller stops, and the next one is asked for at once."""
    kafka.wait_for_full_isr()
    quorum = collect("eu", {"bootstrap.servers": kafka.bootstrap}).document["cluster"]["quorum"]
    dead, other = (voter["id"] for voter in quorum["voters"] if voter["id"] != quorum["leader"])
    assert said(str(other)).exit_code == 0
    kafka.kill([dead])
    time.sleep(0.5)
    for node in (other, quorum["leader"]):
        waiting = said(str(node))
        assert waiting.exit_code == 1, waiting.output
        assert f"controllers are down or have not caught up: {dead}" in waiting.output
        assert "the controllers would lose their majority" in waiting.output
