"""KIP-1290 line by line: its example, its metrics, its produce check and its validations, each a small cluster.

All are judged as one fleet in one job. Brokers don't enforce min.insync.racks: what they would do is judged.
"""

import pytest

from tests.support.joined import Part
from tests.support.judge import one, pick
from tests.support.policy import policy
from tests.support.topology import document

POLICY = policy("""
tiers: {racks: {min_insync_racks: 2}, free: {}}
topics: [{match: {topic: "free.*"}, tier: free}, {tier: racks}]
""")
RACKS = "min.insync.racks"
AT, UNDER = "at-min-rack-isr", "under-min-rack-isr"

# The proposal's example: RF 5 over racks A, B, C; min.insync.replicas=2, min.insync.racks=2.
# topic, ISR of partition 0: what KIP-427 says, what KIP-1290 says, racks in sync, what its broker would answer
ISRS = {
    "whole": ("1,2,3,4,5", [], "none", 3, "NONE"),
    "two-racks": ("1,2,3", ["under-replicated"], AT, 2, "NONE"),
    "fast-two": ("1,3", ["at-min-isr", "under-replicated"], AT, 2, "NONE"),
    "one-rack": ("1,2", ["at-min-isr", "under-replicated"], UNDER, 1, "NOT_ENOUGH_RACKS"),
    "alone": ("1", ["under-min-isr", "under-replicated"], UNDER, 1, "NOT_ENOUGH_REPLICAS"),  # replicas first
    "empty": ("-", ["offline"], "none", 0, "LEADER_NOT_AVAILABLE"),  # the metrics are its leader's: it has none
}
EXAMPLE = document(
    "topic replicas isr min\n" + "\n".join(f"{t} 1,2,3,4,5 {isr} 2" for t, (isr, *_) in ISRS.items()),
    brokers="1:A 2:A 3:B 4:B 5:C",
    cluster="example",
)

# cluster: (brokers, replicas, min.insync.racks of the topic, of the brokers) -> problem, worst severity, all problems
VALID = {
    "fine": ("1:A 2:B 3:C", "1,2,3", "2", None, None, None, []),
    "default": ("1 2 3", "1,2,3", None, None, None, None, []),
    "one-asks-nothing": ("1 2 3", "1,2,3", "1", None, None, None, []),
    "zero": ("1:A 2:B 3:C", "1,2,3", "0", None, "below-one", "critical", ["below-one"]),
    "negative": ("1:A 2:B 3:C", "1,2,3", "-1", None, "below-one", "critical", ["below-one"]),
    "inherited-zero": ("1:A 2:B 3:C", "1,2,3", None, "0", "below-one", "critical", ["below-one"]),
    "above-known": ("1:A 2:B 3:B", "1,2", "3", None, "above-known-racks", "critical",
                    ["above-known-racks", "above-replication-factor", "above-replica-racks"]),
    "above-rf": ("1:A 2:B 3:C", "1,2", "3", None, "above-replication-factor", "critical",
                 ["above-replication-factor", "above-replica-racks"]),
    "above-replica-racks": ("1:A 2:A 3:B", "1,2", "2", None, "above-replica-racks", "critical",
                            ["above-replica-racks"]),
    "one-unnamed": ("1:A 2:B 3", "1,2,3", "2", None, "broker-without-rack", "critical", ["broker-without-rack"]),
    "all-unnamed": ("1 2 3", "1,2,3", "2", None, "above-known-racks", "critical",
                    ["above-known-racks", "above-replica-racks", "broker-without-rack"]),
}  # fmt: skip

UNNAMED = document(  # brokers without broker.rack are all in one unnamed rack, which counts
    "topic replicas isr min\nboth-unnamed 2,3 2,3 1\nnamed-and-unnamed 1,2 1,2 1", brokers="1:A 2 3", cluster="unnamed"
)
MIXED = document(
    "topic replicas isr min\nt 1,2,3,5 1,2 1\nt 1,2,3,5 1,3 1\nt 1,2,3,5 1,2,3 1\nt 1,2,3,5 1,3,5 1",
    brokers="1:A 2:A 3:B 5:C",
    cluster="mixed",
)
LED = document(
    "topic leader replicas isr min\na 1 1,3,5 1,3 2\na 1 1,2,3 1,2 2\na 3 3,1,5 3 2\nb 3 3,5 3,5 1\nb - 2,4 - 1\n"
    "free 1 1,2,3 1,2 1",
    brokers="1:A 2:A 3:B 4:B! 5:C",
    cluster="led",
)

