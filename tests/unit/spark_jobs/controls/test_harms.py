"""Commands that harm a running cluster when they are pasted, and must not be printed."""

from __future__ import annotations

import pytest

from tests.support.joined import Part
from tests.support.judge import one
from tests.support.policy import policy
from tests.support.topology import document

POLICY = policy("""
tiers:
  standard: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, replica_racks: 2}
  sites: {acked_racks: 2, write_headroom: 1}
  nothing: {}
topics:
  - {match: {topic: "leaning"}, tier: sites}
  - {match: {topic: "scratch"}, tier: nothing}
  - {tier: standard}
""")
FOUR = "0:az1 1:az2 2:az3 3:az1"
OFF = {"eligible.leader.replicas.version": 0}
RATE = "follower.replication.throttled.rate"
THROTTLED = {"configs": {RATE: "1000"}, "config_sources": {RATE: "cluster-default"}}
DOCUMENTS = [
    document("topic replicas isr min\nleaning 0,3,1 0,1,3 5", brokers=FOUR, cluster="leaning"),
    document(
        "topic replicas isr adding min\nmoving 0,1,2,3 0,1,2 3 2\nalone 1 1 - 1", brokers=FOUR, cluster="reassigning"
    ),
    document("topic replicas min\nscratch 0,1 -\ngood 0,1,2 2", brokers=FOUR, cluster="scratch", features=OFF),
    document("topic replicas min\nplain 0,1,2 -", brokers=FOUR, cluster="plain", features=OFF),
    document(
        "topic leader replicas isr min\ngone - 0,1,2 1 -\ngood 0 0,3,2 0,2,3 2",
        brokers="0:az1 1:az2! 2:az3 3:az1",
        cluster="offline",
        features=OFF,
    ),
    document("topic replicas min\ngood 0,1,2 2", brokers="0:az1 1:az2 2:az3", cluster="all-throttled",
             each_broker={0: THROTTLED, 1: THROTTLED, 2: {"configs": {RATE: "1000"}}}),
]  # fmt: skip


PARTS = [Part("critical", POLICY, DOCUMENTS)]


@pytest.fixture(scope="module")
def found(judged_once):
    return judged_once(*PARTS)[1]


def remedy(found: list[dict], cluster: str, control: str, **more: str) -> str:
    return one(found, cluster=cluster, control=control, outcome="FAIL", **more)["remediation"]


def commands(text: str) -> list[str]:
    return [line.removesuffix(" &&") for line in text.splitlines() if line.startswith("kafka-")]


def test_a_minimum_above_the_replicas_is_lowered_before_replicas_move(found):
    """While one replica moves there are four, so brokers would enforce 4 of 3 in sync."""
    first, move = commands(remedy(found, "leaning", "write-headroom"))[:2]
    assert first.endswith("--add-config min.insync.replicas=3") and "--execute" in move


def test_no_reassignment_is_started_while_another_runs(found):
    """Kafka's tool refuses it, and the rest of the script would run."""
    text = remedy(found, "reassigning", "replication-factor", resource="alone")
    assert commands(text) == [] and "First let the running reassignments of this cluster complete" in text


def test_enabling_elr_does_not_raise_the_minimum_of_topics_with_two_replicas(found):
    assert commands(remedy(found, "scratch", "eligible-leader-replicas"))[0].endswith("min.insync.replicas=1")
    assert commands(remedy(found, "plain", "eligible-leader-replicas"))[0].endswith("min.insync.replicas=2")


def test_the_default_minimum_stays_while_a_partition_that_inherits_it_is_offline(found):
    """Its replica may come back alone."""
    text = remedy(found, "offline", "broker-defaults")
    assert commands(text) == [] and "topic gone would inherit it" in text


def test_a_throttle_of_all_brokers_is_deleted_where_it_is_set(found):
    asks = """said=$(kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP" --list) && """
    idle = f"""{asks}{{ [[ $said = *"No partition reassignments found"* ]] || ! echo "$said"; }} &&"""
    tool = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter --entity-type brokers'
    text = remedy(found, "all-throttled", "reassignment-leftovers")
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        idle,
        f"{tool} --entity-default --delete-config {RATE}",
        idle,
        f"{tool} --entity-name 2 --delete-config {RATE}",
    ]
