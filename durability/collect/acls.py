"""The ACLs that apply to the collector's principal, as the brokers' authorizer lists them (DescribeAcls, KIP-140)."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from kafka.protocol.admin import DescribeAclsRequest
from kafka.protocol.admin.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType, ACLResourceType

from durability.collect.reasons import Unread
from durability.collect.wire import Wire

EVERYONE = "User:*"
"""Kafka's wildcard principal. Its ACLs apply to every user."""
KEPT = 1000
"""The most ACLs that are listed."""
ANY = 1
NO_NAME = "the principal's name isn't known, so its ACLs can't be listed"
Acl = dict[str, str]


async def of_principal(wire: Wire, name: str | None) -> tuple[dict[str, Any] | None, str | None]:
    """The ACLs of a principal and of User:*: `count`, and the first KEPT as `listed`. None if they can't be read, with why.

    name: such as "User:auditor". An empty list is no denial: super.users and allow.everyone.if.no.acl.found need no ACL.
    """
    if name is None:
        return None, NO_NAME
    # A single broker: each one that doesn't answer would take as long as a request may take.
    broker = next((node for node in wire.nodes if wire.why_lost(node) is None), None)
    if broker is None:
        return None, "BROKER_NOT_AVAILABLE"
    try:
        answers = [await wire.ask(broker, _request(whom)) for whom in (name, EVERYONE)]
    except Unread as exc:
        return None, exc.reason
    found = sorted((acl for answer in answers for acl in _parsed(answer)), key=lambda acl: tuple(acl.values()))
    return {"count": len(found), "listed": found[:KEPT]}, None


def _request(principal: str) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=principal,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )


def _parsed(answer: Any) -> list[Acl]:
    return [
        {
            "principal": acl.principal,
            "permission": _name(ACLPermissionType, acl.permission_type),
            "operation": _name(ACLOperation, acl.operation),
            "resource_type": _name(ACLResourceType, resource.resource_type),
            "resource": resource.resource_name,
            "pattern": _name(ACLResourcePatternType, resource.pattern_type),
            "host": acl.host,
        }
        for resource in answer.resources
        for acl in resource.acls
    ]


def _name(codes: type[IntEnum], code: int) -> str:
    """Kafka's name of a code; its number if a later release added it.

    >>> _name(ACLOperation, 8), _name(ACLOperation, 15)
    ('DESCRIBE', 'code 15')
    """
    return codes(code).name if code in codes.__members__.values() else f"code {code}"
