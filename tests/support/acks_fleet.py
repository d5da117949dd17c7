"""The fleet for the tests of acked-durability: the proposals' own cases, Kafka's traps, and small clusters in which a decisive
fact is unread, unknown or invalid."""

from __future__ import annotations

from tests.support.joined import Part
from tests.support.judge import one
from tests.support.policy import policy
from tests.support.topology import document

POLICY = policy("""
tiers:
  wanted: {acked_copies: 2, acked_racks: 2, write_headroom: 1, unclean_leader_election: false}
  enforced: {acked_copies: 2, acked_racks: 2, min_insync_racks: 2, unclean_leader_election: false}
  copies: {acked_copies: 2}
  one: {acked_copies: 1}
  nothing: {}
  spare: {acked_copies: 2, write_headroom: 1}
  four-racks: {acked_copies: 2, acked_racks: 4}
topics:
  - {match: {topic: "copies.*"}, tier: copies}
  - {match: {topic: "one.*"}, tier: one}
  - {match: {topic: "spare.*"}, tier: spare}
  - {match: {topic: "nothing.*"}, tier: nothing}
  - {match: {topic: "enforced.*"}, tier: enforced}
  - {match: {topic: "four-racks"}, tier: four-racks}
  - {tier: wanted}
""")
THREE = "0:az1 1:az2 2:az3"
FIVE = "0:az1 1:az1 2:az2 3:az2 4:az3"
KIP_926 = """
    topic  leader  replicas  isr    min
    t      0       0,1,2     0,1,2  2
    u      0       0,1,2     0,1    2
    v      0       0,1,2     0      2
    w      -       0,1,2     -      2
    one    0       0,1,2     0      1
"""
KIP_579 = """
    topic  leader  replicas  isr  min
    whole  0       0,1       0,1  3
    short  0       0,1       0    3
    fits   0       0,1       0    2
"""
CLUSTERS = [
    document(KIP_926, brokers=THREE, cluster="kip-926"),
    # RF 5 on 3 racks: with min.insync.replicas 2 both replicas may be in one rack, with 3 they may not
    document("topic replicas min\nt 0,1,2,3,4 2\nu 0,1,2,3,4 3", brokers=FIVE, cluster="kip-1290"),
    document(
        "topic leader replicas isr min\nenforced 0 0,1,2 0,1 2\nenforced-more 0 0,1,2 0 2",
        brokers="0:az1 1:az1 2:az2!",
        cluster="rack-outage",
    ),
    document(KIP_579, brokers=THREE, version="3.6", cluster="kip-579-on-3.6"),
    document(KIP_579, brokers=THREE, version="4.3", cluster="kip-579-on-4.3"),
    document(
        KIP_579, brokers=THREE, cluster="release-unknown", unreadable={"/cluster/kafka_version": "TIMEOUT"}
    ),
    document(
        "topic replicas min\nt 0,1,2 2\nu 0,1,2 3", brokers="0:az1 1:az1 2:az2 3:az2", cluster="two-racks"
    ),
    document("topic replicas min\nt 0,1,2 2\nfour-racks 0,1,2 2", brokers=FIVE + " 5:az1", cluster="one-rack"),
    document("topic replicas min\nt 0,1,2 2\ncopies 0,1,2 2", brokers="0 1 2", cluster="no-racks"),
    document("topic replicas min\nt 0,1,2 2\nu 0,1,2 3", brokers="0:az1 1:az2 2", cluster="an-unracked-one"),
    document(
        "topic replicas min\nt 0,1,2 2\nu 0,1,2,3 3\nv 0,1 1",
        brokers="0:az1 1:az2 2:az3 3:az1",
        cluster="rack-unread",
        unreadable={"/brokers/2/rack": "TIMEOUT"},
    ),
    document(  # seen on 4.3.1: the replica being added counts although it is dead
        "topic leader replicas isr min adding\nt 0 0,1 0 2 1", brokers="0:az1 1:az2!", cluster="growing"
    ),
    document(  # from two racks to one and a half
        "topic leader replicas isr min adding removing\nt 0 0,1,2,3 0,1,2 2 3 2", 
        brokers="0:az1 1:az2 2:az3 3:az1", cluster="moving",
    ),
    document(  # both ends are on two racks, but an ISR of old and new replicas may be on one
        "topic leader replicas isr min adding removing\nt 1 1,2,3,4 1,3 2 3,4 1,2\nlarger 1 1,2,3,4 1,3 4 3,4 1,2",
        brokers="1:az1 2:az2! 3:az1 4:az2!", cluster="in-between",
    ),
    document(
        "topic leader replicas isr min adding removing\nt 1 1,2,3 1,2,3 3 3 -\nu 1 1,2,3 1,2,3 3 - 3\nv 1 1,2,3 1,2,3 3 3 2",
        brokers="1:az1 2:az2 3:az3", version="3.6", cluster="growing-on-3.6",
    ),
    document(
        "topic replicas isr\nt 1,2,3 1,2,3", brokers="1:az1 2:az2 3:az3", cluster="min-unread",
        unreadable={"/topics/0/configs": "DENIED"},
    ),
    document(
        "topic replicas isr\nt 1,2,3 1,2,3", brokers="1:az1 2:az2 3:az3", version="3.6", cluster="min-unread-on-3.6",
        unreadable={"/topics/0/configs": "DENIED"},
    ),
    document(
        "topic replicas isr min\nt 0,1,2 0,1 2\nu 0,1,2 0,1 1",
        brokers=THREE,
        cluster="reassignments-unread",
        unreadable={"/cluster/reassignments": "CLUSTER_AUTHORIZATION_FAILED"},
    ),
    document(
        "topic replicas min\nt 0,1,2 2\nu 0,1,2 1",
        brokers=THREE,
        cluster="observers",
        configs={n: {"confluent.placement.constraints": '{"observers": [{"count": 1}]}'} for n in ("t", "u")},
    ),
    document(
        "topic replicas min\nt 0,1,2 2",
        brokers=THREE,
        cluster="unclean",
        configs={"t": {"unclean.leader.election.enable": "true"}},
    ),
    document(
        "topic replicas min\nt 0,1,2 2\nsingle 0 1",
        brokers=THREE,
        cluster="configs-unread",
        unreadable={"/topics/0/configs": "DENIED", "/topics/1/configs": "DENIED"},
    ),
    document(
        "topic replicas min\nt 0,1,2 2", brokers=THREE, cluster="isr-unread", unreadable={"/topics/0/partitions/0/isr": "TIMEOUT"}
    ),
    document(
        "topic leader replicas isr min\nt 0 0,1,2 0,1,2 1\ncopies-few 0 0 0 1\ncopies-default 0 0,1,2 0,1,2 -",
        brokers=THREE, cluster="weak",
    ),
    document(
        "topic leader replicas isr elr min\nt 0 0,1,2 0,1 2 1", brokers=THREE, cluster="elr",
        features={"eligible.leader.replicas.version": 1},
    ),
    document(
        "topic leader replicas isr min\nt 0 0,2,4 0,2,4 2\nt 0 0,1,2 0,1 2\nt - 0,1,4 - 2\nt 2 2,3,4 2,3,4 2",
        brokers=FIVE, cluster="worst-partition",
    ),
    document(  # the guarantee is met, but only with the present min.insync.replicas
        "topic replicas min\nt 0,1,2 3\nspare 0,2 2\nspare-above 0,2 3\nabove 0,1,2 4\nspare-more 0,1,2 3",
        brokers=FIVE, cluster="tight",
    ),
    document("topic replicas min\nnothing 0 1\none 0 1", brokers=THREE, cluster="nothing"),
]  # fmt: skip
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


PARTS = [Part("acked", POLICY, [*CLUSTERS, *UNREAD])]


def acks(found: list[dict], cluster: str, topic: str = "t", value: str = "all") -> dict:
    """What the finding on a topic says about writes with this acks value."""
    return one(found, cluster=cluster, resource=topic)["observed"]["acks"][value]
