"""The proposals' own examples, and Kafka's traps, each a small cluster; all are judged as one fleet in one job."""

import pytest

from tests.support.joined import Part
from tests.support.judge import one, pick
from tests.support.policy import policy
from tests.support.topology import document

RACKED = "0:az1 1:az2 2:az3"
POLICY = policy("""
tiers:
  wanted: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, replica_racks: 2, min_insync_racks: 2,
           unclean_leader_election: false}
  racks-3: {replica_racks: 3, min_insync_racks: 3}
  nothing: {}
topics:
  - {match: {topic: "racks3"}, tier: racks-3}
  - {match: {topic: "free"}, tier: nothing}
  - {tier: wanted}
""")


def kip_427(name, minimum, replicas, isr, leader, down):
    brokers = " ".join(f"{b}:az{b + 1}{'!' if b in down else ''}" for b in range(4))
    return document(
        f"topic leader replicas isr min\nt {leader} {replicas} {isr} {minimum}", brokers=brokers, cluster=name
    )


# name: (document, categories of partition 0 of topic t, cause of at-min-isr)
HEALTH = {
    # Example 1: min ISR = replication factor - 1
    "1-whole": (kip_427("1-whole", 2, "0,1,2", "0,1,2", 0, ()), set(), None),
    "1-one-fails": (kip_427("1-one-fails", 2, "0,1,2", "1,2", 1, (0,)), {"under-replicated", "at-min-isr"}, "shrunk"),
    "1-two-fail": (kip_427("1-two-fail", 2, "0,1,2", "2", 2, (0, 1)), {"under-replicated", "under-min-isr"}, None),
    # Example 2: min ISR 1, replication factor above 2
    "2-one-fails": (kip_427("2-one-fails", 1, "0,1,2", "1,2", 1, (0,)), {"under-replicated"}, None),
    "2-two-fail": (kip_427("2-two-fail", 1, "0,1,2", "2", 2, (0, 1)), {"under-replicated", "at-min-isr"}, "shrunk"),
    "2-all-fail": (kip_427("2-all-fail", 1, "0,1,2", "-", "-", (0, 1, 2)), {"offline"}, None),
    # Example 3: replication factor - min ISR above 1
    "3-one-fails": (kip_427("3-one-fails", 2, "0,1,2,3", "1,2,3", 1, (0,)), {"under-replicated"}, None),
    "3-two-fail": (kip_427("3-two-fail", 2, "0,1,2,3", "2,3", 2, (0, 1)), {"under-replicated", "at-min-isr"}, "shrunk"),
    "3-three-fail": (
        kip_427("3-three-fail", 2, "0,1,2,3", "3", 3, (0, 1, 2)),
        {"under-replicated", "under-min-isr"},
        None,
    ),
    # The configuration leaves no headroom, nothing shrank
    "no-headroom": (kip_427("no-headroom", 3, "0,1,2", "0,1,2", 0, ()), {"at-min-isr"}, "configuration"),
    # The leader named is down: metadata hasn't caught up, but nobody serves
    "dead-leader": (kip_427("dead-leader", 1, "0,1,2", "0", 0, (0,)), {"offline"}, None),
    # Repartitioning: the ISR is the old set and, one by one, the new; RF is without those being added
    "moving": (
        document(
            "topic leader replicas isr min adding removing\nt 0 0,1,2,3 0,1,2 1 3 0",
            brokers="0:az1 1:az2 2:az3 3:az1",
            cluster="moving",
        ),
        set(),
        None,
    ),
    "moving-short": (
        document(
            "topic leader replicas isr min adding removing\nt 0 0,1,2,3 0,1 1 3 0",
            brokers="0:az1 1:az2 2:az3 3:az1",
            cluster="moving-short",
        ),
        {"under-replicated"},
        None,
    ),
}

