"""What leaders have as a topic's own settings is compared with what another broker answered."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from durability.collect import overrides
from durability.collect.configs import Configs
from durability.collect.notes import Notes
from durability.collect.reasons import Unread
from durability.collect.topics import Reading, Topic

MIN_ISR, UNCLEAN = overrides.ENFORCED
TOPIC, BROKER, STATIC = 1, 4, "broker"


class Brokers:
    """Answers by broker: by topic its min.insync.replicas as (value, source), or an Unread for all."""

    def __init__(self, answers: dict[int, dict[str, tuple[str, int]] | Unread]):
        self.answers, self.asked = answers, []

    async def gather(self, jobs):
        return [await job() for job in jobs]

    async def ask(self, node, request):
        self.asked.append((node, [r.resource_name for r in request.resources]))
        answers = self.answers[node]
        if isinstance(answers, Unread):
            raise answers
        return SimpleNamespace(
            results=[
                SimpleNamespace(
                    resource_name=name,
                    error_code=0 if name in answers else 3,
                    configs=[
                        SimpleNamespace(name=MIN_ISR, value=value, is_sensitive=False, config_source=source)
                        for value, source in [answers.get(name, ("", TOPIC))]
                    ],
                )
                for name in self.asked[-1][1]
            ]
        )


def compared(answers, led: dict[str, list[int | None]], first: dict[str, Configs], brokers=(1, 2, 3)):
    """The notes on settings by topic and setting, and who was asked for what."""
    reading = Reading(
        {name: Topic(False, {n: {"leader": leader} for n, leader in enumerate(of)}) for name, of in led.items()}
    )
    wire, notes = Brokers(answers), Notes()
    asyncio.run(overrides.compare(wire, reading, brokers, first, notes))
    return {
        (name, key): reason
        for name in led
        for key in overrides.ENFORCED
        if (reason := notes.reason(("topics", name, "configs", key)))
    }, wire.asked


def own(value: str) -> Configs:
    return Configs({MIN_ISR: value}, {MIN_ISR: "topic"})


INHERITED = Configs({MIN_ISR: "2"}, {MIN_ISR: STATIC})


def test_each_leader_is_asked_for_the_topics_that_it_leads():
    answers = {1: {"a": ("2", TOPIC)}, 2: {"a": ("2", TOPIC), "b": ("2", TOPIC)}}
    notes, asked = compared(answers, {"a": [1, 2, 2], "b": [2, None]}, {"a": own("2"), "b": own("2")})
    assert notes == {}
    assert asked == [(1, ["a"]), (2, ["a", "b"])]


@pytest.mark.parametrize(
    "first, answer, said",
    [
        (INHERITED, ("1", TOPIC), "the topic's own value is 1 on broker 1, and none on another broker"),
        (own("2"), ("1", BROKER), "the topic's own value is none on broker 1, and 2 on another broker"),
        (own("2"), ("1", TOPIC), "the topic's own value is 1 on broker 1, and 2 on another broker"),
        # Brokers may inherit different values of their own.
        (INHERITED, ("1", BROKER), None),
    ],
)
def test_overrides_that_differ_are_noted_with_both_values(first, answer, said):
    notes, _ = compared({1: {"a": answer}}, {"a": [1]}, {"a": first})
    assert notes == ({} if said is None else {("a", MIN_ISR): f"brokers differ: {said}. Set it again"})


def test_who_cannot_be_compared_is_left_out():
    # A topic that was deleted, one whose settings could not be read, a leader that doesn't answer, a single broker.
    assert compared({1: {}}, {"a": [1]}, {"a": own("2")})[0] == {}
    assert compared({}, {"a": [1]}, {}) == ({}, [])
    assert compared({}, {"a": [4]}, {"a": own("2")}) == ({}, [])
    assert compared({}, {"a": [1]}, {"a": own("2")}, brokers=(1,)) == ({}, [])
    assert compared({1: Unread("TIMEOUT", connection=True)}, {"a": [1]}, {"a": own("2")})[0] == {}


def test_a_refusal_is_noted():
    notes, _ = compared({1: Unread("CLUSTER_AUTHORIZATION_FAILED")}, {"a": [1]}, {"a": own("2")})
    assert set(notes.values()) == {"CLUSTER_AUTHORIZATION_FAILED"}
    assert len(notes) == 2
