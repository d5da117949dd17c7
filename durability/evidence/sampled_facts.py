"""The raw facts in the lake that a sample's verdicts are about, and Kafka's commands that show them again."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from durability.catalogue import CONTROLS
from durability.evidence import reperform
from durability.lake.conditions import of_attempts
from durability.lake.tables import BROKERS, CLUSTERS, CONTROLLERS, GROUPS, PARTITIONS, TOPIC_POSTURE, TOPICS
from durability.plan.plan import to_text

PARTITIONS_SHOWN = 5
"""The most partitions per verdict whose facts are shown."""
SHOWN = 20
"""The most brokers, clients or tasks per verdict. All settings of these brokers are shown."""
REMOVED = "the lake doesn't have this resource's facts, or no longer"
NO_FACTS = "the verdict is about the waivers file or an inventory, not about a fact of the cluster"
LEFTOVERS = "reassignment-leftovers"
OF_THROTTLES = (".replication.throttled.rate", ".replication.throttled.replicas", ".log.dirs.io.max.bytes.per.second")
"""How the settings end that throttle replication."""
CLUSTER = ("kafka_version", "quorum_mode", "quorum_leader")
_BROKER = ("broker", "rack", "rack_state", "live", "fenced", "kafka_version", "offline_log_dirs")
_FUTURE = "future_replicas"
_CONTROLLER = ("controller", "role", "leader", "rack", "lag_ms", "caught_up", "live")
APPLICATION = ("type", "state", "in_transition", "unread")
TASKS = ("active", "standby")
IDS = ("replicas", "isr", "elr")
MOVES = ("adding", "removing")
_PARTITION = ("topic", "partition", "leader", *IDS, *MOVES, "unreadable", "contradiction")
_MIN_ISR = ("min.insync.replicas", "configured_min_insync_replicas")
_CONFIGS = ("configs", "config_sources")
_NOT_THERE = dict.fromkeys(_PARTITION[1:]) | {"unreadable": ["partition"]}
Row = Mapping[str, Any]


class Facts:
    """The raw facts that the chosen verdicts are about. Only their topics and groups are read, and all brokers."""

    def __init__(self, lake: Any, run: Row, parts: Sequence[Row], chosen: Sequence[Row]):
        self.parts = {part["cluster"]: part for part in parts}
        self.clusters: dict[str, dict[str, Any]] = {}
        self.brokers: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.controllers: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.groups: dict[tuple[str, str], dict[str, Any]] = {}
        self.topics: dict[tuple[str, str], dict[str, Any]] = {}
        self.posture: dict[tuple[str, str], dict[str, Any]] = {}
        self.partitions: defaultdict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
        if parts:
            self._read(lake, of_attempts(parts), chosen)
            topics = sorted({name for verdict in chosen for name in _topics_of(verdict)})
            if topics:
                self._read_topics(lake, run, of_attempts(parts), topics)

    def _read(self, lake: Any, attempts: Any, chosen: Sequence[Row]) -> None:
        from pyiceberg.expressions import And, In

        for row in lake.scan(CLUSTERS, attempts, ("cluster", *CLUSTER, "features", "unreadable")).to_pylist():
            self.clusters[row["cluster"]] = row
        brokers = lake.scan(BROKERS, attempts, ("cluster", *_BROKER, _FUTURE, *_CONFIGS)).to_pylist()
        for row in sorted(brokers, key=lambda one: one["broker"]):
            self.brokers[row.pop("cluster")][str(row["broker"])] = row
        for row in lake.scan(CONTROLLERS, attempts, ("cluster", *_CONTROLLER)).to_pylist():
            self.controllers[row.pop("cluster")].append(row)
        groups = sorted({v["resource"] for v in chosen if v["resource_type"] == "application"})
        if groups:
            names = ("cluster", "group", *APPLICATION, "stateful_tasks", "clients")
            for row in lake.scan(GROUPS, And(attempts, In("group", groups)), names).to_pylist():
                self.groups[row.pop("cluster"), row.pop("group")] = row

    def _read_topics(self, lake: Any, run: Row, attempts: Any, topics: Sequence[str]) -> None:
        from pyiceberg.expressions import And, In

        of_topics = And(attempts, In("topic", topics))
        for row in lake.scan(TOPICS, of_topics, ("cluster", "topic", *_CONFIGS)).to_pylist():
            self.topics[row["cluster"], row["topic"]] = row
        for row in lake.scan(PARTITIONS, of_topics, ("cluster", *_PARTITION)).to_pylist():
            self.partitions[row.pop("cluster"), row.pop("topic")][row["partition"]] = row
        posture = lake.results(TOPIC_POSTURE, run, In("topic", topics))
        for row in posture.select(["cluster", "topic", _MIN_ISR[1], f"{_MIN_ISR[1]}_source"]).to_pylist():
            self.posture[row["cluster"], row["topic"]] = row

    def of(self, verdict: Row) -> dict[str, Any]:
        """The verdict's `snapshot`, its `facts` (None: `reason` says why) and `commands`."""
        kind, cluster = verdict["resource_type"], verdict["cluster"]
        facts, reason = self._of(verdict), None
        if facts is None:
            reason = NO_FACTS if _of_fleet(verdict) else REMOVED
        about = self.clusters.get(cluster) or {}
        kraft = None if about.get("quorum_mode") is None else about["quorum_mode"] == "kraft"
        part = self.parts.get(cluster)
        live = facts.get("live") if facts and kind == "broker" else None
        return {
            "snapshot": part and {"captured_at": to_text(part["captured_at"]), "attempt_id": part["attempt_id"]},
            "facts": facts,
            "reason": reason,
            "commands": reperform.of_resource(kind, verdict["resource"], about.get("kafka_version"), kraft, live),
        }

    def _of(self, verdict: Row) -> dict[str, Any] | None:
        kind, cluster, name = verdict["resource_type"], verdict["cluster"], verdict["resource"]
        if kind == "topic":
            return self._of_topic(verdict)
        if kind == "broker":
            return self._of_broker(verdict)
        if kind == "application":
            return self._of_application((cluster, name))
        if kind in ("cluster", "tier") and not _of_fleet(verdict):
            return self._of_cluster(verdict)
        return None

    def _of_topic(self, verdict: Row) -> dict[str, Any] | None:
        """A topic's partitions, those of the verdict if it lists any, their brokers, and the settings that the control reads."""
        key = (verdict["cluster"], verdict["resource"])
        partitions, topic = self.partitions.get(key), self.topics.get(key)
        if not partitions and not topic:
            return None
        numbers = sorted(set(verdict["partitions"] or ()) or partitions or ())
        shown = [(partitions or {}).get(n) or _NOT_THERE | {"partition": n} for n in numbers[:PARTITIONS_SHOWN]]
        ids = sorted({id for row in shown for name in IDS for id in row[name] or ()})
        settings = _settings(topic or {}, {_MIN_ISR[0], *_reads(verdict)})
        minimum = settings.pop(_MIN_ISR[0])
        value, source = minimum["value"], minimum["source"]
        if value is None and (posture := self.posture.get(key)):  # a document has overrides only
            value, source = posture[_MIN_ISR[1]], posture[f"{_MIN_ISR[1]}_source"]
        return {
            "min_insync_replicas": int(value) if value is not None and str(value).isdecimal() else None,
            "min_insync_replicas_source": source,
            "settings": settings,
            "partitions": shown,
            "brokers": [self._replicas_broker(key[0], id) for id in ids],
            "more_partitions": max(0, len(numbers) - PARTITIONS_SHOWN),
        }

    def _replicas_broker(self, cluster: str, id: int) -> dict[str, Any]:
        """A broker that has replicas: where it is, and whether it is up. One that the cluster doesn't list is not known."""
        known = self.brokers[cluster].get(str(id)) or {"rack_state": "unknown"}
        return {"broker": id, **{name: known.get(name) for name in ("rack", "rack_state", "live")}}

    def _of_broker(self, verdict: Row) -> dict[str, Any] | None:
        broker = self.brokers[verdict["cluster"]].get(verdict["resource"])
        if broker is None:
            return None
        return {name: broker[name] for name in _BROKER} | {"settings": _settings(broker, _reads(verdict))}

    def _of_cluster(self, verdict: Row) -> dict[str, Any] | None:
        """Its quorum and brokers, with their settings that the control reads; for LEFTOVERS, what throttles and moves, too."""
        cluster = verdict["cluster"]
        row, brokers = self.clusters.get(cluster), self.brokers[cluster]
        if row is None:
            return None
        shown = [*islice(brokers.items(), SHOWN)]
        settings = [entry for id, broker in shown for entry in _named("broker", id, _settings(broker, _reads(verdict)))]
        facts = {
            **{name: row[name] for name in CLUSTER},
            "features": dict(row["features"] or ()),
            "controllers": sorted(self.controllers[cluster], key=lambda one: one["controller"])[:SHOWN],
            "brokers": [{name: broker[name] for name in _BROKER[:5]} for _, broker in shown],
            "more_brokers": max(0, len(brokers) - SHOWN),
            "settings": settings,
            "unreadable": (row["unreadable"] or ())[:SHOWN],
        }
        if verdict["control"] == LEFTOVERS:
            facts |= self._of_leftovers(verdict)
        return facts

    def _of_leftovers(self, verdict: Row) -> dict[str, Any]:
        """What the control reads of a cluster's moves.

        throttles: of brokers and topics. stuck: the partitions that a stuck reassignment moves.
        future_replicas: the brokers that move replicas between their log dirs, and those of which this isn't known.
        """
        cluster, observed = verdict["cluster"], json.loads(verdict["observed"] or "{}")
        topics = observed.get("throttled_topics") or ()
        rows = [
            *(("broker", id, broker) for id, broker in self.brokers[cluster].items()),
            *(("topic", name, self.topics.get((cluster, name)) or {}) for name in topics[:SHOWN]),
        ]
        throttles = (one for kind, name, row in rows for one in _named(kind, name, _throttles(row)))
        stuck = []
        for topic, number in map(_partition, (observed.get("stuck") or ())[:PARTITIONS_SHOWN]):
            row = self.partitions.get((cluster, topic), {}).get(number) or _NOT_THERE | {"partition": number}
            stuck.append({"topic": topic, **row})
        moves = [
            {"broker": row["broker"], _FUTURE: row[_FUTURE]}
            for row in self.brokers[cluster].values()
            if row[_FUTURE] != 0
        ]
        moves.sort(key=lambda one: one[_FUTURE] is None)
        return {"throttles": list(islice(throttles, SHOWN)), "stuck": stuck, _FUTURE: moves[:SHOWN]}

    def _of_application(self, key: tuple[str, str]) -> dict[str, Any] | None:
        """A Streams application's group: its state, and each client's tags, active and standby tasks."""
        group = self.groups.get(key)
        if group is None:
            return None
        clients = [
            {"process": one["process"], "tags": one["tags"] and dict(one["tags"])}
            | {name: one[name] and one[name][:SHOWN] for name in TASKS}
            for one in group["clients"] or ()
        ]
        return {
            **{name: group[name] for name in APPLICATION},
            "stateful_tasks": group["stateful_tasks"] and group["stateful_tasks"][:SHOWN],
            "clients": None if group["clients"] is None else clients[:SHOWN],
            "more_clients": max(0, len(clients) - SHOWN),
        }


