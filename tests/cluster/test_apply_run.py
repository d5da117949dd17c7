"""A plan that is applied to a real cluster: killed, stopped, refused for a topic that was recreated, and finished."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from durability.apply.cluster import Resource, ResourceType, TopicPartition
from durability.apply.kafka import connected
from durability.apply.plan_files import PlanFiles
from durability.apply.record import Changes
from durability.apply.recorded import unfinished
from durability.apply.run import Options, apply, restore
from durability.collect import collect
from durability.embedded_kafka import seed
from durability.errors import Refused
from durability.remedies.change.model import MIN_ISR, Move, Setting, Step
from tests.support.fake_cluster import Killed, MemoryLake

FAST = Options(throttle=50_000_000, stall_seconds=60, batch_seconds=300, poll_seconds=0.3)
NEVER_ENDS = Options(throttle=1, stall_seconds=8, batch_seconds=300, poll_seconds=0.3)
TOPIC = "applied"
# Kafka lists the replicas that it removes from the second one in another order.
BEFORE, AFTER = [(1, 2), (3, 2)], [(1, 2, 4), (5, 1, 4)]
OWN = {TOPIC: {MIN_ISR: "3"}}
"""The settings that the topic and the brokers have of their own, before the plan and after it."""


class Acts:
    """A cluster that calls `act` once this method was called so often, after it had its effect."""

    def __init__(self, cluster, method: str, calls: int, act: Callable[[], None]):
        self._cluster, self._method, self._left, self._act = cluster, method, calls, act

    def __getattr__(self, name):
        found = getattr(self._cluster, name)
        if name != self._method:
            return found

        def last(*args, **more):
            self._left -= 1
            result = found(*args, **more)
            if not self._left:
                self._act()
            return result

        return last


def dies() -> None:
    raise Killed


def create(kafka, least: str) -> None:
    seed.create_topics(kafka, [seed.Topic(TOPIC, tuple(map(list, BEFORE)), {MIN_ISR: least})])
    kafka.wait_for_full_isr()


def recreate(kafka, cluster, least: str) -> None:
    """Deletes the topic and creates it again as it was, but with another min.insync.replicas."""
    id = cluster.read([TOPIC]).topic_ids[TOPIC]
    with kafka.admin() as admin:
        admin.delete_topics([TOPIC])
    kafka.wait_until(lambda: not cluster.read([TOPIC]).partitions, "it is deleted")
    create(kafka, least)
    kafka.wait_until(lambda: cluster.read(None).topic_ids.get(TOPIC, id) != id, "it is created again")


@pytest.fixture
def plan(kafka):
    create(kafka, "3")
    seed.produce(kafka, TOPIC, ["x" * 100_000] * 120)
    steps = (
        Step("1-lower-min-isr", "lower-min-isr", "", settings=(Setting(TOPIC, MIN_ISR, "3", "2"),)),
        Step(
            "2-reassign",
            "reassign",
            "",
            moves=tuple(Move(TOPIC, n, b, a) for n, (b, a) in enumerate(zip(BEFORE, AFTER, strict=True))),
        ),
        Step("3-raise-min-isr", "raise-min-isr", "", settings=(Setting(TOPIC, MIN_ISR, "2", "3"),)),
        Step("4-elect-leaders", "elect-leaders", "", elections=((TOPIC, 1),)),
    )
    yield PlanFiles(TOPIC, "c", kafka.cluster_id, steps, {(TOPIC, MIN_ISR): "3"}, inherited=1)
    with kafka.admin() as admin:
        admin.delete_topics([TOPIC])


def state(cluster):
    """The replicas of the topic's partitions, and all settings that it and the live brokers have of their own."""
    reading = cluster.read([TOPIC])
    brokers = [Resource(ResourceType.BROKER, str(broker)) for broker in sorted(reading.live)]
    found = cluster.overrides([Resource(ResourceType.TOPIC, TOPIC), *brokers])
    own = {resource.name: dict(values) for resource, values in found.items() if values}
    return [now.replicas for _, now in sorted(reading.partitions.items())], own


@pytest.mark.slow
def test_a_killed_run_is_taken_back_and_a_stopped_one_finished(kafka, plan):
    connection = {"bootstrap.servers": kafka.bootstrap}
    with connected("c", connection) as cluster:
        lake, said = MemoryLake(), []

        def changes() -> Changes:
            return Changes(lake, "c", "remediate", "p", "r", None)

        # Killed when min.insync.replicas is lowered, when the throttle is on, and while replicas are copied.
        for method, calls in (("change", 1), ("change", 2), ("reassign", 1), ("sizes", 3)):
            with pytest.raises(Killed):
                apply(plan, Acts(cluster, method, calls, dies), changes(), NEVER_ENDS, said.append)
            assert restore(cluster, changes()) == []
            assert state(cluster) == (BEFORE, OWN), (method, calls)

        loses = Acts(cluster, "sizes", 3, lambda: kafka.kill_broker(5))
        outcome = apply(plan, loses, changes(), NEVER_ENDS, said.append)
        assert (outcome.stopped, outcome.why) == ("2-reassign", "broker 5 is down")
        assert state(cluster) == (BEFORE, OWN)
        kafka.restart_broker(5)
        kafka.wait_for_full_isr()

        assert restore(cluster, changes()) == []
        with pytest.raises(Killed):
            apply(plan, Acts(cluster, "reassign", 1, dies), changes(), NEVER_ENDS, said.append)
        recreate(kafka, cluster, "2")
        assert restore(cluster, changes()) == [f"topic {TOPIC} was recreated since it was changed, and is left"] * 2
        assert state(cluster) == (BEFORE, {TOPIC: {MIN_ISR: "2"}})
        with pytest.raises(Refused, match=f"stale: topic {TOPIC} was recreated since the plan was made"):
            apply(plan, cluster, changes(), FAST, said.append)
        recreate(kafka, cluster, "3")

        stated = cluster.read([TOPIC]).topic_ids
        [shown] = [t for t in collect("c", connection).document["topics"] if t["name"] == TOPIC]
        assert stated == {TOPIC: shown["id"]}
        lake.rows.clear()
        outcome = apply(replace(plan, topic_ids=stated), cluster, changes(), FAST, said.append)
        assert (outcome.stopped, outcome.left, len(outcome.done)) == (None, [], 4)
        assert state(cluster) == (AFTER, OWN)
        assert cluster.read([TOPIC]).partitions[TopicPartition(TOPIC, 1)].leader == 5
        assert unfinished(lake) == []
