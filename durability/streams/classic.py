"""Classic Streams groups: members' bytes -> the document's `streams[]` entry, or why it can't be told.

A member is a thread; a client is a process. The subscription is from before the rebalance, so it gives process id, tags and
which tasks have state; the assignment gives the placement.
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

OLDEST = 6
"""The oldest protocol version (Kafka 2.5) that is taken for a placement; older ones are named and left unknown."""
PROTOCOL = "stream"
STABLE, EMPTY = "Stable", "Empty"
NO_EVIDENCE = (
    "nothing tells which tasks have state: no member brought offsets into the last rebalance, none has a standby"
)
THREAD = "-StreamThread-"
"""What every Streams consumer has in its client id and so in its member id (StreamThread.create, ClientUtils)."""

Place = tuple[str | int, ...]


@dataclass
class Decoded:
    """A group's entry of `streams[]`; `unread`: places within it (the empty one: all of it) that are unknown, and why."""

    entry: dict
    unread: dict[Place, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Thread:
    subscription: SubscriptionInfo
    assignment: AssignmentInfo


def is_streams(group: Mapping, internal_topics: Iterable[str] = ()) -> bool:
    """Is this row of `groups` a classic Kafka Streams group?

    The broker tells the protocol of a stable group only; of another the members' ids, and an empty one's internal
    topics (those that follow its id), say what it is.
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
    """The `streams[]` entry of a row of the document's `groups`, of which `is_streams` holds. Raises nothing."""
    state = group.get("state") or "Unknown"
    entry = {"group": group["group"], "type": "classic", "state": state}
    if state != STABLE:
        entry |= {"in_transition": True, "stateful_tasks": [], "clients": []}
        why = f"the group is {state}: brokers show what its members run when it is {STABLE} only"
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
    for what, info in (("SubscriptionInfo", subscription), ("AssignmentInfo", assignment)):
        if info.version < OLDEST:
            raise Malformed(f"{what}: version {info.version} is older than {OLDEST}, the oldest that is read ({who})")
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
        clients.append({"process": process, "tags": tags} | {kind: _tasks(own, kind) for kind in ("active", "standby")})
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
    """A client's tags, and why they are unknown where they are."""
    subscriptions = [thread.subscription for thread in threads]
    oldest = min(s.version for s in subscriptions)
    if oldest < CLIENT_TAGS:
        return {}, f"SubscriptionInfo: version {oldest} has no client tags; those from {CLIENT_TAGS} on have"
    if any(s.tags != subscriptions[0].tags for s in subscriptions):
        return {}, "the threads of one process state different client tags"
    return subscriptions[0].tags or {}, None


def _tasks(threads: list[_Thread], kind: str) -> list[str]:
    return in_order(str(task) for thread in threads for task in getattr(thread.assignment, kind))


def _stateful(threads: list[_Thread]) -> list[str]:
    """The tasks placed now that have state: those of a subtopology of which any task brought offsets or is a standby.

    The tasks of a subtopology have the same stores, so what is seen of one holds for the others: Kafka's assignor
    too knows state by subtopology (org.apache.kafka.streams.processor.internals.ChangelogTopics).
    """
    standby = {str(task) for t in threads for task in t.assignment.standby}
    placed = standby | {str(task) for t in threads for task in t.assignment.active}
    seen = standby | {str(task) for t in threads for task in t.subscription.with_state}
    with_state = {subtopology_of(task) for task in seen}
    return in_order(task for task in placed if subtopology_of(task) in with_state)


def _in_transition(thread: _Thread) -> bool:
    """A probing rebalance is planned (warm-ups stand among the standbys), or the assignor had an error to tell."""
    return thread.assignment.next_rebalance_ms != NO_REBALANCE or thread.assignment.error != 0
