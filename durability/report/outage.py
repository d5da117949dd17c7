"""What a rack outage costs and what would be changed, for a log and for an approver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from durability.catalogue.listing import listed
from durability.plain import plural
from durability.report.formats.markdown import block, escaped
from durability.report.words import readable

ACTS = {
    "add-replicas": "Live brokers take the place of those that are down. No setting changes",
    "lower": "The threshold becomes what is in sync. acks=all writes work again, with less durability",
    "hold": "Nothing is changed",
}


def subject(assessed: Mapping[str, Any]) -> str:
    """The approval's headline, in Markdown."""
    racks = ", ".join(escaped(lost["rack"]) for lost in assessed["racks"])
    return f"Change topics of Kafka cluster {escaped(assessed['cluster'])} while rack {racks} is lost?"


def page(assessed: Mapping[str, Any]) -> str:
    """The assessment in Markdown. Texts of the cluster are in a block of code.

    assessed: as `durability.steps.outage.assess` returns it.
    """
    return block("\n".join(lines(assessed)), "text")


def lines(assessed: Mapping[str, Any]) -> list[str]:
    """The assessment, a fact per line."""
    return [
        *(_lost(lost) for lost in assessed["racks"]),
        *([f"Maintenance now: {assessed['maintenance']}"] if assessed["maintenance"] else []),
        *_costs(assessed),
        *assessed["given_up"],
        *_changes(assessed),
    ]


def _lost(lost: Mapping[str, Any]) -> str:
    perhaps = f", perhaps since {readable(lost['perhaps_since'])}" if lost["perhaps_since"] else ""
    return (
        f"Rack {lost['rack']} is lost since {readable(lost['since'])}{perhaps}: {listed(lost['brokers'], 'brokers ')}"
    )


def _costs(assessed: Mapping[str, Any]) -> Iterator[str]:
    rejects, away = assessed["rejects"], assessed["one_loss_away"]
    topics = plural(rejects["topics"], "topic")
    yield f"acks=all is rejected by {plural(rejects['partitions'], 'partition')} of {topics}"
    if rejects["offline"]:
        yield f"Without a leader: {plural(rejects['offline'], 'partition')}. Only the rack's return helps"
    for what in ("broker", "rack"):
        number = "an unknown number of partitions" if away[what] is None else plural(away[what], "partition")
        yield f"The loss of one more {what} stops writes to {number}, those above included"


def _changes(assessed: Mapping[str, Any]) -> Iterator[str]:
    for act, what in ACTS.items():
        topics: Sequence[str] = assessed["topics"].get(act, ())
        more = assessed["acts"].get(act, 0) - len(topics)
        if topics:
            names = ", ".join(topics) + (f" (+{more:,} more)" if more else "")
            yield f"{what}: {plural(assessed['acts'][act], 'topic')}: {names}"
    if assessed["topics"].get("add-replicas"):
        yield f"Copied to live brokers: {plural(assessed['bytes'], 'byte')}"
    if assessed["give_up_elr"]:
        yield (
            f"With give_up_elr, the threshold is lowered instead: {plural(assessed['give_up_elr'], 'topic')}. Kafka then forgets"
            " eligible leader replicas"
        )
    yield from (f"ACL {text}" for text in assessed["acls"])
    for topic, why in assessed["problems"].items():
        yield f"Topic {topic}: {why}"
