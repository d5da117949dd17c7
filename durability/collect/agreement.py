"""Merges two readings that disagree. Parts that changed between them are unknown, with both values. The rest is kept.

During an outage, a cluster may change with every reading. So may one whose topics are created and deleted all the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from durability.collect.brokers import Registered
from durability.collect.notes import Notes
from durability.collect.topics import MEMBERS, OF_ELR, Reading, Topic

RECREATED = "CHANGED: it was deleted and created again while the cluster was read"
APPEARED = "CHANGED: it appeared while the cluster was read"


def settled(before: Reading, after: Reading, stated: Reading, notes: Notes) -> Reading:
    """The reading for the document: the topics and partitions of `after` with the values of `stated`.

    A member of a partition that differs is noted as unreadable. A topic that is only in `before` was deleted. One that was
    created again is another topic: it is shown as in `after`, and its id is unknown, because it changed.

    before, after: the last two readings.
    stated: one of them, the one with ELRs if the release has ELRs.
    """
    members = MEMBERS + OF_ELR if before.with_elr and after.with_elr else MEMBERS
    kept = Reading(with_elr=stated.with_elr, reassignments_error=stated.reassignments_error)
    for name, topic in after.topics.items():
        was_topic, shown = _same(before, name, topic), _same(stated, name, topic)
        earlier = was_topic.partitions if was_topic else {}
        base = shown or topic
        kept.topics[name] = Topic(
            topic.internal,
            error=topic.error,
            hidden_leaders=base.hidden_leaders,
            unstated_elrs=base.unstated_elrs,
            id=topic.id,
        )
        if name in before.topics and was_topic is None:
            kept.topics[name].id = None
            notes.add(("topics", name, "id"), RECREATED)
        for index, (number, row) in enumerate(sorted(topic.partitions.items())):
            place = ("topics", name, "partitions", index)
            kept.topics[name].partitions[number] = base.partitions.get(number, row)
            if stated.with_elr and not (shown and number in shown.partitions):
                for member in OF_ELR:
                    notes.add((*place, member), APPEARED)
            was = earlier.get(number, row)
            for member in members:
                if was[member] != row[member]:
                    notes.add((*place, member), f"CHANGED: {_text(was[member])}, then {_text(row[member])}")
    return kept


def _same(reading: Reading, name: str, topic: Topic) -> Topic | None:
    """The topic in another reading; None if that has none of this name, or one that was deleted and created again."""
    found = reading.topics.get(name)
    return None if found is None or found.is_another(topic) else found


def _text(value: list[int] | int | None) -> str:
    return "none" if value is None else str(value)


def note_brokers(before: Sequence[Registered], after: Sequence[Registered], notes: Notes) -> None:
    """Note brokers whose liveness is unknown because they were fenced or came back between two readings."""
    earlier = {broker.id: broker for broker in before}
    for broker in after:
        was = earlier.get(broker.id, broker)
        if was.live != broker.live:
            words = {True: "live", False: "fenced"}
            reason = f"CHANGED: {words[was.live]}, then {words[broker.live]}"
            for member in ("live", "fenced"):
                notes.add(("brokers", broker.id, member), reason)
