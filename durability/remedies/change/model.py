"""What a plan of change consists of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from durability.remedies.commands import Config
from durability.topology.unreadable import Unreadable

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
Kind = Literal["wait", "lower-min-isr", "reassign", "raise-min-isr", "set-config", "elect-leaders"]
KINDS: tuple[Kind, ...] = ("wait", "lower-min-isr", "reassign", "raise-min-isr", "set-config", "elect-leaders")
SAFE = re.compile("[A-Za-z0-9]{1,20}")
"""What the value of a setting may be: an undo writes it into a script."""
Document = dict[str, Any]
"""A document of the format kafka-topology/1."""


def topic_ids(document: Document) -> dict[str, str]:
    """Kafka's ids of a document's topics by name, as far as they are known."""
    unreadable = Unreadable(document)
    return {
        topic["name"]: topic["id"]
        for index, topic in enumerate(document["topics"])
        if topic.get("id") is not None and not unreadable.covers("topics", index, "id")
    }


@dataclass(frozen=True)
class Limits:
    """Of a batch. partitions: how many move at once. bytes: how many may arrive at a broker."""

    partitions: int = 200
    bytes: int = 500_000_000_000


@dataclass(frozen=True)
class Move:
    """A partition whose replicas, or their order, change. before, after: broker ids, the preferred leader first.

    bytes: the size of one replica; None if unknown.
    """

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    bytes: int | None = None

    @property
    def added(self) -> tuple[int, ...]:
        """The brokers that get a new replica."""
        return tuple(b for b in self.after if b not in self.before)

    @property
    def copied(self) -> int:
        """The bytes that are copied; 0 if the size is unknown."""
        return (self.bytes or 0) * len(self.added)


@dataclass(frozen=True)
class Setting:
    """A setting that changes.

    topic: None for a cluster-wide dynamic default. was, value: None if there is none of this kind, or after it is deleted.
    """

    topic: str | None
    name: str
    was: str | None
    value: str | None

    @property
    def command(self) -> Config:
        return self._config(self.value)

    @property
    def undo(self) -> Config:
        """Restores what was there. Without an override, there is none afterwards: the same value as an override differs."""
        return self._config(self.was)

    def __post_init__(self) -> None:
        for value in (self.was, self.value):
            if self.name not in (MIN_ISR, UNCLEAN) or (value is not None and not SAFE.fullmatch(value)):
                raise ValueError(f"{self.name}={value}: not a setting that a script may have")

    def _config(self, value: str | None) -> Config:
        return Config("brokers" if self.topic is None else "topics", self.topic, ((self.name, value),))


@dataclass(frozen=True)
class TopicSettings:
    """How a topic's min.insync.replicas changes, and other settings.

    before: the change before its first batch. after: the change after its last batch. raises: is `after` higher than what it is
    then? others: settings that depend on no move. held: why a change that its target asks for isn't in the plan; None if all
    are. blocks: do its replicas stay too, because they may not move without that change?
    """

    before: Setting | None = None
    after: Setting | None = None
    raises: bool = True
    others: tuple[Setting, ...] = ()
    held: str | None = None
    blocks: bool = False

    def min_isr(self, now: int) -> int:
        """The topic's min.insync.replicas after the plan. now: before it."""
        last = self.after or self.before
        # An override that is deleted was made by `before`.
        return now if last is None or last.value is None else int(last.value)


@dataclass(frozen=True)
class Step:
    """A step of a plan.

    id: its number and kind, which is also the name of its files. why: one sentence. moves: of a reassignment. elections:
    partitions (topic and number) whose preferred leader is elected. brokers: that must come back. after: ids of the steps that
    must be complete before it.
    """

    id: str
    kind: Kind
    why: str
    moves: tuple[Move, ...] = ()
    settings: tuple[Setting, ...] = ()
    elections: tuple[tuple[str, int], ...] = ()
    brokers: tuple[int, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def topics(self) -> list[str]:
        named = [move.topic for move in self.moves] + [topic for topic, _ in self.elections]
        return sorted({*named, *(setting.topic for setting in self.settings if setting.topic is not None)})

    @property
    def partitions(self) -> int:
        return len(self.moves) + len(self.elections)

    @property
    def bytes(self) -> int:
        return sum(move.copied for move in self.moves)

    @property
    def unknown_bytes(self) -> int:
        """The new replicas of unknown size, which count 0 in `bytes`."""
        return sum(len(move.added) for move in self.moves if move.bytes is None)


@dataclass(frozen=True)
class Wanted:
    """What a plan changes.

    moves: in no order. settings: by topic. rank: by topic, how soon it comes; the smallest first. cluster: cluster-wide settings.
    """

    moves: tuple[Move, ...] = ()
    settings: Mapping[str, TopicSettings] = field(default_factory=dict)
    rank: Mapping[str, int] = field(default_factory=dict)
    cluster: tuple[Setting, ...] = ()


@dataclass(frozen=True, order=True)
class Harm:
    """A partition that a step would leave offline or under its effective min.insync.replicas."""

    step: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"Step {self.step} would leave {self.topic}-{self.partition} offline or under its min.insync.replicas"


@dataclass(frozen=True)
class Change:
    """An assembled plan. harms: what its steps would do to partitions on the way; empty if they harm none.

    planned: the document after all steps.
    """

    steps: tuple[Step, ...]
    planned: Document = field(repr=False)
    harms: tuple[Harm, ...] = ()


BACK = "It restores what was there before the plan that is taken back."
"""Why there is a step of a plan that takes another one back."""


def raised_further(step: Step, steps: Iterable[Step]) -> list[Setting]:
    """The settings of a step that set min.insync.replicas, apart from those that restore the value from before a plan."""
    if BACK in step.why:
        return []
    former: dict[tuple[str | None, str], str | None] = {}
    for one in steps:
        for setting in one.settings:
            former.setdefault((setting.topic, setting.name), setting.was)
    return [s for s in step.settings if s.name == MIN_ISR and s.value != former.get((s.topic, s.name))]
