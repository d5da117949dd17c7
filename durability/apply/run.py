"""Applies a plan to a cluster step by step, and takes back what a run left.

Each step reads the cluster first, so it can be begun again after a kill at any point. A step whose row is `done` isn't begun
again. If a step can't go on, what is in flight is taken back. Steps that are complete stay.

A stop stays a stop: until `restore` ended it, `apply` only takes back. So an automatic retry doesn't go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from durability.apply import min_isr, recorded, throttles
from durability.apply.claimed import ClaimedCluster
from durability.apply.cluster import Cluster, Reading, SettingChange, TopicPartition
from durability.apply.partitions import Place, elr_at_risk, listed, named, out_of_sync, place
from durability.apply.plan_files import PlanFiles
from durability.apply.preflight import Checked, changed, check
from durability.apply.record import DONE, ELECT, INTENDED, REASSIGN, SET_CONFIG, STOP, THROTTLE, Changes, Row, is_open
from durability.apply.settings import CLUSTER_WIDE, Key, make, minimums, of_topic, values
from durability.apply.stop import Stopped
from durability.apply.take_back import take_back
from durability.apply.watch import Options, Watch
from durability.errors import Refused, Unreachable
from durability.plain import plain
from durability.remedies.change.assemble import WITHOUT_EFFECT
from durability.remedies.change.model import MIN_ISR, Move, Step, raised_further

__all__ = ["Options", "Outcome", "apply", "restore"]


@dataclass(frozen=True)
class Outcome:
    """done: ids of complete steps. stopped: the step at which it stopped, and why; None if all are complete.

    left: sentences about what stays: values that others changed, and what could not be taken back.
    """

    done: list[str] = field(default_factory=list)
    stopped: str | None = None
    why: str | None = None
    left: list[str] = field(default_factory=list)


def apply(
    plan: PlanFiles, cluster: Cluster, changes: Changes, options: Options, report: Callable[[str], None]
) -> Outcome:
    """Applies the plan, or what is left of it. It claims the cluster, and releases it at the end.

    report: takes lines of progress.
    Raises Refused if the cluster differs from what the plan rests on, or if another plan isn't taken back yet; this try has
    changed nothing then. Raises Unreachable if the cluster or the lake doesn't answer, or while another run changes the cluster.
    Run it again then: it goes on, or call `restore`. After a stop, call `restore` before it is run again.
    """
    with changes.claimed():
        return _Run(plan, ClaimedCluster(cluster, changes), changes, options, report).run()


def restore(cluster: Cluster, changes: Changes) -> list[str]:
    """Takes back what is left of a run: moves in flight, values on the way, throttles. Then a stop of it is over.

    Returns sentences about what stays.

    It can be repeated, and does nothing if nothing is left. Raises Unreachable as `apply` does.
    """
    rows = changes.state()
    if not any(is_open(row, rows) for row in rows.values()):
        return []
    with changes.claimed():
        left = take_back(ClaimedCluster(cluster, changes), changes)
        if _stop(changes) is not None:
            changes.done(STOP, rows[STOP].said)
        return left


def _stop(changes: Changes) -> Row | None:
    """The stop that isn't over."""
    row = changes.state().get(STOP)
    return row if row is not None and row.state == INTENDED else None


