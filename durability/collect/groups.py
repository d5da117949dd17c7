"""All groups. Classic Streams groups have their members' bytes, and groups of type streams their placement."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from durability.collect.messages import StreamsGroupDescribeRequest
from durability.collect.notes import Notes
from durability.collect.reasons import Unread, error_name
from durability.collect.wire import Wire, batches
from durability.streams import classic, kip1071
from durability.streams.classic import Decoded

CLASSIC, CONSUMER_PROTOCOL = "classic", "consumer"
GROUP_ID_NOT_FOUND = 69
GROUPS_PER_REQUEST = 100


@dataclass
class Groups:
    """rows: of the document's `groups`. streams: entries of its `streams`, by group id (KIP-1071)."""

    rows: list[dict] = field(default_factory=list)
    streams: dict[str, Decoded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = {row["group"] for row in self.rows}

    def add(self, more: Groups) -> None:
        """Add another broker's groups. Existing ones are kept: they moved while groups were listed."""
        self.rows += [row for row in more.rows if row["group"] not in self._names]
        self._names.update(row["group"] for row in more.rows)
        self.streams = more.streams | self.streams


async def coordinated_by(wire: Wire, broker: int, notes: Notes) -> Groups:
    """The groups that this broker coordinates.

    Only classic groups of Kafka Streams have members: metadata and assignment of DescribeGroups in base64.
    Raises Unread if the broker can't list its groups. A group that can't be described is noted.
    """
    response = await wire.ask(broker, ListGroupsRequest())
    with_type = response.API_VERSION >= 5
    found = Groups([_listed(group, with_type) for group in response.groups])
    rows = {row["group"]: row for row in sorted(found.rows, key=lambda row: row["group"]) if row["state"] != "Dead"}
    classic_names = [
        name
        for name, row in rows.items()
        if row["protocol_type"] == CONSUMER_PROTOCOL and row["type"] in (CLASSIC, None)
    ]
    for names in batches(classic_names, GROUPS_PER_REQUEST):
        await _describe(wire, broker, names, rows, notes)
    streams_names = [name for name, row in rows.items() if row["type"] == kip1071.TYPE]
    for names in batches(streams_names, GROUPS_PER_REQUEST):
        await _describe_streams(wire, broker, names, found)
    return found


def _listed(group: Any, with_type: bool) -> dict:
    return {
        "group": group.group_id,
        # ListGroups has no types before 3.8. Before 3.7 all groups are classic.
        "type": (group.group_type or "unknown").lower() if with_type else None,
        "state": group.group_state or None,
        "protocol_type": group.protocol_type,
        "protocol": None,
        "members": [],
    }


async def _describe(wire: Wire, broker: int, names: Sequence[str], rows: dict[str, dict], notes: Notes) -> None:
    try:
        response = await wire.ask(broker, DescribeGroupsRequest(groups=names))
    except Unread as exc:
        for name in names:
            notes.add(("groups", name, "members"), exc.reason)
        return
    for described in response.groups:
        group = rows[described.group_id]
        if described.error_code == GROUP_ID_NOT_FOUND and group["type"] is None:
            continue  # a KIP-848 group, on a release that lists no types
        if described.error_code:
            notes.add(("groups", described.group_id, "members"), error_name(described.error_code))
            continue
        group["type"] = CLASSIC
        group["state"] = described.group_state or group["state"]
        group["protocol"] = described.protocol_data
        members = sorted((_member(m) for m in described.members), key=lambda m: m["member_id"])
        if classic.is_streams({**group, "members": members}):
            group["members"] = members


async def _describe_streams(wire: Wire, broker: int, names: Sequence[str], found: Groups) -> None:
    """Describe groups of type streams. One answer of `StreamsGroupDescribe` has topology, members and tasks."""
    try:
        response = await wire.ask(broker, StreamsGroupDescribeRequest(group_ids=names))
    except Unread as exc:
        found.streams |= {name: _unread(name, exc.reason) for name in names}
        return
    for described in response.groups:
        if described.error_code:
            found.streams[described.group_id] = _unread(described.group_id, error_name(described.error_code))
        else:
            found.streams[described.group_id] = kip1071.entry_of(described)


def _unread(name: str, reason: str) -> Decoded:
    return Decoded({"group": name, "type": kip1071.TYPE}, {(): reason})


def _member(member: Any) -> dict:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "metadata": base64.b64encode(bytes(member.member_metadata or b"")).decode("ascii"),
        "assignment": base64.b64encode(bytes(member.member_assignment or b"")).decode("ascii"),
    }
