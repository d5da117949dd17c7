"""Evaluates one Streams application: the standbys of its tasks, their places, and the effect of losing a zone.

This is Python, not column expressions, because it searches placements. `spark_jobs/controls/standby_replicas.py` and
`standby_spread.py` make verdicts from its result. The result is JSON and small for any size of application:

- `type`: of the group. It is the only member if no line of the policy matches the group.
- `standby_replicas`, `rack_aware_tags`: from the policy's line.
- `unknown`: why the group can't be evaluated. Then there are only these members and `unread`.
- `unread`: what could not be read: `bytes` (an unsupported version or format), `evidence` (members state none so far), or
  `access`.
- `clients`, `tasks`: how many. Only tasks with state count. `standbys`: of the task with the fewest.
- `short_tasks`: how many tasks have fewer standbys than required. `short`: some of them, with `task` and `standbys`.
- `not_whole`: tasks without an active, or with several. Their standbys may not be second copies.
- `below_achievable`, `below_ideal`: how many tasks.
- `spread`: the worst of these tasks, each with
  - `task`, `category`, and `tags`: the tags in which two of its clients don't differ,
  - `clients`: the active's first,
  - `achievable`: clients on which the assignor could have put a standby. `more_achievable`: how many more there are,
  - `better`: a better place for all of its standbys.
- `undecided`: why tasks without a finding may still be placed badly.
- `limits`: tags beyond Kafka's limits.
- `losses`: by value of each rack-aware tag, how many tasks have all copies on clients with that value, and some of these tasks;
  also how many active tasks and standbys are there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from durability.plain import plural
from durability.streams.classic import NO_EVIDENCE, STABLE
from durability.streams.placement import Kinds, TooMany
from durability.streams.reader import FORMATS
from durability.streams.tasks import in_order

BELOW_ACHIEVABLE, BELOW_IDEAL, TAG_LIMITS = "below-achievable", "below-ideal", "tag-limits"
MAX_TAGS, MAX_KEY, MAX_VALUE = 5, 20, 30
"""Kafka's limits on client tags: their number, the characters of a key, and the characters of a value (StreamsConfig)."""
LISTED = 20
"""The most tasks, clients and values that are named. Others are counted."""
NAMED = 100
"""The most characters of a name: tags, task ids and process ids may be any text."""
STREAMS = "streams"
"""Type of a group whose tasks the broker places (KIP-1071)."""

Placement = dict[str, Any]
Hosts = dict[str, tuple[list[int], list[int]]]
"""By task, the positions of the clients with its active, and of those with a standby but no active."""


