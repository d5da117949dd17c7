"""Builds the document's `streams[]` entry of a group of type streams (KIP-1071), from StreamsGroupDescribe.

The broker assigns the tasks of such groups. It states the current and target tasks of each member, and warm-ups separately from
standbys. It ignores num.standby.replicas and tags of clients.
"""

from __future__ import annotations

from typing import Any

from durability.streams.classic import STABLE, Decoded
from durability.streams.tasks import in_order, subtopology_of

TYPE = "streams"
UNINITIALIZED = "the group's topology isn't initialized, or its source topics are missing"
CONFLICT = "the members of one process state different client tags"


def entry_of(described: Any) -> Decoded:
    """The entry of a DescribedGroup (StreamsGroupDescribeResponse, version 0) without an error code.

    Clients have their current tasks, without warm-ups. `in_transition` is false if the group is Stable, every member has
    its target, there are no warm-ups, and no member uses the classic protocol.
    """
    members = sorted(described.members, key=lambda m: (m.process_id, m.member_id))
    by_process: dict[str, list[Any]] = {}
    for member in members:
        by_process.setdefault(member.process_id, []).append(member)
    unread: dict = {}
    clients: list[dict] = []
    for process, own in by_process.items():
        tags = [{tag.key: tag.value for tag in member.client_tags} for member in own]
        if any(stated != tags[0] for stated in tags):
            unread["clients", len(clients), "tags"] = CONFLICT
        active = [task for member in own for task in _tasks(member.assignment.active_tasks)]
        standby = [task for member in own for task in _tasks(member.assignment.standby_tasks)]
        tasks = {"active": in_order(active), "standby": in_order(standby)}
        clients.append({"process": process, "tags": tags[0]} | tasks)
    topology = described.topology.subtopologies if described.topology is not None else None
    if topology is None:
        unread["stateful_tasks",] = UNINITIALIZED
    entry = {
        "group": described.group_id,
        "type": TYPE,
        "state": described.group_state,
        "in_transition": _in_transition(described),
        "stateful_tasks": _stateful(topology or [], clients),
        "clients": clients,
    }
    if topology is not None:
        entry["internal_topics"] = _internal(topology)
    return Decoded(entry, unread)


def _tasks(listed: Any) -> list[str]:
    return [f"{tasks.subtopology_id}_{partition}" for tasks in listed for partition in tasks.partitions]


def _stateful(topology: Any, clients: list[dict]) -> list[str]:
    """The placed tasks whose subtopology has a changelog."""
    with_state = {sub.subtopology_id for sub in topology if sub.state_changelog_topics}
    placed = {task for client in clients for task in (*client["active"], *client["standby"])}
    return in_order(task for task in placed if subtopology_of(task) in with_state)


def _internal(topology: Any) -> list[str]:
    """Changelog and repartition topics. A source topic used as a changelog (optimization) isn't one."""
    sources = {topic for sub in topology for topic in sub.source_topics}
    changelogs = {topic.name for sub in topology for topic in sub.state_changelog_topics} - sources
    return sorted(changelogs | {topic.name for sub in topology for topic in sub.repartition_source_topics})


def _in_transition(described: Any) -> bool:
    if described.group_state != STABLE or described.group_epoch != described.assignment_epoch:
        return True
    return any(
        member.is_classic
        or member.member_epoch != described.assignment_epoch
        or member.assignment.warmup_tasks
        or _placed(member.assignment) != _placed(member.target_assignment)
        for member in described.members
    )


def _placed(assignment: Any) -> list[list[str]]:
    return [sorted(_tasks(tasks)) for tasks in (assignment.active_tasks, assignment.standby_tasks)]
