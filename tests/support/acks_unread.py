"""Small clusters for acks of which something decisive is unread, unknown or nothing that Kafka takes; see
test_acks_unread.py."""

from __future__ import annotations

from tests.support.topology import document

PAIR = "1:az1 2:az2"
FOUR = "1:az1 2:az1 3:az2 4:az2"
RELEASES = {1: {"kafka_version": "3.6.2"}}


def own(value: str) -> dict:
    return {"configs": {"min.insync.replicas": value}}


def leader(*topics: str) -> dict[str, str]:
    return {f"/topics/{topic}/partitions/0/leader": "TIMEOUT" for topic in topics}


def with_controllers(cluster: str, values: list[str], elr: int | None = 1, **options) -> dict:
    """min.insync.replicas 2 in server.properties of every broker, and `values` in the controllers'."""
    made = document(
        "topic replicas min\nt 1,2,3 -\nown 1,2,3 2",
        cluster=cluster,
        broker_configs={"min.insync.replicas": "2"},
        features={"eligible.leader.replicas.version": elr or 0},
        cluster_controllers=[{"id": 101 + n, "configs": {"min.insync.replicas": v}} for n, v in enumerate(values)],
        unreadable={"/cluster/features": "TIMEOUT"} if elr is None else None,
        **options,
    )
    return made


UNREAD = [
    document(
        """
        topic   leader  replicas  isr  min
        t       1       1,2       1,2  3
        short   1       1,2       1    3
        nobody  -       1,2       -    2
        fits    1       1,2       1,2  2
        """,
        cluster="leader-unread",
        each_broker=RELEASES,
        brokers=PAIR,
        unreadable=leader("t", "short", "nobody", "fits"),
    ),
    document(
        "topic leader replicas min\nt 1 1,2,3 -\nagreed 1 1,3,4 -",
        cluster="leader-unread-values-differ",
        each_broker={1: own("2"), 2: own("1"), 3: own("2"), 4: own("2")},
        brokers="1:az1 2:az2 3:az3 4:az2",
        unreadable=leader("t", "agreed"),
    ),
    document(
        "topic leader replicas isr min\nt - 1,2 - 3\nfits - 1,2 - 2",
        cluster="no-leader",
        each_broker=RELEASES,
        brokers=PAIR,
    ),
    document(
        "topic leader replicas isr min\nt 1 1,2,3 1 4\nwhole 1 1,2,3 1,2,3 4",
        version="trunk",
        cluster="release-unknown-4",
    ),
    document(
        "topic replicas min\nsingle 1 2",
        brokers=PAIR,
        cluster="value-unread",
        unreadable={"/topics/0/configs": "DENIED"},
    ),
    document(
        """
        topic     leader  replicas  isr  min
        enforced  1       1,2,3,4   1,3  2
        enforced  1       1,2,3,4   1,2  2
        t         1       1,2       1,2  2
        t         -       1,2       -    2
        t         2       1,2       2    2
        """,
        brokers=FOUR,
        cluster="refusals",
    ),
    document(
        "topic replicas min\nt 1,2 3",
        brokers=PAIR,
        cluster="isr-unread-above",
        unreadable={"/topics/t/partitions/0/isr": "TIMEOUT"},
    ),
    with_controllers("elr-record", ["1", "1"]),
    with_controllers("elr-records-differ", ["1", "2"]),
    with_controllers("elr-unread", ["1"], elr=None),
    with_controllers("elr-off", ["1"], elr=0),
    document(
        "topic replicas min\nzero 1,2 0\nnegative 1,2 -1\nt 1,2 -",
        cluster="below-one",
        each_broker={1: own("0")},
        brokers=PAIR,
    ),
    document(
        "topic replicas min\nt 1,2,3 -",
        version="3.6",
        broker_configs={"min.insync.replicas": "4"},
        cluster="default-above",
    ),
]
