"""Groups: all of them listed, members of classic Streams groups with their bytes untouched, groups of type streams told."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from durability.collect.messages import StreamsGroupDescribeRequest
from durability.collect.notes import Notes
from durability.collect.reasons import Unread, error_name
from durability.collect.wire import Wire
from durability.streams import classic, kip1071
from durability.streams.classic import Decoded

CLASSIC, CONSUMER_PROTOCOL = "classic", "consumer"
GROUP_ID_NOT_FOUND = 69


@dataclass
class Groups:
    """What brokers say of groups. rows: of the document's `groups`; streams: of its `streams`, by group id (KIP-1071)."""

    rows: list[dict] = field(default_factory=list)
    streams: dict[str, Decoded] = field(default_factory=dict)

    def add(self, more: Groups) -> None:
        """Adds another broker's; a group may move while groups are listed, so one that is there stays as it is."""
        seen = {row["group"] for row in self.rows}
        self.rows += [row for row in more.rows if row["group"] not in seen]
        self.streams = more.streams | self.streams


async def coordinated_by(wire: Wire, broker: int, notes: Notes) -> Groups:
    """The groups that this broker coordinates.

    Members are kept of classic groups of Kafka Streams only: metadata and assignment as DescribeGroups gave them, in
    base64. Raises Unread when the broker can't list its groups; a group that can't be described is noted.
    """
    response = await wire.checked(broker, lambda: ListGroupsRequest(), lambda r: r.error_code)
    with_type = response.API_VERSION >= 5
    groups = {g.group_id: _listed(g, with_type) for g in response.groups}
    wanted = sorted(
        name
        for name, g in groups.items()
        if g["protocol_type"] == CONSUMER_PROTOCOL and g["type"] in (CLASSIC, None) and g["state"] != "Dead"
    )
    step = wire.limits.groups_per_request
    for start in range(0, len(wanted), step):
        await _describe(wire, broker, wanted[start : start + step], groups, notes)
    found = Groups(list(groups.values()))
    wanted = sorted(name for name, g in groups.items() if g["type"] == kip1071.TYPE and g["state"] != "Dead")
    for start in range(0, len(wanted), step):
        await _describe_streams(wire, broker, wanted[start : start + step], found)
    return found


def _listed(group: Any, with_type: bool) -> dict:
    return {
        "group": group.group_id,
        # Before 3.8 ListGroups has no types, and before 3.7 there are none but classic.
        "type": (group.group_type or "unknown").lower() if with_type else None,
        "state": group.group_state or None,
        "protocol_type": group.protocol_type,
        "protocol": None,
        "members": [],
    }


async def _describe(wire: Wire, broker: int, names: list[str], groups: dict[str, dict], notes: Notes) -> None:
    try:
        response = await wire.ask(broker, lambda: DescribeGroupsRequest(groups=names))
    except Unread as exc:
        for name in names:
            notes.add(("groups", name, "members"), exc.reason)
        return
    for described in response.groups:
        group = groups[described.group_id]
        if described.error_code == GROUP_ID_NOT_FOUND and group["type"] is None:
            continue  # a KIP-848 group on a release whose list has no types
        if described.error_code:
            notes.add(("groups", described.group_id, "members"), error_name(described.error_code))
            continue
        group["type"] = CLASSIC
        group["state"] = described.group_state or group["state"]
        group["protocol"] = described.protocol_data
        members = sorted((_member(m) for m in described.members), key=lambda m: m["member_id"])
        if classic.is_streams({**group, "members": members}):
            group["members"] = members


async def _describe_streams(wire: Wire, broker: int, names: list[str], found: Groups) -> None:
    """Groups of type streams: `StreamsGroupDescribe`, which says all there is in one answer."""
    try:
        response = await wire.ask(broker, lambda: StreamsGroupDescribeRequest(group_ids=names))
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
