"""Which min.insync.replicas may be set."""

from __future__ import annotations

import pytest

from durability.apply import min_isr
from durability.apply.cluster import Reading, Replicas, TopicPartition
from durability.apply.plan_files import _caps


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