class Application(Protocol):
    """The policy's requirements on an application: `durability.policy.model.Application`."""

    @property
    def standby_replicas(self) -> int | None: ...

    @property
    def rack_aware_tags(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Client:
    """An instance: all threads of one process. tags: None if they are unknown."""

    process: str
    tags: Mapping[str, str] | None
    active: frozenset[str]
    standby: frozenset[str]

    @property
    def known_tags(self) -> Mapping[str, str]:
        """The tags. Placements are compared only if the tags of every client are known."""
        assert self.tags is not None
        return self.tags


def is_streams(group: Mapping[str, Any]) -> bool:
    """Is this row of `groups` a Streams application? Decided by the columns that could be read."""
    columns = ("clients", "stateful_tasks", "in_transition", "internal_topics")
    return any(group.get(name) is not None for name in columns) or group.get("protocol") == "stream"


def judge(group: Mapping[str, Any], application: Application | None) -> Placement | None:
    """The result for one group; None if it isn't a Streams application.

    A group that matches a line of the policy and could not be read is unknown.

    group: a row of `groups`.
    application: the line of the policy that matches it; None if nothing is required.
    """
    if not is_streams(group) and not (application and group.get("unread")):
        return None
    if application is None:
        return {"type": group.get("type")}
    placement = {
        "type": group.get("type"),
        "standby_replicas": application.standby_replicas,
        "rack_aware_tags": list(application.rack_aware_tags),
    }
    reason, unread = unknown_reason(group), _unread(group)
    if reason:
        return placement | {"unknown": clip(reason, 4 * NAMED), "unread": unread}
    clients = clients_of(group["clients"])
    hosts = hosts_of(clients, in_order(group["stateful_tasks"]))
    placement |= _counted(clients, hosts, application)
    if any(client.tags is None for client in clients):
        undecided = clip(f"a client's tags are unknown{_because(group)}", 4 * NAMED)
        return placement | {"undecided": undecided, "unread": unread}
    return placement | _spread(clients, hosts, application, group.get("type"))


def _because(group: Mapping[str, Any]) -> str:
    return f": {group['unread']}" if group.get("unread") else ""


def _unread(group: Mapping[str, Any]) -> str | None:
    """What could not be read of a stable group; None if it may become readable later."""
    reason = group.get("unread")
    if group.get("in_transition") or group.get("state") not in (None, STABLE) or not reason:
        return None
    if reason == NO_EVIDENCE:
        return "evidence"
    return "bytes" if reason.startswith(FORMATS) else "access"


def unknown_reason(group: Mapping[str, Any]) -> str | None:
    """Why the group can't be evaluated; None if it can."""
    state = group.get("state")
    if state is not None and state != STABLE:
        return f"the group is {clip(state)}: only a Stable group has a placement to evaluate"
    if group.get("in_transition"):
        return "the placement is in transition: tasks are warming up and will move with the next rebalance"
    missing = [n for n in ("clients", "stateful_tasks", "state", "in_transition") if group.get(n) is None]
    if missing:
        return f"its {missing[0]} could not be read{_because(group)}"
    tags: dict[str, Mapping[str, str]] = {}
    for client in group["clients"]:
        if any(client.get(n) is None for n in ("process", "active", "standby")):
            return f"a client's process or tasks could not be read{_because(group)}"
        stated = client.get("tags")
        if stated is not None and tags.setdefault(client["process"], dict(stated)) != dict(stated):
            return f"process {clip(client['process'])} is listed twice, with different tags"
    return None


def clients_of(rows: Sequence[Mapping[str, Any]]) -> list[Client]:
    """One client per process."""
    tags: dict[str, dict[str, str] | None] = {}
    active: defaultdict[str, set[str]] = defaultdict(set)
    standby: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        process = row["process"]
        if tags.get(process) is None:
            tags[process] = None if row["tags"] is None else dict(row["tags"])
        active[process].update(row["active"])
        standby[process].update(row["standby"])
    return [Client(p, tags[p], frozenset(active[p]), frozenset(standby[p])) for p in sorted(tags)]


def hosts_of(clients: Sequence[Client], tasks: Sequence[str]) -> Hosts:
    """The clients with each task."""
    hosts: Hosts = {task: ([], []) for task in tasks}
    for n, client in enumerate(clients):
        for task in client.active & hosts.keys():
            hosts[task][0].append(n)
        # A standby on the process with the active is no second copy.
        for task in (client.standby - client.active) & hosts.keys():
            hosts[task][1].append(n)
    return hosts


def _counted(clients: Sequence[Client], hosts: Hosts, application: Application) -> Placement:
    """The number of standbys per task, and the tasks with fewer than required."""
    standbys = {task: len(held) for task, (_, held) in hosts.items()}
    required = application.standby_replicas or 0
    short = sorted((t for t in hosts if standbys[t] < required), key=lambda t: standbys[t])
    return {
        "clients": len(clients),
        "tasks": len(hosts),
        "standbys": min(standbys.values(), default=None),
        "short_tasks": len(short),
        "short": [{"task": clip(task), "standbys": standbys[task]} for task in short[:LISTED]],
        "not_whole": _not_whole(hosts),
    }


def _not_whole(hosts: Hosts) -> str | None:
    """Names tasks that have no active, or several; None if there are none."""
    lost = [task for task, (active, _) in hosts.items() if len(active) != 1]
    return f"{clip(lost[0])}{_more(len(lost) - 1)} has no active task, or several" if lost else None


def _spread(clients: Sequence[Client], hosts: Hosts, application: Application, kind: str | None) -> Placement:
    aware = tuple(dict.fromkeys(application.rack_aware_tags))
    if not aware:
        return {}
    placement: Placement = {"losses": losses(clients, hosts, aware)}
    if kind == STREAMS:
        return placement
    found = _Spread(clients, hosts, aware)
    counts = Counter(found.categories.values())
    return placement | {
        "below_achievable": counts[BELOW_ACHIEVABLE],
        "below_ideal": counts[BELOW_IDEAL],
        "spread": found.listed(),
        "undecided": "; ".join(found.doubts()) or None,
        "limits": tag_limits(clients, aware)[:LISTED],
    }


class _Spread:
    """The category of each task of one application that could be placed better."""

    def __init__(self, clients: Sequence[Client], hosts: Hosts, aware: Sequence[str]):
        self.clients, self.hosts, self.aware = clients, hosts, aware
        others = [{tag: value for tag, value in client.known_tags.items() if tag not in aware} for client in clients]
        self.kinds = Kinds([tuple(client.known_tags.get(tag) for tag in aware) for client in clients], others)
        of = self.kinds.of
        self.shapes = {
            task: (of[active[0]], tuple(sorted(of[n] for n in standbys)))
            for task, (active, standbys) in hosts.items()
            if len(active) == 1
        }
        self.categories: dict[str, str] = {}
        self.better: dict[str, tuple[int, ...]] = {}
        self.too_many: set[str] = set()
        # Warnings first, because the search for better placements may use up the steps.
        for task, shape in self.shapes.items():
            with self._noting_too_many(task):
                if not self.kinds.produced(*shape):
                    self.categories[task] = BELOW_ACHIEVABLE
        for task in [task for task in self.shapes if task not in self.categories]:
            with self._noting_too_many(task):
                better = self.kinds.better(*self.shapes[task])
                if better is not None:
                    self.categories[task], self.better[task] = BELOW_IDEAL, better

    @contextmanager
    def _noting_too_many(self, task: str) -> Iterator[None]:
        try:
            yield
        except TooMany:
            self.too_many.add(task)

    def doubts(self) -> list[str]:
        """Why tasks without a finding may still be placed badly."""
        not_whole, untagged = _not_whole(self.hosts), self._untagged()
        doubts = [not_whole] if not_whole is not None else []
        if self.too_many:
            doubts.append(
                f"{plural(len(self.too_many), 'task has', 'tasks have')} more possible placements than are searched"
            )
        if untagged:
            client, tag = untagged[0]
            doubts.append(
                f"{clip(client.process)}{_more(len(untagged) - 1)} carries no tag {clip(tag)}: where it is is unknown"
            )
        return doubts

    def _untagged(self) -> list[tuple[Client, str]]:
        """Pairs of a client and a rack-aware tag that it lacks, for clients that have a standby or the active of a task with
        standbys."""
        holding = {n for active, standbys in self.hosts.values() if standbys for n in (*active, *standbys)}
        found = []
        for n in sorted(holding):
            lacking = [tag for tag in self.aware if tag not in self.clients[n].known_tags]
            found += [(self.clients[n], lacking[0])] if lacking else []
        return found

    def listed(self) -> list[dict[str, Any]]:
        """The worst tasks, below achievable first, with their clients and those where they could have been placed."""
        order = sorted(in_order(self.categories), key=lambda t: self.categories[t] != BELOW_ACHIEVABLE)
        return [self._detail(task) for task in order[:LISTED]]

    def _detail(self, task: str) -> dict[str, Any]:
        (active,), standbys = self.hosts[task]
        kind, shape = self.shapes[task]
        shared = self.kinds.shared((kind, *shape))
        reach = set(self.kinds.within_reach(kind, len(standbys)))
        achievable = [n for n in range(len(self.clients)) if n != active and self.kinds.of[n] in reach]
        return {
            "task": clip(task),
            "category": self.categories[task],
            "tags": [clip(tag) for tag, pairs in zip(self.aware, shared, strict=True) if pairs],
            "clients": self._names([active, *standbys]),
            "achievable": self._names(achievable),
            "more_achievable": max(len(achievable) - LISTED, 0),
            "better": self._names(self._pick(task, active, standbys)),
        }

    def _names(self, positions: Sequence[int]) -> list[str]:
        return [clip(self.clients[n].process) for n in positions[:LISTED]]

    def _pick(self, task: str, active: int, standbys: Sequence[int]) -> list[int]:
        """The clients of the better placement. Clients that already have the task are preferred."""
        chosen: list[int] = []
        for kind in self.better.get(task, ()):
            of_kind = [
                n for n in range(len(self.clients)) if self.kinds.of[n] == kind and n != active and n not in chosen
            ]
            chosen.append(min(of_kind, key=lambda n: (n not in standbys, n)))
        return sorted(chosen)


def losses(clients: Sequence[Client], hosts: Hosts, aware: Sequence[str]) -> list[dict[str, Any]]:
    """By value of each rack-aware tag, the tasks that lose their active and all standbys with it. Most tasks come first.

    A task with a copy on a client without the tag isn't lost with any value, because that client's place is unknown. `active` and
    `standby` count the copies on clients with the value.

    >>> clients = [Client(p, {"zone": z}, frozenset(), frozenset()) for p, z in (("a", "az1"), ("b", "az1"), ("c", "az2"))]
    >>> hosts = {"0_0": ([0], [1]), "0_1": ([2], [0])}
    >>> [(x["value"], x["count"], x["active"], x["standby"]) for x in losses(clients, hosts, ["zone"])]
    [('az1', 1, 1, 2), ('az2', 0, 1, 0)]
    """
    rows = []
    for tag in aware:
        copies: dict[str, Counter[str | None]] = {"active": Counter(), "standby": Counter()}
        lost: dict[str, list[str]] = {c.known_tags[tag]: [] for c in clients if tag in c.known_tags}
        for task, (active, standbys) in hosts.items():
            for kind, held in (("active", active), ("standby", standbys)):
                copies[kind].update(clients[n].known_tags.get(tag) for n in held)
            values = {clients[n].known_tags.get(tag) for n in (*active, *standbys)}
            shared = values.pop() if len(values) == 1 else None
            if shared is not None:
                lost[shared].append(task)
        worst = sorted(lost, key=lambda value: (-len(lost[value]), value))
        for value in worst[:LISTED]:
            named = [clip(task) for task in in_order(lost[value])[:LISTED]]
            counts = {"count": len(lost[value]), **{kind: held[value] for kind, held in copies.items()}}
            rows.append({"tag": clip(tag), "value": clip(value), **counts, "tasks": named})
    return rows


def tag_limits(clients: Sequence[Client], aware: Sequence[str]) -> list[str]:
    """Tags beyond Kafka's limits. A client with such tags doesn't start.

    >>> tag_limits([Client("p1", {"zone": "z" * 31}, frozenset(), frozenset())], ["zone"])
    ['p1: the value of tag zone has 31 characters, 30 are allowed']
    """
    found = []
    if len(aware) > MAX_TAGS:
        found.append(f"the policy names {len(aware)} rack-aware tags, {MAX_TAGS} are allowed")
    for client in clients:
        who = clip(client.process)
        if len(client.known_tags) > MAX_TAGS:
            found.append(f"{who}: {len(client.known_tags)} tags, {MAX_TAGS} are allowed")
        for key, value in sorted(client.known_tags.items()):
            if _length(key) > MAX_KEY:
                found.append(f"{who}: tag {clip(key)} has {_length(key)} characters, {MAX_KEY} are allowed")
            if _length(value) > MAX_VALUE:
                what = f"the value of tag {clip(key)} has {_length(value)} characters"
                found.append(f"{who}: {what}, {MAX_VALUE} are allowed")
    return found


def _length(text: str) -> int:
    """Characters as Java counts them: UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clip(text: str, most: int = NAMED) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _more(count: int) -> str:
    return f" (+{count} more)" if count > 0 else ""
