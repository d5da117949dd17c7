"""A plan of six steps, the cluster in memory that it changes, and what it makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from durability.apply.cluster import Replicas, Resource, ResourceType, TopicPartition
from durability.apply.plan_files import PlanFiles
from durability.apply.record import Changes
from durability.apply.run import Options, apply, restore
from durability.remedies.change.model import MIN_ISR, UNCLEAN, Move, Setting, Step
from tests.support.fake_cluster import FakeCluster, Killed, Life, Mortal

A0, A1, B0, C0 = (TopicPartition(*name) for name in (("a", 0), ("a", 1), ("b", 0), ("c", 0)))
A, C, EVERYWHERE = (
    Resource(ResourceType.TOPIC, "a"),
    Resource(ResourceType.TOPIC, "c"),
    Resource(ResourceType.BROKER, ""),
)
QUICK = Options(throttle=500, stall_seconds=0, batch_seconds=60, poll_seconds=0)
"""Without progress between two readings, it stalls."""
RATE, LIST = "follower.replication.throttled.rate", "follower.replication.throttled.replicas"
FINAL = {A0: (1, 2, 4), A1: (2, 3, 5), B0: (4, 2, 3), C0: (1, 2, 3)}


def steps() -> tuple[Step, ...]:
    """Topic a gets a third replica in two batches, with its min.insync.replicas lowered meanwhile. b moves."""
    made = [
        Step("1-lower-min-isr", "lower-min-isr", "", settings=(Setting("a", MIN_ISR, "3", "2"),)),
        Step("2-reassign", "reassign", "", moves=(Move("a", 0, (1, 2), (1, 2, 4)),)),
        Step("3-reassign", "reassign", "", moves=(Move("a", 1, (2, 3), (2, 3, 5)), Move("b", 0, (1, 2, 3), (4, 2, 3)))),
        Step("4-raise-min-isr", "raise-min-isr", "", settings=(Setting("a", MIN_ISR, "2", "3"),)),
        Step(
            "5-set-config",
            "set-config",
            "",
            settings=(Setting(None, UNCLEAN, None, "false"), Setting("c", UNCLEAN, "true", None)),
        ),
        Step("6-elect-leaders", "elect-leaders", "", elections=(("b", 0),)),
    ]
    return tuple(replace(step, after=(made[n - 1].id,) if n else ()) for n, step in enumerate(made))


def plan(*changed: Step, **other) -> PlanFiles:
    before = {("a", MIN_ISR): "3", (None, UNCLEAN): None, ("c", UNCLEAN): "true"}
    made = PlanFiles("p", "eu", "kafka", changed or steps(), before, inherited=1)
    return replace(made, **other)


def cluster(**other) -> FakeCluster:
    placed = {A0: (1, 2), A1: (2, 3), B0: (1, 2, 3), C0: (1, 2, 3)}
    partitions = {name: Replicas(replicas, replicas, replicas[0], elr=()) for name, replicas in placed.items()}
    own = {A: {MIN_ISR: "3"}, C: {UNCLEAN: "true", "retention.ms": "5"}}
    return FakeCluster(partitions, own, frozenset(range(1, 7)), **other)


def changes(lake, run_id="r") -> Changes:
    return Changes(lake, "eu", "remediate", "p", run_id, None)


def applied(kafka, lake, of=None, options=QUICK):
    options = replace(options, stall_seconds=9) if kafka.lag else options
    return apply(of or plan(), kafka, changes(lake), options, lambda line: None)


def throttled(kafka) -> dict:
    found = {r: {n: v for n, v in values.items() if "throttled" in n} for r, values in kafka.settings.items()}
    return {resource: values for resource, values in found.items() if values}


def placed(kafka) -> dict:
    return {name: now.replicas for name, now in kafka.partitions.items()}


def is_final(kafka) -> bool:
    own = kafka.settings
    values = own[A] == {MIN_ISR: "3"} and own[C] == {"retention.ms": "5"} and own[EVERYWHERE] == {UNCLEAN: "false"}
    return values and placed(kafka) == FINAL and kafka.partitions[B0].leader == 4 and not throttled(kafka)


MADE = [
    *("topic:a min.insync.replicas=2", "move a-0 [1, 2, 4]", "move a-1 [2, 3, 5]", "move b-0 [4, 2, 3]"),
    *("topic:a min.insync.replicas=3", "broker: unclean.leader.election.enable=false"),
    *("topic:c unclean.leader.election.enable=None",),
]
"""What an application of the plan changes, without throttles, each thing once. Kafka elects b-0's leader when 1 goes."""


def made(kafka) -> list[str]:
    return [text for text in kafka.made if "throttled" not in text]


def stopped(kafka, lake, of=None, options=QUICK):
    outcome = applied(kafka, lake, of, options)
    assert outcome.stopped is not None
    return outcome


def on(kafka, name: str, act, nth: int = 1):
    """Calls `act` before the nth call of this name."""
    count = []

    def before(number, called):
        count.extend([0] if called == name else [])
        if called == name and len(count) == nth:
            act()

    kafka.before_call = before
    return kafka


def killed(kafka, lake, life: Life, back: bool = False) -> bool:
    """One try that may be killed. back: of `restore`."""
    of = Mortal(kafka, life)
    try:
        if back:
            restore(of, changes(Mortal(lake, life)))
        else:
            applied(of, Mortal(lake, life))
    except Killed:
        kafka.settle()  # a process takes longer to begin than a broker to learn of a change
        return True
    return False


def in_order(kafka):
    """Nothing that the plan does leaves a partition without acks=all."""
    kafka.before_call = lambda number, name: kafka.under_min_isr() == [] or pytest.fail(str(kafka.under_min_isr()))
    return kafka
