"""Builds the `streams[]` entry of a classic Streams group from its members' bytes.

A member is a thread, and a client is a process. A subscription has the state before the rebalance: process id, tags, and tasks
with state. An assignment has the placement.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from durability.streams import assignment_info, subscription_info
from durability.streams.assignment_info import NO_REBALANCE, AssignmentInfo
from durability.streams.consumer_protocol import assignment_user_data, subscription_user_data
from durability.streams.reader import Malformed
from durability.streams.subscription_info import CLIENT_TAGS, SubscriptionInfo
from durability.streams.tasks import in_order, subtopology_of

PROTOCOL = "stream"
STABLE, EMPTY = "Stable", "Empty"
NO_EVIDENCE = (
    "nothing tells which tasks have state: no member brought offsets into the last rebalance, none has a standby"
)
THREAD = "-StreamThread-"
"""Part of the client id of every Streams consumer (StreamThread.create, ClientUtils)."""

Place = tuple[str | int, ...]


@dataclass
class Decoded:
    """A group's entry of `streams[]`. unread: reasons by place in the entry. The place () is the whole entry."""

    entry: dict
    unread: dict[Place, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Thread:
    subscription: SubscriptionInfo
    assignment: AssignmentInfo


def is_streams(group: Mapping, internal_topics: Iterable[str] = ()) -> bool:
    """Is this row of `groups` a classic Kafka Streams group?

    Brokers state the protocol of stable groups only. Other groups are recognised by their members' client ids or by the
    application's internal topics.
    """
    if group.get("type") not in ("classic", None) or group.get("protocol_type") not in ("consumer", None):
        return False
    if group.get("protocol"):
        return group["protocol"] == PROTOCOL
    if group.get("state") == STABLE:
        return False
    members = group.get("members") or []
    return bool(internal_topics) or any(THREAD in (member.get("client_id") or "") for member in members)


def decode(group: Mapping) -> Decoded:
    """The `streams[]` entry of a row of the document's `groups` that `is_streams`. Raises no error."""
    state = group.get("state") or "Unknown"
    entry = {"group": group["group"], "type": "classic", "state": state}
    if state != STABLE:
        entry |= {"in_transition": True, "stateful_tasks": [], "clients": []}
        why = f"the group is {state}: brokers show the tasks of {STABLE} groups only"
        unread: dict[Place, str] = {("stateful_tasks",): why}
        if state != EMPTY:
            unread["clients",] = why
        return Decoded(entry, unread)
    members = group.get("members") or []
    try:
        threads = [_thread(member, f"member {n} of {len(members)}") for n, member in enumerate(members, start=1)]
    except Malformed as error:
        return Decoded(entry, {(): str(error)})
    if not threads:
        return Decoded(entry, {(): "no member is shown"})
    return _placement(entry, threads)


def _thread(member: Mapping, who: str) -> _Thread:
    try:
        subscription = subscription_info.decode(subscription_user_data(_bytes(member, "metadata")))
        assignment = assignment_info.decode(assignment_user_data(_bytes(member, "assignment")))
    except Malformed as error:
        raise Malformed(f"{error} ({who})") from error
    return _Thread(subscription, assignment)


def _bytes(member: Mapping, name: str) -> bytes:
    stated = member.get(name)
    if stated is None:
        raise Malformed(f"its {name} isn't stated")
    return base64.b64decode(stated)


def _placement(entry: dict, threads: list[_Thread]) -> Decoded:
    by_process: dict[str, list[_Thread]] = {}
    for thread in threads:
        by_process.setdefault(thread.subscription.process, []).append(thread)
    unread: dict[Place, str] = {}
    clients: list[dict] = []
    for process, own in sorted(by_process.items()):
        tags, why = _tags(own)
        if why:
            unread["clients", len(clients), "tags"] = why
        active = in_order(task for thread in own for task in thread.assignment.active)
        standby = in_order(task for thread in own for task in thread.assignment.standby)
        clients.append({"process": process, "tags": tags, "active": active, "standby": standby})
    stateful = _stateful(threads)
    if not stateful:
        unread["stateful_tasks",] = NO_EVIDENCE
    entry |= {
        "in_transition": any(map(_in_transition, threads)),
        "stateful_tasks": stateful,
        "clients": clients,
        "subscription_version": min(t.subscription.version for t in threads),
        "assignment_version": min(t.assignment.version for t in threads),
    }
    return Decoded(entry, unread)


def _tags(threads: list[_Thread]) -> tuple[dict[str, str], str | None]:
    """A client's tags, and the reason if they are unknown."""
    subscriptions = [thread.subscription for thread in threads]
    oldest = min(s.version for s in subscriptions)
    if oldest < CLIENT_TAGS:
        return {}, f"SubscriptionInfo: version {oldest} has no client tags; those from {CLIENT_TAGS} on have"
    if any(s.tags != subscriptions[0].tags for s in subscriptions):
        return {}, "the threads of one process state different client tags"
    return subscriptions[0].tags or {}, None


def _stateful(threads: list[_Thread]) -> list[str]:
    """The placed tasks with state. A subtopology has state if one of its tasks brought offsets or has a standby.

    All tasks of a subtopology have the same stores. Kafka's assignor also determines state per subtopology
    (org.apache.kafka.streams.processor.internals.ChangelogTopics).
    """
    standby = {task for thread in threads for task in thread.assignment.standby}
    active = {task for thread in threads for task in thread.assignment.active}
    with_state = standby.union(*(thread.subscription.with_state for thread in threads))
    subtopologies = {subtopology_of(task) for task in with_state}
    return in_order(task for task in standby | active if subtopology_of(task) in subtopologies)


def _in_transition(thread: _Thread) -> bool:
    """Is a probing rebalance planned (then standbys include warm-ups), or did the assignor report an error?"""
    return thread.assignment.next_rebalance_ms != NO_REBALANCE or thread.assignment.error != 0
