"""acked-durability and its kin where a fact that decides is unread, unknown or makes no sense: never a guess, and a
certainty is said whatever else is missing. Judged with the fleet of test_acks.py."""

import pytest

from tests.support.acks_fleet import PARTS, acks
from tests.support.judge import one, pick

BOTH = {"before 3.7": "NOT_ENOUGH_REPLICAS", "since 3.7": None}
ABOVE = "min-isr-within-replication-factor"


@pytest.fixture(scope="module")
def judged(judged_once):
    return judged_once(*PARTS)[1]


@pytest.fixture(scope="module")
def found(judged):
    return pick(judged, control="acked-durability")


@pytest.mark.parametrize("cluster", ["leader-unread", "no-leader"])
def test_whoever_leads_may_run_either_release(judged, found, cluster):
    """RF 2, min.insync.replicas 3: 3.6.2 would accept nothing, 4.3 less than is configured."""
    finding = one(found, cluster=cluster, resource="t")
    assert (finding["outcome"], finding["observed"]["readings"]) == ("UNKNOWN", BOTH)
    assert (acks(found, cluster)["copies_worst"], acks(found, cluster)["racks_worst"]) == (None, None)
    assert acks(found, cluster)["survives_leader_loss"] is None
    above = one(judged, cluster=cluster, resource="t", control=ABOVE)
    assert (above["outcome"], above["observed"]["effect"]) == ("UNKNOWN", None)
    assert above["observed"]["readings"] == {"before 3.7": "outage", "since 3.7": "silent-downgrade"}
    assert one(found, cluster=cluster, resource="fits")["outcome"] == "PASS", "the releases agree"


def test_whoever_leads_may_hold_another_value(judged, found):
    finding = one(found, cluster="leader-unread-values-differ", resource="t")
    assert (finding["outcome"], acks(found, "leader-unread-values-differ")["copies_worst"]) == ("UNKNOWN", None)
    assert one(found, cluster="leader-unread-values-differ", resource="agreed")["outcome"] == "PASS"


@pytest.mark.parametrize("topic", ["short", "nobody"])
def test_an_unread_leader_may_be_none(judged, found, topic):
    """What a write is answered, and whether to retry it; that it isn't accepted is certain."""
    seen = acks(found, "leader-unread", topic)
    assert (seen["accepted"], seen["error"], seen["proposed_error"], seen["retriable"]) == (False, None, None, None)
    assert acks(found, "leader-unread", topic, "min.insync.replicas")["proposed_error"] is None
    visible = {acks(found, "leader-unread", topic, value)["visible_now"] for value in ("0", "1")}
    assert visible == {None}, "3.6.2 would show what is below the minimum"


def test_a_proposed_error_says_nothing_of_retries_while_todays_is_unknown(found):
    seen = acks(found, "isr-unread-above")
    assert (seen["error"], seen["proposed_error"], seen["retriable"]) == (None, "INCONSISTENT_REPLICATION_FACTOR", None)
    seen = acks(found, "release-unknown-4", "whole")
    assert (seen["error"], seen["retriable"]) == (None, False), "no retry helps against either"


def test_below_the_minimum_by_every_release(judged, found):
    assert acks(found, "release-unknown-4")["error"] == "NOT_ENOUGH_REPLICAS"
    health = pick(judged, cluster="release-unknown-4", resource="t", control="partition-health")
    assert {(f["category"], f["outcome"]) for f in health} == {
        ("under-min-isr", "FAIL"),
        ("under-replicated", "FAIL"),
    }
    short = one(health, category="under-min-isr")
    assert "isr 1 of 3 replicas, effective min.insync.replicas 3 or 4;" in short["message"]
    whole = one(judged, cluster="release-unknown-4", resource="whole", control="partition-health")
    assert whole["outcome"] == "UNKNOWN"


