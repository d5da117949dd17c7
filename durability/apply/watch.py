"""Watches a cluster while a plan is applied: progress of moves in bytes, and what must stop them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from durability.apply.cluster import Cluster, Reading, TopicPartition
from durability.apply.partitions import Place, listed, named, place, troubled
from durability.apply.plan_files import PlanFiles
from durability.apply.preflight import NOT_LED, Checked, configured, stale_topics
from durability.apply.record import BEGIN, Changes, topic_ids
from durability.apply.stop import Stopped
from durability.remedies.change.model import Move, Step

IDLE_READINGS, IDLE_SECONDS = 4, 5
"""How many readings in turn, and over how many seconds, show that a move was cancelled."""
POLLED_WITHIN = 60
"""The most seconds between two readings, also of the topics outside the plan."""


@dataclass(frozen=True)
class Options:
    """throttle: bytes per second and broker. stall_seconds: the longest time without progress. batch_seconds: the longest
    duration of a step. poll_seconds: between two readings, of which one a minute is the least."""

    throttle: int
    stall_seconds: int = 600
    batch_seconds: int = 6 * 3600
    poll_seconds: float = 30.0


@dataclass(frozen=True)
class Progress:
    """How far the moves of a step are. left: the moves that aren't complete.

    in_sync: target replicas that are in sync, of all moves. missing: by broker, the bytes that its target replicas lack to be as
    large as their leaders. led: by broker and partition that it copies, the bytes of the leader. unknown: partitions of unknown
    size. silent: the brokers that state no size of theirs.
    """

    left: Sequence[Move]
    in_sync: int
    missing: Mapping[int, int] = field(default_factory=dict)
    led: Mapping[tuple[int, TopicPartition], int] = field(default_factory=dict)
    unknown: Sequence[TopicPartition] = ()
    silent: Sequence[int] = ()

    def gains_on(self, earlier: Progress) -> bool:
        """Is it further than an earlier one? Bytes count only against the leaders, which grow too, and only if all are known."""
        if self.in_sync > earlier.in_sync or self.unknown:
            return self.in_sync > earlier.in_sync
        return bool(earlier.unknown) or sum(self.missing.values()) < sum(earlier.missing.values())


class Watch:
    """Reads the cluster again and again for the steps of one run.

    checked: the reading at the start of this try. Partitions that were offline or under their min ISR when
    the run began, and are since, don't stop it. Those of other topics, and all min.insync.replicas, are read once a minute.
    """

    def __init__(
        self,
        plan: PlanFiles,
        cluster: Cluster,
        changes: Changes,
        options: Options,
        report: Callable[[str], None],
        checked: Checked,
    ):
        self.plan, self.topics, self.findings = plan, plan.topics, plan.findings
        self.cluster, self.changes, self.options, self.report = cluster, changes, options, report
        self.least = checked.least
        stated = checked.reading.topic_ids
        self._topic_ids: Mapping[str, str] = {topic: stated[topic] for topic in self.topics if topic in stated}
        self._troubled = self._at_the_beginning(checked.reading)
        self._others_read = time.monotonic()

    def _at_the_beginning(self, reading: Reading) -> set[TopicPartition]:
        """The partitions that don't stop the run. The record has them: a retry must not excuse what stopped an earlier try."""
        row = self.changes.state().get(BEGIN)
        if row is None or row.run_id != self.changes.run_id:
            self._begin(reading, now := troubled(reading, self.least))
            return now
        self._topic_ids = {**self._topic_ids, **topic_ids({BEGIN: row})}
        return {TopicPartition(topic, n) for topic, numbers in row.was["troubled"].items() for n in numbers}

    def _begin(self, reading: Reading, troubled: Collection[TopicPartition]) -> None:
        self.changes.begin(reading.cluster_id, troubled, self.findings, self._topic_ids)

    def look(self, brokers: Collection[int] = ()) -> Reading:
        """A fresh reading of the plan's topics. brokers: that must be up. It renews the claim if that is due.

        Raises Stopped if the quorum or one of the brokers is lost, or if a partition has become offline or under its min ISR.
        """
        self.changes.renew()
        reading = self.cluster.read(self.topics)
        if not reading.led:
            raise Stopped(NOT_LED)
        if lost := sorted({*brokers} - reading.live):
            raise Stopped(listed([f"broker {broker} is down" for broker in lost]))
        self.guard(reading)
        self._guard_others()
        return reading

    def _guard_others(self) -> None:
        """Reads all topics, and what others may have set on them, if the next look may be too late for that."""
        if time.monotonic() + self.options.poll_seconds - self._others_read >= POLLED_WITHIN:
            reading = self.cluster.read(None)
            _, self.least = configured(self.plan, self.cluster, reading)
            self.guard(reading)
            self._others_read = time.monotonic()

    def guard(self, reading: Reading) -> None:
        """Raises Stopped if a topic was recreated, or a partition has become offline or under its min ISR, since the run began.

        A partition that recovered is guarded from then on.
        """
        if stale := stale_topics(self._topic_ids, reading):
            raise Stopped(listed(stale))
        now = troubled(reading, self.least)
        if new := sorted(now - self._troubled):
            raise Stopped(listed([f"{named(name)} is offline or under its min.insync.replicas" for name in new]))
        if recovered := (self._troubled & reading.partitions.keys()) - now:
            self._troubled -= recovered
            self._begin(reading, self._troubled)

    def until(self, obstacles: Callable[[Reading], Sequence[str]], seconds: float) -> Reading:
        """The first reading without obstacles. Raises Stopped with the obstacles if that takes longer."""
        started = time.monotonic()
        while found := obstacles(reading := self.look()):
            if time.monotonic() - started >= seconds:
                raise Stopped(f"after {seconds:.0f} s, {listed(found)}")
            self.report(f"waits: {listed(found)}")
            time.sleep(min(self.options.poll_seconds, POLLED_WITHIN))
        return reading

    def follow(self, step: Step) -> None:
        """Returns when all moves of a step are complete. Raises Stopped if they stall, take too long, or others interfere."""
        brokers = {broker for move in step.moves for broker in move.after}
        began = since = time.monotonic()
        best: Progress | None = None
        odd: set[TopicPartition] = set()
        idle: Counter[TopicPartition] = Counter()
        while True:
            reading = self.look(brokers)
            odd = self._not_ours(step, reading, odd)
            idle = self._idle(step, reading, idle)
            now = self._progress(step, reading)
            if not now.left:
                return
            self._tell(step, now)
            if best is None or now.gains_on(best):
                best, since = now, time.monotonic()
            elif time.monotonic() - since >= self.options.stall_seconds:
                raise Stopped(self._stalled(now, best, time.monotonic() - since))
            if time.monotonic() - began >= self.options.batch_seconds:
                raise Stopped(
                    f"the batch isn't complete after {self.options.batch_seconds} s, the longest time for one"
                )
            time.sleep(min(self.options.poll_seconds, POLLED_WITHIN))

    def _not_ours(self, step: Step, reading: Reading, before: Collection[TopicPartition]) -> set[TopicPartition]:
        """Partitions that others moved. One reading isn't enough: a broker may show old replicas of a partition that moves.

        before: those of the reading before this one. Raises Stopped for one that is in both.
        """
        found = {_name(move) for move in step.moves if _place(move, reading) is None}
        if both := sorted(found & {*before}):
            raise Stopped(f"others moved or deleted {listed([named(name) for name in both])}")
        return found

    def _idle(self, step: Step, reading: Reading, before: Mapping[TopicPartition, int]) -> Counter[TopicPartition]:
        """In how many readings in turn a move of the step, which was begun, neither ran nor was complete.

        before: as of the reading before this one. A broker may show the replicas from before a move that is complete, on 3.6 for
        a second. So only IDLE_READINGS show that others cancelled a move, and raise Stopped.
        """
        pause = self.options.poll_seconds
        enough = max(IDLE_READINGS, math.ceil(IDLE_SECONDS / pause) if pause else 0)
        found = (_name(move) for move in step.moves if _place(move, reading) in (Place.BEFORE, Place.REVERTED))
        now = Counter({name: before.get(name, 0) + 1 for name in found})
        if ended := sorted(name for name, readings in now.items() if readings >= enough):
            raise Stopped(f"others cancelled the move of {listed([named(name) for name in ended])}")
        return now

    def _progress(self, step: Step, reading: Reading) -> Progress:
        left = [move for move in step.moves if _place(move, reading) is not Place.AFTER]
        now = {_name(move): reading.partitions[_name(move)] for move in step.moves if _name(move) in reading.partitions}
        in_sync = sum(len({*move.after} & {*now[_name(move)].isr}) for move in step.moves if _name(move) in now)
        lagging = [(_name(m), b) for m in left if _name(m) in now for b in m.after if b not in now[_name(m)].isr]
        leaders = {name: leader for name, _ in lagging if (leader := now[name].leader) is not None}
        sizes = self.cluster.sizes({*leaders.values(), *(broker for _, broker in lagging)}, {m.topic for m in left})
        missing: Counter[int] = Counter()
        led: dict[tuple[int, TopicPartition], int] = {}
        unknown: set[TopicPartition] = set()
        silent: set[int] = set()
        for name, broker in lagging:
            leader = leaders.get(name)
            of_leader, own = None if leader is None else sizes.get((leader, name)), sizes.get((broker, name))
            if of_leader is None or own is None:
                unknown.add(name)
                silent |= {b for b, size in ((leader, of_leader), (broker, own)) if size is None and b is not None}
            else:
                missing[broker] += max(0, of_leader - own)
                led[broker, name] = of_leader
        return Progress(left, in_sync, missing, led, sorted(unknown), sorted(silent))

    def _tell(self, step: Step, now: Progress) -> None:
        done, missing = len(step.moves) - len(now.left), sum(now.missing.values())
        size = f", {len(now.unknown):,} of unknown size" if now.unknown else ""
        self.report(f"{step.id}: {done:,} of {len(step.moves):,} partitions, {missing:,} bytes to copy{size}")

    def _stalled(self, now: Progress, best: Progress, seconds: float) -> str:
        """Why nothing was gained for so long, as far as readings show it."""
        text = f"no progress for {self.options.stall_seconds} s: "
        usable = self.cluster.usable_bytes(sorted({broker for move in now.left for broker in move.added}))
        full = [b for b, room in sorted(usable.items()) if room is not None and room < now.missing.get(b, 0)]
        if full:
            return text + listed([f"the disks of broker {b} are full, with {usable[b]:,} usable bytes" for b in full])
        if now.unknown:
            unknown = f"{text}sizes of {listed([named(name) for name in now.unknown])} are unknown"
            brokers = listed([f"broker {broker}" for broker in now.silent])
            return f"{unknown}. Check {brokers} for a log dir that is full or offline" if brokers else unknown
        # A broker copies as much as the throttle allows. So it falls behind only if no less than that is written.
        growth: Counter[int] = Counter()
        for (broker, name), size in now.led.items():
            # A replica that has fallen out of sync since adds its whole partition, which is no growth.
            growth[broker] += size - best.led.get((broker, name), size)
        broker = max(growth, key=lambda b: (growth[b], -b), default=-1)
        if (grown := growth[broker]) > 0 and grown >= self.options.throttle * seconds:
            return (
                f"{text}the partitions that broker {broker} copies grew by {grown:,} bytes meanwhile. The throttle of"
                f" {self.options.throttle:,} bytes per second is below the rate of writes: apply the plan again with a higher one"
            )
        names = listed([named(_name(move)) for move in now.left])
        return f"{text}raise the throttle of {self.options.throttle:,} bytes per second, or see the brokers' logs about {names}"


def _name(move: Move) -> TopicPartition:
    return TopicPartition(move.topic, move.partition)


def _place(move: Move, reading: Reading) -> Place | None:
    now = reading.partitions.get(_name(move))
    return None if now is None else place(now, move.before, move.after)
