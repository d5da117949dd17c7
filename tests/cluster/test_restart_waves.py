"""A cluster that restarts in planned waves, under producers that write with acks=all to every partition."""

import random
import time

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.restart.check import check
from durability.restart.constraints import Partitions
from durability.restart.nodes import Node
from durability.restart.plan import Limits, plan
from tests.support.pasting import Writers


def nodes_of(document: dict) -> list[Node]:
    quorum = document["cluster"]["quorum"]
    voters = {voter["id"] for voter in quorum["voters"]}
    racks = {broker["id"]: broker["rack"] for broker in document["brokers"]}
    return [
        Node(id, racks.get(id), True, id in racks, voter=id in voters, leads=id == quorum["leader"])
        for id in sorted(racks.keys() | voters)
    ]


def partitions_of(document: dict) -> list[Partitions]:
    return [
        Partitions(frozenset(p["replicas"]), frozenset(p["isr"]), 2, 1, (topic["name"], p["partition"]))
        for topic in document["topics"]
        for p in topic["partitions"]
    ]


def test_no_write_is_refused_while_waves_restart(kafka):
    draw = random.Random(3)
    racks = [[b for b, rack in kafka.spec.brokers.items() if rack == name] for name in ("az1", "az2", "az3")]
    placed = tuple(tuple(draw.choice(rack) for rack in racks) for _ in range(8))
    # One of them shares a rack, so a wave per rack would refuse its writes.
    placed = (*placed, (racks[0][0], racks[0][1], racks[1][0]))
    seed.create_topics(kafka, [seed.Topic("restart-waves", placed, {"min.insync.replicas": "2"})])
    kafka.wait_for_full_isr()

    def read() -> dict:
        document = collect("waves", {"bootstrap.servers": kafka.bootstrap}).document
        return document | {"topics": [t for t in document["topics"] if t["name"] == "restart-waves"]}

    document = read()
    made = plan(partitions_of(document), nodes_of(document), Limits())
    assert made.proven and made.whole and len(made.waves) < len(nodes_of(document))
    assert [members for members, _, _ in made.by_rack] == [frozenset(placed[-1])]
    writers = Writers(kafka, [("restart-waves", p) for p in range(len(placed))])
    try:
        assert len(writers.accepting()) == len(placed)
        began = time.monotonic()
        for wave in made.waves:
            verdict = check(read(), wave)
            assert verdict.go, verdict.reasons
            kafka.roll(wave)
        refused, failures = writers.refused(began), list(writers.failures)
    finally:
        writers.close()
    assert refused == {} and failures == []
    assert writers.lost() == {}
