"""Predictions of losses, against real clusters whose brokers and controllers are killed.

Each state is read, its loss predicted, the nodes killed with SIGKILL, and the cluster read again once they are fenced. The test
compares leaders, and what becomes of an acks=all record for each partition. Each record is a request of its own: a request with
several partitions gets no answer while one of them stalls.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.plan import lose
from tests.support.losses import predicted

RACKS = {1: "az1", 2: "az1", 3: "az2", 4: "az2", 5: "az3", 6: "az3"}
CONTROLLERS = {101: "az1", 102: "az2", 103: "az3"}
TOPICS = 24
SAID = {
    "NONE": "accepted",
    "NOT_ENOUGH_REPLICAS": "NotEnoughReplicasError",
    "REQUEST_TIMED_OUT": "RequestTimedOutError",
    "LEADER_NOT_AVAILABLE": "no leader",
}


def topics(seed_: int) -> list[seed.Topic]:
    """Random replicas and minima; a quarter with unclean leader election."""
    draw = random.Random(seed_)
    made = []
    for n in range(TOPICS):
        replicas = tuple(draw.sample(list(RACKS), draw.randint(1, 4)))
        configs = {"min.insync.replicas": str(draw.randint(1, 3))}
        if n % 4 == 0:
            configs["unclean.leader.election.enable"] = "true"
        made.append(seed.Topic(f"loss-{n}", (replicas,), configs))
    return made


def read(kafka: LocalCluster) -> dict:
    document = collect("losses", {"bootstrap.servers": kafka.bootstrap}).document
    document["topics"] = [t for t in document["topics"] if t["name"].startswith("loss-")]
    for voter in document["cluster"]["quorum"]["voters"]:
        voter["rack"] = CONTROLLERS[voter["id"]]
    return document


def loss_of(document: dict, asked: str) -> lose.Loss:
    brokers = [{"broker": b["id"], "rack": b["rack"], "live": b["live"]} for b in document["brokers"]]
    voters = document["cluster"]["quorum"]["voters"]
    controllers = [{"controller": v["id"], "rack": v["rack"], "role": "voter"} for v in voters]
    return lose.resolve(lose.parse(asked), brokers, controllers)


def answered(kafka: LocalCluster, leaders: dict[str, int | None]) -> dict[str, str]:
    """What becomes of one record for each topic, at the same time, each from a producer of its own."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    def write(topic: str) -> str:
        producer = KafkaProducer(
            bootstrap_servers=kafka.bootstrap.split(","),
            acks="all",
            retries=0,
            enable_idempotence=False,
            request_timeout_ms=6_000,
            delivery_timeout_ms=9_000,
            max_block_ms=5_000,
        )
        try:
            producer.send(topic, b"x", partition=0).get(12)
            return "accepted"
        except KafkaError as refusal:
            return type(refusal).__name__
        finally:
            producer.close(0)

    led = [topic for topic, leader in leaders.items() if leader is not None]
    with ThreadPoolExecutor(12) as pool:
        said = dict(zip(led, pool.map(write, led), strict=True))
    return {topic: said.get(topic, "no leader") for topic in leaders}


@pytest.mark.parametrize("version, elr, drawn", [("4.3.1", 1, 1), ("3.6.2", 0, 3)])
def test_losses_are_as_predicted(spark, version, elr, drawn):
    features = {"eligible.leader.replicas.version": elr} if version == "4.3.1" else {}
    spec = ClusterSpec(brokers=RACKS, controllers=CONTROLLERS, version=version, features=features)
    compared = 0
    with LocalCluster(spec) as kafka:
        seed.create_topics(kafka, topics(drawn))
        kafka.wait_for_full_isr()
        for asked in (
            "broker:2",
            "broker:4,broker:5",
            "restore",
            "rack:az3",
            "restore",
            "controller:101,controller:102,broker:3",
        ):
            if asked == "restore":
                kafka.restore()
                continue
            before = read(kafka)
            loss = loss_of(before, asked)
            lost = {"losses": {"brokers": loss.brokers, "controllers": loss.controllers}}
            rows = {topic: row for (_, topic, _), row in predicted(spark, [before], lost).items()}
            kafka.kill([*loss.brokers, *loss.controllers])
            kept = rows["loss-0"]["quorum"]["kept"]
            assert kept == (len(loss.controllers) < 2)
            if kept:
                kafka.wait_for_loss_of(loss.brokers)
                time.sleep(1)
                after = read(kafka)
                leaders = {t["name"]: t["partitions"][0]["leader"] for t in after["topics"]}
                assert {topic: row["leader_after"] for topic, row in rows.items()} == leaders, (asked, version, elr)
            else:
                # Without a quorum, the metadata still names leaders that are dead.
                leaders = {
                    t: None if r["now"] == "LEADER_NOT_AVAILABLE" else r["leader_after"] for t, r in rows.items()
                }
                time.sleep(8)
            assert answered(kafka, leaders) == {topic: SAID[row["now"]] for topic, row in rows.items()}, (
                asked,
                version,
            )
            compared += len(rows)
    assert compared == 4 * TOPICS