class _Run:
    def __init__(
        self,
        plan: PlanFiles,
        cluster: Cluster,
        changes: Changes,
        options: Options,
        report: Callable[[str], None],
    ):
        self.plan, self.cluster, self.changes, self.options = plan, cluster, changes, options
        self.report: Callable[[str], None] = lambda line: report(plain(line))

    def run(self) -> Outcome:
        pending = list(in_turn(self.plan.steps, self.changes.state()))
        left_to_do = {step.id for step in pending}
        done = [step.id for step in self.plan.steps if step.id not in left_to_do]
        if (stop := _stop(self.changes)) is not None:
            return Outcome(done, stop.step, stop.said, take_back(self.cluster, self.changes))
        checked = self._check(pending)
        others = recorded.in_the_way(self.changes, self.plan.cluster_id) if pending else ()
        if problems := [*others, *checked.problems]:
            raise Refused(f"cluster {self.plan.cluster}: plan {self.plan.id} can't be applied: {listed(problems)}")
        if not pending:
            return Outcome(done, left=take_back(self.cluster, self.changes))
        self.watch = Watch(self.plan, self.cluster, self.changes, self.options, self.report, checked)
        left = self._unthrottle()
        for number, step in enumerate(pending):
            try:
                if number:
                    checked = self._check(pending[number:])
                    if checked.problems:
                        raise Stopped(listed(checked.problems))
                self.watch.least = checked.least
                self.watch.guard(checked.reading)
                self.report(f"{step.id}: begins")
                left += self._step(step)
            except Stopped as why:
                return self._stopped(done, step, str(why), left)
            done.append(step.id)
            self.report(f"{step.id}: complete")
        return Outcome(done, left=[*dict.fromkeys(left)])

    def _check(self, pending: Sequence[Step]) -> Checked:
        return check(self.plan, pending, self.cluster, self.changes.state())

    def _stopped(self, done: list[str], step: Step, why: str, left: list[str]) -> Outcome:
        self.report(f"{step.id}: stopped: {why}")
        try:
            self.changes.intend(step.id, STOP, STOP, [], None, None, why)
            left = left + take_back(self.cluster, self.changes)
            rows = self.changes.state()
            # A value on the way is put back, so its step isn't complete any more. A wait has no row.
            return Outcome([id for id in done if id not in rows or _is_done(id, rows)], step.id, why, left)
        except (Refused, Unreachable) as error:
            raise type(error)(f"step {step.id} stopped: {why}. It isn't taken back yet: {error}") from error

    def _step(self, step: Step) -> list[str]:
        """Makes a step complete. Returns sentences about what was left. Raises Stopped if it can't go on."""
        if step.kind == "wait":
            self.watch.until(lambda reading: _not_back(step, reading), self.options.batch_seconds)
        elif step.kind == "reassign":
            return self._reassign(step)
        elif step.kind == "elect-leaders":
            self._elect(step)
        else:
            self._set(step)
        return []

    def _begin(self, step: Step, kind: str, was: Any, becomes: Any) -> None:
        """Writes the row of a step's change, unless a killed run did."""
        row = self.changes.state().get(step.id)
        if row is None or row.state != INTENDED or row.becomes != becomes:
            self.changes.intend(step.id, step.id, kind, step.topics, was, becomes)

    # Settings

    def _set(self, step: Step) -> None:
        later = self._later(step)
        step = self._needed(step, later)
        if not step.settings:
            return self.report(f"{step.id}: isn't needed any more")
        of_min_isr = {setting.topic for setting in step.settings if setting.name == MIN_ISR and setting.topic}
        raised = self._raised(step)

        def obstacles(reading: Reading) -> list[str]:
            found = elr_at_risk(reading, of_min_isr)
            return found or out_of_sync(reading, raised) or min_isr.too_few(reading, raised, caps=self.plan.caps)

        self.watch.until(obstacles, self.options.stall_seconds)
        was = [{"topic": s.topic, "name": s.name, "value": s.was} for s in step.settings]
        becomes = [
            {"topic": s.topic, "name": s.name, "value": s.value, "until": later.get((s.topic, s.name))}
            for s in step.settings
        ]
        self._begin(step, SET_CONFIG, was, becomes)
        reading = self.watch.look()
        without_effect = step.kind == "lower-min-isr" and step.why in WITHOUT_EFFECT
        lowered = [s for s in step.settings if without_effect or (s.topic, s.name) in later]
        found = obstacles(reading) + min_isr.weakened(lowered, self.plan.steps, reading, self.watch.least)
        found += min_isr.higher(raised, self.watch.least)
        if raised:
            found += min_isr.without_headroom(raised_further(step, self.plan.steps), self.plan.steps, reading)
        if found := found + changed(self.plan, [step], self.cluster, self.changes.state()):
            raise Stopped(listed(found))
        wanted = [SettingChange(of_topic(s.topic), s.name, s.value) for s in step.settings]
        if refused := make(self.cluster, wanted):
            raise Stopped(f"the cluster refuses a setting: {listed(refused)}")
        self.changes.done(step.id)

    def _later(self, step: Step) -> dict[Key, str]:
        """By topic and name, the next step that changes a setting of this one again."""
        own = {(setting.topic, setting.name) for setting in step.settings}
        found: dict[Key, str] = {}
        for other in self.plan.steps[self.plan.steps.index(step) + 1 :]:
            for setting in other.settings:
                if (key := (setting.topic, setting.name)) in own:
                    found.setdefault(key, other.id)
        return found

    def _needed(self, step: Step, later: Mapping[Key, str]) -> Step:
        """The step without values that were put back, and that a later step replaces, but no move needs any more."""
        if not later:
            return step
        moving, now = min_isr.moving(self.plan.steps, self.watch.look()), values(self.cluster, later)
        over = {key for key in later if key[0] not in moving}
        kept = [s for s in step.settings if (s.topic, s.name) not in over or now.get((s.topic, s.name)) != s.was]
        return replace(step, settings=tuple(kept))

    def _raised(self, step: Step) -> dict[str, int | None]:
        """By topic, the min.insync.replicas after a step that raises it; None if unknown."""
        if step.kind != "raise-min-isr":
            return {}
        becomes = {of_topic(s.topic): {MIN_ISR: s.value} for s in step.settings if s.value is not None}
        default = self.cluster.overrides([CLUSTER_WIDE])
        return minimums({**default, **becomes}, [s.topic for s in step.settings if s.topic], self.plan.inherited)

    # Moves

    def _reassign(self, step: Step) -> list[str]:
        if any(len(move.after) < len(move.before) for move in step.moves):
            self.watch.until(lambda reading: _would_shrink(step, reading), self.options.stall_seconds)
        throttles.put_on(self.cluster, self.changes, step, self.options.throttle)
        least = {topic: self.watch.least.get(topic) for topic in step.topics}
        was = {"placements": [_placement(move, move.before) for move in step.moves], "min_isr": least}
        self._begin(step, REASSIGN, was, {"placements": [_placement(move, move.after) for move in step.moves]})
        reading = self.watch.look({broker for move in step.moves for broker in move.after})
        if found := _would_shrink(step, reading):
            raise Stopped(listed(found))
        self._start(step.moves, reading)
        self.watch.follow(step)
        self.changes.done(step.id)
        return self._unthrottle()

    def _start(self, moves: Iterable[Move], reading: Reading) -> None:
        """Starts the moves that don't run and aren't complete. Those that keep the number of replicas may not change it."""
        by_factor: dict[bool, dict[TopicPartition, Sequence[int]]] = {True: {}, False: {}}
        for move in moves:
            name = TopicPartition(move.topic, move.partition)
            now = reading.partitions.get(name)
            where = None if now is None else place(now, move.before, move.after)
            if where is None:
                raise Stopped(f"stale: {named(name)} was moved or deleted by others")
            if where in (Place.BEFORE, Place.REVERTED):
                by_factor[len(move.before) == len(move.after)][name] = move.after
        for same_factor, targets in by_factor.items():
            errors = self.cluster.reassign(targets, same_factor=same_factor) if targets else {}
            if errors:
                raise Stopped(f"Kafka refuses to move {_with_errors(errors)}")

    def _unthrottle(self) -> list[str]:
        """Puts the throttles back of steps that are complete."""
        rows = self.changes.state()
        throttled = [row for row in rows.values() if row.kind == THROTTLE and is_open(row, rows)]
        ended = [row for row in throttled if _is_done(row.step, rows)]
        if not ended:
            return []
        reading = self.cluster.read([])
        # The last one first: where two name a topic or a broker, its value is in force.
        ended.sort(key=lambda row: row.captured_at, reverse=True)
        return [text for row in ended for text in throttles.put_back(self.cluster, self.changes, row, reading)]

    # Leaders

    def _elect(self, step: Step) -> None:
        partitions = self.watch.look().partitions
        names = [name for pair in step.elections if (name := TopicPartition(*pair)) in partitions]
        was = [_leader(name, partitions[name].leader) for name in names]
        becomes = [_leader(name, partitions[name].replicas[0]) for name in names]
        self._begin(step, ELECT, was, becomes)
        others = [name for name in names if partitions[name].leader != partitions[name].replicas[0]]
        if errors := self.cluster.elect_preferred(others) if others else {}:
            raise Stopped(f"the preferred leader can't be elected of {_with_errors(errors)}")
        self.changes.done(step.id)


