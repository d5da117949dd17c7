"""Orders what a plan changes into steps and batches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from durability.catalogue.listing import with_noun
from durability.remedies import effects, safety
from durability.remedies.change import states
from durability.remedies.change.model import Change, Document, Kind, Limits, Move, Setting, Step, TopicSettings, Wanted
from durability.remedies.cluster import ClusterFacts

NONE = TopicSettings()
WAITS = ("",)
"""`after` of steps without ids that come after the step that waits."""
LATE = 1 << 30
WHY: dict[Kind, str] = {
    "lower-min-isr": "Brokers enforce no more than this now. Replicas that are being added count before they are in sync.",
    "reassign": "It adds or moves replicas, or changes which of them is preferred as leader.",
    "raise-min-isr": "The target asks for it. All replicas of these topics must be in sync first.",
    "set-config": "It switches unclean leader election off, which can lose acknowledged writes.",
    "elect-leaders": "It lets the preferred replicas lead. It copies nothing.",
}
UNCAPPED = (
    "Brokers before 3.7 reject acks=all writes to these topics now: min.insync.replicas is above the number of replicas."
    " From this step on they accept them, on fewer replicas than configured."
)
TO_FEWER = (
    "Fewer replicas remain. Brokers before 3.7 reject acks=all writes if min.insync.replicas is above their number."
)
ENFORCED = "Brokers enforce no more than this now. The tier allows this value."
WITHOUT_EFFECT = (WHY["lower-min-isr"], UNCAPPED, ENFORCED)
"""Reasons of steps that lower min.insync.replicas to what brokers enforce."""
TO_TARGET = "The tier allows this value. It leaves the headroom that the tier requires."


def assemble(document: Document, wanted: Wanted, facts: ClusterFacts, limits: Limits) -> Change:
    """The steps of a plan in a safe order, and the document after them.

    Each batch of moves comes with the settings that its topics need. The document isn't changed.
    """
    named = {b for move in wanted.moves for b in (*move.before, *move.after)}
    without_ids = list(_steps(wanted, frozenset(named - effects.up(document)), limits, facts))
    copied = json.dumps(document)  # ten times as fast as a deep copy
    planned, steps = json.loads(copied), _numbered(without_ids)
    harms = states.play(planned, steps, facts)
    if elected := states.not_preferred(planned, wanted.moves):
        without_ids.append(Step("", "elect-leaders", WHY["elect-leaders"], elections=elected))
        longer = _numbered(without_ids)
        if longer[0].id != steps[0].id:  # the hundredth step: all ids, which harms name, have a digit more
            planned = json.loads(copied)
            harms = states.play(planned, longer, facts)
        else:
            harms += states.play(planned, longer[-1:], facts)
        steps = longer
    return Change(tuple(steps), planned, tuple(harms))


def _steps(wanted: Wanted, down: frozenset[int], limits: Limits, facts: ClusterFacts) -> Iterator[Step]:
    """The steps in order, without ids."""

    def rank(topic: str) -> tuple[int, str]:
        return wanted.rank.get(topic, LATE), topic

    waiting = [move for move in wanted.moves if down & {*move.before, *move.after}]
    if waiting:
        brokers = tuple(sorted({b for move in waiting for b in (*move.before, *move.after)} & down))
        who, verb = with_noun(brokers, "broker"), "is" if len(brokers) == 1 else "are"
        why = (
            f"{who} {verb} down, or not known to be up: Kafka's tool can't set its throttle on a broker that is"
            " down, and a move to one never ends. If a broker never comes back, an audit's report has a script that moves its"
            " replicas to live brokers (brokers+gone.sh). Then plan again."
        )
        yield Step("", "wait", why[0].upper() + why[1:], brokers=brokers)
    early = UNCAPPED if facts.before(*safety.CAPPED) else None
    moving = {move.topic for move in wanted.moves}
    alone = sorted((topic for topic in wanted.settings if topic not in moving), key=rank)
    now = [wanted.settings[topic] for topic in alone]
    yield from _of_settings("lower-min-isr", [s.before for s in now if s.before], limits, early or ENFORCED)
    started: set[str] = set()
    left = Counter(move.topic for move in wanted.moves)
    for held in (False, True):
        ready = [move for move in wanted.moves if bool(down & {*move.before, *move.after}) is held]
        for batch in batches(sorted(ready, key=lambda move: (*rank(move.topic), move.partition)), limits):
            topics = list(dict.fromkeys(move.topic for move in batch))
            first = [wanted.settings.get(topic, NONE).before for topic in topics if topic not in started]
            started.update(topics)
            left.subtract(move.topic for move in batch)
            shrinks = any(len(move.after) < len(move.before) for move in batch)
            done = [wanted.settings.get(topic, NONE) for topic in topics if not left[topic]]
            for step in (
                *_of_settings("lower-min-isr", [s for s in first if s], limits, TO_FEWER if shrinks else early),
                Step("", "reassign", WHY["reassign"], moves=tuple(batch)),
                *_of_settings("raise-min-isr", [s.after for s in done if s.after and s.raises], limits),
                *_of_settings("set-config", [s.after for s in done if s.after and not s.raises], limits, TO_TARGET),
            ):
                yield replace(step, after=WAITS) if held else step
        if not held:
            yield from _of_settings("raise-min-isr", [s.after for s in now if s.after and s.raises], limits)
            yield from _of_settings("set-config", [s.after for s in now if s.after and not s.raises], limits, TO_TARGET)
            others = [s for topic in sorted(wanted.settings, key=rank) for s in wanted.settings[topic].others]
            yield from _of_settings("set-config", [*wanted.cluster, *others], limits)


def _of_settings(kind: Kind, settings: Sequence[Setting], limits: Limits, why: str | None = None) -> Iterator[Step]:
    for start in range(0, len(settings), limits.partitions):
        yield Step("", kind, why or WHY[kind], settings=tuple(settings[start : start + limits.partitions]))


def _numbered(steps: Sequence[Step]) -> list[Step]:
    """The steps with their ids, each after the one before it. Only those that wait come after the step that waits.

    Sorted by name, ids have the order of the steps: all numbers have as many digits.
    """
    digits = max(2, len(str(len(steps))))
    found: list[Step] = []
    waits: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    for number, step in enumerate(steps, 1):
        id = f"{number:0{digits}d}-{step.kind}"
        found.append(replace(step, id=id, after=(*(waits if step.after == WAITS else ()), *before)))
        if step.kind == "wait":
            waits = (id,)
        else:
            before = (id,)
    return found


def batches(moves: Iterable[Move], limits: Limits) -> Iterator[list[Move]]:
    """The moves in batches, in their order. A move that is larger than the limit is a batch by itself.

    >>> one = [Move("a", n, (1,), (1, 2), bytes=6) for n in range(4)]
    >>> [[move.partition for move in batch] for batch in batches(one, Limits(3, 12))]
    [[0, 1], [2, 3]]
    >>> large = Move("b", 0, (1,), (1, 3), bytes=20)
    >>> [[move.partition for move in batch] for batch in batches([large, *one[1:]], Limits(9, 12))]
    [[0], [1, 2], [3]]
    """
    batch: list[Move] = []
    arriving: Counter[int] = Counter()
    too_large = False
    for move in moves:
        size = move.bytes or 0
        full = too_large or any(arriving[broker] + size > limits.bytes for broker in move.added)
        if batch and (full or len(batch) >= limits.partitions):
            yield batch
            batch, arriving = [], Counter()
        too_large = bool(move.added) and size > limits.bytes
        batch.append(move)
        arriving.update(dict.fromkeys(move.added, size))
    if batch:
        yield batch
