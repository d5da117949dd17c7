"""The report's part "What a failure would cost": from entries of losses.json, a table of clusters and details of the worst."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil, log1p
from typing import Any

from durability.lake.tables import VIEWS
from durability.plain import plural
from durability.report.data.failure_costs import worst_first
from durability.report.data.loss_sets import CLASSES, COUNTED
from durability.report.losses import missing
from durability.report.words import clipped

DETAILED, CLUSTERS = 5, 300
"""The most clusters with details, and the most in the table."""
RACKS, BROKERS, SETS, MISSING = 8, 10, 3, 20
"""The most racks and brokers of a heat map, the most sets of a class, and the most clusters that are named as missing."""
LEVELS = 4
"""Shades of the heat map."""
SHORT = (*(("now", name) for name in CLASSES), ("worst", "data"))
"""The numbers of partitions in the table of clusters."""
NAME = 60
KINDS = {"brokers": ("broker", "broker-loss", ""), "racks": ("rack", "rack-loss", "_racks")}
"""For each kind of nodes its noun, the control about it, and the suffix of its members in losses.json."""
HEADS = {"now": "Now", "structural": "By structure", "worst": "Worst case"}
BREAKS = {"data": "with data at risk", "availability": "offline", "writes": "whose writes stop"}
WRITES = {"NOT_ENOUGH_REPLICAS": "whose writes are rejected", "REQUEST_TIMED_OUT": "whose writes time out"}
"""What partitions do whose writes a loss breaks, by their leaders' answer."""
Entry = Mapping[str, Any]


