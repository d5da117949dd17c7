"""Two readings that disagree: what changed between them is unknown, with both readings, and the rest is kept.

A cluster in an outage, or one whose topics are created and deleted all the time, never stands still for two readings.
"""

from __future__ import annotations

from collections.abc import Sequence

from durability.collect.brokers import Registered
from durability.collect.notes import Notes
from durability.collect.topics import MEMBERS, OF_ELR, Reading, Topic

APPEARED = "CHANGED: it appeared while the cluster was read"


def settled(before: Reading, after: Reading, stated: Reading, notes: Notes) -> Reading:
    """The reading that the document is made of.

    before, after: the last two readings. stated: the one of them that is made public, which states ELRs where the release has
    them. Topics and partitions are those of `after`. Each member of a partition that differs is noted as unreadable.
    """
    kept = Reading(with_elr=stated.with_elr, reassignments_error=stated.reassignments_error)
    for name, topic in after.topics.items():
        base = stated.topics.get(name, topic)
        kept.topics[name] = Topic(topic.internal, error=base.error or topic.error, hidden_leaders=base.hidden_leaders)
        for index, number in enumerate(sorted(topic.partitions)):
            place = ("topics", name, "partitions", index)
            row = kept.topics[name].partitions[number] = base.partitions.get(number, topic.partitions[number])
            if stated.with_elr and not (after.with_elr or (number in base.partitions and base is not topic)):
                for member in OF_ELR:
                    notes.add((*place, member), APPEARED)
            earlier = before.topics[name].partitions.get(number) if name in before.topics else None
            for member in _differing(before, after, earlier, topic.partitions[number]):
                assert earlier is not None
                notes.add(
                    (*place, member),
                    f"CHANGED: {_text(earlier[member])}, then {_text(topic.partitions[number][member])}",
                )
            assert row["partition"] == number
    return kept


def _differing(before: Reading, after: Reading, earlier: dict | None, later: dict) -> list[str]:
    """The members of a partition's two rows that differ; none if there is only one."""
    if earlier is None:
        return []
    members = MEMBERS + OF_ELR if before.with_elr and after.with_elr else MEMBERS
    return [member for member in members if earlier[member] != later[member]]


def _text(value: list[int] | int | None) -> str:
    return "none" if value is None else str(value)


def note_brokers(before: Sequence[Registered], after: Sequence[Registered], notes: Notes) -> None:
    """Notes that it is unknown whether a broker is up which was fenced, or came back, between two readings."""
    earlier = {broker.id: broker for broker in before}
    for broker in after:
        was = earlier.get(broker.id, broker)
        if was.live != broker.live:
            words = {True: "live", False: "fenced"}
            reason = f"CHANGED: {words[was.live]}, then {words[broker.live]}"
            for member in ("live", "fenced"):
                notes.add(("brokers", broker.id, member), reason)
