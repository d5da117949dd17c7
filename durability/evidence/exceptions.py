"""What failed in a period: opened, closed and why, open at its start and end. From `findings`, counted file by file.

UNKNOWN and EXEMPT are counted apart. UNKNOWN is never compliant.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.conditions import captured_within
from durability.lake.tables import FINDINGS
from durability.plan.inventory import Inventory
from durability.plan.plan import ACCEPTED, to_text
from durability.policy.inventory import INVENTORY
from durability.report.words import SEVERITIES

LISTED = ("FAIL", "UNKNOWN", "EXEMPT")
CHANGED = ("new", "resolved")
COVERAGE = "inventory-coverage"
CHANGE_KEYS = ("result_id", "cluster", "control", "outcome", "severity", "previous_severity", "change", "why")
Row = Mapping[str, Any]


@dataclass
class Compared:
    """What a fleet's inventories say.

    last: the last run that compared them. listed: what only they have: the clusters that aren't audited, and INVENTORY.
    coverage: by cluster that they found something about, the last run that compared it with them.
    """

    last: Row
    listed: set[str] = field(default_factory=set)
    coverage: dict[str, Row] = field(default_factory=dict)

    def add(self, run: Row, found: Inventory) -> None:
        """The next run. If it could not read all inventories, it says nothing about clusters that it doesn't list."""
        self.last = run
        only_listed = {listed.id for listed in found.not_audited} | ({INVENTORY} if found.unread else set())
        self.listed |= only_listed
        now = only_listed.union(found.unlisted)
        self.coverage |= dict.fromkeys(now if found.unread else now | self.coverage.keys(), run)


@dataclass
class Open:
    """What a cluster's last evaluation in a time found, by (cluster, control, outcome, severity).

    as_of: by cluster, that run's row and the cluster's snapshot time. A cluster that inventories list and no run has audited has
        the last run that compared them, and that run's time.
    fleets: by fleet, what its inventories say.
    coverage: by cluster that inventories found something about, the last run that compared it with them.
    lost: run ids whose findings aren't those that the run counted: retention has removed them.
    """

    counts: Counter[tuple[str, str, str, str | None]] = field(default_factory=Counter)
    oldest: dict[tuple[str, str, str, str | None], datetime] = field(default_factory=dict)
    as_of: dict[str, tuple[Row, datetime]] = field(default_factory=dict)
    fleets: dict[str | None, Compared] = field(default_factory=dict)
    coverage: dict[str, Row] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)

    def compare(self) -> None:
        """Sets `coverage`, and `as_of` of clusters that aren't audited."""
        for fleet in self.fleets.values():
            self.coverage |= fleet.coverage
            for name in fleet.listed:
                self.as_of.setdefault(name, (fleet.coverage[name], fleet.coverage[name]["captured_at"]))

    def complete_from(self, later: Open) -> None:
        """Of clusters that only later runs found in inventories, these runs found nothing if they compared inventories."""
        for name, fleet in later.fleets.items():
            if name in self.fleets:
                run = self.fleets[name].last
                for cluster in fleet.listed:
                    self.as_of.setdefault(cluster, (run, run["captured_at"]))

    def is_last(self, result: str, cluster: str, control: str) -> bool:
        """Are a result's findings of a control the last ones about the cluster?"""
        if control == COVERAGE and cluster in self.coverage:
            return self.coverage[cluster]["result_id"] == result
        return cluster in self.as_of and self.as_of[cluster][0]["result_id"] == result

    def kept(self, cluster: str) -> bool:
        """Whether the cluster was evaluated, and the findings of then are in the lake."""
        runs = [self.as_of[cluster][0]] if cluster in self.as_of else []
        runs += [self.coverage[cluster]] if runs and cluster in self.coverage else []
        return bool(runs) and not any(run["run_id"] in self.lost for run in runs)


@dataclass
class Changes:
    """Opened findings by (cluster, control, outcome, severity), closed ones by (cluster, control, severity) and why."""

    opened: Counter[tuple[str, str, str, str | None]] = field(default_factory=Counter)
    closed: dict[tuple[str, str, str | None], Counter[str]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)


