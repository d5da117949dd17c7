"""One walk of real clusters through failures, recorded at each rest and evaluated in one job, for all tests that compare.

4.3.1: all up, a slow reassignment, a broker down, its rack down, all back. 3.6.2: all up, a broker down, its rack down.
TOPICS and OLD_TOPICS are the walk's topics.
"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from tests.support.judge import Judge, pick
from tests.support.kafka_states import THROTTLE, Partition, State, look, reassign, throttle
from tests.support.policy import policy

RACKS = {1: "az1", 2: "az2", 3: "az3", 4: "az1", 5: "az2", 6: "az3"}
ALONE, LOST_RACK = 5, "az2"  # the broker that dies first; then its rack does, with broker 2, which has a voter

# topic -> min.insync.replicas (None for the cluster's, 2) and the replicas of each partition.
TOPICS: dict[str, tuple[int | None, list[list[int]]]] = {
    "h-rf1": (1, [[5], [1], [2]]),
    "h-rf1-min2": (2, [[1], [5]]),
    "h-rf2-min2": (2, [[1, 5], [3, 4], [5, 2]]),
    "h-rf2-min3": (3, [[1, 5], [3, 4], [2, 3]]),
    "h-rf3-min3": (3, [[1, 2, 3], [4, 5, 6], [1, 4, 3]]),
    "h-rf3-min1": (1, [[1, 2, 3], [5, 2, 4], [6, 4, 1]]),
    "h-rf3-default": (None, [[1, 2, 3], [5, 6, 4], [2, 5, 1]]),
    "h-unclean": (1, [[5, 2], [5, 1]]),
    "h-growing": (2, [[1]]),
    "h-crawling": (1, [[1, 2]]),
}
OLD_TOPICS: dict[str, tuple[int | None, list[list[int]]]] = {
    "h-rf1": (1, [[1], [2]]),
    "h-rf2": (1, [[1, 2], [2, 1]]),
    "h-rf2-min2": (2, [[1, 2]]),
    "h-rf2-min3": (3, [[1, 2]]),
    "h-rf3-min2": (2, [[1, 2, 3]]),
    "h-rf3-default": (None, [[3, 1, 2]]),
}
POLICY = policy("""
tiers: {all: {replication_factor: 1, min_insync_racks: 2, acked_copies: 2, acked_racks: 2}}
topics: [{tier: all}]
""")


def create(kafka: LocalCluster, topics: dict[str, tuple[int | None, list[list[int]]]]) -> None:
    def configs(name: str, minimum: int | None) -> dict[str, str]:
        stated = {} if minimum is None else {"min.insync.replicas": str(minimum)}
        return stated | ({"unclean.leader.election.enable": "true"} if name == "h-unclean" else {})

    seed.create_topics(
        kafka, [seed.Topic(name, places, configs(name, least)) for name, (least, places) in topics.items()]
    )
    kafka.wait_for_full_isr()


def crawl(kafka: LocalCluster) -> None:
    """Start a reassignment that copies a megabyte about every eleven seconds (Kafka's quota window), of twenty."""
    kafka.cli(
        "ConfigCommand", "--alter", "--entity-type", "topics", "--entity-name", "h-crawling",
        "--add-config", f"{THROTTLE}.replicas=[0:3,0:4]",
    )  # fmt: skip
    records = ("--num-records", "200", "--record-size", "100000", "--throughput", "-1")
    kafka.cli("ProducerPerformance", "--topic", "h-crawling", *records)
    throttle(kafka, (3, 4), "1")
    reassign(kafka, "h-crawling", [3, 4])


def from_whole_to_a_rack_lost_and_back(kafka: LocalCluster) -> dict[str, State]:
    create(kafka, TOPICS)
    seen = {"whole": look(kafka)}
    try:
        crawl(kafka)
        seen["moving"] = look(kafka)
        kafka.kill_broker(ALONE)
        reassign(kafka, "h-growing", [1, ALONE])
        seen["broker-down"] = look(kafka)
        kafka.kill_rack(LOST_RACK)
        seen["rack-down"] = look(kafka)
    finally:
        throttle(kafka, (3, 4), None)
        for topic in ("h-growing", "h-crawling"):
            reassign(kafka, topic, None)
        kafka.restore()
    seen["restored"] = look(kafka)
    return seen


def an_old_release() -> dict[str, State]:
    """Kafka 3.6.2, before KAFKA-15583 and KIP-966: three brokers, one down, and the other one of its rack down."""
    spec = ClusterSpec(brokers={1: "az1", 2: "az2", 3: "az2"}, controllers={1: "az1"}, version="3.6.2")
    with LocalCluster(spec) as kafka:
        create(kafka, OLD_TOPICS)
        seen = {"old-whole": look(kafka)}
        kafka.kill_broker(2)
        seen["old-broker-down"] = look(kafka)
        kafka.kill_broker(3)
        return seen | {"old-rack-down": look(kafka)}


@dataclass(frozen=True)
class Judged:
    """Every state with its findings.

    after: findings of the second run on the cluster whose rack came back.
    acks: what acked-durability says about every partition, each evaluated as a separate topic.
    """

    states: dict[str, State]
    found: dict[str, list[dict]]
    after: list[dict]
    acks: dict[str, dict[Partition, dict]]


ALONE_TOPIC = "_p_"


def apart(document: dict) -> dict:
    """The document with every partition as a separate topic, as a cluster with another name."""
    document = copy.deepcopy(document)
    document["cluster"]["id"] += ALONE_TOPIC
    document["topics"] = [
        {**topic, "name": f"{topic['name']}{ALONE_TOPIC}{p['partition']}", "partitions": [{**p, "partition": 0}]}
        for topic in document["topics"]
        for p in topic["partitions"]
    ]
    return document


def partition_of(name: str) -> Partition:
    topic, _, number = name.partition(ALONE_TOPIC)
    return topic, int(number)


@pytest.fixture(scope="package")
def judged(spark, kafka_cluster) -> Judged:
    with ThreadPoolExecutor(1) as beside:
        old = beside.submit(an_old_release)
        states = from_whole_to_a_rack_lost_and_back(kafka_cluster)
    with kafka_cluster.admin() as admin:
        admin.delete_topics(list(TOPICS))
    everything = states | old.result()
    judge = Judge(spark)
    first = {name: state.as_cluster(name) for name, state in everything.items() if name != "restored"}
    partitions = [apart(state.as_cluster(name)) for name, state in everything.items()]
    found = judge.run([*first.values(), *partitions], POLICY, result="r1")
    plan = judge.plan
    after = judge.run([states["restored"].as_cluster("rack-down")], POLICY, result="r2", previous=plan)
    after = pick(after, cluster="rack-down")
    by_state = {name: pick(found, cluster=name) for name in first}
    acks = {name: pick(found, cluster=name + ALONE_TOPIC, control="acked-durability") for name in everything}
    return Judged(
        everything,
        by_state | {"restored": [f for f in after if f["change"] != "resolved"]},
        after,
        {name: {partition_of(f["resource"]): f["observed"]["acks"] for f in rows} for name, rows in acks.items()},
    )
