"""A run's rows of the lake, put together for reporting: counts over all of them, an order, and one document per row.

Pure functions over Arrow tables with the columns of `durability.lake.tables`. Counting and sorting stay columnar and
rows become Python objects a batch at a time, so half a million findings need little more than their Arrow table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.tables import FINDINGS
from durability.report.words import CHANGES, COUNTED_ONLY, OUTCOMES, SEVERITIES, stamp

BATCH = 5_000
COUNTED = ("cluster", "resource_type", "resource", "control", "outcome", "severity", "change")
# Worst first; resolved ones, which no longer hold, after everything that does.
ORDER = (*(f"FAIL/{s}" for s in SEVERITIES), "FAIL/", "UNKNOWN", "EXEMPT", "resolved")


@dataclass(frozen=True)
class Results:
    """A run's findings: `counted` has every outcome (columns COUNTED), `listed` what reports list, worst first."""

    counted: pa.Table
    listed: pa.Table


def assemble(counted: pa.Table, listed: pa.Table) -> Results:
    """`counted`: all findings of the run, at least columns COUNTED. `listed`: full rows of FINDINGS; those that are only
    counted are dropped."""
    counted, listed = counted.select(COUNTED), listed.select(FINDINGS.arrow.names)
    only_counted = pc.and_(pc.is_in(listed["outcome"], pa.array(COUNTED_ONLY)), pc.invert(resolved(listed)))
    return Results(counted, in_order(listed.filter(pc.invert(only_counted))))


def resolved(table: pa.Table) -> pa.ChunkedArray:
    """Whether each row is of the past; see `words.past`."""
    gone = pc.fill_null(pc.equal(table["change"], "resolved"), False)
    return pc.and_(gone, pc.not_equal(table["outcome"], "EXEMPT"))


def in_order(listed: pa.Table) -> pa.Table:
    """Worst first: outcome and severity as in ORDER, then cluster, control and resource."""
    failing = pc.binary_join_element_wise(listed["outcome"], pc.fill_null(listed["severity"], ""), "/")
    kind = pc.if_else(pc.equal(listed["outcome"], "FAIL"), failing, listed["outcome"])
    kind = pc.if_else(resolved(listed), "resolved", kind)
    rank = pc.fill_null(pc.index_in(kind, pa.array(ORDER)), len(ORDER))
    keys = [(name, "ascending") for name in ("rank", "cluster", "control", "resource", "category", "id")]
    order = pc.sort_indices(listed.append_column("rank", rank), sort_keys=keys)
    # Taken in slices: one column of half a million messages may pass the 2 GB that one Arrow string array holds.
    pieces = [listed.take(order.slice(at, 50_000)) for at in range(0, len(order), 50_000)]
    return pa.concat_tables(pieces) if pieces else listed


def summarise(counted: pa.Table, clusters: Sequence[str]) -> dict[str, object]:
    """Counts of rows by outcome, severity (FAIL only), cluster, control and change; resources judged by type.

    Rows of the past stand in `changes` alone. `clusters` are named even when nothing was found about them.
    """
    past = resolved(counted)
    present = counted.filter(pc.invert(past))
    open_rows = present.filter(pc.invert(pc.is_in(present["outcome"], pa.array(COUNTED_ONLY))))
    changes = {c: _count(open_rows, "change").get(c, 0) for c in CHANGES}
    changes["resolved"] = _count(counted, "change").get("resolved", 0)  # with the waived ones, which stand as EXEMPT
    named = present.filter(pc.is_valid(present["resource"]))
    distinct = named.group_by(["resource_type", "cluster", "resource"]).aggregate([])
    return {
        "outcomes": _all(OUTCOMES, _count(present, "outcome")),
        "severities": failed_by_severity(counted),
        "clusters": _by(present, "cluster", clusters),
        "controls": _by(present, "control", ()),
        "changes": changes,
        "resources": _count(distinct, "resource_type"),
    }


def failed_by_severity(counted: pa.Table) -> dict[str, int]:
    """How many rows fail now, by severity."""
    failed = counted.filter(pc.and_(pc.equal(counted["outcome"], "FAIL"), pc.invert(resolved(counted))))
    return _all(SEVERITIES, _count(failed, "severity"))


def _count(table: pa.Table, column: str) -> dict[str, int]:
    counts = table.group_by(column).aggregate([([], "count_all")])
    rows = zip(counts[column].to_pylist(), counts["count_all"].to_pylist(), strict=True)
    return {name: n for name, n in sorted(rows, key=lambda r: r[0] or "") if name is not None}


def _all(names: Sequence[str], counts: dict[str, int]) -> dict[str, int]:
    return {**dict.fromkeys(names, 0), **counts}


def _by(table: pa.Table, column: str, named: Sequence[str]) -> dict[str, dict[str, int]]:
    counts = table.group_by([column, "outcome"]).aggregate([([], "count_all")]).to_pylist()
    found: dict[str, dict[str, int]] = {name: {} for name in named}
    for row in counts:
        found.setdefault(row[column], {})[row["outcome"]] = row["count_all"]
    return {name: _all(OUTCOMES, found[name]) for name in sorted(found)}


def documents(listed: pa.Table, waivers: Sequence[dict]) -> Iterator[dict[str, object]]:
    """Each row as an entry of findings.json's `findings`; `waivers`: the run's, which `waiver` indexes."""
    by_index = {w.get("index", at): w for at, w in enumerate(waivers)}
    for batch in listed.to_batches(max_chunksize=BATCH):
        for row in batch.to_pylist():
            yield document(row, by_index)


def document(row: dict[str, object], waivers: dict[int, dict]) -> dict[str, object]:
    """One finding of `durability-findings/1`; `category`, `tier` and `previous_severity` stand beside the documented keys."""
    waiver = row["waiver"]
    return {
        "id": row["id"],
        "cluster": row["cluster"],
        "resource_type": row["resource_type"],
        "resource": row["resource"] or "",
        "control": row["control"],
        "category": row["category"],
        "outcome": row["outcome"],
        "severity": row["severity"],
        "cause": row["cause"],
        "observed": _object(row["observed"]),
        "required": _object(row["required"]),
        "partitions": row["partitions"] or [],
        "message": row["message"],
        "remediation": row["remediation"],
        "change": row["change"],
        "why": row["why"],
        "since": stamp(row["since"]),
        "waiver": None if waiver is None else accepted(waiver, waivers),
        "tier": row["tier"],
        "previous_severity": row["previous_severity"],
    }


@lru_cache(maxsize=4096)
def _object(text: str | None) -> dict[str, object]:
    """A JSON object; few differ among thousands of findings. Readers share what is returned and leave it as it is."""
    return json.loads(text or "{}")


def accepted(index: int, waivers: dict[int, dict]) -> dict[str, object]:
    """Who accepted a finding until when: the waiver's own words, with its index in the run's waivers."""
    waiver = waivers.get(index, {})
    kept = ("owner", "approved_by", "reason", "ticket", "expires")
    return {"index": index, **{name: stamp(waiver.get(name)) for name in kept}}
