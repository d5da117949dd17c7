"""Sentences about the clients that a loss stops, from `clients` of whatif.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from durability.plain import plural
from durability.report.data.clients import GROUPS, STREAMS
from durability.streams.judgement import clip

NAMED = 5
EFFECTS = {
    GROUPS: "their groups can't commit offsets, join or rebalance",
    "transactions": "their transactions can't begin, commit or abort, and read_committed consumers of open ones wait",
    "share groups": "their share groups can't acknowledge records",
    "tiered storage": "segments aren't moved to remote storage, and local storage fills",
    "schema registry": "no schema can be registered",
    "Kafka Connect": "workers can't store offsets, configurations or status",
    STREAMS: "their applications can't store or restore state",
}
"""What can't be done while partitions reject writes or are offline, by kind of client."""
Client = Mapping[str, Any]


def sentences(clients: Mapping[str, Client]) -> list[str]:
    """A sentence or two per kind of client."""
    said = []
    for who, client in clients.items():
        if "of" in client:
            said.append(_stops(who, client))
        if who == GROUPS:
            said += _groups(client)
        for application in client.get("applications", ())[:NAMED]:
            said += _application(application)
        if (more := client.get("applications_count", 0) - NAMED) > 0:
            said.append(f"{plural(more, 'more Streams application')} in whatif.json.")
    return said


def _stops(who: str, client: Client) -> str:
    """How many partitions of which topics stop, and what that stops."""
    classes = {"offline": "offline", "rejects": "accepting no writes", "unknown": "unknown"}
    counted = ", ".join(f"{client[name]:,} {word}" for name, word in classes.items() if client.get(name))
    # Of a topic of unknown state it isn't known that clients stop.
    effect = EFFECTS[who] if client.get("offline") or client.get("rejects") else f"it is unknown whether {EFFECTS[who]}"
    topics = _named(client["topics"], client["topics_count"])
    return f"{who[0].upper()}{who[1:]}: of {plural(client['of'], 'partition')} of {topics} {counted}: {effect}."


def _groups(client: Client) -> list[str]:
    if client["groups_count"] is None:
        return ["Which groups these are is unknown: the partitions of __consumer_offsets could not all be read."]
    said = []
    if client["groups_count"]:
        names = _named([row["group"] for row in client["groups"]], client["groups_count"])
        said.append(f"{plural(client['groups_count'], 'known group')} there: {names}.")
    else:
        said.append("No known group is there.")
    if not client["all_groups_known"]:
        said.append("Not all groups could be listed.")
    return said


def _application(found: Client) -> list[str]:
    name, tasks = clip(found["application"]), found["tasks"]
    said = []
    if found["cold"]:
        many = plural(found["cold"], "task")
        lost = "loses its active and all standbys" if found["cold"] == 1 else "lose their active and all standbys"
        said.append(
            f"Streams application {name}: {many} {lost} with the rack, and restart from the changelog: "
            f"{_named(tasks, found['cold'])}."
        )
        if found["changelogs"].get("offline"):
            offline = plural(found["changelogs"]["offline"], "changelog partition")
            said.append(f"{offline} of {name} offline: their tasks can't be restored.")
    if found["unsure"]:
        said.append(
            f"Streams application {name}: of {plural(found['unsure'], 'more task')} it is unknown where the copies run."
        )
    if found["untold"]:
        said.append(f"Streams application {name}: tasks without a warm standby can't be told: {found['untold']}.")
    return said


def _named(names: Iterable[str], count: int) -> str:
    listed = [clip(name) for name in names][:NAMED]
    more = f" and {count - len(listed):,} more" if count > len(listed) else ""
    return f"{', '.join(listed)}{more}"
