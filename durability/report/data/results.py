"""A run's findings: their counts, their order, and their entries in findings.json.

Rows are counted and sorted as Arrow columns and become Python objects in batches. So memory grows only with the Arrow table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.plan.plan import to_text
from durability.policy.terms import last_day
from durability.report.news import WORSENED, change_of
from durability.report.words import CHANGES, COUNTED_ONLY, OUTCOMES, SEVERITIES

BATCH = 5_000
PREVIOUS = ("previous_outcome", "previous_severity")
COUNTED = ("cluster", "resource_type", "resource", "control", "outcome", "severity", "change", *PREVIOUS)
"""The columns that are counted."""
KEYS = (
    *("id", "cluster", "resource_type", "resource", "control", "category", "outcome", "severity", "cause"),
    *("observed", "required", "partitions", "message", "remediation", "change", "why", "since", "waiver"),
    *("tier", "previous_severity", "previous_outcome", "team"),
)
"""Keys of an entry in findings.json's `findings`, in order. `team` is of `data.teams`, the others are of the lake."""
WAIVER_KEYS = (
    *("owner", "approved_by", "reason", "ticket", "expires"),
    *("requested_by", "approved_at", "approved_count", "risk", "compensating_control"),
)
ORDER = (*(f"FAIL/{s}" for s in SEVERITIES), "FAIL/", "UNKNOWN", "EXEMPT", "resolved")
"""Worst first. Resolved findings come last."""


def resolved(table: pa.Table) -> pa.ChunkedArray:
    """Whether each row is resolved; see `words.is_resolved`."""
    gone = pc.fill_null(pc.equal(table["change"], "resolved"), False)
    return pc.and_(gone, pc.not_equal(table["outcome"], "EXEMPT"))


def worst_first(listed: pa.Table) -> pa.Table:
    """Rows sorted by outcome and severity as in ORDER, then by cluster, control and resource."""
    failing = pc.binary_join_element_wise(listed["outcome"], pc.fill_null(listed["severity"], ""), "/")
    kind = pc.if_else(pc.equal(listed["outcome"], "FAIL"), failing, listed["outcome"])
    kind = pc.if_else(resolved(listed), "resolved", kind)
    rank = pc.fill_null(pc.index_in(kind, pa.array(ORDER)), len(ORDER))
    keys = [(name, "ascending") for name in ("rank", "cluster", "control", "resource", "category", "id")]
    order = pc.sort_indices(listed.append_column("rank", rank), sort_keys=keys)
    # From dozens of chunks, rows are taken ten times as slowly.
    listed = listed.combine_chunks()
    # Use slices: the messages of half a million findings can exceed the 2 GB of one Arrow string array.
    pieces = [listed.take(order.slice(at, 50_000)) for at in range(0, len(order), 50_000)]
    return pa.concat_tables(pieces) if pieces else listed


def summarise(counted: pa.Table, clusters: Iterable[str]) -> dict[str, Any]:
    """The member `summary` of findings.json, from rows with the columns COUNTED.

    Resolved rows count in `changes` only. Each of `clusters` has an entry, even without a finding.
    """
    present = counted.filter(pc.invert(resolved(counted)))
    listed = present.filter(pc.invert(pc.is_in(present["outcome"], pa.array(COUNTED_ONLY))))
    changes = _count(listed, "change", CHANGES)
    changes["resolved"] = _count(counted, "change", CHANGES)["resolved"]  # includes waived findings, which are EXEMPT
    named = present.filter(pc.is_valid(present["resource"]))
    distinct = named.group_by(["resource_type", "cluster", "resource"]).aggregate([])
    return {
        "outcomes": _count(present, "outcome", OUTCOMES),
        "severities": failed_by_severity(counted),
        "clusters": _outcomes_by(present, "cluster", clusters),
        "controls": _outcomes_by(present, "control"),
        "changes": changes,
        **_news(present),
        "resources": _count(distinct, "resource_type"),
    }


