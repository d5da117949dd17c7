"""From before.json to an assembled plan that takes a plan back, before it is proven."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from durability.remedies import elr, safety
from durability.remedies.change import refusal, settings
from durability.remedies.change.assemble import assemble
from durability.remedies.change.draft import Draft
from durability.remedies.change.model import (
    BACK,
    MIN_ISR,
    UNCLEAN,
    Change,
    Document,
    Limits,
    Move,
    Setting,
    TopicSettings,
    Wanted,
    topic_ids,
)
from durability.remedies.cluster import ClusterFacts

RECREATED = "it was recreated since the plan was made, so it is another topic"
GONE = "the topic doesn't exist any more"
REJECTING = (
    "before the plan, brokers rejected acks=all writes to it: its min.insync.replicas {0} was above its number of replicas,"
    " {1}. Upgrade them to Kafka 3.7 first, or move its replicas back by hand with a min.insync.replicas of {1} at most"
)
HARMFUL = (
    "a step would leave its partition {0} offline or under its min.insync.replicas, or that is unknown: first bring back replicas"
    " that are out of sync, and let the auditor read min.insync.replicas of the topic and the brokers"
)
AS_BEFORE = "nothing to take back: placements and settings are as they were"
RESTORING = ("lower-min-isr", "reassign", "raise-min-isr", "set-config")
"""Kinds of steps for which BACK is the reason."""


@dataclass
class _Found:
    """What differs from before.json. topics: settings by topic. left_out: topics, or the cluster (None), with the reason."""

    left_out: dict[str | None, str]
    moves: list[Move] = field(default_factory=list)
    topics: dict[str, TopicSettings] = field(default_factory=dict)
    cluster: list[Setting] = field(default_factory=list)

    @property
    def changing(self) -> set[str]:
        return {*self.topics, *(move.topic for move in self.moves)} - self.left_out.keys()

    @property
    def wanted(self) -> Wanted:
        """The changes of the topics that aren't left out."""
        moves = tuple(move for move in self.moves if move.topic not in self.left_out)
        made = {name: one for name, one in self.topics.items() if name not in self.left_out}
        return Wanted(moves, made, {}, tuple(self.cluster))


def undo(
    document: Document,
    before: Mapping[str, Any],
    facts: ClusterFacts,
    limits: Limits,
    *,
    reassigning_known: bool = True,
) -> Draft:
    """The way back to the placements and settings of before.json. Left out are topics that are gone or were recreated since, and
    those to which a step would do harm.

    before: that of an earlier release has no `topic_ids`.
    """
    if (why := refusal.of_cluster(document, facts, reassigning_known)) is not None:
        return Draft(document, assemble(document, Wanted(), facts, limits), None, ((None, why),))
    ids, then_ids = topic_ids(document), before.get("topic_ids", {})
    recreated = sorted(name for name in ids.keys() & then_ids.keys() if ids[name] != then_ids[name])
    found = _Found(dict.fromkeys(recreated, RECREATED))
    topics = {topic["name"]: topic for topic in document["topics"]}
    _add_moves(found, before["placements"], topics)
    _add_settings(found, before["settings"], document, facts)
    rejecting, changing = _rejecting(before, document, facts), found.changing
    found.left_out |= {name: why for name, why in rejecting.items() if name in changing}
    change = _harmless(found, document, facts, limits)
    if not (change.steps or found.left_out):
        found.left_out[None] = AS_BEFORE
    steps = tuple(replace(step, why=BACK) if step.kind in RESTORING else step for step in change.steps)
    return Draft(document, replace(change, steps=steps), None, tuple(found.left_out.items()))


def _harmless(found: _Found, document: Document, facts: ClusterFacts, limits: Limits) -> Change:
    """The assembled plan without the topics that a step would harm, which are left out."""
    while True:
        change = assemble(document, found.wanted, facts, limits)
        harmed: dict[str | None, str] = {harm.topic: HARMFUL.format(harm.partition) for harm in reversed(change.harms)}
        if not harmed.keys() & found.changing:
            return change
        found.left_out |= harmed