def open_after(lake: Any, runs: Sequence[Row]) -> Open:
    """What is open after these runs, oldest first."""
    found = Open()
    for run in runs:
        inventory = Inventory.from_dict(json.loads(run["inventory"])) if run.get("inventory") else Inventory()
        if inventory.sources or inventory.fleet in found.fleets:
            found.fleets.setdefault(inventory.fleet, Compared(run)).add(run, inventory)
        for part in run["snapshots"] or ():
            if part["status"] == ACCEPTED:
                found.as_of[part["cluster"]] = run, part["captured_at"]
    found.compare()
    last = {run["result_id"]: run for run in (*(run for run, _ in found.as_of.values()), *found.coverage.values())}
    per_result: Counter[str] = Counter()
    keys = ("result_id", "cluster", "control", "outcome", "severity")
    for row in grouped(lake, last.values(), is_in("outcome", LISTED), keys, [("since", "min")]):
        result, cluster, control, outcome, severity = (row[name] for name in keys)
        per_result[result] += row["count_all"]
        if found.is_last(result, cluster, control):
            key = cluster, control, outcome, severity
            found.counts[key] += row["count_all"]
            if row["since_min"] is not None:
                found.oldest[key] = min(row["since_min"], found.oldest.get(key, row["since_min"]))
    for result, run in last.items():
        outcomes = _summary(run).get("outcomes")
        if outcomes is None or sum(outcomes.get(name, 0) for name in LISTED) != per_result[result]:
            found.lost.add(run["run_id"])
    return found


def changes(lake: Any, runs: Sequence[Row]) -> Changes:
    """What these runs opened and closed. runs: oldest first."""
    found = Changes()
    counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    numbers: Counter[tuple[str | None, ...]] = Counter()
    parts = list(_rows_of(lake, runs, is_in("change", CHANGED), ("id", *CHANGE_KEYS)))
    for row in (row for part in parts for row in _count(part, CHANGE_KEYS, ())):
        counted[row["result_id"]][row["change"]] += row["count_all"]
        numbers[tuple(row[key] for key in CHANGE_KEYS)] += row["count_all"]
    for key, number in (numbers - _repeated(parts, runs)).items():
        row = dict(zip(CHANGE_KEYS, key, strict=True))
        if row["change"] == "new":
            found.opened[row["cluster"], row["control"], row["outcome"], row["severity"]] += number
        else:
            severity = row["previous_severity"] or row["severity"]
            why = found.closed.setdefault((row["cluster"], row["control"], severity), Counter())
            why[row["why"] or "unknown"] += number
    for run in runs:
        stated = _summary(run).get("changes")
        names = ("new", "resolved")
        if stated is None or any(stated.get(name, 0) != counted[run["result_id"]][name] for name in names):
            found.lost.add(run["run_id"])
    return found


def _repeated(parts: Sequence[pa.Table], runs: Sequence[Row]) -> Counter[tuple[str | None, ...]]:
    """Changes that the run before had found already, by CHANGE_KEYS. parts: `id` and CHANGE_KEYS of all changes.

    A run is compared with the newest one of its time in the lake. If a clock jumped back, or documents were audited out of order,
    two runs are compared with the same one. Both then open or close the same findings.
    """
    if not parts:
        return Counter()
    table = pa.concat_tables(parts)
    finding = pc.binary_join_element_wise(table["cluster"], table["id"], "\n")
    changes = pc.value_counts(pc.binary_join_element_wise(finding, table["change"], "\n"))
    often = changes.filter(pc.greater(changes.field("counts"), 1)).field("values")
    several = pa.array({text.rpartition("\n")[0] for text in often.to_pylist()}, pa.string())
    rows = table.filter(pc.is_in(finding, several)).to_pylist()
    place = {run["result_id"]: number for number, run in enumerate(runs)}
    evaluated = {run["result_id"]: {part["cluster"] for part in run["snapshots"] or ()} for run in runs}
    found: Counter[tuple[str | None, ...]] = Counter()
    ordered = sorted(rows, key=lambda row: (row["cluster"], row["id"], place[row["result_id"]]))
    for earlier, later in pairwise(ordered):
        if any(earlier[name] != later[name] for name in ("cluster", "id", "change")):
            continue
        between = runs[place[earlier["result_id"]] + 1 : place[later["result_id"]]]
        if later["change"] == "new":
            # An unknown verdict that passes later leaves no row, and may be new again. Of inventories, any run may say that.
            again = later["control"] != COVERAGE and not any(
                later["cluster"] in evaluated[run["result_id"]] for run in between
            )
        else:
            again = earlier["outcome"] not in LISTED  # a waived one stays listed
        if again:
            found[tuple(later[key] for key in CHANGE_KEYS)] += 1
    return found