# One rack in sync of two wanted, for one broker down: what a write is answered for it
ANSWERS = {
    "dark": ("LEADER_NOT_AVAILABLE",),
    "few": ("NOT_ENOUGH_REPLICAS",),
    "narrow": ("NOT_ENOUGH_RACKS",),
    "both": ("LEADER_NOT_AVAILABLE", "NOT_ENOUGH_RACKS"),
}
ANSWERED = document(
    "topic leader replicas isr min\ndark - 1,2,3 1 1\nfew 2 1,2,3 2 2\nnarrow 2 1,2,3 2 1\nboth - 1,2,3 1 1\nboth 2 1,2,3 2 1",
    brokers="1:A! 2:B 3:C",
    cluster="answered",
)
ASKS_NOTHING = document(
    "topic leader replicas isr min\nfree-one 1 1,2,3 1 1\nfree-unstated 1 1,2,3 1 1\nfree-one - 1,2,3 - 1",
    brokers="1:A 2:B 3:C",
    cluster="asks-nothing",
    configs={"free-one": {RACKS: "1"}},
)


def validations():
    for name, (brokers, replicas, own, static, *_) in VALID.items():
        yield document(
            f"topic replicas min\nfree {replicas} 1",
            brokers=brokers,
            cluster=name,
            configs={"free": {RACKS: own}} if own else None,
            broker_configs={RACKS: static} if static else None,
        )


def broker_validations():
    for name, brokers, value in (("refuses", "1:A 2", "2"), ("warns", "1:A 2:B", "3"), ("bad", "1:A 2:B", "0")):
        yield document("topic replicas min\nfree 1,2 1", brokers=brokers, cluster=name, broker_configs={RACKS: value})
    default = {"configs": {RACKS: "0"}, "config_sources": {RACKS: "cluster-default"}}
    yield document(
        "topic replicas min\nfree 1,2 1", brokers="1:A 2:B", cluster="dynamic", each_broker={1: default, 2: default}
    )
    yield document(
        "topic replicas min\nfree 1,2 1", brokers="1:A 2:B", cluster="text", configs={"free": {RACKS: "two"}}
    )


EVERYTHING = [EXAMPLE, UNNAMED, MIXED, LED, ANSWERED, ASKS_NOTHING, *validations(), *broker_validations()]
PARTS = [Part("nothing", POLICY, EVERYTHING)]


@pytest.fixture(scope="module")
def judge(judged_once):
    judge, judge.found = judged_once(*PARTS)
    return judge


def listed(judge, cluster, topic, partition=0):
    mine = [
        r for r in judge.partition_health() if (r["cluster"], r["topic"], r["partition"]) == (cluster, topic, partition)
    ]
    return mine[0] if mine else None


@pytest.mark.parametrize("topic", ISRS)
def test_the_proposals_example(judge, topic):
    _, categories, rack, racks, answer = ISRS[topic]
    row = listed(judge, "example", topic)
    if not categories and rack == "none":
        assert row is None
        return
    said = (row["categories"], row["rack_category"], row["isr_racks"], row["acks_all_kip_1290_error"])
    assert said == (categories, rack, racks, answer)
    assert row["min_insync_racks"] == 2
    assert row["acks_all_error"] == ("NONE" if answer == "NOT_ENOUGH_RACKS" else answer)


def test_the_unnamed_rack_is_one(judge):
    assert listed(judge, "unnamed", "both-unnamed")["rack_category"] == UNDER
    row = listed(judge, "unnamed", "named-and-unnamed")
    assert (row["rack_category"], row["isr_racks"], row["rack_by_placement"]) == (AT, 2, True)


def test_a_partition_short_of_racks_alone_is_listed_without_a_category_of_kip_427(judge):
    row = listed(judge, "unnamed", "both-unnamed")
    assert (row["categories"], row["categories_known"]) == ([], True)
    counters = judge.latest["health_counters"].to_pylist()
    (cluster,) = [c for c in counters if c["cluster"] == "unnamed" and c["topic"] is None]
    of_427 = ("offline", "under_min_isr", "at_min_isr", "under_replicated", "unknown")
    assert [cluster[c] for c in of_427] == [0] * 5
    assert [cluster[c] for c in ("under_min_rack_isr", "at_min_rack_isr", "at_min_rack_isr_by_placement")] == [1, 1, 1]


def test_one_finding_lists_the_partitions_under_the_minimum_and_at_it(judge):
    finding = one(judge.found, cluster="mixed", control="isr-rack-spread")
    assert (finding["category"], finding["partitions"]) == (UNDER, [0])
    assert finding["observed"]["partitions_by_category"] == {UNDER: [0], AT: [1, 2]}
    assert finding["message"].endswith("; at exactly the minimum: partitions 1, 2")


