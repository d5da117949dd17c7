"""Elections of leaders, and what brings partitions back whose broker is gone for good."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from durability.remedies import elections, replicas
from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import Elect, lines
from durability.remedies.steps import render

ONLY = [{"partition": 4, "broker": 3}]
SHOWN = (
    '{"version":1,"brokers":[{"broker":3,"logDirs":[{"logDir":"/d","error":null,"partitions":'
    '[{"partition":"orders-14","size":9,"offsetLag":0,"isFuture":false},'
    '{"partition":"orders-4","size":%s,"offsetLag":0,"isFuture":false}]}]}]}'
)


def ran(folder: Path, said: str, script: str) -> str:
    """What the script prints, with tools that print `said` or their own name."""
    for tool, prints in (("kafka-log-dirs", said), ("kafka-leader-election", "elected")):
        path = folder / tool
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{prints}'\n")
        path.chmod(0o700)
    search = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script], env={"PATH": search}, capture_output=True, text=True, timeout=30)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("size", "printed"),
    [("120", "elected"), ("0", "broker 3 shows no record of orders-4: its disk may be new")],
)
def test_a_replica_without_a_record_is_not_elected(tmp_path, size, printed):
    script = "\n".join(lines(Elect("orders", 4, only=3), ClusterFacts((4, 0), kraft=True)))
    assert ran(tmp_path, SHOWN % size, script) == printed


def test_a_replica_that_no_log_dir_shows_is_not_elected(tmp_path):
    script = "\n".join(lines(Elect("orders", 5, only=3), ClusterFacts((4, 0), kraft=True)))
    assert ran(tmp_path, SHOWN % "120", script) == "broker 3 shows no record of orders-5: its disk may be new"


def test_a_single_replica_that_can_lead_may_have_a_new_disk():
    facts = ClusterFacts((4, 0), kraft=True, led=True)
    text = render(elections.elect("orders", [2, 4], facts, ONLY), facts)
    assert "# Only broker 3 can lead partition 4.\n" in text
    assert elections.NEW_DISK in text
    assert text.count("kafka-log-dirs") == 1


@pytest.mark.parametrize(
    "facts", [ClusterFacts((3, 6), kraft=True, led=True), ClusterFacts((4, 0), kraft=True, led=True)]
)
def test_no_word_of_new_disks_where_they_do_not_explain_it(facts):
    only = ONLY if facts.before(3, 7) else []
    text = render(elections.elect("orders", [4], facts, only), facts)
    assert "empty disk" not in text
    assert "kafka-log-dirs" not in text
    assert "kafka-leader-election" in text


def test_a_partition_without_a_copy_is_not_worth_a_topic():
    back = replicas.bring_back("broker:3 down", ClusterFacts((3, 9), kraft=True), offline=True)
    text = render(back, ClusterFacts((3, 9), kraft=True))
    assert "first reassign the partition to two live brokers or more, then elect one of them" in text
    assert "a new broker with the same id and empty disks" in text


@pytest.mark.parametrize("facts", [ClusterFacts((2, 3)), ClusterFacts((3, 6), kraft=False)])
def test_with_zookeeper_a_new_broker_brings_back_a_partition_without_a_copy(facts):
    text = render(replicas.bring_back("broker:3 down", facts, offline=True), facts)
    assert replicas.WITHOUT_LEADER_IN_ZOOKEEPER in text
    assert "kafka-leader-election" not in text


def test_partitions_with_a_leader_need_no_election():
    text = render(
        replicas.bring_back("broker:3 down", ClusterFacts((3, 9), kraft=True)), ClusterFacts((3, 9), kraft=True)
    )
    assert "unclean" not in text