def _add_moves(found: _Found, placements: Sequence[Mapping[str, Any]], topics: Mapping[str, Document]) -> None:
    for row in placements:
        name, number, then = row["topic"], row["partition"], tuple(row["replicas"])
        if found.left_out.get(name) == RECREATED:
            continue
        partition = next((p for p in topics.get(name, {}).get("partitions", ()) if p["partition"] == number), None)
        if partition is None:
            found.left_out[name] = f"partition {number} doesn't exist any more"
        elif tuple(partition["replicas"]) != then:
            if partition["leader"] is None:
                found.left_out[name] = safety.NO_LEADER
            found.moves.append(Move(name, number, tuple(partition["replicas"]), then, partition.get("bytes")))


def _add_settings(found: _Found, rows: Sequence[Mapping[str, Any]], document: Document, facts: ClusterFacts) -> None:
    topics = {topic["name"]: topic for topic in document["topics"]}
    unread, at_risk = settings.unread(document, MIN_ISR, UNCLEAN), settings.elr_at_risk(document, facts)
    for row in rows:
        name, key, value = row["topic"], row["name"], row["value"]
        if name is None:
            _add_cluster_wide(found, key, value, document)
        elif found.left_out.get(name) == RECREATED:
            continue
        elif (why := _unchangeable(name, key, topics, unread)) is not None:
            found.left_out[name] = why
        elif (own := settings.override(topics[name], key)) != value and name not in found.left_out:
            if key == MIN_ISR and name in at_risk:
                found.left_out[name] = elr.WAIT.rstrip(".")
                continue
            so_far = found.topics.get(name, TopicSettings())
            found.topics[name] = _restored(so_far, Setting(name, key, own, value), document, facts)


def _add_cluster_wide(found: _Found, key: str, value: str | None, document: Document) -> None:
    if not settings.cluster_wide_known(document, key):
        found.left_out[None] = f"the cluster-wide {key} could not be read: let the auditor read the brokers' settings"
    elif (was := settings.cluster_wide(document, key)) != value:
        found.cluster.append(Setting(None, key, was, value))


def _unchangeable(name: str, key: str, topics: Mapping[str, Document], unread: Collection[str]) -> str | None:
    """Why the topic's setting isn't restored, whatever it is now; None if it may be."""
    if name not in topics:
        return GONE
    if (odd := settings.odd(topics[name])) is not None:
        return odd
    if name in unread:
        return f"its {key} could not be read: let the auditor read the topic's settings, then audit again"
    return None


def _rejecting(before: Mapping[str, Any], document: Document, facts: ClusterFacts) -> dict[str, str]:
    """The topics whose state of before.json rejects acks=all writes, with the reason: no way back leads there."""
    if facts.newest is None or facts.newest >= safety.CAPPED:
        return {}
    default, least = settings.default_min_isr(document), settings.min_isr(document)
    for row in before["settings"]:
        if row["name"] == MIN_ISR and row["topic"] in least:
            least[row["topic"]] = int(row["value"]) if row["value"] is not None else default or 1
    then = {(row["topic"], row["partition"]): row["replicas"] for row in before["placements"]}
    copies = {
        t["name"]: min(len(then.get((t["name"], p["partition"]), p["replicas"])) for p in t["partitions"])
        for t in document["topics"]
    }
    return {name: REJECTING.format(n, copies[name]) for name, n in least.items() if n > copies[name]}


def _restored(so_far: TopicSettings, setting: Setting, document: Document, facts: ClusterFacts) -> TopicSettings:
    """The settings with one more that is restored.

    A lower min.insync.replicas comes after the moves: acks=all guarantees more copies until then. Before 3.7 it comes first,
    because brokers reject all writes if it is above the number of replicas.
    """
    if setting.name != MIN_ISR:
        return replace(so_far, others=(*so_far.others, setting))
    default = (settings.default_min_isr(document) or 1,) * 2
    was, value = (
        int(stated) if stated is not None and stated.isdecimal() else otherwise
        for stated, otherwise in zip((setting.was, setting.value), default, strict=True)
    )
    if value >= was:
        return replace(so_far, after=setting)
    first = facts.newest is None or facts.newest < safety.CAPPED
    return replace(so_far, before=setting) if first else replace(so_far, after=setting, raises=False)
