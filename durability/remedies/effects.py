"""What a step of a remedy does to a cluster: `apply` gives the topology document after the step.

Tests follow remedies with it. A document has the format kafka-topology/1.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from durability.remedies.commands import Config, Elect, Feature, Reassign
from durability.remedies.steps import Step

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
        during = _changed(document, command.topic, plan, finished=False)
        return [during, _changed(document, command.topic, plan, finished=True)]
    if isinstance(command, Config):
        return [_configured(document, command)]
    if isinstance(command, Elect):
        return [_elected(document, command)]
    if isinstance(command, Feature):
        after = deepcopy(document)
        after["cluster"].setdefault("features", {})[command.name] = command.level
        return [after]
    return [document]


def _configured(document: Document, command: Config) -> Document:
    after = deepcopy(document)
    if command.entity == "topics":
        (topic,) = [t for t in after["topics"] if t["name"] == command.name]
        _set(topic, command, "topic")
        return after
    nodes = [*after["brokers"], *after["cluster"].get("controllers", ())]
    for node in nodes:
        if command.name is None or str(node["id"]) == command.name:
            _set(node, command, "cluster-default" if command.name is None else "broker-dynamic")
    if command.name is None:
        for topic in after["topics"]:
            inherited = {k for k, source in (topic.get("config_sources") or {}).items() if source != "topic"}
            if shown := tuple((key, value) for key, value in command.values if key in inherited):
                _set(topic, replace(command, values=shown), "cluster-default")
    return after


def _set(node: Document, command: Config, source: str) -> None:
    configs, sources = node.setdefault("configs", {}), node.get("config_sources")
    for key, value in command.values:
        if value is None:
            configs.pop(key, None)
        else:
            configs[key] = value
        if sources is not None:
            sources.pop(key, None) if value is None else sources.update({key: source})


def _elected(document: Document, command: Elect) -> Document:
    """The first live replica of the ISR, or of the ELR if the ISR is empty, leads. There may be none: it isn't unclean."""
    after = deepcopy(document)
    live = {b["id"] for b in after["brokers"] if b.get("live") is not False}
    for topic in after["topics"]:
        for partition in topic["partitions"] if topic["name"] == command.topic else ():
            if partition["partition"] == command.partition:
                copies = partition["isr"] or partition.get("elr") or ()
                in_sync = [b for b in partition["replicas"] if b in copies and b in live]
                partition["leader"] = in_sync[0] if in_sync else None
                if in_sync and not partition["isr"]:
                    partition["isr"], partition["elr"] = in_sync[:1], [b for b in copies if b != in_sync[0]]
    return after


def _changed(document: Document, name: str, plan: list[tuple[int, list[int]]], *, finished: bool) -> Document:
    """The document while the plan runs, or at its end. Replicas on brokers that are down never get in sync."""
    after = deepcopy(document)
    live = {b["id"] for b in after["brokers"] if b.get("live") is not False}
    (topic,) = [t for t in after["topics"] if t["name"] == name]
    partitions = {p["partition"]: p for p in topic["partitions"]}
    for number, replicas in plan:
        partition = partitions[number]
        now = partition["replicas"]
        if not finished:
            added, dropped = [b for b in replicas if b not in now], [b for b in now if b not in replicas]
            partition |= {"replicas": [*replicas, *dropped], "adding": added, "removing": dropped}
            continue
        in_sync = [b for b in replicas if b in live]
        led = partition["leader"] in in_sync
        partition |= {"replicas": replicas, "isr": in_sync, "adding": [], "removing": []}
        if partition["leader"] is not None and not led:
            partition["leader"] = in_sync[0] if in_sync else None
    return after
