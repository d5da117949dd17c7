"""What a step of a remedy does to a cluster: `apply` gives the topology document after the step.

Tests follow remedies with it. A document has the format kafka-topology/1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from durability.remedies.commands import Config, Elect, Feature, Reassign
from durability.remedies.steps import Step
from durability.topology.unreadable import Unreadable

Document = dict[str, Any]
Moves = Mapping[str, list[tuple[int, list[int]]]]
"""By topic the partitions of its plan, each with its new replicas."""


def apply(document: Document, step: Step, moves: Moves | None = None) -> list[Document]:
    """The documents after a step, in order: a reassignment first adds replicas, and drops others when the new ones are in sync.

    A step without a command, or with one that only reads, changes nothing. moves: the plans that a reassignment executes.
    KeyError for a topic that the document doesn't have, or a plan that was never made.
    """
    command = step.command
    if isinstance(command, Reassign):
        plan = (moves or {})[command.topic]
        during, after = deepcopy(document), deepcopy(document)
        reassign(_topic(during, command.topic), plan, live(during), finished=False)
        reassign(_topic(after, command.topic), plan, live(after), finished=True, kept_catch_up=True)
        return [during, after]
    if isinstance(command, Config):
        after = deepcopy(document)
        configure(after, command)
        return [after]
    if isinstance(command, Elect):
        after = deepcopy(document)
        elect(_topic(after, command.topic), command.partition, live(after))
        return [after]
    if isinstance(command, Feature):
        after = deepcopy(document)
        after["cluster"].setdefault("features", {})[command.name] = command.level
        return [after]
    return [document]


def _topic(document: Document, name: str) -> Document:
    (topic,) = [t for t in document["topics"] if t["name"] == name]
    return topic


def live(document: Document) -> set[int]:
    """The brokers that aren't known to be down or fenced."""
    return {b["id"] for b in document["brokers"] if b.get("live") is not False and not b.get("fenced")}


def up(document: Document) -> set[int]:
    """The brokers that are known to be up and not fenced. Only these can be named in a reassignment without a wait."""
    unreadable = Unreadable(document)
    read = [b for n, b in enumerate(document["brokers"]) if not unreadable.covers("brokers", n, "live")]
    return {b["id"] for b in read if b.get("live") is True and not b.get("fenced")}


OWN = "broker-dynamic"
"""The source of a node's own dynamic value, which a cluster-wide one doesn't replace."""


def configure(document: Document, command: Config) -> None:
    """Changes settings in the document itself."""
    if command.entity == "topics":
        assert command.name is not None, "a topic's settings have its name"
        set_on(_topic(document, command.name), command.values)
        return
    for node in (*document["brokers"], *document["cluster"].get("controllers", ())):
        if str(node["id"]) == command.name:
            _set(node, command, OWN)
        elif command.name is None:
            sources = node.get("config_sources") or {}
            values = tuple(pair for pair in command.values if sources.get(pair[0]) != OWN)
            _set(node, replace(command, values=values), "cluster-default")
    # A broker answers for a topic with the value that it inherits. A broker's own is taken for that of the broker changed.
    of_cluster = (("cluster-default", "broker", "default"), "cluster-default")
    replaced, source = of_cluster if command.name is None else ((OWN,), OWN)
    for topic in document["topics"]:
        sources = topic.get("config_sources") or {}
        if shown := tuple(pair for pair in command.values if sources.get(pair[0]) in replaced):
            _set(topic, replace(command, values=shown), source)


def set_on(topic: Document, values: Sequence[tuple[str, str | None]]) -> None:
    """Sets or deletes overrides of a topic of a document."""
    _set(topic, Config("topics", topic["name"], tuple(values)), "topic")


def _set(node: Document, command: Config, source: str) -> None:
    configs, sources = node.setdefault("configs", {}), node.get("config_sources")
    for key, value in command.values:
        if value is None:
            configs.pop(key, None)
        else:
            configs[key] = value
        if sources is not None:
            sources.pop(key, None) if value is None else sources.update({key: source})


def elect(topic: Document, number: int, live: Collection[int]) -> None:
    """The first live replica of the ISR, or of the ELR if the ISR is empty, leads. There may be none: it isn't unclean."""
    for partition in topic["partitions"]:
        if partition["partition"] == number:
            copies = partition["isr"] or partition.get("elr") or ()
            in_sync = [b for b in partition["replicas"] if b in copies and b in live]
            partition["leader"] = in_sync[0] if in_sync else None
            if in_sync and not partition["isr"]:
                partition["isr"], partition["elr"] = in_sync[:1], [b for b in copies if b != in_sync[0]]


def reassign(
    topic: Document,
    plan: Iterable[tuple[int, Sequence[int]]],
    live: Collection[int],
    *,
    finished: bool,
    kept_catch_up: bool = False,
) -> None:
    """Changes the topic of a document to how it is while the plan runs, or at its end.

    Replicas on brokers that are down never get in sync. kept_catch_up: do live replicas that stay get in sync too? Kafka before
    4.3.1 waits for them if a replica is added or removed (KAFKA-19975); no release waits for them if only the order changes.
    """
    partitions = {p["partition"]: p for p in topic["partitions"]}
    for number, new in plan:
        partition, replicas = partitions[number], list(new)
        now = partition["replicas"]
        if not finished:
            added, dropped = [b for b in replicas if b not in now], [b for b in now if b not in replicas]
            partition |= {"replicas": [*replicas, *dropped], "adding": added, "removing": dropped}
            continue
        in_sync = [b for b in replicas if b in live] if kept_catch_up else in_sync_after(partition, replicas, live)
        led = partition["leader"] in in_sync
        partition |= {"replicas": replicas, "isr": in_sync, "adding": [], "removing": []}
        for name in ("elr", "last_known_elr"):
            # A replica that is gone or in sync isn't eligible.
            if partition.get(name):
                partition[name] = [b for b in partition[name] if b in replicas and b not in in_sync]
        if partition["leader"] is not None and not led:
            partition["leader"] = in_sync[0] if in_sync else None


def in_sync_after(partition: Mapping[str, Any], replicas: Sequence[int], live: Collection[int]) -> list[int]:
    """The ISR of a partition of a document once it has these replicas: new ones are in sync, others only if they are now.

    >>> in_sync_after({"replicas": [1, 2, 3], "isr": [2]}, [2, 1, 4], {1, 2, 3, 4})
    [2, 4]
    """
    known = {*(partition["isr"] or ()), *(partition.get("adding") or ())}
    return [b for b in replicas if b in live and (b in known or b not in partition["replicas"])]
