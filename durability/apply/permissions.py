"""ACLs that steps need besides an audit's, and those that the principal lacks.

https://kafka.apache.org/documentation/#operations_resources_and_protocols lists what each request needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from durability.plain import plain
from durability.remedies.change.model import Kind

NAMED = 5
"""The most topics that a text names."""


class Operation(StrEnum):
    """As kafka-acls names them."""

    ALTER = "Alter"
    ALTER_CONFIGS = "AlterConfigs"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


class On(StrEnum):
    CLUSTER = "Cluster"
    TOPICS = "Topic"


class Acl(NamedTuple):
    """on: the cluster, or each topic that changes."""

    operation: Operation
    on: On


ALTER_CLUSTER = Acl(Operation.ALTER, On.CLUSTER)
SET_BROKERS = Acl(Operation.ALTER_CONFIGS, On.CLUSTER)
SET_TOPICS = Acl(Operation.ALTER_CONFIGS, On.TOPICS)
READING = tuple(Acl(operation, on) for on in On for operation in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS))
"""Before and after each step the cluster is read."""
CHANGING: Mapping[Kind, tuple[Acl, ...]] = {
    "wait": (),
    "lower-min-isr": (SET_TOPICS,),
    "reassign": (ALTER_CLUSTER, SET_BROKERS, SET_TOPICS),  # the throttle is a setting of brokers and topics
    "raise-min-isr": (SET_TOPICS,),
    "set-config": (SET_TOPICS,),
    "elect-leaders": (ALTER_CLUSTER,),
}


@dataclass(frozen=True)
class Authorized:
    """What the principal may do, as the cluster states it. None: the cluster doesn't say.

    topics: by name. Without Describe, Kafka states no other operation.
    """

    cluster: frozenset[Operation] | None
    topics: Mapping[str, frozenset[Operation] | None] = field(default_factory=dict)


class Asked(Protocol):
    """`durability.apply.kafka.KafkaCluster`."""

    def authorized(self, topics: Collection[str]) -> Authorized: ...


@dataclass(frozen=True)
class Missing:
    """ACLs that the principal lacks, and ACLs of which the cluster doesn't say whether it has them.

    Each has the names of its topics; for the cluster there are none.
    """

    lacking: Mapping[Acl, tuple[str, ...]]
    unknown: Mapping[Acl, tuple[str, ...]]


def needed(kinds: Iterable[Kind], *, cluster_wide: bool = False) -> list[Acl]:
    """The ACLs that steps of these kinds need, in a fixed order.

    cluster_wide: a step changes a cluster-wide setting.

    >>> [" ".join(acl) for acl in needed(["elect-leaders"])][-2:]
    ['DescribeConfigs Topic', 'Alter Cluster']
    """
    wanted = {acl for kind in kinds for acl in CHANGING[kind]} | ({SET_BROKERS} if cluster_wide else set())
    return [*READING, *(acl for acl in (ALTER_CLUSTER, SET_BROKERS, SET_TOPICS) if acl in wanted)]


def missing(cluster: Asked, acls: Iterable[Acl], topics: Collection[str]) -> Missing:
    """Which of these ACLs the principal lacks. topics: that are changed. Raises Unreachable."""
    allowed = cluster.authorized(topics)
    lacking: dict[Acl, tuple[str, ...]] = {}
    unknown: dict[Acl, tuple[str, ...]] = {}
    for acl in acls:
        if acl.on is On.CLUSTER:
            has = {"": _has(allowed.cluster, acl.operation)}
        else:
            has = {topic: _has(allowed.topics.get(topic), acl.operation) for topic in sorted(set(topics))}
        for found, state in ((lacking, False), (unknown, None)):
            if names := [name for name in has if has[name] is state]:
                found[acl] = tuple(filter(None, names))
    return Missing(lacking, unknown)


def _has(allowed: frozenset[Operation] | None, operation: Operation) -> bool | None:
    if allowed is None:
        return None
    if operation in allowed:
        return True
    return False if operation is Operation.DESCRIBE or Operation.DESCRIBE in allowed else None


def listed(acls: Mapping[Acl, tuple[str, ...]]) -> list[str]:
    """A text for each of these ACLs.

    >>> listed({ALTER_CLUSTER: (), SET_TOPICS: ("a", "b")})
    ['Alter on Cluster', 'AlterConfigs on Topic a, b']
    >>> listed({SET_TOPICS: tuple("abcdefg")})
    ['AlterConfigs on Topic a, b, c, d, e and 2 more']
    """
    texts = []
    for acl, topics in acls.items():
        names = ", ".join(map(plain, topics[:NAMED]))
        more = f" and {len(topics) - NAMED} more" if len(topics) > NAMED else ""
        texts.append(f"{acl.operation} on {acl.on} {names}{more}".rstrip())
    return texts
