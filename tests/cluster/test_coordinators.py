"""The partitions of `__consumer_offsets` and `__transaction_state`, against the coordinators that real brokers name."""

import random

from durability.collect import collect
from durability.report.data.clients import coordinator_partition


def leaders(kafka, topic: str) -> dict[int, int]:
    document = collect("coordinators", {"bootstrap.servers": kafka.bootstrap}).document
    found = [t["partitions"] for t in document["topics"] if t["name"] == topic]
    return {p["partition"]: p["leader"] for partitions in found for p in partitions}


def named(kafka, names: list[str], kind: str) -> dict[str, int] | None:
    """The coordinators of groups or transactional ids; None while brokers don't know them all."""
    from kafka.errors import KafkaError

    with kafka.admin() as admin:
        try:
            return admin._manager.run(admin._find_coordinator_ids, names, kind)
        except KafkaError:
            return None


def test_groups_and_transactions_are_where_brokers_look_for_them(kafka):
    draw = random.Random(26)
    names = ["".join(draw.choices("abcxyz-._ÄÖ漢😀09", k=draw.randint(1, 30))) for _ in range(60)]
    for kind, topic in (("GROUP", "__consumer_offsets"), ("TRANSACTION", "__transaction_state")):
        # The first question creates the topic.
        coordinators = kafka.wait_until(lambda kind=kind: named(kafka, names, kind), f"coordinators of {kind}", 90)
        kafka.wait_for_full_isr()
        by_partition = leaders(kafka, topic)
        expected = {name: by_partition[coordinator_partition(name, len(by_partition))] for name in names}
        assert coordinators == expected and len(set(expected.values())) > 1
