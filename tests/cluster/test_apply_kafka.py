"""Changes of a real cluster, compared with what the cluster states afterwards."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from durability.apply import kafka_changes
from durability.apply.cluster import Resource, ResourceType, SettingChange, TopicPartition
from durability.apply.kafka import KafkaCluster, connected
from durability.collect import Limits
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.errors import Unreachable

LEADERS, FOLLOWERS = "leader.replication.throttled", "follower.replication.throttled"
MOVED, STILL = TopicPartition("apply-moved", 0), TopicPartition("apply-moved", 1)
GONE = TopicPartition("apply-gone", 0)
EVERY_BROKER = Resource(ResourceType.BROKER, "")


@pytest.fixture
def cluster(kafka) -> Iterator[KafkaCluster]:
    with connected("c", {"bootstrap.servers": kafka.bootstrap}) as opened:
        yield opened


def topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)


def broker(number: int) -> Resource:
    return Resource(ResourceType.BROKER, str(number))


def create(kafka: LocalCluster, name: str, *replicas: list[int], **settings: str) -> None:
    seed.create_topics(kafka, [seed.Topic(name, replicas, {k.replace("_", "."): v for k, v in settings.items()})])
    kafka.wait_for_full_isr()


def test_settings_are_set_and_deleted_of_the_resource_itself(kafka, cluster):
    create(kafka, "apply-set", [1, 2, 3], min_insync_replicas="1", retention_ms="60000")
    of_topic, rate = topic("apply-set"), f"{FOLLOWERS}.rate"
    before = cluster.overrides([EVERY_BROKER])[EVERY_BROKER]
    changes = [
        SettingChange(of_topic, "min.insync.replicas", None),
        SettingChange(of_topic, f"{LEADERS}.replicas", "0:1,0:2"),
        SettingChange(broker(2), f"{LEADERS}.rate", "1000"),
        SettingChange(EVERY_BROKER, rate, "2000"),
    ]
    asked = [of_topic, topic("apply-gone"), broker(1), broker(2), EVERY_BROKER]
    try:
        assert cluster.change(changes) == {}
        expected = {
            of_topic: {"retention.ms": "60000", f"{LEADERS}.replicas": "0:1,0:2"},
            broker(1): {},
            broker(2): {f"{LEADERS}.rate": "1000"},
            EVERY_BROKER: {**before, rate: "2000"},
        }
        # Each broker learns of a change a moment after the controller, and any of them may answer.
        kafka.wait_until(lambda: cluster.overrides(asked) == expected, "it is set")
        assert cluster.overrides([of_topic, broker(2)], (f"{LEADERS}.replicas", rate)) == {
            of_topic: {f"{LEADERS}.replicas": "0:1,0:2"},
            broker(2): {},
        }
        assert cluster.change(changes) == {}, "a change that is repeated has the same result"
        wrong = [
            SettingChange(of_topic, "retention.ms", "never"),
            SettingChange(of_topic, f"{LEADERS}.replicas", None),
            SettingChange(topic("apply-gone"), "retention.ms", "1"),
            SettingChange(broker(1), "node.id", "7"),
        ]
        errors = cluster.change(wrong)
        assert errors.keys() == {of_topic, topic("apply-gone"), broker(1)}
        assert errors[of_topic].startswith("INVALID_CONFIG: Invalid value never for configuration retention.ms")
        assert errors[topic("apply-gone")].startswith("UNKNOWN_TOPIC_OR_PARTITION")
        assert cluster.overrides([of_topic])[of_topic].keys() == {"retention.ms", f"{LEADERS}.replicas"}
    finally:
        undo = [SettingChange(broker(2), f"{LEADERS}.rate", None), SettingChange(EVERY_BROKER, rate, None)]
        assert cluster.change(undo) == {}
    expected = {broker(2): {}, EVERY_BROKER: before}
    kafka.wait_until(lambda: cluster.overrides([broker(2), EVERY_BROKER]) == expected, "it is deleted")


def test_replicas_are_moved_and_the_move_is_cancelled(kafka, cluster):
    create(kafka, "apply-moved", [1, 2], [3, 1])
    seed.produce(kafka, "apply-moved", ["x" * 100_000] * 120)
    throttle = [
        SettingChange(topic("apply-moved"), f"{FOLLOWERS}.replicas", "*"),
        *(SettingChange(broker(each), f"{FOLLOWERS}.rate", "1") for each in (4, 5)),
    ]
    try:
        # At this rate, Kafka's quota window lets about one megabyte through in eleven seconds.
        assert cluster.change(throttle) == {}
        kafka.wait_until(lambda: all(cluster.overrides([broker(4), broker(5)]).values()), "the throttle is known")
        refused = {STILL: [1, 99], GONE: [1], TopicPartition("apply-moved", 9): [1]}
        assert cluster.reassign({MOVED: [4, 5], **refused}) == {
            STILL: "INVALID_REPLICATION_ASSIGNMENT",
            GONE: "UNKNOWN_TOPIC_OR_PARTITION",
            TopicPartition("apply-moved", 9): "UNKNOWN_TOPIC_OR_PARTITION",
        }
        # A broker learns of the move a moment after the controller.
        kafka.wait_until(lambda: len(cluster.read(["apply-moved"]).partitions[MOVED].replicas) == 4, "it moves")
        found = cluster.read(["apply-moved"])
        moving = found.partitions[MOVED]
        assert found.moving == {MOVED: moving}
        assert (moving.replicas, moving.adding, moving.removing) == ((4, 5, 1, 2), (4, 5), (1, 2))
        assert (moving.leader, moving.moving, found.partitions[STILL].moving) == (1, True, False)
        assert cluster.read(["apply-gone"]).moving.keys() == {MOVED}, "moves of other topics are shown, too"
        sizes = kafka.wait_until(
            lambda: (s := cluster.sizes(range(1, 7), ["apply-moved"])).get((4, MOVED)) is not None and s, "it is copied"
        )
        assert sizes[1, MOVED] > 3_000_000 > sizes[4, MOVED]
        assert sizes[1, STILL] == sizes[3, STILL] > 3_000_000 and (3, MOVED) not in sizes
        assert cluster.reassign({MOVED: [4]}, same_factor=True) == {MOVED: "INVALID_REPLICATION_FACTOR"}
        assert cluster.reassign({MOVED: None, STILL: None}) == {STILL: "NO_REASSIGNMENT_IN_PROGRESS"}
        back = kafka.wait_until(lambda: not (r := cluster.read(["apply-moved"])).moving and r, "it is cancelled")
        kafka.wait_until(lambda: cluster.read(["apply-moved"]).partitions[MOVED].replicas == (1, 2), "it is back")
        assert back.cluster_id == kafka.cluster_id and back.live == {1, 2, 3, 4, 5, 6} and back.led
    finally:
        assert cluster.change([SettingChange(change.resource, change.name, None) for change in throttle]) == {}
    assert cluster.reassign({MOVED: [5, 1]}, same_factor=True) == {}
    kafka.wait_until(lambda: cluster.read(["apply-moved"]).partitions[MOVED].replicas == (5, 1), "it has moved")
    kafka.wait_for_full_isr()
    assert cluster.elect_preferred([MOVED, STILL, GONE]) == {GONE: "UNKNOWN_TOPIC_OR_PARTITION"}
    kafka.wait_until(lambda: cluster.read(["apply-moved"]).partitions[MOVED].leader == 5, "the first replica leads")


def test_a_broker_is_down(kafka, cluster):
    create(kafka, "apply-other", [1, 2])
    create(kafka, "apply-down", [5, 2], min_insync_replicas="2")
    partition = TopicPartition("apply-down", 0)
    assert cluster.read(["apply-down"]).partitions[partition].elr == ()
    kafka.kill_broker(5)
    hang(kafka.pids()[6])  # it accepts connections and never answers
    try:
        found = kafka.wait_until(
            lambda: (r := cluster.read(["apply-down"])).live == {1, 2, 3, 4} and r, "they are fenced"
        )
        assert found.led
        row = found.partitions[partition]
        assert (row.replicas, row.isr, row.leader, row.elr) == ((5, 2), (2,), 2, (5,))
        every = cluster.read(None).partitions
        assert every[partition] == replace(row, elr=None) and {name.topic for name in every} > {"apply-down"}
        assert cluster.elect_preferred([partition]) == {partition: "PREFERRED_LEADER_NOT_AVAILABLE"}
        rates = [SettingChange(broker(each), f"{LEADERS}.rate", None) for each in (2, 5)]
        assert cluster.change(rates) == {broker(5): "BROKER_NOT_AVAILABLE"}
        with pytest.raises(Unreachable, match=r"cluster c doesn't answer: BROKER_NOT_AVAILABLE \(broker 5\)"):
            cluster.overrides([topic("apply-down"), broker(2), broker(5)])
        assert {at for at, _ in cluster.sizes([2, 5, 6], ["apply-down"])} == {2}
        usable = cluster.usable_bytes([2, 5])
        assert usable[2] > 0 and usable[5] is None
    finally:
        os.kill(kafka.pids()[6], signal.SIGCONT)
    kafka.restart_broker(5)
    assert cluster.change(rates) == {}
    assert cluster.overrides([broker(5)]) == {broker(5): {}}


def hang(pid: int) -> None:
    """Stop a process. Its threads run on for a moment after the signal was sent."""
    os.kill(pid, signal.SIGSTOP)

    def runs(task: Path) -> bool:
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            return (task / "stat").read_text().rpartition(")")[2].split()[0] != "T"
        return False

    while any(map(runs, Path(f"/proc/{pid}/task").iterdir())):
        time.sleep(0.01)


def test_a_change_that_is_not_answered_is_not_sent_to_another_broker(kafka, monkeypatch):
    """The broker hangs after it has reached the controller, and before it gets the change."""
    create(kafka, "apply-unanswered", [1, 2, 3])
    hanging, reach = 4, kafka_changes.reach_controller

    async def then_hang(wire):
        await reach(wire)
        wire.nodes.sort(key=lambda node: node != hanging)
        hang(kafka.pids()[hanging])

    limits = Limits(request_timeout=1, connect_timeout=1)
    try:
        with connected("c", {"bootstrap.servers": kafka.bootstrap}, limits) as cluster:
            with monkeypatch.context() as patch, pytest.raises(Unreachable, match="The change may have been made"):
                patch.setattr(kafka_changes, "reach_controller", then_hang)
                cluster.change([SettingChange(topic("apply-unanswered"), "retention.ms", "60000")])
            assert cluster.overrides([topic("apply-unanswered")]) == {topic("apply-unanswered"): {}}
    finally:
        os.kill(kafka.pids()[hanging], signal.SIGCONT)
