"""The facts of a sample's verdicts as lines. Names from clusters are as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from durability.evidence.sampled_facts import APPLICATION, CLUSTER, IDS, MOVES, TASKS
from durability.plain import plural

Row = Mapping[str, Any]


def in_words(verdict: Row) -> Iterator[str]:
    """The facts of a verdict in the sample's document."""
    facts, kind = verdict["facts"], verdict["resource_type"]
    if facts is None:
        yield f"no facts: {verdict['reason']}"
    elif kind == "topic":
        yield f"min.insync.replicas {_known(facts['min_insync_replicas'])}, source {_known(facts['min_insync_replicas_source'])}"
        yield from (_setting(name, entry) for name, entry in facts["settings"].items())
        yield from (f"partition {row['partition']}: {_placement(row)}" for row in facts["partitions"])
        if facts["brokers"]:
            yield f"brokers: {'; '.join(map(_broker, facts['brokers']))}"
        if facts["more_partitions"]:
            yield f"and {plural(facts['more_partitions'], 'more partition')}"
    elif kind == "broker":
        others = (f"{name} {_known(facts[name])}" for name in ("fenced", "kafka_version", "offline_log_dirs"))
        yield ", ".join([f"broker {_broker(facts)}", *others])
        yield from (_setting(name, entry) for name, entry in facts["settings"].items())
    elif kind == "application":
        yield from _application_in_words(facts)
    else:
        yield from _cluster_in_words(facts)


def _cluster_in_words(facts: Row) -> Iterator[str]:
    yield ", ".join(f"{name} {_known(facts[name])}" for name in CLUSTER)
    if facts["features"]:
        yield "features: " + ", ".join(f"{name} {level}" for name, level in facts["features"].items())
    if facts["controllers"]:
        yield f"controllers: {'; '.join(map(_controller, facts['controllers']))}"
    if facts["brokers"]:
        more = f"; and {plural(facts['more_brokers'], 'more broker')}" if facts["more_brokers"] else ""
        yield f"brokers: {'; '.join(map(_broker, facts['brokers']))}{more}"
    yield from (f"not read: {entry['path']}: {entry['reason']}" for entry in facts["unreadable"])
    for entry in (*facts["settings"], *facts.get("throttles", ())):
        yield f"{entry['resource_type']} {entry['resource']}: {_setting(entry['setting'], entry)}"
    for row in facts.get("stuck", ()):
        yield f"partition {row['topic']}-{row['partition']}: {_placement(row)}"
    if "future_replicas" in facts:
        moves = (f"{_known(row['future_replicas'])} on broker {row['broker']}" for row in facts["future_replicas"])
        yield f"replicas that move to another log dir: {', '.join(moves) or 'none'}"


def _application_in_words(facts: Row) -> Iterator[str]:
    yield ", ".join(f"{name} {_known(facts[name])}" for name in APPLICATION[:3])
    if facts["unread"]:
        yield f"not read: {facts['unread']}"
    yield f"stateful tasks {_ids(facts['stateful_tasks'])}"
    for client in facts["clients"] or ():
        tags = client["tags"]
        tagged = "unknown" if tags is None else ",".join(f"{key}={value}" for key, value in tags.items()) or "none"
        tasks = (f"{name} {_ids(client[name])}" for name in TASKS)
        yield f"client {client['process']}: tags {tagged}, {', '.join(tasks)}"
    if facts["more_clients"]:
        yield f"and {plural(facts['more_clients'], 'more client')}"


def _setting(name: str, entry: Row) -> str:
    """A setting in words.

    >>> _setting("a", {"value": "1", "source": "topic"}), _setting("a", {"value": None, "source": None})
    ('a 1, source topic', 'a has no value in the snapshot')
    """
    if entry["value"] is None:
        return f"{name} has no value in the snapshot"
    return f"{name} {entry['value']}, source {_known(entry['source'])}"


def _broker(row: Row) -> str:
    """A broker in words.

    >>> _broker({"broker": 1, "rack": "az1", "rack_state": "named", "live": False})
    '1 in rack az1, down'
    """
    where = {"none": "without a rack", "unknown": "in an unknown rack"}.get(row["rack_state"], f"in rack {row['rack']}")
    return f"{row['broker']} {where}{_up(row)}"


def _up(row: Row) -> str:
    return {True: "", False: ", down"}.get(row["live"], ", unknown if up")


def _controller(row: Row) -> str:
    """A node of the quorum in words.

    >>> voter = {"controller": 1, "role": "voter", "leader": True, "rack": "az1", "lag_ms": 0, "caught_up": True, "live": True}
    >>> _controller(voter)
    '1 (voter, leader) in rack az1, lag_ms 0'
    >>> _controller(voter | {"leader": None, "rack": None, "lag_ms": None, "caught_up": False, "live": None})
    '1 (voter) in an unknown rack, lag_ms unknown, never caught up, unknown if up'
    """
    role = f"{row['role']}, leader" if row["leader"] else row["role"]
    where = "in an unknown rack" if row["rack"] is None else f"in rack {row['rack']}"
    behind = ", never caught up" if row["caught_up"] is False else ""
    return f"{row['controller']} ({role}) {where}, lag_ms {_known(row['lag_ms'])}{behind}{_up(row)}"


def _placement(row: Row) -> str:
    """A partition's leader and replicas. Without a reassignment it adds and removes none."""
    # NULL is unknown, except that a partition without a leader has NULL as its leader.
    no_leader = row["leader"] is None and not row["unreadable"] and not row["contradiction"]
    leader = "none" if no_leader else _known(row["leader"])
    parts = [f"leader {leader}", *(f"{name} {_ids(row[name])}" for name in IDS)]
    return ", ".join([*parts, *(f"{name} {_ids(row[name])}" for name in MOVES if row[name])])


def _ids(value: Sequence[Any] | None) -> str:
    return "unknown" if value is None else ",".join(map(str, value)) or "none"


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)
