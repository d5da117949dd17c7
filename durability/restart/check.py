"""May a wave restart now? Reads a topology document, without Spark: the gate of a rolling restart.

The minimum of a partition is taken to be the largest value that may apply to it, so the check errs on the side of waiting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from durability.topology.diskless import is_diskless

MIN_ISR = "min.insync.replicas"
NAMED = 5
MAX_LAG_MS = 2_000
"""A voter further behind may be down: until the next election the leader only states when the voter had caught up last.

Voters fetch at least every 0.5 s (controller.quorum.fetch.timeout.ms is 2 s by default).
"""
DECIDES = ("/topics", "/brokers", "/cluster/reassignments", "/cluster/quorum", "/cluster/consistent")
HIDDEN = "/cluster/hidden_partitions"
BESIDE = {"rack", "log_dirs", "offline_log_dirs", "kafka_version", "max_metadata_version", "bytes"}
"""Members of brokers, voters and partitions that decide nothing. Controllers that are no brokers often state no rack."""


@dataclass(frozen=True)
class Verdict:
    """reasons: why the wave has to wait, in words; empty: it may go. unavoidable: partitions that no wave spares.
    below_margin: partitions that accept writes meanwhile, but can't keep the margin, whatever the wave."""

    reasons: tuple[str, ...]
    unavoidable: int
    below_margin: int = 0

    @property
    def go(self) -> bool:
        return not self.reasons


def check(
    document: Mapping[str, Any], wave: Collection[int], margin: int = 0, planned: Collection[int] | None = None
) -> Verdict:
    """Whether the nodes of the wave may stop together.

    document: a `kafka-topology/1` document of the cluster as it is. planned: all nodes of the plan that the wave comes from.
    """
    reasons = [*_nodes(document, wave), *_unread(document), *_quorum(document, wave)]
    if planned is not None and set(planned) != _node_ids(document):
        reasons.append("the plan is of other nodes than the cluster has: plan again")
    listed = {broker["id"] for broker in document["brokers"]}
    not_whole, short, unlisted, unavoidable, below_margin = [], [], set(), 0, 0
    # With ELR on, the controllers' value is recorded for the cluster.
    of_brokers = [*_minima(document["brokers"]), *_minima(document["cluster"].get("controllers") or ())]
    for topic in document["topics"]:
        if is_diskless(topic.get("configs")):
            continue
        largest = _largest_minimum(topic, of_brokers)
        for partition in topic.get("partitions", ()):
            name = f"{topic['name']}-{partition['partition']}"
            replicas, moving = set(partition["replicas"]), partition.get("adding") or partition.get("removing")
            unlisted |= replicas - listed
            if set(partition.get("isr") or ()) != replicas or partition.get("leader") is None or moving:
                not_whole.append(name)
                continue
            stopped = len(replicas & set(wave))
            spare = len(replicas) - min(largest, len(replicas))
            # A margin that can't be kept doesn't lift the limit without a margin.
            limit = spare - margin if spare > margin else spare
            if spare < 1:
                unavoidable += stopped > 0
            elif stopped > limit:
                short.append(name)
            elif spare <= margin:
                below_margin += stopped > 0
    if unlisted:
        reasons.append(f"replicas are on brokers that are not listed: {', '.join(map(str, sorted(unlisted)))}")
    if not_whole:
        reasons.append(f"the ISR isn't whole, or replicas move: {_named(not_whole)}")
    if short:
        reasons.append(f"acks=all writes would be rejected: {_named(short)}")
    return Verdict(tuple(reasons), unavoidable, below_margin)


def _minima(nodes: Collection[Mapping[str, Any]]) -> list[int]:
    """The min.insync.replicas that brokers or controllers state; Kafka's default, 1, where they state none."""
    return [_number((node.get("configs") or {}).get(MIN_ISR)) or 1 for node in nodes]


def _largest_minimum(topic: Mapping[str, Any], of_brokers: Collection[int]) -> int:
    """The largest min.insync.replicas that may apply to the topic."""
    stated = _number((topic.get("configs") or {}).get(MIN_ISR))
    if stated and (topic.get("config_sources") or {}).get(MIN_ISR) == "topic":
        return stated
    return max([stated or 1, *of_brokers])


