"""From verdicts to findings, a batch at a time.

A disputed verdict becomes UNKNOWN here, once. What passed has nothing to say; what doesn't apply has one of few reasons, which
are worded once each; the rest is worded row by row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.catalogue import causes
from durability.findings import words
from durability.findings.disputes import Disputes
from durability.lake.tables import DISAGREEMENTS, FINDINGS, VERDICTS

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan

BATCH = 20_000
"""Verdicts in memory as Python objects at once, at most."""
DECIDED = ("outcome", "severity", "cause", "message", "remediation")
"""What is new or may change from a verdict to its finding."""
REASON = ("control", "resource_type", "tier", "provider", "evidence")
"""What tells why a control doesn't apply."""


def write(lake: Lake, plan: Plan) -> int:
    """Writes the findings of the plan's result; returns how many. One commit: before it readers see none of them.

    Where a killed task has written them, nothing is written again.
    """
    from pyiceberg.expressions import And, EqualTo

    this = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id))
    there = lake.scan(FINDINGS, this, columns=("id",)).num_rows
    if there:
        return there
    disputes = Disputes(lake.scan(DISAGREEMENTS, this))
    return lake.append_parts(FINDINGS, findings_of(lake.parts(VERDICTS, this), disputes))


def findings_of(verdicts: Iterable[pa.Table], disputes: Disputes) -> Iterator[pa.Table]:
    """Rows of FINDINGS for rows of VERDICTS, part by part, and for disputes without a verdict.

    Raises KeyError for a control that the catalogue hasn't, jinja2.UndefinedError for evidence that a text misses.
    """
    for part in verdicts:
        yield pa.concat_tables([_worded(batch, disputes) for batch in _batches(part)])
    unmet = list(disputes.unmet())
    if unmet:
        yield _worded(
            pa.Table.from_pylist(unmet, VERDICTS.arrow), Disputes(DISAGREEMENTS.arrow.empty_table()), unmet=True
        )


def _batches(part: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, part.num_rows, BATCH) or (0,):
        yield part.slice(start, BATCH)


def _worded(batch: pa.Table, disputes: Disputes, unmet: bool = False) -> pa.Table:
    columns: dict[str, list[Any]] = {name: batch[name].to_pylist() for name in ("outcome", "severity")}
    columns["cause"] = [_cause(c) for c in batch["cause"].to_pylist()]
    columns["message"] = batch["was"].to_pylist() if unmet else _reasons(batch)
    columns["remediation"] = [None] * batch.num_rows
    for index, row in () if unmet else _speaking(batch, disputes):
        dispute = disputes.of(row)
        finding = row | {name: _object(row[name]) for name in ("observed", "required", "evidence")}
        finding["cause"] = columns["cause"][index]
        resolved = row["change"] == "resolved" and row["outcome"] != "EXEMPT"
        message = f"was: {row['was']}" if resolved else words.message(finding)
        columns["message"][index] = dispute.message(message) if dispute else message
        if dispute:
            columns["outcome"][index], columns["severity"][index] = "UNKNOWN", None
            columns["cause"][index] = causes.DISAGREE
        elif not resolved:
            columns["remediation"][index] = words.remediation(finding)
    made = {name: pa.array(columns[name], FINDINGS.arrow.field(name).type) for name in DECIDED}
    arrays = [made[name] if name in made else batch[name] for name in FINDINGS.arrow.names]
    return pa.Table.from_arrays(arrays, schema=FINDINGS.arrow)


def _speaking(batch: pa.Table, disputes: Disputes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The verdicts that are worded one by one, with their places in the batch."""
    silent = pc.is_in(batch["outcome"], pa.array(["PASS", "NOT_APPLICABLE"]))
    speaks = pc.or_(pc.invert(silent), pc.fill_null(pc.equal(batch["change"], "resolved"), False))
    if disputes.controls:
        speaks = pc.or_(speaks, pc.is_in(batch["control"], pa.array(sorted(disputes.controls))))
    at = pc.indices_nonzero(speaks)
    for index, row in zip(at.to_pylist(), batch.take(at).to_pylist(), strict=True):
        if row["outcome"] in ("PASS", "NOT_APPLICABLE") and row["change"] != "resolved" and not disputes.of(row):
            continue
        yield index, row


def _reasons(batch: pa.Table) -> list[str | None]:
    """The message of each verdict that doesn't apply, None elsewhere; there are few different ones."""
    messages: list[str | None] = [None] * batch.num_rows
    at = pc.indices_nonzero(pc.equal(batch["outcome"], "NOT_APPLICABLE"))
    for index, row in zip(at.to_pylist(), batch.select([*REASON, "outcome"]).take(at).to_pylist(), strict=True):
        messages[index] = _reason(*(row[name] for name in REASON))
    return messages


@lru_cache(maxsize=4096)
def _reason(
    control: str, resource_type: str, tier: str | None, provider: str | None, evidence: str | None
) -> str | None:
    about = {"control": control, "resource_type": resource_type, "tier": tier, "provider": provider, "category": None}
    return words.message({**about, "outcome": "NOT_APPLICABLE", "evidence": _object(evidence)})


@lru_cache(maxsize=4096)
def _cause(cause: str | None) -> str | None:
    return causes.worded(cause)


@lru_cache(maxsize=4096)
def _object(text: str | None) -> dict[str, Any]:
    """A JSON object; few differ among thousands of verdicts. Whoever reads it leaves it as it is."""
    return json.loads(text) if text else {}
