"""Expected cluster-nights of a period against done ones. A night is a day in UTC, by the time of the snapshot.

A night is done if the cluster's full snapshot was accepted and evaluated by a run that is complete and verified.

Anyone can write a document about a night that was missed. So a document makes no night done from the time on that the audit first
read the cluster itself. A cluster that was only audited from documents has no other source: its nights count, and are told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from durability.errors import Refused
from durability.evidence import expected
from durability.plan.plan import ACCEPTED, COUNTED
from durability.report.words import joined
from durability.topology.document import LIVE

COMPLETE = "complete"
DAY = timedelta(days=1)
NO_RUN, NO_SNAPSHOT = "no run that night", "no snapshot"
FROM_DOCUMENT = "evaluated from a document"
NOT_EVALUATED = "accepted, but no run has evaluated the snapshot"
NOT_VERIFIED = "run unverified: the second check did not confirm its verdicts"
NAMED = 3
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Period:
    """The days from `start` on, without `end`."""

    start: date
    end: date

    @classmethod
    def of(cls, start: str, end: str, today: date) -> Period:
        """From two days as YYYY-MM-DD. Raises Refused if they are no period, or if it isn't over.

        >>> Period.of("2026-10-01", "2026-11-01", date(2026, 11, 27)).days
        31
        """
        first, last = (_day(text, name) for text, name in ((start, "--from"), (end, "--to")))
        if first >= last:
            raise Refused(f"--from {first} must be before --to {last}, the first day after the period")
        if last > today + DAY:
            raise Refused(f"--to {last}: the period isn't over; the last possible value today is {today + DAY}")
        return cls(first, last)

    @property
    def days(self) -> int:
        return (self.end - self.start).days

    @property
    def since(self) -> datetime:
        return datetime.combine(self.start, time(), UTC)

    @property
    def until(self) -> datetime:
        return datetime.combine(self.end, time(), UTC)

    def has(self, moment: datetime) -> bool:
        return self.since <= moment < self.until


def _day(text: str, name: str) -> date:
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise Refused(f"{name} {text}: expected a day as YYYY-MM-DD") from None


def night(moment: datetime) -> date:
    """The day in UTC."""
    return moment.astimezone(UTC).date()


def count(
    period: Period,
    snapshots: Iterable[Row],
    runs: Sequence[Row],
    first: Mapping[str, datetime],
    live: Mapping[str, datetime] | None = None,
) -> list[dict]:
    """By cluster its expected nights, the done ones, gaps with their reasons, and nights that inventories don't expect.

    snapshots: full snapshots of the period, with attempt_id, status, reason, source and published_at.
    runs: nightly runs, superseded results included, oldest first.
    first: by cluster, when it was first in the lake. Without an inventory, nights are expected from then on, also after the last
        snapshot.
    live: by cluster, its first snapshot that was read from the cluster.
    """
    by_night, ran = _evaluated(period, runs), set()
    ran |= {day for _, day in by_night} | {night(run["captured_at"]) for run in runs}
    taken: defaultdict[tuple[str, date], list[Row]] = defaultdict(list)
    documents: dict[str, bool] = {}
    for row in snapshots:
        taken[row["cluster"], night(row["captured_at"])].append(row)
        if row["status"] == ACCEPTED and row["source"] not in (None, LIVE):
            since = (live or {}).get(row["cluster"])
            documents[row["attempt_id"]] = since is None or row["captured_at"] < since
    ran |= {day for _, day in taken}
    population = expected.read((run for run in runs if run["captured_at"] < period.until), first)
    names = sorted({*first, *population.clusters})
    found = [_of_cluster(period, name, first.get(name), population, taken, by_night, ran, documents) for name in names]
    # A cluster that was removed before the period is no part of it.
    return [
        row
        for row in found
        if row["expected"]
        or row["evaluated_unexpected"]
        or (row["not_expected"] and population.changed(row["cluster"], period.start, period.end))
    ]


def _of_cluster(
    period: Period,
    cluster: str,
    first: datetime | None,
    population: expected.Expected,
    taken: Mapping[tuple[str, date], Sequence[Row]],
    by_night: Mapping[tuple[str, date], Sequence[tuple[Row, Row]]],
    ran: set[date],
    documents: Mapping[str, bool],
) -> dict[str, Any]:
    """documents: the attempts whose snapshots are documents, and whether each may make a night done."""
    done = evaluated = unexpected = from_documents = 0
    gaps: list[dict[str, Any]] = []
    not_expected: list[dict[str, Any]] = []
    accepted, nights = [], []
    for day in (period.start + DAY * number for number in range(period.days)):
        all_here, all_runs = taken.get((cluster, day), ()), by_night.get((cluster, day), ())
        here = [row for row in all_here if documents.get(row["attempt_id"], True)]
        runs = [(run, part) for run, part in all_runs if documents.get(part["attempt_id"], True)]
        if any(row["status"] == ACCEPTED for row in (*here, *(part for _, part in runs))):
            accepted.append(day)
        reason, counts = _gap(cluster, here, runs, day in ran)
        if reason and len(runs) < len(all_runs):
            reason = FROM_DOCUMENT
        is_expected, why = population.on(cluster, day, first)
        if not is_expected:
            unexpected += counts
            if why:
                _extend(not_expected, day, why)
            continue
        nights.append(day)
        evaluated += counts
        if reason is None:
            done += 1
            from_documents += all(part["attempt_id"] in documents for _, part in runs if part["status"] == ACCEPTED)
        else:
            _extend(gaps, day, why if why and reason in (NO_SNAPSHOT, NO_RUN) else reason)
    return {
        "cluster": cluster,
        "expected_from": nights[0].isoformat() if nights else None,
        "last_accepted": accepted[-1].isoformat() if accepted else None,
        "expected": len(nights),
        "done": done,
        "done_from_documents": from_documents,
        "evaluated": evaluated,
        "gaps": gaps,
        "not_expected": not_expected,
        "evaluated_unexpected": unexpected,
    }


def _extend(ranges: list[dict[str, Any]], day: date, reason: str) -> None:
    """Add a night to the last range, or begin another one."""
    if ranges and ranges[-1]["reason"] == reason and date.fromisoformat(ranges[-1]["last"]) + DAY == day:
        ranges[-1].update(last=day.isoformat(), nights=ranges[-1]["nights"] + 1)
    else:
        ranges.append({"first": day.isoformat(), "last": day.isoformat(), "nights": 1, "reason": reason})


def _evaluated(period: Period, runs: Iterable[Row]) -> dict[tuple[str, date], list[tuple[Row, Row]]]:
    """By cluster and night, the runs that name it, with its part of the run."""
    found: defaultdict[tuple[str, date], list[tuple[Row, Row]]] = defaultdict(list)
    for run in runs:
        for part in run["snapshots"] or ():
            moment = part["captured_at"] or run["captured_at"]
            if part["status"] != COUNTED and period.has(moment):
                found[part["cluster"], night(moment)].append((run, part))
    return found


def _gap(cluster: str, taken: Sequence[Row], runs: Sequence[tuple[Row, Row]], ran: bool) -> tuple[str | None, bool]:
    """Why a night isn't done (None: it is), and whether a verified run evaluated the cluster."""
    judged = [run for run, part in runs if part["status"] == ACCEPTED]
    verified = [run for run in judged if run["verified"]]
    if any(run["status"] == COMPLETE for run in verified):
        return None, True
    if verified:
        return _incomplete(cluster, verified[-1]), True
    if judged:
        return NOT_VERIFIED, False
    if any(row["status"] == ACCEPTED for row in taken):
        return NOT_EVALUATED, False
    failed = sorted(taken, key=lambda row: row["published_at"]) or [part for _, part in runs]
    if failed:
        return f"{failed[-1]['status']}: {failed[-1]['reason'] or 'the lake has no reason'}", False
    return NO_SNAPSHOT if ran else NO_RUN, False


def _incomplete(cluster: str, run: Row) -> str:
    others = sorted({part["cluster"] for part in run["snapshots"] if part["status"] not in (ACCEPTED, COUNTED)})
    named = joined([name for name in others if name != cluster], NAMED) or "a cluster"
    return f"run incomplete: it did not evaluate {named}"
