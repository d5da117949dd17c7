"""Which min.insync.replicas may be set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from durability.apply import min_isr
from durability.apply.cluster import Reading, Replicas, TopicPartition
from durability.apply.plan_files import _caps
from durability.remedies.change.model import BACK, MIN_ISR, Move, Setting, Step, raised_further


@pytest.mark.parametrize(
    ("replicas", "isr", "value", "caps", "few"),
    [
        ((1, 2, 3), (1, 2), 2, False, []),
        ((1, 2, 3), (1,), 2, True, ["t-0 has 1 of 2 replicas in sync that the new value requires"]),
        # A value above the number of replicas, which a plan restores.
        ((1,), (1,), 2, True, []),
        ((1,), (1,), 2, False, ["t-0 has 1 of 2 replicas in sync that the new value requires"]),
        ((1, 2), (1,), 3, True, ["t-0 has 1 of 2 replicas in sync that the new value requires"]),
    ],
)
def test_a_value_needs_as_many_replicas_in_sync_as_brokers_will_enforce(replicas, isr, value, caps, few):
    reading = Reading("id", frozenset({1}), True, {TopicPartition("t", 0): Replicas(replicas, isr, isr[0])})
    assert min_isr.too_few(reading, {"t": value}, caps=caps) == few


@pytest.mark.parametrize(("now", "lowered", "value", "few"), [("1", None, "2", True), ("2", "1", "2", False)])
def test_a_partition_that_was_added_keeps_its_headroom(now, lowered, value, few):
    """It isn't among the plan's moves. A value that was there before the plan comes back in any case."""
    steps = [
        *([Step("1", "lower-min-isr", "", settings=(Setting("t", MIN_ISR, now, lowered),))] if lowered else []),
        Step("2", "reassign", "", moves=(Move("t", 0, (1,), (1, 2, 3)), Move("t", 2, (1,), (1, 2)))),
        Step("3", "raise-min-isr", "", settings=(Setting("t", MIN_ISR, lowered or now, value),)),
    ]
    placed = {("t", 0): (1, 2, 3), ("t", 1): (1, 2), ("t", 2): (1, 2), ("u", 0): (1,)}
    partitions = {TopicPartition(*name): Replicas(on, on, 1) for name, on in placed.items()}
    further = raised_further(steps[-1], steps)
    found = min_isr.without_headroom(further, steps, Reading("id", frozenset({1, 2, 3}), True, partitions))
    assert [text.split(":")[1].split()[0] for text in found] == (["t-1"] if few else [])
    # So does one that a plan takes back.
    assert raised_further(replace(steps[-1], why=BACK), steps) == []


def test_a_step_raises_no_value_to_a_lower_one():
    assert min_isr.higher({"a": 2, "b": 2, "c": 2, "d": None}, {"a": 1, "b": 2, "c": 3}) == [
        "stale: topic c has a min.insync.replicas of 3, above 2. Make a new plan"
    ]


@pytest.mark.parametrize(
    ("whole", "brokers", "caps"),
    [
        ("4.3", [None, "3.7.1"], True),
        ("4.3", ["3.6.2", None], False),
        (None, ["4.0", None], False),
        (None, ["trunk"], False),
        ("3.7.x.kraft", [None], True),
    ],
)
def test_brokers_enforce_at_most_the_number_of_replicas_if_each_is_new_enough(whole, brokers, caps):
    document = {"cluster": {"kafka_version": whole}, "brokers": [{"kafka_version": one} for one in brokers]}
    assert _caps(document) is caps