KIP_1290 = document(  # RF 5 on 3 racks, 2 / 2 / 1
    "topic leader replicas isr min\nwhole 1 1,2,3,4,5 1,2,3,4,5 2\none-rack 1 1,2,3,4,5 1,2 2\nat 1 1,2,3,4,5 1,3 2\n"
    "racks3 1 1,2,3,4,5 1,3 2",
    brokers="1:A 2:A 3:B 4:B 5:C",
    cluster="kip-1290",
)
MISMATCH = "topic leader replicas isr min\nt 0 0,1 0,1 3"
CLUSTERS = [
    document(MISMATCH, brokers=RACKED, version="3.6", cluster="kip-579-on-3.6"),
    document(MISMATCH, brokers=RACKED, version="4.3", cluster="kip-579-on-4.3"),
    document(
        MISMATCH,
        brokers=RACKED,
        version="4.3",
        cluster="kip-579-unknown",
        unreadable={"/cluster/kafka_version": "TIMEOUT"},
    ),
    document(MISMATCH, brokers=RACKED, version="4.10", cluster="4.10-is-new"),
    KIP_1290,
    document("topic replicas min\nt 0,1,2 2", brokers="0 1 2", cluster="no-racks"),
    document("topic replicas min\nt 0,1,2 2", brokers="0:az1 1:az2 2", cluster="one-unracked"),
    document("topic replicas isr min\nt 0,1,2 1,2 2", brokers="0:az1 1 2", cluster="two-unracked"),
    document(
        "topic replicas min\nt 0,1,2 2\nu 0,1 2",
        brokers=RACKED,
        cluster="rack-unread",
        unreadable={"/brokers/1/rack": "TIMEOUT"},
    ),
    document(  # RF 1 -> 2: judged by the worse of before and after
        "topic replicas isr min adding\nt 0,1 0 2 1", brokers=RACKED, cluster="growing"
    ),
    document(  # 3 -> 2
        "topic replicas min removing\nt 0,1,2 2 2", brokers=RACKED, cluster="shrinking"
    ),
    document(
        "topic replicas isr min\nt 0,1,2 0,1 1\nwhole 0,1,2 0,1,2 1",
        brokers=RACKED,
        cluster="reassignments-unread",
        unreadable={"/cluster/reassignments": "CLUSTER_AUTHORIZATION_FAILED"},
    ),
    document(
        "topic leader replicas isr min\nt 0 0,2,4 0,4 2\nt 0 0,2,5 0,5 2\nu 1 1,3,5 1,5 1\nw - 2,3 - 1",
        brokers="0:az1 1:az1 2:az2! 3:az2! 4:az3 5:az3",
        cluster="racks-down",
    ),
    document("topic replicas min\nt 0,1,2 2\nt 0,1,2 2\nt 0,1 2", brokers=RACKED, cluster="worst-partition"),
]


PARTS = [Part("critical", POLICY, [*(d for d, *_ in HEALTH.values()), *CLUSTERS])]


@pytest.fixture(scope="module")
def found(judged_once):
    return judged_once(*PARTS)[1]


@pytest.mark.parametrize("name", HEALTH)
def test_partition_health_as_kip_427_has_it(found, name):
    _, categories, cause = HEALTH[name]
    failed = pick(found, cluster=name, control="partition-health", outcome="FAIL")
    assert {f["category"] for f in failed} == categories
    assert all(f["partitions"] == [0] for f in failed)
    at_min = [f for f in failed if f["category"] == "at-min-isr"]
    assert [f["observed"]["cause"] for f in at_min] == ([cause] if cause else [])
    assert [f["severity"] for f in at_min] == ([{"shrunk": "warning", "configuration": "info"}[cause]] if cause else [])
    assert not pick(found, cluster=name, control="partition-health", outcome="UNKNOWN")
    assert bool(pick(found, cluster=name, control="partition-health", outcome="PASS")) == (not categories)


@pytest.mark.parametrize(
    "cluster, effect, error, severity",
    [
        ("kip-579-on-3.6", "outage", "NOT_ENOUGH_REPLICAS", "critical"),
        ("kip-579-on-4.3", "silent-downgrade", None, "warning"),
        ("4.10-is-new", "silent-downgrade", None, "warning"),
    ],
)
def test_min_isr_above_replication_factor(found, cluster, effect, error, severity):
    finding = one(found, cluster=cluster, control="min-isr-within-replication-factor")
    assert (finding["outcome"], finding["severity"]) == ("FAIL", severity)
    assert finding["observed"] == {
        "min_insync_replicas": 3,
        "replication_factor": 2,
        "effect": effect,
        "error": error,
        "proposed_error": "INCONSISTENT_REPLICATION_FACTOR",
        "retriable": False,
        "readings": None,
    }
    under = pick(found, cluster=cluster, control="partition-health", category="under-min-isr")
    assert bool(under) == (effect == "outage")


def test_min_isr_above_replication_factor_with_an_unknown_release_is_unknown_with_both_readings(found):
    finding = one(found, cluster="kip-579-unknown", control="min-isr-within-replication-factor")
    assert finding["outcome"] == "UNKNOWN"
    health = pick(found, cluster="kip-579-unknown", control="partition-health")
    assert [f["outcome"] for f in health] == ["UNKNOWN"]