def _news(present: pa.Table) -> dict[str, dict[str, int]]:
    """`new_failures` and `worsened_failures`: failures by severity that are news (`durability.report.news`)."""
    names = ("outcome", "severity", "change", *PREVIOUS)
    failed = present.filter(pc.equal(present["outcome"], "FAIL"))
    counts = {kind: dict.fromkeys(SEVERITIES, 0) for kind in ("new", WORSENED)}
    for row in failed.group_by(list(names)).aggregate([([], "count_all")]).to_pylist():
        of_kind = counts.get(change_of(row) or "", {})
        if row["severity"] in of_kind:
            of_kind[row["severity"]] += row["count_all"]
    return {f"{kind}_failures": by_severity for kind, by_severity in counts.items()}


def failed_by_severity(counted: pa.Table) -> dict[str, int]:
    """The number of rows that fail now, by severity."""
    failed = counted.filter(pc.and_(pc.equal(counted["outcome"], "FAIL"), pc.invert(resolved(counted))))
    return _count(failed, "severity", SEVERITIES)


def passed(counted: pa.Table) -> list[tuple[str, str, int]]:
    """Cluster, control, and the number of verdicts that pass, from rows with the columns COUNTED."""
    present = counted.filter(pc.and_(pc.equal(counted["outcome"], "PASS"), pc.invert(resolved(counted))))
    rows = present.group_by(["cluster", "control"]).aggregate([([], "count_all")]).to_pylist()
    return sorted((row["cluster"], row["control"], row["count_all"]) for row in rows)


def _count(table: pa.Table, column: str, names: Iterable[str] = ()) -> dict[str, int]:
    """The number of rows by value of a column. Each of `names` has an entry, even 0."""
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(table[column]).to_pylist()}
    return {**dict.fromkeys(names, 0), **{name: counts[name] for name in sorted(filter(None, counts))}}


def _outcomes_by(table: pa.Table, column: str, names: Iterable[str] = ()) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    for row in table.group_by([column, "outcome"]).aggregate([([], "count_all")]).to_pylist():
        found.setdefault(row[column], {})[row["outcome"]] = row["count_all"]
    return {name: {**dict.fromkeys(OUTCOMES, 0), **found[name]} for name in sorted(found)}


def documents(listed: pa.Table, waivers: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each row as an entry of findings.json's `findings`. listed: rows with the columns KEYS. waivers: the run's."""
    of_waiver = waived(waivers)
    for batch in listed.select(KEYS).to_batches(max_chunksize=BATCH):
        texts = text_of_each(batch["since"], to_text)
        for row in batch.set_column(KEYS.index("since"), "since", texts).to_pylist():
            row["resource"] = row["resource"] or ""
            row["observed"], row["required"] = _object(row["observed"]), _object(row["required"])
            row["partitions"] = row["partitions"] or []
            row["waiver"] = of_waiver(row["waiver"], row["tier"])
            yield row


def waived(waivers: Sequence[dict[str, Any]]) -> Callable[[int | None, str | None], dict[str, Any] | None]:
    """A finding's entry for its waiver, by index and the finding's tier. No index gives None.

    `expires` is the last day on which the waiver counts in the tier.
    """
    by_index = {waiver["index"]: waiver for waiver in waivers}

    @lru_cache(maxsize=4096)
    def entry(index: int | None, tier: str | None) -> dict[str, Any] | None:
        if index is None:
            return None
        stated = by_index[index] | {"expires": last_day(by_index[index], tier)}
        return {name: stated.get(name) for name in ("index", *WAIVER_KEYS)}

    return entry


def text_of_each(column: pa.Array, text_of: Callable[[Any], str | None]) -> pa.Array:
    """A text for each value of a column, made once for equal values."""
    encoded = column.dictionary_encode(null_encoding="encode")
    return pa.array(map(text_of, encoded.dictionary.to_pylist()), pa.string()).take(encoded.indices)


@lru_cache(maxsize=4096)
def _object(text: str | None) -> dict[str, Any]:
    """A JSON object. Thousands of findings share a few, so callers must not change it."""
    return json.loads(text or "{}")
