"""A sample of a run's verdicts that an auditor reperforms: the raw facts in the lake, and Kafka's command that shows them again.

The sample has the n verdicts with the smallest SHA-256 of `SEED:CLUSTER:ID`. So the same seed picks the same verdicts, in
whatever order the lake's files are read. An auditor can check the choice with any tool.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from durability.errors import Refused
from durability.evidence import reperform
from durability.lake.conditions import captured_within, of_attempts
from durability.lake.tables import BROKERS, CLUSTERS, FINDINGS, PARTITIONS, TOPIC_POSTURE, TOPICS
from durability.plain import plain
from durability.plan.plan import ACCEPTED, NIGHTLY, to_text
from durability.report.words import plural

FORMAT = "durability-sample/1"
MOST = 1_000
OUTCOMES = ("FAIL", "UNKNOWN", "EXEMPT", "PASS")
PARTITIONS_SHOWN = 5
"""The most partitions per verdict whose facts are shown."""
BATCH = 20_000
COMPLETE = "complete"
REMOVED = "the lake doesn't have this resource's facts, or no longer"
NO_FACTS = "the verdict is about the waivers file or an inventory, not about a fact of the cluster"
_VERDICT = ("cluster", "id", "control", "resource_type", "resource", "category", "outcome", "severity", "observed")
_RUN = ("run_id", "result_id", "captured_at", "finished_at", "status", "verified", "policy_sha256", "snapshots")
_PARTITION = ("topic", "partition", "leader", "replicas", "isr", "elr", "unreadable", "contradiction")
_MIN_ISR = ("min.insync.replicas", "configured_min_insync_replicas")
_NOT_THERE = dict.fromkeys(_PARTITION[1:]) | {"unreadable": ["partition"]}
Row = Mapping[str, Any]


def document(lake: Any, size: int, seed: int, cluster: str | None) -> dict[str, Any]:
    """The sample. lake: `durability.lake.Lake`. cluster: only its verdicts; None for all.

    Raises Refused if the lake has no complete and verified nightly run, or if the cluster isn't in it.
    """
    run = _run(lake)
    parts = {part["cluster"]: part for part in run["snapshots"] or () if part["status"] == ACCEPTED}
    if cluster is not None and cluster not in parts:
        raise Refused(f"run {run['run_id']} has no cluster {cluster}; it has {', '.join(sorted(parts))}")
    population, chosen = _chosen(_verdicts(lake, run, cluster), size, seed)
    facts = _Facts(lake, run, [parts[name] for name in sorted({v["cluster"] for v in chosen}) if name in parts], chosen)
    return {
        "format": FORMAT,
        "run": {name: run[name] for name in ("run_id", "result_id", "policy_sha256")}
        | {"captured_at": to_text(run["captured_at"])},
        "seed": seed,
        "cluster": cluster,
        "method": f"the verdicts with the smallest SHA-256 of {seed}:CLUSTER:ID",
        "population": {"verdicts": sum(population.values()), **{name: population[name] for name in OUTCOMES}},
        "sample": [facts.of(verdict) for verdict in chosen],
    }


def _run(lake: Any) -> dict[str, Any]:
    """The newest nightly run that is complete and verified. If it was repeated, its last result."""
    runs = [r for r in lake.runs(NIGHTLY, _RUN) if r["status"] == COMPLETE and r["verified"]]
    if not runs:
        raise Refused(f"the lake at {lake.location} has no nightly run that is complete and verified")
    return max(runs, key=lambda run: (run["captured_at"], run["finished_at"]))


def _verdicts(lake: Any, run: Row, cluster: str | None) -> Iterator[list[dict[str, Any]]]:
    """The run's verdicts in batches, without those of the run before that are resolved now."""
    from pyiceberg.expressions import And, EqualTo, In, IsNull, NotEqualTo, Or

    moments = [part["captured_at"] for part in run["snapshots"] or () if part["captured_at"]]
    present = Or(EqualTo("outcome", "EXEMPT"), IsNull("change"), NotEqualTo("change", "resolved"))
    where = And(captured_within(moments), EqualTo("result_id", run["result_id"]), In("outcome", OUTCOMES), present)
    if cluster is not None:
        where = And(where, EqualTo("cluster", cluster))
    for part in lake.parts(FINDINGS, where, (*_VERDICT, "partitions")):
        for batch in part.to_batches(max_chunksize=BATCH):
            yield batch.to_pylist()


