"""What the lake keeps: from the rows of `snapshots` and `runs`, and how long the policy says, what goes.

Whatever its age stays: each cluster's newest accepted full snapshot (a report names it as stale, and the next run compares
with it), the newest run that judged each cluster and the newest that speaks of it (likewise), and of each period the run
that is evidence, with the facts that it judged. So does everything younger than readings over time look back, or than
UNFINISHED: it may be a run's that isn't over. An age is counted from when a row was written and from when the cluster was
captured, whichever is later, in whole days (UTC): a document of long ago is as young as its first run.

Pure functions over rows; `spark_jobs/upkeep.py` does what they decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from durability.policy.model import Retention

UNFINISHED = timedelta(days=2)
"""Longer than a run takes from its first commit to its last, tasks cleared the next day included."""
READ = timedelta(days=3)
"""How long files that no table shows any more stay, for whoever reads a state of before; staged files likewise."""
ACCEPTED, COMPLETE = "accepted", "complete"
RUN_COLUMNS = (
    "run_id",
    "result_id",
    "captured_at",
    "started_at",
    "finished_at",
    "status",
    "verified",
    "snapshots",
)
"""What `decide` reads of a run."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Cuts:
    """Midnights (UTC): a row of that kind is old when it was written and captured before."""

    snapshots: datetime
    findings: datetime
    pulses: datetime
    counters: datetime
    evidence: datetime

    @classmethod
    def of(cls, retention: Retention, look_back: timedelta, now: datetime) -> Cuts:
        """look_back: how far readings over time do, from a moment that may be a day before `now`."""
        least = max(UNFINISHED, look_back + timedelta(days=1))

        def midnight(age: timedelta) -> datetime:
            day = (now - max(age, least)).astimezone(UTC)
            return day.replace(hour=0, minute=0, second=0, microsecond=0)

        counters = max(retention.counters, retention.pulses)
        return cls(
            snapshots=midnight(retention.snapshots),
            findings=midnight(retention.findings),
            pulses=midnight(retention.pulses),
            counters=midnight(counters),
            evidence=midnight(retention.evidence_for),
        )


@dataclass(frozen=True)
class Decision:
    """What goes and what stays, beyond what `cuts` say of pulses.

    attempts: of full snapshots, whose rows in `snapshots` go. runs: results of nightly runs whose rows in `runs` go.
    in_full: results of nightly runs of which everything stays; of the others with a row, clusters' counters alone do.
    committed_before: files of a later commit aren't looked at. expire_before: states of a table that are older are
    forgotten. orphans_before: files of no table that were last written before are removed. compact_before: days before it
    are over, and compacted.
    """

    cuts: Cuts
    attempts: list[str]
    runs: list[str]
    in_full: list[str]
    committed_before: datetime
    expire_before: datetime
    orphans_before: datetime
    compact_before: datetime
    evidence: list[str] = field(default_factory=list)  # run ids, for whoever reads the log

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(asdict(self), default=lambda moment: moment.isoformat()), encoding="utf-8")
        return path

    @classmethod
    def read(cls, path: Path | str) -> Decision:
        stated = json.loads(Path(path).read_text(encoding="utf-8"))
        moments = {n: datetime.fromisoformat(v) for n, v in stated.items() if n.endswith("_before")}
        cuts = Cuts(**{n: datetime.fromisoformat(v) for n, v in stated["cuts"].items()})
        return cls(**{**stated, **moments, "cuts": cuts})


