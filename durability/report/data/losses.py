"""What a loss would cost: rows of `loss_outcomes` as numbers, topics and lines per partition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

VIEWS = ("now", "structural", "worst")
SERVES = {
    "NONE": "accepts",
    "NOT_ENOUGH_REPLICAS": "rejects",
    "REQUEST_TIMED_OUT": "rejects",
    "LEADER_NOT_AVAILABLE": "offline",
}
"""What a partition does with acks=all writes, by the brokers' answer."""
ERRORS = tuple(answer for answer, does in SERVES.items() if does == "rejects")
CLASSES = ("lost", "at_risk", "offline", "rejects", "accepts", "unknown")
"""Worst first."""
DATA = ("lost", "at_risk")
CLIENTS = {
    "__consumer_offsets": "consumer groups",
    "__transaction_state": "transactions",
    "__share_group_state": "share groups",
    "__remote_log_metadata": "tiered storage",
    "_schemas": "schema registry",
}
FAMILIES = {"connect-": "Kafka Connect", "-changelog": "Kafka Streams"}
Row = Mapping[str, Any]


def serves(answer: str | None) -> str:
    """accepts, rejects, offline or unknown."""
    return SERVES.get(answer or "", "unknown")


def classes(row: Row, view: str) -> list[str]:
    """The classes of a row's partitions in one view. Data at risk or lost is a class beside what they do with writes."""
    if view == "worst":
        flags = {"at_risk": row["data_worst"], "offline": row["availability_worst"]}
        return [name for name, held in flags.items() if held] or ["unknown"] * (None in flags.values())
    after = serves(row[view])
    # A partition that was offline before isn't charged to the loss.
    already = view == "now" and after != "accepts" and after == serves(row["before"])
    found = [] if already else [after]
    if view == "now":
        found += [name for name, held in (("lost", row["deleted"]), ("at_risk", row["at_risk"])) if held]
    elif row["at_risk_structural"]:
        found.append("at_risk")
    return found


@dataclass
class Counts:
    """Partitions and topics by view and class.

    already: partitions that are offline, reject writes or are unknown before and after the loss. They are in no class of `now`.
    errors: by view, of the partitions that reject writes: how many answer which of ERRORS.
    """

    partitions: dict[str, Counter[str]] = field(default_factory=lambda: {view: Counter() for view in VIEWS})
    topics: dict[str, dict[str, set[str]]] = field(default_factory=lambda: {v: defaultdict(set) for v in VIEWS})
    errors: dict[str, Counter[str]] = field(default_factory=lambda: {view: Counter() for view in VIEWS[:2]})
    already: Counter[str] = field(default_factory=Counter)
    stalls: int = 0
    acks_1_may_lose: int = 0
    unknown: int = 0
    by_topic: dict[str, Counter[str]] = field(default_factory=dict)
    tier: dict[str, str | None] = field(default_factory=dict)
    clients: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # Of topics of CLIENTS and FAMILIES: how many partitions they have, and the class of each that stops.
    sizes: Counter[str] = field(default_factory=Counter)
    stopped: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    quorum: Mapping[str, Any] | None = None

    def add(self, row: Row) -> None:
        count, before = len(row["partitions"]), serves(row["before"])
        self.quorum = row["quorum"]
        for view in VIEWS:
            for name in classes(row, view):
                self.partitions[view][name] += count
                self.topics[view][name].add(row["topic"])
                if name == "rejects" and (answer := error(row, view)):
                    self.errors[view][answer] += count
        if before != "accepts" and before == serves(row["now"]):
            self.already[before] += count
        self.stalls += count * bool(row["stalls"])
        self.acks_1_may_lose += count * bool(row["leader_lost"])
        self.unknown += count * (row["now"] is None)
        client = client_of(row["topic"])
        if client:
            self.sizes[row["topic"]] += count
        if changes(row):
            self._of_topic(row, count, client)

    def _of_topic(self, row: Row, count: int, client: str | None) -> None:
        found = [name for name in classes(row, "now") if name != "accepts"]
        self.by_topic.setdefault(row["topic"], Counter()).update({name: count for name in found})
        self.tier[row["topic"]] = row["tier"]
        if client and (serving := [name for name in found if name not in DATA]):
            self.clients[client].update({name: count for name in serving})
            self.stopped[row["topic"]].update(dict.fromkeys(row["partitions"], serving[0]))

    def worst_topics(self) -> list[tuple[str, Counter[str]]]:
        """Topics that the loss changes, the worst first."""
        affected = [(topic, counts) for topic, counts in self.by_topic.items() if counts.total()]
        return sorted(affected, key=lambda item: (*(-item[1][name] for name in CLASSES), item[0]))


