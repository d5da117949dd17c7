"""Measures the report's trends over a generated year of pulses: `python -m bench.year [CLUSTERS [LAKE]]`.

The year has 288 pulses a day of every cluster and one nightly run, in one file per day and table, as `lake_upkeep` leaves them.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from durability.lake import Lake
from durability.lake.tables import COUNTED, HEALTH_COUNTERS, RUNS
from durability.plan.plan import LookBack, Plan, PolicyPart, SnapshotPart, to_text
from durability.report.data import trends

END = datetime(2026, 11, 22, 2, tzinfo=UTC)
PULSES = 288
EVERY = timedelta(minutes=5)
SEVERITIES = {"critical": 3, "warning": 5}


def names(clusters: int) -> list[str]:
    return [f"cluster-{n:03d}" for n in range(clusters)]


def made_up(clusters: int, days: int = 365, seed: int = 1) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Rows of `health_counters` (of clusters only) and of `runs`, one pair per day.

    Some pulses are missing, some moments could not be read, and some partitions are at min ISR, under it or offline for a while.
    """
    rng = np.random.default_rng(seed)
    midnight = END.replace(hour=0)
    for day in range(days, 0, -1):
        start = midnight - timedelta(days=day)
        taken = np.flatnonzero(rng.random(PULSES) > 0.01)
        if rng.random() < 0.02:  # a gap of hours
            taken = taken[(taken < 60) | (taken > 200)]
        results = [f"health_pulse:scheduled__{(start + EVERY * int(p)).isoformat()}:1" for p in taken]
        yield _counters(rng, clusters, start, taken, results), _runs(clusters, start, taken, results)


def _counters(
    rng: np.random.Generator, clusters: int, start: datetime, taken: np.ndarray, results: list[str]
) -> pa.Table:
    shape = (clusters, PULSES)
    counts = {name: np.zeros(shape, np.int64) for name in COUNTED}
    counts["partitions"][:] = 70_000
    for kind, often in (("at_min_isr", 0.3), ("under_min_isr", 0.1), ("offline", 0.05), ("unknown", 0.1)):
        for cluster in np.flatnonzero(rng.random(clusters) < often):
            since, lasts = int(rng.integers(PULSES)), int(rng.integers(1, 40))
            counts[kind][cluster, since : since + lasts] = rng.integers(1, 500)
    counts["at_min_isr_by_configuration"][:] = np.where(rng.random(shape) < 0.1, counts["at_min_isr"], 0)
    number, pulse = (a.ravel() for a in np.meshgrid(np.arange(clusters), taken, indexing="ij"))
    first = int(start.timestamp() * 1e6)
    at = first + pulse * 300_000_000 + number * 40_000  # clusters one after the other
    listed = np.array(names(clusters))
    columns = {
        "cluster": pa.array(listed[number]),
        "captured_at": pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "snapshot_id": pa.array([f"{listed[n]}@{a}" for n, a in zip(number, at, strict=True)]),
        "run_id": pa.array(np.array([r.rpartition(":")[0] for r in results])[np.searchsorted(taken, pulse)]),
        "result_id": pa.array(np.array(results)[np.searchsorted(taken, pulse)]),
        **{name: pa.array(values[number, pulse]) for name, values in counts.items()},
    }
    return pa.table(columns)


def _runs(clusters: int, start: datetime, taken: np.ndarray, results: list[str]) -> pa.Table:
    moments = [start + EVERY * int(p) for p in taken]
    rows = [
        {
            "result_id": result,
            "kind": "pulse",
            "captured_at": at,
            "finished_at": at + timedelta(minutes=1),
            "summary": "{}",
        }
        for result, at in zip(results, moments, strict=True)
    ]
    at = start + timedelta(hours=2)
    night = {"clusters": {name: {} for name in names(clusters)}, "severities": SEVERITIES}
    row = {"result_id": f"nightly_audit:{at}", "kind": "nightly", "captured_at": at, "finished_at": at + EVERY}
    rows.append({**row, "status": "complete", "verified": True, "summary": json.dumps(night)})
    return pa.Table.from_pylist(rows, RUNS.arrow)


def write(lake: Lake, days: Iterable[tuple[pa.Table, pa.Table]]) -> int:
    """Commit the days, one file each. Returns the number of rows of counters."""
    runs: list[pa.Table] = []

    def counters() -> Iterator[pa.Table]:
        for of_day, runs_of_day in days:
            runs.append(runs_of_day)
            yield of_day

    rows = lake.append_parts(HEALTH_COUNTERS, counters())
    lake.append_parts(RUNS, runs)
    return rows


def plan(clusters: int) -> Plan:
    """A nightly run at END over these clusters, with a history."""
    parts = [SnapshotPart(cluster=name, status="accepted", captured_at=to_text(END)) for name in names(clusters)]
    policy = PolicyPart("bench", "0" * 64, {}, None, readings={"prolonged_after": 1800, "look_back": 108_000})
    back = LookBack(to_text(END - timedelta(hours=30)), {})
    return Plan("r", "nightly", "r:1", to_text(END), policy, [], parts, 0, look_back=back)


def main() -> None:
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.open(sys.argv[2] if len(sys.argv) > 2 else folder)
        lake.ensure()
        began = time.monotonic()
        rows = write(lake, made_up(clusters))
        written = time.monotonic()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = trends.read(lake, plan(clusters), {"critical": 0, "warning": 0}, {})
        assert found, "a year is enough for trends"
        took = time.monotonic() - written
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{clusters} clusters, {rows:,} rows of counters, written in {written - began:.1f} s")
        print(f"trends: {took:.1f} s, peak {peak >> 10} MB (before {before >> 10} MB), {found.days} days")


if __name__ == "__main__":
    main()