@pytest.mark.parametrize(
    "topic, outcome, category, racks",
    [
        ("whole", "PASS", None, None),
        ("one-rack", "FAIL", "under-min-rack-isr", 1),
        ("at", "FAIL", "at-min-rack-isr", 2),
        ("racks3", "FAIL", "under-min-rack-isr", 2),
    ],
)
def test_isr_racks_of_kip_1290s_example(found, topic, outcome, category, racks):
    finding = one(found, cluster="kip-1290", control="isr-rack-spread", resource=topic)
    assert (finding["outcome"], finding["category"]) == (outcome, category)
    if racks:
        listed = {"under-min-rack-isr": [], "at-min-rack-isr": [], category: [0]}
        observed = {"isr_racks": racks, "category": category, "partitions_by_category": listed}
        assert finding["observed"] == observed
        assert finding["severity"] == ("critical" if category.startswith("under") else "info")


def test_brokers_without_rack_add_none_and_share_the_unnamed_one(found):
    for cluster, spread, isr in (("no-racks", 0, 1), ("one-unracked", None, None), ("two-unracked", 1, 1)):
        placed = one(found, cluster=cluster, control="replica-rack-spread")
        in_sync = one(found, cluster=cluster, control="isr-rack-spread")
        assert placed["outcome"] == ("PASS" if spread is None else "FAIL")
        assert spread is None or placed["observed"] == {"replica_racks": spread}
        assert in_sync["outcome"] == ("PASS" if isr is None else "FAIL")
        assert isr is None or in_sync["observed"]["isr_racks"] == isr
    unracked = pick(found, control="broker-rack", outcome="FAIL")
    assert {(f["cluster"], f["resource"]) for f in unracked} == {
        *(("no-racks", str(b)) for b in range(3)),
        ("one-unracked", "2"),
        ("two-unracked", "1"),
        ("two-unracked", "2"),
    }
    valid = one(found, cluster="one-unracked", control="min-insync-racks-valid", resource="t")
    assert valid["observed"]["problem"] == "broker-without-rack"


def test_an_unknown_rack_never_passes_where_it_decides(found):
    mine = pick(found, cluster="rack-unread")
    assert one(mine, control="broker-rack", resource="1")["outcome"] == "UNKNOWN"
    # az1 and az3 suffice for t whatever broker 1's rack is; u stands on az1 and the unknown one
    assert one(mine, control="replica-rack-spread", resource="t")["outcome"] == "PASS"
    assert one(mine, control="replica-rack-spread", resource="u")["outcome"] == "UNKNOWN"
    assert one(mine, control="isr-rack-spread", resource="u")["outcome"] == "UNKNOWN"
    assert one(mine, control="min-insync-racks-valid", resource="u")["outcome"] == "UNKNOWN"


def test_a_reassignment_is_judged_by_its_worse_end(found):
    growing = pick(found, cluster="growing")
    assert one(growing, control="replication-factor")["observed"] == {"replication_factor": 1}
    # The replica being added counts: effective min ISR is 2, the ISR 1, and writes are refused (seen on 4.3.1)
    assert one(growing, control="partition-health", category="under-min-isr")["partitions"] == [0]
    assert not pick(growing, control="partition-health", category="under-replicated")
    assert one(growing, control="min-isr-within-replication-factor")["outcome"] == "FAIL"
    assert one(pick(found, cluster="shrinking"), control="replication-factor")["observed"] == {"replication_factor": 2}


def test_without_reassignments_a_short_isr_leaves_the_replication_factor_unknown(found):
    mine = pick(found, cluster="reassignments-unread")
    assert one(mine, control="replication-factor", resource="t")["outcome"] == "UNKNOWN"
    assert one(mine, control="replication-factor", resource="whole")["outcome"] == "PASS"
    assert one(mine, control="partition-health", resource="t")["outcome"] == "UNKNOWN"
    assert one(mine, control="partition-health", resource="whole")["outcome"] == "PASS"
    assert one(mine, control="reassignment-leftovers")["outcome"] == "UNKNOWN"


def test_a_dead_rack_is_one_cause(found):
    health = [f for f in pick(found, cluster="racks-down", control="partition-health") if f["outcome"] == "FAIL"]
    assert {(f["resource"], f["category"], tuple(f["partitions"])) for f in health} == {
        ("t", "at-min-isr", (0, 1)),
        ("t", "under-replicated", (0, 1)),
        ("u", "under-replicated", (0,)),
        ("w", "offline", (0,)),
    }
    assert {f["cause"] for f in health} == {"rack:az2 down"}


def test_a_topic_is_judged_by_all_its_partitions(found):
    finding = one(found, cluster="worst-partition", control="replication-factor")
    assert (finding["outcome"], finding["observed"], finding["partitions"]) == ("FAIL", {"replication_factor": 2}, [2])