def changes(row: Row) -> bool:
    """Does the loss change what the row's partitions do with writes, or endanger data?"""
    return bool(row["now"] != row["before"] or row["at_risk"] or row["deleted"] or data_unknown(row))


def error(row: Row, view: str) -> str | None:
    """The brokers' answer to an acks=all write of a partition that rejects it or is offline; None if unknown.

    While it is unknown whether the quorum keeps its majority, so is whether ISRs shrink.

    >>> row = {"now": "NOT_ENOUGH_REPLICAS", "quorum": {"kept": True}}
    >>> error(row, "now"), error(row | {"quorum": {"kept": None}}, "now")
    ('NOT_ENOUGH_REPLICAS', None)
    """
    answer: str | None = row[view]
    return None if answer in ERRORS and row["quorum"]["kept"] is None else answer


def data_unknown(row: Row) -> bool:
    """Is it unknown whether data is lost, though what partitions do with writes is known?"""
    return row["now"] is not None and None in (row["at_risk"], row["deleted"])


def client_of(topic: str) -> str | None:
    """Who stops when a topic stops; None for a topic that isn't Kafka's or a known tool's own.

    >>> client_of("__consumer_offsets"), client_of("connect-offsets"), client_of("app-store-changelog"), client_of("orders")
    ('consumer groups', 'Kafka Connect', 'Kafka Streams', None)
    """
    named = (who for part, who in FAMILIES.items() if topic.startswith(part) or topic.endswith(part))
    return CLIENTS.get(topic) or next(named, None)


def lines(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """A line of whatif.csv for each partition that the loss changes."""
    for row in rows:
        if not changes(row):
            continue
        before, after = serves(row["before"]), serves(row["now"])
        line = {
            "cluster": row["cluster"],
            "topic": row["topic"],
            "tier": row["tier"],
            "before": before,
            "after": after,
            "error": error(row, "now") if after in ("rejects", "offline") else None,
            # Without a quorum, the metadata goes on naming leaders that are down.
            "leader_before": None if before == "offline" else row["leader_before"],
            "leader_after": None if after == "offline" else row["leader_after"],
            "data": "lost"
            if row["deleted"]
            else "at-risk"
            if row["at_risk"]
            else "unknown"
            if data_unknown(row)
            else None,
            "back_with": back_with(row),
        }
        for partition in row["partitions"]:
            yield {**line, "partition": partition}


def back_with(row: Row) -> str | None:
    """What brings an offline partition back without loss.

    A broker that was killed leaves the ELR when it returns (KAFKA-15586). If all members were lost, only the last leader helps.

    >>> row = {"quorum": {"kept": True}, "back_with": [3, 4], "back_with_any": True, "at_risk": False}
    >>> back_with(row), back_with(row | {"back_with_any": False}), back_with(row | {"back_with": [3]})
    ('any of 3, 4', 'one of 3, 4: the last to fail', '3')
    >>> back_with(row | {"at_risk": True})
    'one of 3, 4: the last to lead'
    >>> back_with(row | {"back_with": None}), back_with(row | {"quorum": {"kept": False}})
    (None, 'a majority of the controllers')

    Where all copies that certainly have all records are lost, a majority has nobody to elect.

    >>> back_with(row | {"quorum": {"kept": False}, "at_risk": True, "back_with": [3]})
    'a majority of the controllers, and 3'
    """
    ids = row["back_with"]
    if not ids:
        return None
    if row["quorum"]["kept"] is False:
        majority = "a majority of the controllers"
        return f"{majority}, and {_members(row)}" if row["at_risk"] else majority
    return _members(row)


def _members(row: Row) -> str:
    """Which of the brokers in `back_with` bring the partition back."""
    ids = row["back_with"]
    named = ", ".join(map(str, sorted(ids)))
    if len(ids) == 1:
        return named
    if not row["back_with_any"]:
        return f"one of {named}: the last to fail"
    return f"any of {named}" if row["at_risk"] is False else f"one of {named}: the last to lead"
