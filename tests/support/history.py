"""A lake with a history of nightly runs and pulses. Rows have earlier times, and nothing is evaluated."""

from __future__ import annotations

import datetime as real
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from durability.lake import tables
from durability.topology import validate
from tests.support.lake import accepted, rejected
from tests.support.topology import healthy

FLEET = ("eu", "us")

OF_PULSES = (tables.PARTITION_HEALTH, tables.HEALTH_COUNTERS, tables.ALERTS)


class History:
    """Writes to `lake` as runs would have done `ago` days before `now`."""

    def __init__(self, lake, monkeypatch, now: datetime):
        self.lake, self.now, self.at = lake, now, now

        class Clock(real.datetime):
            @classmethod
            def now(cls, tz=None):
                return self.at.astimezone(tz)

        monkeypatch.setattr("durability.lake.lake.datetime", Clock)

    def stage(self, ago: float, cluster: str, kind: str = "full"):
        self.at = self.now - timedelta(days=ago)
        document = healthy(partitions=4, cluster=cluster, captured_at=self.at.isoformat())
        return replace(self.lake.stage(validate(document, "live")), kind=kind)

    def publish(self, *attempts, sound: bool = True):
        return self.lake.publish(attempts, (accepted if sound else rejected)(*attempts))

    def run(self, ago: float, name: str, kind: str = "nightly", fleet=FLEET, concluded: bool = True, **columns) -> str:
        """A run over the fleet with results and a row in `runs`. Returns its result id."""
        rows = self.publish(*(self.stage(ago, cluster, "pulse" if kind == "pulse" else "full") for cluster in fleet))
        self.results(rows, name, kind)
        if concluded:
            self.conclude(rows, name, kind, **columns)
        return name

    def results(self, rows, name: str, kind: str) -> None:
        for table in tables.RESULTS:
            if kind == "nightly" or table in OF_PULSES:
                topics = (None, "t-1") if table is tables.HEALTH_COUNTERS else ("t-1", "t-2")
                self.lake.append(table, pa.Table.from_pylist([r for s in rows for r in _rows(table, s, name, topics)]))

    def conclude(self, rows, name: str, kind: str, status: str = "complete", verified: bool = True) -> None:
        columns = ("cluster", "snapshot_id", "attempt_id", "captured_at", "status", "reason", "sha256")
        self.lake.commit_run(
            {
                "run_id": f"{kind}:{name}",
                "result_id": name,
                "kind": kind,
                "captured_at": max(r["captured_at"] for r in rows),
                "started_at": self.at,
                "finished_at": self.at + timedelta(minutes=3),
                "status": status,
                "verified": verified,
                "snapshots": [{c: r[c] for c in columns} for r in rows],
                "summary": json.dumps({"severities": {"critical": 1}}),
            }
        )


def age(lake, days: float) -> None:
    """Change a lake in a folder as if every commit had been so many days earlier."""
    for table in tables.TABLES.values():
        path = Path(lake._tables.load(table).metadata_location.removeprefix("file://"))
        path.write_text(json.dumps(_earlier(json.loads(path.read_text()), round(days * 86_400_000))))


def _earlier(metadata, millis: int):
    if isinstance(metadata, list):
        return [_earlier(item, millis) for item in metadata]
    if isinstance(metadata, dict):
        when = ("timestamp-ms", "last-updated-ms")
        return {k: v - millis if k in when else _earlier(v, millis) for k, v in metadata.items()}
    return metadata


def _rows(table, snapshot, name: str, topics) -> list[dict]:
    columns = dict(table.columns)
    named = next((name for name in ("resource", "topic") if name in columns), None)
    keys = {name: snapshot[name] for name in ("cluster", "captured_at", "snapshot_id")}
    kind = "pulse" if snapshot["kind"] == "pulse" else "nightly"
    keys |= {"run_id": f"{kind}:{name}", "result_id": name}
    if named is None:
        return [keys]
    rows = [keys | {named: topic} for topic in topics]
    if table is tables.HEALTH_COUNTERS:
        return [row | dict.fromkeys(tables.COUNTED, 3) for row in rows]
    return rows


def seen(lake, snapshots, runs) -> dict[str, list]:
    """What readers see of these snapshots (by attempt) and these runs (by result), by table."""
    shown: dict[str, list] = {
        "snapshots": [s for s in lake.snapshots() if s["attempt_id"] in snapshots],
        "runs": [r for r in lake.runs() if r["result_id"] in runs],
    }
    for table in tables.FACTS:
        shown[table.name] = [row for s in shown["snapshots"] for row in lake.facts(table, s).to_pylist()]
    for table in tables.RESULTS:
        shown[table.name] = [row for r in shown["runs"] for row in lake.results(table, r).to_pylist()]
    return {name: sorted(rows, key=str) for name, rows in shown.items()}
