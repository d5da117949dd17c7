"""Findings as readers see them."""

from __future__ import annotations

import pyarrow as pa

from durability.lake.tables import FINDINGS


def with_disagreements(findings: pa.Table, disagreements: pa.Table) -> pa.Table:
    """Findings, those on which Spark and Great Expectations disagree as UNKNOWN.

    findings: rows of `findings`; disagreements: rows of `disagreements` of the same result, by cluster, control and
    resource. Such a finding says both readings and has neither severity nor remediation: nothing is known of it.
    """
    readings = {
        (row["cluster"], row["control"], row["resource"]): (row["spark"], row["expectations"])
        for row in disagreements.to_pylist()
    }
    columns = {name: findings[name].to_pylist() for name in ("cluster", "control", "resource")}
    keys = list(zip(columns["cluster"], columns["control"], columns["resource"], strict=True))
    differing = [row for row, key in enumerate(keys) if key in readings]
    if not differing:
        return findings
    said = {row: readings[keys[row]] for row in differing}
    texts = {
        row: f"two readings of this control differ: Spark says {s}, Great Expectations says {e}"
        for row, (s, e) in said.items()
    }
    for name, values in (
        ("outcome", dict.fromkeys(differing, "UNKNOWN")),
        ("severity", dict.fromkeys(differing)),
        ("remediation", dict.fromkeys(differing)),
        ("message", texts),
    ):
        column = findings[name].to_pylist()
        for row, value in values.items():
            column[row] = value
        position = findings.schema.get_field_index(name)
        findings = findings.set_column(position, FINDINGS.arrow.field(name), pa.array(column, pa.string()))
    return findings
