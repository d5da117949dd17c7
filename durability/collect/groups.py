"""Groups: all of them listed, members of classic Streams groups with their bytes untouched."""

from __future__ import annotations

import base64
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest

from durability.collect.notes import Notes
from durability.collect.reasons import Unread, error_name
from durability.collect.wire import Wire

CLASSIC, CONSUMER_PROTOCOL, STREAMS_PROTOCOL = "classic", "consumer", "stream"
GROUP_ID_NOT_FOUND = 69


async def coordinated_by(wire: Wire, broker: int, notes: Notes) -> list[dict]:
    """The groups that this broker coordinates, as rows of the document's `groups`.

    Members are kept of classic groups with protocol "stream" (Kafka Streams) only: metadata and assignment as
    DescribeGroups gave them, in base64. Raises Unread when the broker can't list its groups; a group that can't be
    described is noted.
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
    return list(groups.values())


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
        if described.protocol_data == STREAMS_PROTOCOL:
            members = [_member(m) for m in described.members]
            group["members"] = sorted(members, key=lambda m: m["member_id"])


def _member(member: Any) -> dict:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "metadata": base64.b64encode(bytes(member.member_metadata or b"")).decode("ascii"),
        "assignment": base64.b64encode(bytes(member.member_assignment or b"")).decode("ascii"),
    }