def document(before: Open, during: Changes, after: Open, controls: Collection[str] | None) -> dict[str, Any]:
    """The member `exceptions` of period.json. controls: those to count; None for all.

    Failures of clusters that no run of the period evaluated aren't counted. Numbers whose findings aren't in the lake are None.
    """
    keys = {(c, control, s) for c, control, o, s in (*before.counts, *during.opened, *after.counts) if o == "FAIL"}
    keys |= during.closed.keys()
    rows = [
        _row(key, before, during, after)
        for key in sorted(keys, key=_order)
        if key[0] in after.as_of and (controls is None or key[1] in controls)
    ]
    whole_start = all(map(before.kept, after.as_of)) if before.as_of else None
    start = _sum(rows, "open_at_start") if whole_start else None
    opened, closed = (None, None) if during.lost else (_sum(rows, "opened"), _by_why(row["closed"] for row in rows))
    end = None if after.lost else _sum(rows, "open_at_end")
    other = None
    if start is not None and opened is not None and end is not None and closed is not None:
        other = end - (start + opened - sum(closed.values()))
    return {
        "open_at_start": start,
        "opened": opened,
        "closed": closed,
        "other": other,
        "open_at_end": end,
        "oldest_days": max((r["oldest_days"] for r in rows if r["oldest_days"] is not None), default=None),
        "by_severity": [_sums({"severity": s}, [r for r in rows if r["severity"] == s]) for s in SEVERITIES],
        "by_cluster": [
            {"as_of": to_text(moment), **_sums({"cluster": name}, [r for r in rows if r["cluster"] == name])}
            for name, (_, moment) in sorted(after.as_of.items())
        ],
        "rows": rows,
        "unknown": _apart("UNKNOWN", before, during, after, controls),
        "exempt": _apart("EXEMPT", before, during, after, controls),
    }


def _row(key: tuple[str, str, str | None], before: Open, during: Changes, after: Open) -> dict[str, Any]:
    cluster, control, severity = key
    of_fail = cluster, control, "FAIL", severity
    since = after.oldest.get(of_fail)
    return {
        "cluster": cluster,
        "control": control,
        "severity": severity,
        "open_at_start": before.counts[of_fail] if before.kept(cluster) else None,
        "opened": None if during.lost else during.opened[of_fail],
        "closed": None if during.lost else dict(sorted(during.closed.get(key, {}).items())),
        "open_at_end": after.counts[of_fail] if after.kept(cluster) else None,
        "oldest_since": to_text(since),
        "oldest_days": None if since is None else (after.as_of[cluster][1] - since).days,
    }


def _apart(
    outcome: str, before: Open, during: Changes, after: Open, controls: Collection[str] | None
) -> list[dict[str, Any]]:
    """Findings of an outcome by cluster and control."""
    start, opened, end = (_of(outcome, counts) for counts in (before.counts, during.opened, after.counts))
    return [
        {
            "cluster": key[0],
            "control": key[1],
            "open_at_start": start[key] if before.kept(key[0]) else None,
            "opened": None if during.lost else opened[key],
            "open_at_end": end[key] if after.kept(key[0]) else None,
        }
        for key in sorted({*start, *opened, *end})
        if controls is None or key[1] in controls
    ]


def _of(outcome: str, counts: Mapping[tuple[str, str, str, str | None], int]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for (cluster, control, of, _), number in counts.items():
        if of == outcome:
            found[cluster, control] += number
    return found


def _sums(named: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    return {
        **named,
        "opened": _sum(rows, "opened"),
        "closed": _by_why(row["closed"] for row in rows),
        "open_at_end": _sum(rows, "open_at_end"),
        "oldest_days": max((row["oldest_days"] for row in rows if row["oldest_days"] is not None), default=None),
    }


def _sum(rows: Iterable[Row], name: str) -> int | None:
    """The sum of a column; None if it has a None: a sum of some rows would look like all."""
    values = [row[name] for row in rows]
    return None if None in values else sum(values)


def _by_why(closed: Iterable[Mapping[str, int] | None]) -> dict[str, int] | None:
    total: Counter[str] = Counter()
    for counts in closed:
        if counts is None:
            return None
        total.update(counts)
    return dict(sorted(total.items()))


def _order(key: tuple[str, str, str | None]) -> tuple:
    cluster, control, severity = key
    return (SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES), cluster, control)


def _summary(run: Row) -> dict[str, Any]:
    return json.loads(run["summary"] or "{}")


def is_in(name: str, values: Sequence[str]) -> Any:
    from pyiceberg.expressions import In

    return In(name, values)


def grouped(
    lake: Any,
    runs: Iterable[Row],
    where: Any,
    keys: Sequence[str],
    aggregations: Sequence[tuple[str, str]] = (),
) -> Iterable[dict[str, Any]]:
    """Rows of `findings` of these runs, counted by `keys` (`count_all`), file by file."""
    columns = (*keys, *(name for name, _ in aggregations))
    for part in _rows_of(lake, runs, where, columns):
        yield from _count(part, keys, aggregations)


def _rows_of(lake: Any, runs: Iterable[Row], where: Any, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Rows of `findings` of these runs, file by file."""
    from pyiceberg.expressions import And, In

    runs = list(runs)
    moments = [part["captured_at"] for run in runs for part in run["snapshots"] or () if part["captured_at"]]
    if moments:
        condition = And(captured_within(moments), In("result_id", [run["result_id"] for run in runs]), where)
        yield from lake.parts(FINDINGS, condition, columns)


def _count(part: pa.Table, keys: Sequence[str], aggregations: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    return part.group_by(list(keys)).aggregate([*aggregations, ([], "count_all")]).to_pylist()