def _of_fleet(verdict: Row) -> bool:
    """Is the verdict about an inventory or a waiver?"""
    control = CONTROLS.get(verdict["control"])
    return verdict["resource_type"] == "waiver" or (control is not None and "inventory" in control.on)


def _topics_of(verdict: Row) -> list[str]:
    """The topics whose facts the verdict needs."""
    if verdict["resource_type"] == "topic":
        return [verdict["resource"]]
    if verdict["control"] != LEFTOVERS:
        return []
    observed = json.loads(verdict["observed"] or "{}")
    stuck = [_partition(name)[0] for name in (observed.get("stuck") or ())[:PARTITIONS_SHOWN]]
    return [*(observed.get("throttled_topics") or ())[:SHOWN], *stuck]


def _partition(name: str) -> tuple[str, int]:
    """Topic and number of a partition's name.

    >>> _partition("a-b-12")
    ('a-b', 12)
    """
    topic, _, number = name.rpartition("-")
    return topic, int(number)


def _reads(verdict: Row) -> Iterable[str]:
    """The settings that the control reads. A control that this version doesn't have reads none."""
    control = CONTROLS.get(verdict["control"])
    return control.reads if control else ()


def _settings(row: Row, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Value and source of each setting; both None if the snapshot has no value.

    >>> _settings({"configs": [("a", "1")], "config_sources": [("a", "topic")]}, ["a", "b"])
    {'a': {'value': '1', 'source': 'topic'}, 'b': {'value': None, 'source': None}}
    """
    values, sources = (dict(row.get(name) or ()) for name in _CONFIGS)
    return {name: {"value": values.get(name), "source": sources.get(name)} for name in sorted(names)}


def _throttles(row: Row) -> dict[str, dict[str, Any]]:
    """The settings of a broker or topic that throttle replication. Defaults don't."""
    stated = _settings(row, (name for name in dict(row.get("configs") or ()) if name.endswith(OF_THROTTLES)))
    return {name: entry for name, entry in stated.items() if entry["value"] and entry["source"] != "default"}


def _named(kind: str, name: str, settings: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The settings of a broker or topic, each with the resource."""
    for setting, entry in settings.items():
        yield {"resource_type": kind, "resource": name, "setting": setting, **entry}