class FailureRows:
    """Collects what the page shows of entries of losses.json, so that entries need not stay in memory."""

    def __init__(self) -> None:
        self.clusters: list[dict[str, Any]] = []
        self.detailed: list[tuple[Any, dict[str, Any]]] = []

    def add(self, entry: Entry) -> None:
        order = _worst(entry)
        self.clusters.append({"order": order, **_summary(entry)})
        self.detailed.append((order, _details(entry)))
        self.detailed.sort(key=lambda item: item[0])
        del self.detailed[DETAILED:]

    def context(self, snapshots: Sequence[Mapping[str, Any]], findings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """The template's variables.

        snapshots: the run's. findings: those that the page lists, worst first. A cost links to the finding that fixes it.
        """
        ranked = sorted(self.clusters, key=lambda row: row["order"])
        fixes = _Fixes(findings)
        unknown = missing(snapshots, {row["cluster"] for row in ranked})
        return {
            "clusters": [_with_fixes(row, fixes, row["cluster"]) for row in ranked[:CLUSTERS]],
            "detailed": [_with_fixes(row, fixes, row["cluster"]) for _, row in self.detailed],
            "left": max(0, len(ranked) - CLUSTERS),
            "missing": unknown[:MISSING],
            "more_missing": max(0, len(unknown) - MISSING),
            "heads": HEADS,
            "views": VIEWS,
            "kinds": KINDS,
        }


class _Fixes:
    """The findings about losses by cluster and control."""

    def __init__(self, findings: Iterable[Mapping[str, Any]]):
        self.by: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        controls = {control for _, control, _ in KINDS.values()}
        for finding in findings:
            if finding["control"] in controls:
                self.by.setdefault((finding["cluster"], finding["control"]), []).append(finding)

    def link(self, cluster: str, kind: str, names: Collection[str]) -> dict[str, str]:
        """Where the fix is: the first finding that names a lost node, else the cluster's first one, else the control."""
        control = KINDS[kind][1]
        found = self.by.get((cluster, control), [])
        named = (f for f in found if {str(name) for name in f["observed"].get("lost") or ()} & set(names))
        finding = next(named, found[0] if found else None)
        if finding is None:
            return {"href": f"control-{control}", "text": control}
        return {"href": f"f-{finding['id']}", "text": f"fix for {clipped(finding['resource'], NAME)}"}


def _with_fixes(row: dict[str, Any], fixes: _Fixes, cluster: str) -> dict[str, Any]:
    """The row with a link for each loss that breaks something."""
    linked = dict(row)
    for kind in KINDS:
        cost = row["worst"][kind]
        linked[f"{kind}_fix"] = fixes.link(cluster, kind, {cost["name"]} if cost else ())
    if "heat" in row:
        linked["heat"] = [
            heat | {"fix": fixes.link(cluster, heat["kind"], {heat["name"]}) if heat["breaks"] else None}
            for heat in row["heat"]
        ]
    return linked


def _worst(entry: Entry) -> tuple[Any, ...]:
    """A sort key for clusters. Brokers count first, because they fail more often than racks."""
    return (*((worst_first(entry[kind][0])[:-1] if entry[kind] else (2,)) for kind in KINDS), entry["cluster"])


def _summary(entry: Entry) -> dict[str, Any]:
    """A cluster's row in the table of clusters."""
    at = {k["k"]: k for k in entry["k"]}
    return {
        "cluster": entry["cluster"],
        "unknown": entry["unknown"],
        "worst": {kind: _cost(entry[kind][0]) if entry[kind] else None for kind in KINDS},
        "quorum": _quorum(entry),
        "fewest": {name: _fewest(entry["minimal"]["now"][name], "brokers") for name in CLASSES},
        "restart": entry["restart"],
        "three": at[3]["now"]["data"]["probability"] if 3 in at else None,
    }


def _details(entry: Entry) -> dict[str, Any]:
    """A cluster's heat map, its table of k failures and its smallest killing sets."""
    limits = {"racks": RACKS, "brokers": BROKERS}
    shown = [(kind, row) for kind, limit in limits.items() for row in entry[kind][:limit]]
    rows = [views for views in (entry["already"], *(row["views"] for _, row in shown)) if views]
    most = max((count["partitions"] for views in rows for count in _counts(views) if count), default=0)
    return {
        **_summary(entry),
        "captured_at": entry["captured_at"],
        "already": _cells(entry["already"], most) if entry["already"] else None,
        "heat": [
            {
                "kind": kind,
                **_cost(row),
                **{n: row[n] for n in ("held", "led", "quorum")},
                "down": row.get("live") is False,
                "cells": _cells(row["views"], most),
            }
            for kind, row in shown
        ],
        "left": {kind: max(0, len(entry[kind]) - limit) for kind, limit in limits.items()},
        "k": [{**k, "noun": plural(k["k"], noun)} for noun, _, suffix in KINDS.values() for k in entry[f"k{suffix}"]],
        "sets": [
            {
                "kind": kind,
                "name": name,
                **{view: _sets(entry[f"minimal{KINDS[kind][2]}"], view, name, kind) for view in COUNTED},
            }
            for kind in KINDS
            for name in CLASSES
        ],
    }


def _counts(views: Mapping[str, Any]) -> list[Mapping[str, int] | None]:
    return [views[view][name] for view, names in VIEWS.items() for name in names]


def _cost(row: Entry) -> dict[str, Any]:
    """What a broker's or rack's loss newly breaks: in words by view (`said`), and the numbers of SHORT."""
    views = {view: _said(row["views"][view], row["writes_error"]) for view in VIEWS}
    said = {view: text for view, text in views.items() if text}
    return {
        "name": str(row["lost"]),
        "unknown": row["unknown"],
        "said": said,
        "short": [count and count["partitions"] for count in (row["views"][view][name] for view, name in SHORT)],
        "breaks": bool(said) or row["quorum"] == "lost",
    }


def _said(counts: Mapping[str, Mapping[str, int] | None], error: str | None) -> str:
    """Counts of partitions in words; '' if nothing is broken. error: what leaders answer acks=all writes.

    >>> counts = {"data": {"partitions": 1, "topics": 1}, "availability": None, "writes": {"partitions": 1200, "topics": 3}}
    >>> _said(counts, "NOT_ENOUGH_REPLICAS")
    '1 partition with data at risk, 1,200 whose writes are rejected'
    >>> _said(counts, "REQUEST_TIMED_OUT"), _said(counts, None)
    ('1 partition with data at risk, 1,200 whose writes time out', '1 partition with data at risk, 1,200 whose writes stop')
    """
    texts_of = BREAKS | ({"writes": WRITES[error]} if error else {})
    broken = [(counts[name], text) for name, text in texts_of.items() if name in counts]
    texts = [(count["partitions"], text) for count, text in broken if count and count["partitions"]]
    return ", ".join(
        f"{plural(count, 'partition') if not place else f'{count:,}'} {text}"
        for place, (count, text) in enumerate(texts)
    )


def _quorum(entry: Entry) -> dict[str, list[str]]:
    """The racks and brokers whose loss costs the quorum's majority, and those for which that is unknown."""
    rows = [(noun, row) for kind, (noun, _, _) in KINDS.items() for row in entry[kind]]
    found = {
        state: [f"{noun} {clipped(str(row['lost']), NAME)}" for noun, row in rows if row["quorum"] in states]
        for state, states in (("lost", ("lost",)), ("unknown", ("unknown", None)))
    }
    return found


def _cells(views: Mapping[str, Any], most: int) -> list[dict[str, Any]]:
    """A cell for each view and class: its number (None: unknown), its shade from 0 to LEVELS, and its title."""
    cells = []
    for view, names in VIEWS.items():
        for name in names:
            count = views[view][name]
            number = count["partitions"] if count else None
            shade = ceil(LEVELS * log1p(number) / log1p(most)) if number and most else 0
            title = f"{plural(number, 'partition')} of {plural(count['topics'], 'topic')}" if count and number else ""
            cells.append({"number": number, "shade": shade, "title": title, "first": name == "data"})
    return cells


def _fewest(sets: Sequence[Mapping[str, Any]], kind: str) -> int | None:
    return len(sets[0][kind]) if sets else None


def _sets(minimal: Mapping[str, Any], view: str, name: str, kind: str) -> dict[str, Any]:
    """The first SETS of a class, and the number of others."""
    listed, noun = minimal[view][name], KINDS[kind][0]
    size = _fewest(listed, kind)
    shown = [
        (" + ".join(clipped(str(node), NAME) for node in found[kind][:12]), found["partitions"])
        for found in listed[:SETS]
    ]
    return {
        "fewest": plural(size, noun) if size else None,
        "shown": shown,
        "more": minimal["count"][view][name] - len(shown),
    }
