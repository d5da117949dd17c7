"""acked-durability in the proposals' own cases (KIP-926, KIP-1290, KIP-579) and in Kafka's traps: each a small cluster, all
judged as one fleet in one job. Worst cases in general: test_acks_worst.py."""

import re

import pytest

from tests.support.acks_fleet import PARTS, acks
from tests.support.judge import one, pick


@pytest.fixture(scope="module")
def judged(judged_once):
    return judged_once(*PARTS)[1]


@pytest.fixture(scope="module")
def found(judged):
    return pick(judged, control="acked-durability")


@pytest.mark.parametrize(
    "topic, value, error, copies, waits_for, visible",
    [
        # KIP-926's typical scenario: RF 3, min.insync.replicas 2, everything in sync
        ("t", "0", None, 0, 0, True),
        ("t", "1", None, 1, 0, True),
        ("t", "all", None, 3, 2, True),
        ("t", "min.insync.replicas", "INVALID_REQUIRED_ACKS", 2, 1, True),
        # one replica out of sync: both wait for the same
        ("u", "all", None, 2, 1, True),
        ("u", "min.insync.replicas", "INVALID_REQUIRED_ACKS", 2, 1, True),
        # below the minimum: acks=0 and 1 are accepted, and seen by nobody
        ("v", "0", None, 0, 0, False),
        ("v", "1", None, 1, 0, False),
        ("v", "all", "NOT_ENOUGH_REPLICAS", 0, 0, False),
        ("v", "min.insync.replicas", "INVALID_REQUIRED_ACKS", 0, 0, False),
        ("w", "0", "LEADER_NOT_AVAILABLE", 0, 0, False),
        ("w", "1", "LEADER_NOT_AVAILABLE", 0, 0, False),
        ("w", "all", "LEADER_NOT_AVAILABLE", 0, 0, False),
        ("w", "min.insync.replicas", "LEADER_NOT_AVAILABLE", 0, 0, False),
        # "if the in-sync replicas only have 1", acks=all has the same effect as acks=1
        ("one", "all", None, 1, 0, True),
    ],
)
def test_acks_as_kip_926_has_them(found, topic, value, error, copies, waits_for, visible):
    seen = acks(found, "kip-926", topic, value)
    assert (seen["error"], seen["copies_now"], seen["waits_for"], seen["visible_now"]) == (
        error,
        copies,
        waits_for,
        visible,
    )


def test_waiting_for_fewer_with_the_proposal_and_what_survives_the_leader(found):
    assert acks(found, "kip-926", "t", "min.insync.replicas")["fewer_than_all"] == 1
    assert acks(found, "kip-926", "u", "min.insync.replicas")["fewer_than_all"] == 0
    survivors = {
        value
        for value in ("0", "1", "all", "min.insync.replicas")
        if acks(found, "kip-926", "t", value)["survives_leader_loss"]
    }
    assert survivors == {"all"}
    assert acks(found, "kip-926", "one")["survives_leader_loss"] is False
    assert acks(found, "unclean")["survives_leader_loss"] is False


def test_kip_926_on_todays_brokers(found):
    today = acks(found, "kip-926", "v", "min.insync.replicas")
    assert (today["proposed_error"], today["retriable"], today["copies_worst"]) == ("NOT_ENOUGH_REPLICAS", False, 2)
    assert acks(found, "kip-926", "v")["retriable"] is True


def test_kip_1290s_example(found):
    finding = one(found, cluster="kip-1290", resource="t")
    assert (finding["outcome"], finding["severity"]) == ("FAIL", "critical")
    assert (acks(found, "kip-1290")["copies_worst"], acks(found, "kip-1290")["racks_worst"]) == (2, 1)
    assert finding["observed"]["smallest_min_insync_replicas"] == 3
    assert finding["observed"]["with_min_insync_racks"] == {"min.insync.replicas": 2, "min.insync.racks": 2}
    assert finding["remediation"].endswith("--entity-name t --add-config min.insync.replicas=3")
    assert one(found, cluster="kip-1290", resource="u")["outcome"] == "PASS"