def decide(
    retention: Retention, look_back: timedelta, now: datetime, snapshots: Sequence[Row], runs: Sequence[Row]
) -> Decision:
    """What to keep at `now`.

    snapshots: rows of `snapshots` of kind full, whatever their status, superseded ones too. runs: rows of `runs` of
    kind nightly.
    """
    cuts = Cuts.of(retention, look_back, now)
    by_result = _newest_of_each_result(runs)
    evidence = evidence_of(by_result, retention.evidence_each, cuts.evidence)
    in_full = {run["result_id"] for run in [*evidence, *_last_of_each_cluster(by_result)]}
    in_full |= {run["result_id"] for run in by_result if not _old(run, "finished_at", cuts.findings)}
    rows_go = [r["result_id"] for r in by_result if _old(r, "finished_at", cuts.counters)]
    judged = {s["attempt_id"] for run in evidence for s in run["snapshots"] or [] if s["status"] == ACCEPTED}
    kept = kept_attempts(snapshots, cuts.snapshots, judged)
    return Decision(
        cuts=cuts,
        attempts=sorted({row["attempt_id"] for row in snapshots} - kept),
        runs=sorted(set(rows_go) - in_full),
        in_full=sorted(in_full),
        committed_before=now - UNFINISHED,
        expire_before=now - READ,
        orphans_before=now - READ,
        compact_before=now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0),
        evidence=[run["run_id"] for run in evidence],
    )


def kept_attempts(snapshots: Sequence[Row], cut: datetime, judged: set[str]) -> set[str]:
    """Attempts of full snapshots that stay; judged: those that evidence rests on.

    Where one attempt at a snapshot stays, the newest does too: else the older one would come to count again.
    """
    newest: dict[tuple[str, str], Row] = {}
    for row in snapshots:
        key = row["cluster"], row["snapshot_id"]
        if key not in newest or newest[key]["published_at"] <= row["published_at"]:
            newest[key] = row
    last: dict[str, Row] = {}
    for row in newest.values():
        known = last.get(row["cluster"])
        if row["status"] == ACCEPTED and (known is None or _order(known) <= _order(row)):
            last[row["cluster"]] = row
    stay = judged | {row["attempt_id"] for row in last.values()}
    stay |= {row["attempt_id"] for row in snapshots if not _old(row, "published_at", cut)}
    seen = {(row["cluster"], row["snapshot_id"]) for row in snapshots if row["attempt_id"] in stay}
    return stay | {newest[key]["attempt_id"] for key in seen}


def evidence_of(runs: Iterable[Row], each: str, cut: datetime) -> list[Row]:
    """Of each period the first complete and verified run that isn't older than evidence has to be kept."""
    first: dict[str, Row] = {}
    for run in sorted(runs, key=lambda r: (r["started_at"], r["finished_at"], r["result_id"])):
        if run["status"] == COMPLETE and run["verified"]:
            first.setdefault(period(run["started_at"], each), run)
    return [run for run in first.values() if not _old(run, "finished_at", cut)]


def period(moment: datetime, each: str) -> str:
    """The week (of ISO 8601), month or quarter in which a moment lies, in UTC.

    >>> [period(datetime(2027, 1, 1, tzinfo=UTC), each) for each in ("week", "month", "quarter")]
    ['2026-W53', '2027-01', '2027-Q1']
    """
    day = moment.astimezone(UTC)
    if each == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02d}"
    return f"{day.year}-{day.month:02d}" if each == "month" else f"{day.year}-Q{(day.month + 2) // 3}"


def _newest_of_each_result(runs: Iterable[Row]) -> list[Row]:
    """Rows in the order of finishing; of a result written twice, the newest: as `Lake.runs` has them."""
    found: dict[str, Row] = {}
    for run in sorted(runs, key=lambda r: r["finished_at"]):
        found.pop(run["result_id"], None)
        found[run["result_id"]] = run
    return list(found.values())


def _last_of_each_cluster(runs: Sequence[Row]) -> list[Row]:
    """The run that finished last of those that judged a cluster, and of those that speak of it; runs: in that order."""
    judged: dict[str, Row] = {}
    told: dict[str, Row] = {}
    for run in runs:
        for snapshot in run["snapshots"] or []:
            told[snapshot["cluster"]] = run
            if snapshot["status"] == ACCEPTED:
                judged[snapshot["cluster"]] = run
    return [*judged.values(), *told.values()]


def _order(row: Row) -> tuple[datetime, datetime]:
    return row["captured_at"], row["published_at"]


def _old(row: Row, written: str, cut: datetime) -> bool:
    return max(row["captured_at"], row[written]) < cut