@pytest.mark.parametrize("topic", ANSWERS)
def test_the_finding_names_the_error_that_applies(judge, topic):
    """Without a leader too the last ISR spans too few racks for what was acknowledged; the answer is another."""
    finding = one(judge.found, cluster="answered", control="isr-rack-spread", resource=topic)
    assert (finding["outcome"], finding["category"]) == ("FAIL", UNDER)
    answers = {listed(judge, "answered", topic, p)["acks_all_kip_1290_error"] for p in finding["partitions"]}
    assert answers == {*ANSWERS[topic]}
    named = ("LEADER_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_RACKS")
    assert tuple(e for e in named if e in finding["message"]) == ANSWERS[topic]


def test_without_a_leader_there_is_no_metric(judge):
    assert listed(judge, "answered", "dark")["rack_category"] == "none"


def test_a_stated_1_is_told_as_the_default_is(judge):
    for topic in ("free-one", "free-unstated"):
        finding = one(judge.found, cluster="asks-nothing", control="isr-rack-spread", resource=topic)
        assert (finding["outcome"], listed(judge, "asks-nothing", topic)["rack_category"]) == ("NOT_APPLICABLE", "none")
    counters = [c for c in judge.latest["health_counters"].to_pylist() if c["cluster"] == "asks-nothing"]
    assert {(c["under_min_rack_isr"], c["at_min_rack_isr"]) for c in counters} == {(0, 0)}


def test_a_broker_counts_what_it_leads(judge):
    """Leaders' own metrics; the partition without a leader is nobody's, and `free` wants no racks."""
    (cluster,) = [
        c for c in judge.latest["health_counters"].to_pylist() if c["cluster"] == "led" and c["topic"] is None
    ]
    by_broker = {
        b["broker"]: tuple(
            b[n] for n in ("under_min_isr", "at_min_isr", "under_replicated", "under_min_rack_isr", "at_min_rack_isr")
        )
        for b in cluster["brokers"]
    }
    assert by_broker == {1: (0, 2, 3, 1, 1), 3: (1, 0, 1, 1, 1)}
    assert {b["broker"]: (b["rack"], b["live"]) for b in cluster["brokers"]} == {1: ("A", True), 3: ("B", True)}
    topics = [c for c in judge.latest["health_counters"].to_pylist() if c["topic"] is not None]
    assert not [c for c in topics if c["brokers"]]


@pytest.mark.parametrize("name", VALID)
def test_validations_of_a_topics_value(judge, name):
    *_, problem, severity, problems = VALID[name]
    finding = one(judge.found, cluster=name, control="min-insync-racks-valid", resource_type="topic")
    if problem is None:
        assert finding["outcome"] in ("PASS", "NOT_APPLICABLE")
        return
    assert (finding["outcome"], finding["severity"]) == ("FAIL", severity)
    assert (finding["observed"]["problem"], finding["observed"]["problems"]) == (problem, problems)
    inherited = VALID[name][3] is not None
    if problem == "below-one":
        assert finding["cause"] == ("configuration:cluster-default" if inherited else "configuration:topic")


@pytest.mark.parametrize(
    "cluster, broker, problem, severity, cause",
    [
        # "If min.insync.racks > 1, then broker.rack must be configured on the local broker": it refuses to start
        ("refuses", "2", "broker-without-rack", "critical", "configuration:broker.rack"),
        ("warns", "1", "above-known-racks", "warning", "configuration:broker"),
        ("bad", "1", "below-one", "critical", "configuration:broker"),
        ("dynamic", "1", "below-one", "critical", "configuration:cluster-default"),
        ("all-unnamed", "1", "broker-without-rack", "critical", "configuration:broker.rack"),  # a topic wants two
    ],
)
def test_validations_of_a_brokers_value(judge, cluster, broker, problem, severity, cause):
    finding = one(judge.found, cluster=cluster, control="min-insync-racks-valid", resource=broker)
    said = (finding["outcome"], finding["observed"]["problem"], finding["severity"], finding["cause"])
    assert said == ("FAIL", problem, severity, cause)
    refused = "would not start" in finding["message"]
    assert refused == (cluster == "refuses")


def test_brokers_without_a_rack_may_stand_in_further_racks(judge):
    """Broker 2 may be in rack A, so a broker of the only named rack may ask for too many. It starts all the same."""
    finding = one(judge.found, cluster="refuses", control="min-insync-racks-valid", resource="1")
    assert (finding["outcome"], finding["cause"]) == ("UNKNOWN", "configuration:broker.rack")


def test_a_value_that_is_no_number_is_never_compliant(judge):
    found = pick(judge.found, cluster="text", resource="free", outcome="UNKNOWN")
    assert {f["control"] for f in found} >= {"min-insync-racks-valid", "isr-rack-spread"}