def in_turn(steps: Sequence[Step], rows: Mapping[str, Row]) -> Iterator[Step]:
    """The steps that aren't complete, in their order. A wait comes right before the first step that needs it."""
    waits = {step.id: step for step in steps if step.kind == "wait"}
    for step in steps:
        if step.kind != "wait" and not _is_done(step.id, rows):
            yield from (waits.pop(id) for id in step.after if id in waits)
            yield step


def _is_done(change: str, rows: Mapping[str, Row]) -> bool:
    return change in rows and rows[change].state == DONE


def _would_shrink(step: Step, reading: Reading) -> list[str]:
    """Why moves that leave fewer replicas may not begin: one that stays is out of sync.

    Kafka 3.6 waits only for replicas that it adds. It would remove others in sync at once, and fewer than min.insync.replicas
    may be left in sync then. A move with as many replicas adds one in sync for each that it removes.
    """
    found = []
    for move in step.moves:
        name = TopicPartition(move.topic, move.partition)
        now = reading.partitions.get(name)
        if now is None or len(move.after) >= len(move.before):
            continue
        lacking = [broker for broker in move.after if broker in move.before and broker not in now.isr]
        if lacking and place(now, move.before, move.after) in (Place.BEFORE, Place.REVERTED):
            shown = ", ".join(map(str, lacking))
            found.append(f"{named(name)} loses replicas, and those that stay are out of sync on these brokers: {shown}")
    return found


def _not_back(step: Step, reading: Reading) -> list[str]:
    """What a wait still waits for: its brokers, and the replicas on them."""
    down = [f"broker {broker} is down or fenced" for broker in sorted({*step.brokers} - reading.live)]
    return down or [
        f"{named(name)} has replicas out of sync on these brokers"
        for name, now in sorted(reading.partitions.items())
        if {*now.replicas} & {*step.brokers} - {*now.isr}
    ]


def _with_errors(errors: Mapping[TopicPartition, str]) -> str:
    return listed([f"{named(name)} ({plain(error)})" for name, error in sorted(errors.items())])


def _placement(move: Move, replicas: Sequence[int]) -> dict[str, Any]:
    return {"topic": move.topic, "partition": move.partition, "replicas": [*replicas]}


def _leader(name: TopicPartition, leader: int | None) -> dict[str, Any]:
    return {"topic": name.topic, "partition": name.partition, "leader": leader}