def test_not_enough_replicas_comes_before_not_enough_racks(found):
    short, shorter = acks(found, "rack-outage", "enforced"), acks(found, "rack-outage", "enforced-more")
    assert (short["error"], short["proposed_error"], short["retriable"]) == (None, "NOT_ENOUGH_RACKS", True)
    assert (shorter["error"], shorter["proposed_error"]) == ("NOT_ENOUGH_REPLICAS",) * 2
    # "only when acks=all"
    assert acks(found, "rack-outage", "enforced", "min.insync.replicas")["proposed_error"] is None
    assert acks(found, "rack-outage", "enforced", "1")["proposed_error"] is None


@pytest.mark.parametrize(
    "cluster, topic, error, proposed, retriable, copies, visible_1",
    [
        ("kip-579-on-3.6", "whole", "NOT_ENOUGH_REPLICAS", "INCONSISTENT_REPLICATION_FACTOR", False, 0, True),
        ("kip-579-on-3.6", "short", "NOT_ENOUGH_REPLICAS", "INCONSISTENT_REPLICATION_FACTOR", False, 0, True),
        ("kip-579-on-3.6", "fits", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS", True, 2, True),
        ("kip-579-on-4.3", "whole", None, "INCONSISTENT_REPLICATION_FACTOR", False, 2, True),
        ("kip-579-on-4.3", "short", "NOT_ENOUGH_REPLICAS", "INCONSISTENT_REPLICATION_FACTOR", True, 2, False),
        ("kip-579-on-4.3", "fits", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS", True, 2, False),
    ],
)
def test_kip_579_by_release(found, cluster, topic, error, proposed, retriable, copies, visible_1):
    seen = acks(found, cluster, topic)
    assert (seen["error"], seen["proposed_error"], seen["retriable"], seen["copies_worst"]) == (
        error,
        proposed,
        retriable,
        copies,
    )
    assert acks(found, cluster, topic, "1")["visible_now"] is visible_1
    assert acks(found, cluster, topic, "1")["error"] is None


def test_what_accepts_no_write_guarantees_nothing(found):
    finding = one(found, cluster="kip-579-on-3.6", resource="whole")
    assert finding["outcome"] == "FAIL"
    assert finding["message"].endswith("; every acks=all write is rejected")
    assert one(found, cluster="kip-579-on-4.3", resource="whole")["outcome"] == "PASS"


def test_an_unknown_release_gives_both_readings(found):
    finding = one(found, cluster="release-unknown", resource="whole")
    assert finding["outcome"] == "UNKNOWN"
    assert finding["observed"]["readings"] == {"before 3.7": "NOT_ENOUGH_REPLICAS", "since 3.7": None}
    seen = finding["observed"]["acks"]["all"]
    assert (seen["accepted"], seen["error"], seen["copies_worst"]) == (None, None, None)
    # below the minimum by either reading
    assert acks(found, "release-unknown", "short")["error"] == "NOT_ENOUGH_REPLICAS"
    assert acks(found, "release-unknown", "short", "1")["visible_now"] is None
    assert one(found, cluster="release-unknown", resource="fits")["outcome"] == "PASS"


def test_on_two_racks_the_value_that_reaches_both_leaves_no_headroom(found):
    finding = one(found, cluster="two-racks", resource="t")
    assert finding["observed"]["smallest_min_insync_replicas"] == 3
    assert "replication factor 4, min.insync.replicas 3 (now 3 and 2)" in finding["remediation"]
    # Three of three would leave no headroom: the value is raised when the fourth replica is there.
    raised, cost = finding["remediation"].splitlines()[-2:]
    assert raised.endswith("audit again: then set min.insync.replicas=3.")
    assert "2 of 4 replicas can be left: acks=all writes are then rejected" in cost
    assert one(found, cluster="two-racks", resource="u")["outcome"] == "PASS"


def test_too_few_racks_to_choose_from(found):
    placed = one(found, cluster="one-rack", resource="four-racks")
    assert placed["cause"] == "policy:four-racks can't be met here"
    assert placed["observed"]["smallest_min_insync_replicas"] is None
    bare = one(found, cluster="no-racks", resource="t")
    assert (bare["outcome"], bare["cause"]) == ("FAIL", "policy:wanted can't be met here")
    assert "Set broker.rack" in bare["remediation"]
    assert (bare["observed"]["acks"]["all"]["racks_worst"], bare["observed"]["with_min_insync_racks"]) == (0, None)
    assert one(found, cluster="no-racks", resource="copies")["outcome"] == "PASS"


def test_an_unracked_broker_adds_no_rack(found):
    finding = one(found, cluster="an-unracked-one", resource="t")
    assert (finding["outcome"], finding["observed"]["acks"]["all"]["racks_worst"]) == ("FAIL", 1)
    assert finding["observed"]["smallest_min_insync_replicas"] == 3
    assert finding["observed"]["with_min_insync_racks"] is None, "KIP-1290 requires broker.rack on all brokers"
    assert one(found, cluster="an-unracked-one", resource="u")["outcome"] == "PASS"


def test_an_unknown_rack_is_unknown_where_it_decides(found):
    outcomes = {f["resource"]: f["outcome"] for f in pick(found, cluster="rack-unread")}
    assert outcomes == {"t": "UNKNOWN", "u": "UNKNOWN", "v": "FAIL"}
    assert acks(found, "rack-unread")["racks_worst"] is None
    assert acks(found, "rack-unread")["racks_now"] is None
    assert acks(found, "rack-unread")["copies_worst"] == 2


def test_a_reassignment_is_judged_by_its_worse_end(found):
    growing = one(found, cluster="growing", resource="t")
    assert growing["outcome"] == "FAIL"
    assert growing["observed"]["effective_min_insync_replicas"] == 2
    seen = growing["observed"]["acks"]["all"]
    assert (seen["error"], seen["copies_worst"], seen["retriable"]) == ("NOT_ENOUGH_REPLICAS", 1, True)
    assert seen["proposed_error"] == "INCONSISTENT_REPLICATION_FACTOR"
    moved = one(found, cluster="moving", resource="t")
    assert (moved["outcome"], moved["observed"]["acks"]["all"]["racks_worst"]) == ("FAIL", 1)


def test_while_a_reassignment_runs_the_isr_is_drawn_from_old_and_new_replicas(found):
    finding = one(found, cluster="in-between", resource="t")
    seen = finding["observed"]["acks"]["all"]
    assert (seen["accepted"], seen["racks_now"], seen["racks_worst"], seen["copies_worst"]) == (True, 1, 1, 2)
    assert (finding["outcome"], finding["cause"]) == ("FAIL", "reassignment")
    assert finding["remediation"].startswith("Let the reassignment complete")
    # All four have to be in sync, on both racks; at either end both
    assert one(found, cluster="in-between", resource="larger")["outcome"] == "PASS"


@pytest.mark.parametrize(
    "topic, when",
    [
        ("t", "if this reassignment is cancelled"),
        ("u", "once this reassignment is complete"),
        ("v", "once this reassignment is complete, and also if it is cancelled"),
    ],
)
def test_a_write_that_is_accepted_now_is_not_called_refused(found, topic, when):
    finding = one(found, cluster="growing-on-3.6", resource=topic)
    assert acks(found, "growing-on-3.6", topic)["accepted"] is True
    assert finding["message"].endswith(f"; every acks=all write is rejected {when}")


@pytest.mark.parametrize("cluster, visible", [("min-unread", None), ("min-unread-on-3.6", True)])
def test_what_consumers_see_is_unknown_without_min_insync_replicas(found, cluster, visible):
    """From 3.7 the high watermark may stand still; before it never does."""
    assert {acks(found, cluster, "t", value)["visible_now"] for value in ("0", "1")} == {visible}


@pytest.mark.parametrize(
    "cluster, topic, outcome",
    [
        ("reassignments-unread", "t", "UNKNOWN"),
        ("reassignments-unread", "u", "FAIL"),  # one copy whatever is being moved
        ("observers", "t", "UNKNOWN"),
        ("observers", "u", "FAIL"),
        ("configs-unread", "t", "UNKNOWN"),
        ("configs-unread", "single", "FAIL"),  # one replica is one copy whatever min.insync.replicas says
        ("isr-unread", "t", "PASS"),  # the guarantee doesn't hang on what is in sync now
        ("nothing", "nothing", "NOT_APPLICABLE"),
        ("nothing", "one", "PASS"),
    ],
)
def test_what_isnt_known_counts_where_it_decides(found, cluster, topic, outcome):
    assert one(found, cluster=cluster, resource=topic)["outcome"] == outcome


def test_an_unread_isr_leaves_what_is_so_now_open(found):
    seen = acks(found, "isr-unread")
    assert (seen["accepted"], seen["copies_now"], seen["visible_now"], seen["copies_worst"]) == (None, None, None, 2)


@pytest.mark.parametrize(
    "cluster, topic, cause, fix",
    [
        ("weak", "t", "configuration:topic", "--entity-type topics --entity-name t --add-config min.insync.replicas=2"),
        (
            "weak",
            "copies-default",
            "configuration:cluster-default",
            "--entity-default --add-config min.insync.replicas=2",
        ),
        ("weak", "copies-few", "configuration:topic", "kafka-reassign-partitions"),
        # on two racks of three, min.insync.replicas 3 would leave no headroom
        ("one-rack", "t", "placement", "--reassignment-json-file plans/one-rack/t.json"),
        ("elr", "t", "configuration:topic", "Don't change min.insync.replicas now"),
    ],
)
def test_each_failure_has_its_fix(found, cluster, topic, cause, fix):
    finding = one(found, cluster=cluster, resource=topic)
    assert (finding["outcome"], finding["cause"]) == ("FAIL", cause)
    assert fix in finding["remediation"]


@pytest.mark.parametrize(
    "topic, control",
    [
        ("t", "write-headroom"),
        ("spare", "write-headroom"),
        ("above", "min-isr-within-replication-factor"),
        ("spare-above", "min-isr-within-replication-factor"),
    ],
)
def test_no_fix_lowers_min_insync_replicas_below_what_the_guarantee_needs(judged, found, topic, control):
    assert one(found, cluster="tight", resource=topic)["outcome"] == "PASS"
    finding = one(judged, cluster="tight", resource=topic, control=control)
    assert finding["outcome"] == "FAIL"
    offered = re.findall(r"--entity-type topics .*min[.]insync[.]replicas=(\d+)", finding["remediation"] or "")
    assert all(int(value) >= {"t": 3, "above": 3}.get(topic, 2) for value in offered), finding["remediation"]


def test_a_fix_adds_a_replica_even_where_the_guarantee_allows_a_lower_min_insync_replicas(judged):
    finding = one(judged, cluster="tight", resource="spare-more", control="write-headroom")
    assert finding["outcome"] == "FAIL" and "min.insync.replicas=2" not in finding["remediation"]
    assert "replication factor 4, min.insync.replicas 3 (now 3 and 3)" in finding["remediation"]


def test_what_isnt_required_isnt_spoken_of(found):
    message = one(found, cluster="weak", resource="copies-default")["message"]
    assert "acks=all guarantees 1 copy in the worst case, 2 copies required" in message


def test_a_topic_is_told_by_its_worst_partition(found):
    """Partitions 1, 2 and 3 may be acknowledged in one rack; 2 is offline besides."""
    finding = one(found, cluster="worst-partition")
    assert (finding["partitions"], finding["observed"]["partition"]) == ([1, 2, 3], 2)
    assert finding["observed"]["acks"]["all"]["error"] == "LEADER_NOT_AVAILABLE"
    assert finding["message"].startswith(
        "partitions 1, 2, 3: acks=all guarantees 2 copies in 1 rack in the worst case, 2 copies in 2 racks required"
    )