def _chosen(
    batches: Iterable[Sequence[dict[str, Any]]], size: int, seed: int
) -> tuple[Counter[str], list[dict[str, Any]]]:
    """The number of verdicts by outcome, and the `size` chosen ones in the order of their hashes."""
    population: Counter[str] = Counter()
    best: list[tuple[str, str, dict[str, Any]]] = []
    for rows in batches:
        population.update(row["outcome"] for row in rows)
        hashed = ((_hash(seed, row), str(row["control"]), row) for row in rows)
        best = heapq.nsmallest(size, [*best, *hashed], key=lambda entry: entry[:2])
    return population, [row for _, _, row in best]


def _hash(seed: int, row: Row) -> str:
    return hashlib.sha256(f"{seed}:{row['cluster']}:{row['id']}".encode()).hexdigest()


class _Facts:
    """The raw facts that the chosen verdicts are about. Only their topics and brokers are read."""

    def __init__(self, lake: Any, run: Row, parts: Sequence[Row], chosen: Sequence[Row]):
        self.parts = {part["cluster"]: part for part in parts}
        self.clusters: dict[str, dict[str, Any]] = {}
        self.brokers: dict[tuple[str, str], dict[str, Any]] = {}
        self.topics: dict[tuple[str, str], dict[str, Any]] = {}
        self.posture: dict[tuple[str, str], dict[str, Any]] = {}
        self.partitions: defaultdict[tuple[str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
        if parts:
            self._read(lake, run, parts, sorted({v["resource"] for v in chosen if v["resource_type"] == "topic"}))

    def _read(self, lake: Any, run: Row, parts: Sequence[Row], topics: Sequence[str]) -> None:
        from pyiceberg.expressions import And, In

        attempts = of_attempts(parts)
        for row in lake.scan(CLUSTERS, attempts, ("cluster", "kafka_version", "quorum_mode")).to_pylist():
            self.clusters[row["cluster"]] = row
        names = ("cluster", "broker", "rack", "rack_state", "live", "fenced", "kafka_version", "offline_log_dirs")
        for row in lake.scan(BROKERS, attempts, names).to_pylist():
            self.brokers[row.pop("cluster"), str(row["broker"])] = row
        if not topics:
            return
        of_topics = And(attempts, In("topic", topics))
        for row in lake.scan(TOPICS, of_topics, ("cluster", "topic", "configs", "config_sources")).to_pylist():
            self.topics[row["cluster"], row["topic"]] = row
        for row in lake.scan(PARTITIONS, of_topics, ("cluster", *_PARTITION)).to_pylist():
            self.partitions[row.pop("cluster"), row.pop("topic")][row["partition"]] = row
        posture = lake.results(TOPIC_POSTURE, run, In("topic", topics))
        for row in posture.select(["cluster", "topic", _MIN_ISR[1], f"{_MIN_ISR[1]}_source"]).to_pylist():
            self.posture[row["cluster"], row["topic"]] = row

    def of(self, verdict: Row) -> dict[str, Any]:
        """A verdict with `facts` (None: `reason` says why) and `commands`."""
        kind, key = verdict["resource_type"], (verdict["cluster"], verdict["resource"])
        facts: dict[str, Any] | None = None
        reason: str | None = None
        if kind == "topic":
            facts = self._of_topic(key, verdict["partitions"] or ())
        elif kind == "broker":
            facts = self.brokers.get(key)
        elif kind in ("cluster", "application", "tier"):  # a tier may need more brokers or racks than the cluster has
            facts = self.clusters.get(verdict["cluster"])
        else:
            reason = NO_FACTS
        if facts is None and reason is None:
            reason = REMOVED
        about = self.clusters.get(verdict["cluster"]) or {}
        kraft = None if about.get("quorum_mode") is None else about["quorum_mode"] == "kraft"
        part = self.parts.get(verdict["cluster"])
        live = facts.get("live") if facts and kind == "broker" else None
        return {
            **{name: verdict[name] for name in _VERDICT},
            "snapshot": part and {"captured_at": to_text(part["captured_at"]), "attempt_id": part["attempt_id"]},
            "facts": facts,
            "reason": reason,
            "commands": reperform.of_resource(kind, verdict["resource"], about.get("kafka_version"), kraft, live),
        }

    def _of_topic(self, key: tuple[str, str], listed: Sequence[int]) -> dict[str, Any] | None:
        """A topic's partitions, those of the verdict if it lists any, their brokers, and its min ISR with the source."""
        partitions, topic = self.partitions.get(key), self.topics.get(key)
        if not partitions and not topic:
            return None
        numbers = sorted(set(listed) or partitions or ())
        shown = [(partitions or {}).get(n) or _NOT_THERE | {"partition": n} for n in numbers[:PARTITIONS_SHOWN]]
        ids = sorted({id for row in shown for id in row["replicas"] or ()})
        values = dict((topic or {}).get("configs") or ())
        sources = dict((topic or {}).get("config_sources") or ())
        value, source = values.get(_MIN_ISR[0]), sources.get(_MIN_ISR[0])
        if value is None and (posture := self.posture.get(key)):  # a document has overrides only
            value, source = posture[_MIN_ISR[1]], posture[f"{_MIN_ISR[1]}_source"]
        return {
            "min_insync_replicas": int(value) if value is not None and str(value).isdecimal() else None,
            "min_insync_replicas_source": source,
            "partitions": shown,
            "brokers": [self._replicas_broker(key[0], id) for id in ids],
            "more_partitions": max(0, len(numbers) - PARTITIONS_SHOWN),
        }

    def _replicas_broker(self, cluster: str, id: int) -> dict[str, Any]:
        """A broker that has replicas: where it is, and whether it is up. One that the cluster doesn't list is not known."""
        known = self.brokers.get((cluster, str(id))) or {"rack_state": "unknown"}
        return {"broker": id, **{name: known.get(name) for name in ("rack", "rack_state", "live")}}


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The sample as text. Names from clusters are made `plain`, except in commands, which quote them."""
    population = found["population"]
    by_outcome = ", ".join(f"{name} {population[name]:,}" for name in OUTCOMES)
    yield f"Run {plain(found['run']['run_id'])}, newest snapshot {found['run']['captured_at']}"
    yield f"Population: {plural(population['verdicts'], 'verdict')} ({by_outcome})"
    yield f"Sample: {len(found['sample']):,}, seed {found['seed']}: {found['method']}"
    for number, verdict in enumerate(found["sample"], 1):
        severity = f" {verdict['severity']}" if verdict["severity"] else ""
        yield ""
        named = plain(
            f"{verdict['control']} on {verdict['resource_type']} {verdict['resource']} in {verdict['cluster']}"
        )
        yield f"{number}. {verdict['outcome']}{severity}: {named}"
        yield f"   id {verdict['id']}, observed {plain(verdict['observed'] or 'nothing')}"
        yield from (f"   {plain(line)}" for line in _facts_in_words(verdict))
        yield from (f"   $ {command['command']}" for command in verdict["commands"])
        if not verdict["commands"] and not verdict["resource"].isprintable():
            yield "   no command: the name has characters that can't be shown"


def _facts_in_words(verdict: Row) -> Iterator[str]:
    facts = verdict["facts"]
    if facts is None:
        yield f"no facts: {verdict['reason']}"
    elif verdict["resource_type"] == "topic":
        yield f"min.insync.replicas {_known(facts['min_insync_replicas'])}, source {_known(facts['min_insync_replicas_source'])}"
        for row in facts["partitions"]:
            parts = (f"{name} {_ids(row, name)}" for name in _PARTITION[2:6])
            yield f"partition {row['partition']}: {', '.join(parts)}"
        if facts["brokers"]:
            yield f"brokers: {'; '.join(map(_broker, facts['brokers']))}"
        if facts["more_partitions"]:
            yield f"and {plural(facts['more_partitions'], 'more partition')}"
    elif verdict["resource_type"] == "broker":
        others = (f"{name} {_known(facts[name])}" for name in ("fenced", "kafka_version", "offline_log_dirs"))
        yield ", ".join([f"broker {_broker(facts)}", *others])
    else:
        yield ", ".join(f"{name} {_known(value)}" for name, value in facts.items())


def _broker(row: Row) -> str:
    """A broker in words.

    >>> _broker({"broker": 1, "rack": "az1", "rack_state": "named", "live": False})
    '1 in rack az1, down'
    """
    where = {"none": "without a rack", "unknown": "in an unknown rack"}.get(row["rack_state"], f"in rack {row['rack']}")
    state = {True: "", False: ", down"}.get(row["live"], ", unknown if up")
    return f"{row['broker']} {where}{state}"


def _ids(row: Row, name: str) -> str:
    """Broker ids of a partition. NULL is unknown, except that a partition without a leader has NULL as its leader."""
    value = row[name]
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    no_leader = name == "leader" and not row["unreadable"] and not row["contradiction"]
    return str(value) if value is not None else "none" if no_leader else "unknown"


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)
