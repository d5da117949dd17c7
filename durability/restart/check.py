"""May a wave restart now? Reads a topology document, without Spark: the gate of a rolling restart.

The minimum of a partition is taken to be the largest value that may apply to it, so the check errs on the side of waiting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MIN_ISR = "min.insync.replicas"
NAMED = 5


@dataclass(frozen=True)
class Verdict:
    """reasons: why the wave has to wait, in words; empty: it may go. unavoidable: partitions that no wave spares."""

    reasons: tuple[str, ...]
    unavoidable: int

    @property
    def go(self) -> bool:
        return not self.reasons


def check(document: Mapping[str, Any], wave: Collection[int], margin: int = 0) -> Verdict:
    """Whether the nodes of the wave may stop together. document: a `kafka-topology/1` document of the cluster as it is."""
    reasons = [*_nodes(document, wave), *_unread(document), *_quorum(document, wave)]
    not_whole, short, unavoidable = [], [], 0
    of_brokers = [_number(broker.get("configs", {}).get(MIN_ISR)) or 1 for broker in document["brokers"]]
    for topic in document["topics"]:
        largest = _largest_minimum(topic, of_brokers)
        for partition in topic.get("partitions", ()):
            name = f"{topic['name']}-{partition['partition']}"
            replicas, moving = set(partition["replicas"]), partition.get("adding") or partition.get("removing")
            if set(partition.get("isr") or ()) != replicas or partition.get("leader") is None or moving:
                not_whole.append(name)
                continue
            spare = len(replicas) - min(largest, len(replicas)) - margin
            if spare < 1:
                unavoidable += bool(replicas & set(wave))
            elif len(replicas & set(wave)) > spare:
                short.append(name)
    if not_whole:
        reasons.append(f"the ISR isn't whole, or replicas move: {_named(not_whole)}")
    if short:
        reasons.append(f"acks=all writes would be rejected: {_named(short)}")
    return Verdict(tuple(reasons), unavoidable)


def _largest_minimum(topic: Mapping[str, Any], of_brokers: Collection[int]) -> int:
    """The largest min.insync.replicas that may apply to the topic."""
    stated = _number(topic.get("configs", {}).get(MIN_ISR))
    if stated and topic.get("config_sources", {}).get(MIN_ISR) == "topic":
        return stated
    return max([stated or 1, *of_brokers])


def _nodes(document: Mapping[str, Any], wave: Collection[int]) -> Iterator[str]:
    brokers = {broker["id"]: broker for broker in document["brokers"]}
    voters = {voter["id"] for voter in (document["cluster"].get("quorum") or {}).get("voters", ())}
    if missing := sorted(set(wave) - brokers.keys() - voters):
        yield f"the cluster has no node {', '.join(map(str, missing))}"
    if down := sorted(id for id, broker in brokers.items() if not broker.get("live")):
        yield f"brokers are down: {', '.join(map(str, down))}"


def _unread(document: Mapping[str, Any]) -> Iterator[str]:
    """What decides and could not be read: topics, brokers, their settings, reassignments, hidden topics."""
    decides = ("/topics", "/brokers", "/cluster/reassignments", "/cluster/quorum")
    unread = [
        entry["path"]
        for entry in document.get("unreadable", ())
        if entry["path"].startswith(decides) and not entry["path"].endswith("/log_dirs")
    ]
    if unread:
        yield f"could not be read: {_named(unread)}"


def _quorum(document: Mapping[str, Any], wave: Collection[int]) -> Iterator[str]:
    quorum = document["cluster"].get("quorum")
    if not quorum:
        return
    voters = {voter["id"]: voter for voter in quorum["voters"]}
    if quorum.get("leader") is None:
        yield "no controller leads"
    away = [id for id, voter in voters.items() if voter.get("live") is False or voter.get("lag_ms") is None]
    if away:
        yield f"controllers are down or have not caught up: {', '.join(map(str, sorted(away)))}"
    lost = set(wave) & voters.keys() | set(away)
    if len(voters) >= 3 and len(voters) - len(lost) < len(voters) // 2 + 1:
        yield "the controllers would lose their majority"


def _number(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and text.strip().isdecimal() else None


def _named(names: Collection[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - NAMED:,} more" if len(listed) > NAMED else ""
    return f"{', '.join(listed[:NAMED])}{more}"