def test_one_replica_is_at_the_minimum_whatever_the_value(judged, found):
    counted = one(found, cluster="value-unread", resource="single")["observed"]["partitions_by_answer"]
    assert (counted["today"]["NONE"], counted["proposed"]["UNKNOWN"]) == (1, 1), "it may be above the one replica"
    health = one(judged, cluster="value-unread", resource="single", control="partition-health")
    assert (health["category"], health["outcome"], health["cause"]) == ("at-min-isr", "FAIL", "configuration:topic")
    headroom = one(judged, cluster="value-unread", resource="single", control="write-headroom")
    assert (headroom["outcome"], headroom["observed"]["write_headroom"]) == ("FAIL", 0)


def test_no_refusal_is_hidden_by_a_partition_of_the_same_guarantee(found):
    finding = one(found, cluster="refusals", resource="enforced")
    assert finding["observed"]["partition"] == 1
    assert acks(found, "refusals", "enforced")["proposed_error"] == "NOT_ENOUGH_RACKS"


def test_partitions_are_counted_by_answer(found):
    none = dict.fromkeys(("NONE", "LEADER_NOT_AVAILABLE", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "UNKNOWN"), 0)
    proposed = none | {"INCONSISTENT_REPLICATION_FACTOR": 0, "NOT_ENOUGH_RACKS": 0}

    def counted(cluster, topic):
        return one(found, cluster=cluster, resource=topic)["observed"]["partitions_by_answer"]

    answers = {"NONE": 1, "LEADER_NOT_AVAILABLE": 1, "NOT_ENOUGH_REPLICAS": 1}
    assert counted("refusals", "t") == {"today": none | answers, "proposed": proposed | answers}
    assert counted("refusals", "enforced") == {
        "today": none | {"NONE": 2},
        "proposed": proposed | {"NONE": 1, "NOT_ENOUGH_RACKS": 1},
    }
    assert counted("leader-unread", "nobody")["today"] == none | {"UNKNOWN": 1}
    assert counted("release-unknown-4", "whole") == {
        "today": none | {"UNKNOWN": 1},
        "proposed": proposed | {"INCONSISTENT_REPLICATION_FACTOR": 1},
    }


@pytest.mark.parametrize(
    "cluster, outcome, copies",
    [
        ("elr-record", "FAIL", 1),  # seen on 4.3.1: brokers had 2, every topic had 1
        ("elr-records-differ", "UNKNOWN", None),
        ("elr-unread", "UNKNOWN", None),
        ("elr-off", "PASS", 2),
    ],
)
def test_with_elr_the_controllers_value_is_every_topics_but_for_its_own(found, cluster, outcome, copies):
    finding = one(found, cluster=cluster, resource="t")
    assert (finding["outcome"], acks(found, cluster)["copies_worst"]) == (outcome, copies)
    assert acks(found, cluster, "own")["copies_worst"] == 2
    if outcome == "FAIL":
        assert finding["cause"] == "configuration:cluster-default"


@pytest.mark.parametrize("topic", ["zero", "negative", "t"])
def test_a_value_below_one_is_none_that_kafka_takes(judged, found, topic):
    """Of `t` the leader's broker holds it."""
    assert one(found, cluster="below-one", resource=topic)["outcome"] == "UNKNOWN"
    assert acks(found, "below-one", topic)["copies_worst"] is None
    for control in ("write-headroom", "partition-health", ABOVE):
        assert one(judged, cluster="below-one", resource=topic, control=control)["outcome"] == "UNKNOWN"


def test_a_value_below_one_is_named(found):
    finding = one(found, cluster="below-one", resource="negative")
    assert finding["cause"] == "configuration:topic"
    assert finding["message"].endswith("min.insync.replicas is not a number of at least 1: -1")


def test_one_wrong_default_is_one_cause(judged):
    failed = [f for f in pick(judged, cluster="default-above", resource="t") if f["outcome"] == "FAIL"]
    controls = {"acked-durability", "write-headroom", ABOVE, "partition-health"}
    assert {f["control"] for f in failed} == controls
    assert {f["cause"] for f in failed} == {"configuration:cluster-default"}
