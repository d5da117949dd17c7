"""What acked-durability says of each acks value, against what real brokers answer and what a consumer then sees.

The clusters and their states: `tests/support/kafka_walk.py`; Kafka 4.3.1 and 3.6.2, whole, a broker dead, a rack dead, a
reassignment running. Every partition of every topic is compared, with the verdict of the same moment.
"""

from __future__ import annotations

import pytest

from tests.support.kafka_states import ACKS

STATES = (
    *("whole", "moving", "broker-down", "rack-down", "restored"),
    *("old-whole", "old-broker-down", "old-rack-down"),
)
KAFKA_PYTHON = {"NOT_ENOUGH_REPLICAS": "NotEnoughReplicasError", "INVALID_REQUIRED_ACKS": "InvalidRequiredAcksError"}


@pytest.mark.parametrize("value", ACKS)
@pytest.mark.parametrize("name", STATES)
def test_writes_are_answered_as_judged(judged, name, value):
    state, told = judged.states[name], judged.acks[name]
    assert told.keys() == state.described.keys()
    led = {key for key, p in state.described.items() if p.leader is not None}
    expected = {key: KAFKA_PYTHON.get(told[key][value]["error"], "accepted") for key in led}
    assert state.written[value].answered == expected
    assert {key for key in told if told[key][value]["error"] == "LEADER_NOT_AVAILABLE"} == told.keys() - led
    assert {key: told[key][value]["accepted"] for key in led} == {k: said == "accepted" for k, said in expected.items()}


@pytest.mark.parametrize("value", ["0", "1", "all"])
@pytest.mark.parametrize("name", STATES)
def test_consumers_see_what_is_judged_visible(judged, name, value):
    told = judged.acks[name]
    assert judged.states[name].written[value].seen == {key for key in told if told[key][value]["visible_now"]}


@pytest.mark.parametrize("name", STATES)
def test_copies_now_and_followers_waited_for_are_those_of_the_isr(judged, name):
    for key, table in judged.acks[name].items():
        isr = len(judged.states[name].described[key].isr)
        accepted = judged.states[name].answered.get(key) == "accepted"
        assert table["all"]["copies_now"] == (isr if accepted else 0)
        assert table["all"]["waits_for"] == (isr - 1 if accepted else 0)


@pytest.mark.parametrize(
    "name, partition, error, proposed, retriable, visible_with_1",
    [
        # RF 2, min.insync.replicas 3: since 3.7 enforced as 2, before as 3
        ("whole", ("h-rf2-min3", 0), None, "INCONSISTENT_REPLICATION_FACTOR", False, True),
        ("old-whole", ("h-rf2-min3", 0), "NOT_ENOUGH_REPLICAS", "INCONSISTENT_REPLICATION_FACTOR", False, True),
        # below the minimum the high watermark stands still since 3.7
        ("broker-down", ("h-rf2-min2", 0), "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS", True, False),
        ("old-broker-down", ("h-rf2-min2", 0), "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS", True, True),
        ("old-rack-down", ("h-rf3-min2", 0), "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS", True, True),
        # RF 1 / 2 is accepted with one copy, until a reassignment to RF 2 runs whose new replica is dead
        ("whole", ("h-growing", 0), None, "INCONSISTENT_REPLICATION_FACTOR", False, True),
        ("broker-down", ("h-growing", 0), "NOT_ENOUGH_REPLICAS", "INCONSISTENT_REPLICATION_FACTOR", True, False),
        ("restored", ("h-growing", 0), None, "INCONSISTENT_REPLICATION_FACTOR", False, True),
    ],
)
def test_what_depends_on_the_release_and_on_reassignments_is_seen(
    judged, name, partition, error, proposed, retriable, visible_with_1
):
    table, written = judged.acks[name][partition], judged.states[name].written
    assert (table["all"]["error"], table["all"]["proposed_error"]) == (error, proposed)
    assert table["all"]["retriable"] is retriable
    assert written["all"].answered[partition] == KAFKA_PYTHON.get(error, "accepted")
    assert (partition in written["1"].seen) is table["1"]["visible_now"] is visible_with_1
    assert written["1"].answered[partition] == "accepted"


def test_the_states_show_every_answer(judged):
    """What the comparisons rest on: nothing was compared empty with empty throughout."""
    for name in ("broker-down", "rack-down", "old-broker-down", "old-rack-down"):
        errors = {table["all"]["error"] for table in judged.acks[name].values()}
        assert errors == {None, "NOT_ENOUGH_REPLICAS", "LEADER_NOT_AVAILABLE"}
    unseen = [
        key
        for key, table in judged.acks["rack-down"].items()
        if table["1"]["accepted"] and not table["1"]["visible_now"]
    ]
    assert len(unseen) > 5
