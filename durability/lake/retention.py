"""Decides what the lake keeps, from the rows of `snapshots` and `runs` and the policy's `retention`.

These rows stay at any age, because reports name them and the next run compares with them:

- each cluster's newest accepted full snapshot,
- each cluster's newest run that evaluated it, and the newest run that names it,
- the run that is the evidence of a period, with the facts that it evaluated.

Rows stay, too, if they are younger than the look-back of the readings over time, or than UNFINISHED, because an unfinished run
may need them. An age is in whole days (UTC). It starts when the row was written or when the cluster was captured, whichever is
later. So an old document is as young as its first run.

The functions are pure. `spark_jobs/upkeep.py` removes what they name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from durability.policy.model import Retention

UNFINISHED = timedelta(days=2)
"""Longer than a run takes from its first commit to its last, including tasks cleared the next day."""
READ = timedelta(days=3)
"""How long files of replaced table states are kept for their readers. Staged files are kept as long."""
ACCEPTED, COMPLETE = "accepted", "complete"
RUN_COLUMNS = ("run_id", "result_id", "captured_at", "started_at", "finished_at", "status", "verified", "snapshots")
"""The columns of a run that `plan` reads."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Cuts:
    """Midnights (UTC). A row of that kind is old if it was written and captured before."""

    snapshots: datetime
    findings: datetime
    pulses: datetime
    counters: datetime
    evidence: datetime

    @classmethod
    def of(cls, periods: Retention, look_back: timedelta, now: datetime) -> Cuts:
        """look_back: that of the readings over time. They may start up to a day before `now`."""
        least = max(UNFINISHED, look_back + timedelta(days=1))

        def cut(age: timedelta) -> datetime:
            return midnight(now - max(age, least))

        return cls(
            snapshots=cut(periods.snapshots),
            findings=cut(periods.findings),
            pulses=cut(periods.pulses),
            counters=cut(max(periods.counters, periods.pulses)),
            evidence=cut(periods.evidence_for),
        )


@dataclass(frozen=True)
class RetentionPlan:
    """What to remove and what to keep. `cuts` alone decides about pulses.

    attempts: of full snapshots whose rows in `snapshots` are removed.
    runs: results of nightly runs whose rows in `runs` are removed.
    in_full: results of nightly runs that are kept completely. Of other runs, only counters of clusters are kept, with the row.
    evidence: run ids, for the log.
    committed_before: files of later commits aren't touched.
    expire_before: older table states expire.
    orphans_before: files of no table are removed if they were last written before.
    compact_before: earlier days are compacted.
    """

    cuts: Cuts
    attempts: list[str]
    runs: list[str]
    in_full: list[str]
    evidence: list[str]
    committed_before: datetime
    expire_before: datetime
    orphans_before: datetime
    compact_before: datetime

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(asdict(self), default=datetime.isoformat), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path | str) -> RetentionPlan:
        stated = json.loads(Path(path).read_text(encoding="utf-8"))
        moments = {n: datetime.fromisoformat(v) for n, v in stated.items() if n.endswith("_before")}
        cuts = Cuts(**{n: datetime.fromisoformat(v) for n, v in stated["cuts"].items()})
        return cls(**{**stated, **moments, "cuts": cuts})


def plan(
    periods: Retention, look_back: timedelta, now: datetime, snapshots: Sequence[Row], runs: Sequence[Row]
) -> RetentionPlan:
    """What to keep at `now`.

    snapshots: rows of `snapshots` of kind full, with any status, including superseded ones.
    runs: rows of `runs` of kind nightly, one per result, in the order in which they finished.
    """
    cuts = Cuts.of(periods, look_back, now)
    evidence = evidence_of(runs, periods.evidence_each, cuts.evidence)
    in_full = {run["result_id"] for run in [*evidence, *_last_of_each_cluster(runs)]}
    in_full |= {run["result_id"] for run in runs if not _old(run, "finished_at", cuts.findings)}
    old = {run["result_id"] for run in runs if _old(run, "finished_at", cuts.counters)}
    judged = {s["attempt_id"] for run in evidence for s in run["snapshots"] or [] if s["status"] == ACCEPTED}
    kept = kept_attempts(snapshots, cuts.snapshots, judged)
    return RetentionPlan(
        cuts=cuts,
        attempts=sorted({row["attempt_id"] for row in snapshots} - kept),
        runs=sorted(old - in_full),
        in_full=sorted(in_full),
        evidence=[run["run_id"] for run in evidence],
        committed_before=now - UNFINISHED,
        expire_before=now - READ,
        orphans_before=now - READ,
        compact_before=midnight(now),
    )


def kept_attempts(snapshots: Iterable[Row], cut: datetime, judged: set[str]) -> set[str]:
    """Attempts of full snapshots to keep. judged: attempts that are evidence.

    If one attempt at a snapshot is kept, so is the newest one. Otherwise the older one would count again.
    """
    snapshots = sorted(snapshots, key=lambda row: row["published_at"])
    newest = {_snapshot(row): row for row in snapshots}
    accepted = [row for row in newest.values() if row["status"] == ACCEPTED]
    last = {row["cluster"]: row for row in sorted(accepted, key=lambda r: (r["captured_at"], r["published_at"]))}
    stay = judged | {row["attempt_id"] for row in last.values()}
    stay |= {row["attempt_id"] for row in snapshots if not _old(row, "published_at", cut)}
    return stay | {newest[_snapshot(row)]["attempt_id"] for row in snapshots if row["attempt_id"] in stay}


def evidence_of(runs: Iterable[Row], each: str, cut: datetime) -> list[Row]:
    """The first complete and verified run of each period whose evidence must be kept."""
    first: dict[str, Row] = {}
    for run in sorted(runs, key=lambda r: (r["started_at"], r["finished_at"], r["result_id"])):
        if run["status"] == COMPLETE and run["verified"]:
            first.setdefault(period(run["started_at"], each), run)
    return [run for run in first.values() if not _old(run, "finished_at", cut)]


def period(moment: datetime, each: str) -> str:
    """The week (of ISO 8601), month or quarter of a moment, in UTC.

    >>> [period(datetime(2027, 1, 1, tzinfo=UTC), each) for each in ("week", "month", "quarter")]
    ['2026-W53', '2027-01', '2027-Q1']
    """
    day = moment.astimezone(UTC)
    if each == "week":
        return f"{day:%G-W%V}"
    return f"{day:%Y-%m}" if each == "month" else f"{day.year}-Q{(day.month + 2) // 3}"


def midnight(moment: datetime) -> datetime:
    """The beginning of the day of a time, in UTC."""
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _last_of_each_cluster(runs: Iterable[Row]) -> list[Row]:
    """For each cluster, the last runs that evaluated it and that name it, and that of its newest snapshot.

    Snapshots may be evaluated out of order. runs: in the order in which they finished.
    """
    judging: dict[str, Row] = {}
    naming: dict[str, Row] = {}
    newest: dict[str, tuple[datetime, Row]] = {}
    for run in runs:
        for snapshot in run["snapshots"] or []:
            cluster, captured_at = snapshot["cluster"], snapshot["captured_at"]
            naming[cluster] = run
            if snapshot["status"] == ACCEPTED:
                judging[cluster] = run
                if cluster not in newest or captured_at >= newest[cluster][0]:
                    newest[cluster] = captured_at, run
    return [*judging.values(), *naming.values(), *(run for _, run in newest.values())]


def _snapshot(row: Row) -> tuple[str, str]:
    return row["cluster"], row["snapshot_id"]


def _old(row: Row, written: str, cut: datetime) -> bool:
    return max(row["captured_at"], row[written]) < cut
