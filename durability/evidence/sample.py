"""A sample of a run's verdicts that an auditor reperforms: the raw facts in the lake, and Kafka's command that shows them again.

The sample has the n verdicts with the smallest SHA-256 of `SEED:CLUSTER:ID`. So the same seed picks the same verdicts, in
whatever order the lake's files are read. An auditor can check the choice with any tool.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from durability.errors import Refused
from durability.evidence.sampled_facts import Facts
from durability.evidence.sampled_words import in_words
from durability.lake.conditions import captured_within
from durability.lake.tables import FINDINGS
from durability.plain import plain, plural
from durability.plan.plan import ACCEPTED, NIGHTLY, to_text

FORMAT = "durability-sample/1"
MOST = 1_000
OUTCOMES = ("FAIL", "UNKNOWN", "EXEMPT", "PASS")
BATCH = 20_000
COMPLETE = "complete"
_VERDICT = ("cluster", "id", "control", "resource_type", "resource", "category", "outcome", "severity", "observed")
_RUN = ("run_id", "result_id", "captured_at", "finished_at", "status", "verified", "policy_sha256", "snapshots")
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
    facts = Facts(lake, run, [parts[name] for name in sorted({v["cluster"] for v in chosen}) if name in parts], chosen)
    return {
        "format": FORMAT,
        "run": {name: run[name] for name in ("run_id", "result_id", "policy_sha256")}
        | {"captured_at": to_text(run["captured_at"])},
        "seed": seed,
        "cluster": cluster,
        "method": f"the verdicts with the smallest SHA-256 of {seed}:CLUSTER:ID",
        "population": {"verdicts": sum(population.values()), **{name: population[name] for name in OUTCOMES}},
        "sample": [{**{name: verdict[name] for name in _VERDICT}, **facts.of(verdict)} for verdict in chosen],
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
        yield from (f"   {plain(line)}" for line in in_words(verdict))
        yield from (f"   $ {command['command']}" for command in verdict["commands"])
        if not verdict["commands"] and not verdict["resource"].isprintable():
            yield "   no command: the name has characters that can't be shown"
