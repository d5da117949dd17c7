"""Turns verdicts into findings, in batches. A disputed verdict becomes UNKNOWN here.

A PASS has no message. Verdicts that don't apply share a few messages, each rendered once. Other messages are rendered row by
row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.catalogue import causes
from durability.findings import reassignments, words
from durability.findings.clusters import facts_of_clusters
from durability.findings.disputes import Disputes
from durability.findings.disputes import message as dispute_message
from durability.findings.faults import Faults, made
from durability.garbage import uncollected
from durability.lake.conditions import of_result
from durability.lake.tables import DISAGREEMENTS, FINDINGS, VERDICTS
from durability.remedies.cluster import KEY as CLUSTER_FACTS
from durability.remedies.cluster import UNKNOWN, ClusterFacts

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan

BATCH = 20_000
"""The most verdicts in memory as Python objects at once."""
COUNTED_ONLY = ("PASS", "NOT_APPLICABLE")
NO_MESSAGE = (
    "this finding can't be put into words, by a fault of the audit: its cause and its observed values are right"
)
NO_REMEDY = "None can be offered, by a fault of the audit: act on the cause"
REASON = ("control", "resource_type", "tier", "provider", "evidence")
"""The columns that decide the message of a control that doesn't apply."""


@uncollected()
def write(lake: Lake, plan: Plan, faults: Faults | None = None) -> int:
    """Write the findings of the plan's result in one commit and return how many. Existing findings are kept.

    faults: collects texts and plans that could not be made. Without it, the error is raised.
    """

    result = of_result(plan)
    written = lake.scan(FINDINGS, result, columns=("id",)).num_rows
    if written:
        return written
    disputes = Disputes(lake.scan(DISAGREEMENTS, result))
    facts = facts_of_clusters(lake, plan, reassignments.write(lake, plan, faults))
    return lake.append_parts(FINDINGS, findings_of(lake.parts(VERDICTS, result), disputes, facts, faults))


def findings_of(
    verdicts: Iterable[pa.Table],
    disputes: Disputes,
    facts: Mapping[str, ClusterFacts] | None = None,
    faults: Faults | None = None,
) -> Iterator[pa.Table]:
    """Rows of FINDINGS for parts of VERDICTS, and for disputes without a verdict.

    facts: what remedies need to know about each cluster. Without it, no remedy names a plan.
    faults: collects texts that could not be made. Without it, the error is raised: KeyError for a control that isn't in the
        catalogue, jinja2.UndefinedError for missing evidence.
    """
    for part in verdicts:
        batches = [part.slice(start, BATCH) for start in range(0, part.num_rows, BATCH)]
        yield pa.concat_tables([_rendered(batch, disputes, facts or {}, faults) for batch in batches or [part]])
    missing = disputes.without_verdict()
    if missing.num_rows:
        yield missing


def _rendered(
    batch: pa.Table, disputes: Disputes, facts: Mapping[str, ClusterFacts], faults: Faults | None
) -> pa.Table:
    columns: dict[str, list[Any]] = {name: batch[name].to_pylist() for name in ("outcome", "severity")}
    columns["cause"] = [_cause(code) for code in batch["cause"].to_pylist()]
    columns["message"] = _reasons(batch)
    columns["remediation"] = [None] * batch.num_rows
    listed = pc.invert(pc.is_in(batch["outcome"], pa.array(COUNTED_ONLY)))
    listed = pc.or_(listed, pc.fill_null(pc.equal(batch["change"], "resolved"), False))
    at = pc.indices_nonzero(pc.or_(listed, pc.is_in(batch["control"], pa.array(disputes.controls, pa.string()))))
    for index, row in zip(at.to_pylist(), batch.take(at).to_pylist(), strict=True):
        dispute = disputes.of(row)
        if row["outcome"] in COUNTED_ONLY and row["change"] != "resolved" and not dispute:
            continue
        resolved = row["change"] == "resolved" and row["outcome"] != "EXEMPT"
        finding = of_verdict(row, facts.get(row["cluster"], UNKNOWN))
        message = f"was: {row['was']}" if resolved else _text(finding, words.message, "message", NO_MESSAGE, faults)
        if dispute:
            columns["outcome"][index], columns["severity"][index] = "UNKNOWN", None
            columns["cause"][index], message = causes.DISAGREE, dispute_message(dispute, message)
        elif not resolved:
            columns["remediation"][index] = _text(finding, words.remediation, "remediation", NO_REMEDY, faults)
        columns["message"][index] = message
    made = {name: pa.array(values, FINDINGS.arrow.field(name).type) for name, values in columns.items()}
    arrays = [made[name] if name in made else batch[name] for name in FINDINGS.arrow.names]
    return pa.Table.from_arrays(arrays, schema=FINDINGS.arrow)


def _text(
    finding: dict[str, Any],
    words_of: Callable[[dict[str, Any]], str | None],
    name: str,
    otherwise: str | None,
    faults: Faults | None,
) -> str | None:
    what = f"{finding['cluster']}: the {name} of {finding['control']} for {finding['resource']}"
    return made(faults, what, lambda: words_of(finding), otherwise)


def of_verdict(row: Mapping[str, Any], facts: ClusterFacts) -> dict[str, Any]:
    """The input of texts: a row of VERDICTS with parsed objects, its cause in words and the facts of its cluster."""
    objects = {name: _object(row[name]) for name in ("observed", "required", "evidence")}
    return {**row, **objects, "cause": _cause(row["cause"]), CLUSTER_FACTS: facts}


def _reasons(batch: pa.Table) -> list[str | None]:
    """The message of each verdict that doesn't apply; None for the others."""
    messages: list[str | None] = [None] * batch.num_rows
    at = pc.indices_nonzero(pc.equal(batch["outcome"], "NOT_APPLICABLE"))
    for index, row in zip(at.to_pylist(), batch.select(REASON).take(at).to_pylist(), strict=True):
        messages[index] = _reason(**row)
    return messages


@lru_cache(maxsize=4096)
def _reason(evidence: str | None, **verdict: str | None) -> str | None:
    finding = verdict | {"category": None, "outcome": "NOT_APPLICABLE", "evidence": _object(evidence)}
    return words.message(finding)


_cause = lru_cache(maxsize=4096)(causes.worded)


@lru_cache(maxsize=4096)
def _object(text: str | None) -> dict[str, Any]:
    """A JSON object. Thousands of verdicts share a few, so callers must not change it."""
    return json.loads(text) if text else {}