def _node_ids(document: Mapping[str, Any]) -> set[int]:
    voters = (document["cluster"].get("quorum") or {}).get("voters", ())
    return {node["id"] for node in (*document["brokers"], *voters)}


def _nodes(document: Mapping[str, Any], wave: Collection[int]) -> Iterator[str]:
    brokers = {broker["id"]: broker for broker in document["brokers"]}
    voters = {voter["id"] for voter in (document["cluster"].get("quorum") or {}).get("voters", ())}
    if missing := sorted(set(wave) - brokers.keys() - voters):
        yield f"the cluster has no node {', '.join(map(str, missing))}"
    if down := sorted(id for id, broker in brokers.items() if not broker.get("live")):
        yield f"brokers are down: {', '.join(map(str, down))}"


def _unread(document: Mapping[str, Any]) -> Iterator[str]:
    """What decides and could not be read: topics, brokers, their settings, reassignments, hidden topics."""
    unread = [entry["path"] for entry in document.get("unreadable", ()) if _decides(entry["path"])]
    # DescribeConfigs states defaults too. A value that an answer leaves out, or that is no number, is unknown.
    kinds = {"brokers": "id", "topics": "name"}
    stating = [(kind, index, row) for kind in kinds for index, row in enumerate(document[kind])]
    unread += [f"/{kind}/{index}/configs/{MIN_ISR}" for kind, index, row in stating if not _states_minimum(row)]
    unread += [
        f"/topics/{index}/partitions" for index, topic in enumerate(document["topics"]) if not topic.get("partitions")
    ]
    if document["cluster"].get("hidden_partitions"):
        unread.append(HIDDEN)
    if document["cluster"].get("consistent") is False:
        unread.append("/cluster/consistent")
    if unread:
        yield f"could not be read: {_named(dict.fromkeys(unread))}"


def _decides(path: str) -> bool:
    *above, last = path.split("/")
    if path.startswith("/cluster/quorum/observers") or last in BESIDE:
        return False
    if above[-1:] == ["configs"]:
        return last == MIN_ISR
    return path == HIDDEN or path.startswith(DECIDES) or any(place.startswith(f"{path}/") for place in DECIDES)


def _states_minimum(row: Mapping[str, Any]) -> bool:
    """Is the row's min.insync.replicas a number, or left to a default?"""
    text = (row.get("configs") or {}).get(MIN_ISR)
    if text is not None:
        return _number(text) is not None
    return "default" not in (row.get("config_sources") or {}).values()


def _quorum(document: Mapping[str, Any], wave: Collection[int]) -> Iterator[str]:
    quorum = document["cluster"].get("quorum")
    if not quorum:
        return
    voters = {voter["id"]: voter for voter in quorum["voters"]}
    if quorum.get("leader") is None:
        yield "no controller leads"
    away = [
        id
        for id, voter in voters.items()
        if voter.get("live") is False or voter.get("lag_ms") is None or voter["lag_ms"] > MAX_LAG_MS
    ]
    if away:
        yield f"controllers are down or have not caught up: {', '.join(map(str, sorted(away)))}"
    lost = set(wave) & voters.keys() | set(away)
    if len(voters) >= 3 and len(voters) - len(lost) < len(voters) // 2 + 1:
        yield "the controllers would lose their majority"
    if len(voters) < 3 and len(set(wave)) > 1 and (alone := sorted(voters.keys() & set(wave))):
        named = ", ".join(map(str, alone))
        yield f"the controllers lose their majority while one restarts, so each stops alone: {named}"


def _number(text: Any) -> int | None:
    """A min.insync.replicas as Kafka reads it; None for a text that it doesn't accept."""
    try:
        number = int(str(text))
    except ValueError:
        return None
    return number if number >= 1 else None


def _named(names: Collection[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - NAMED:,} more" if len(listed) > NAMED else ""
    return f"{', '.join(listed[:NAMED])}{more}"
