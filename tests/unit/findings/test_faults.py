"""A fault of the audit costs the text that it is in: the report of an outage comes out, and says what is missing."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from durability.findings import findings_of
from durability.findings.build import NO_MESSAGE, NO_REMEDY
from durability.findings.disputes import Disputes
from durability.findings.faults import MOST, Faults
from durability.lake import tables
from tests.support.words import TARGET

KEYS = {"run_id": "r", "result_id": "r", "captured_at": datetime(2026, 11, 21, tzinfo=UTC), "snapshot_id": "s"}
SMALL = {
    **KEYS,
    **{
        "cluster": "eu",
        "control": "replication-factor",
        "outcome": "FAIL",
        "severity": "critical",
        "resource_type": "topic",
    },
    **{"cause": "placement", "tier": "critical", "evidence": TARGET, "partitions": [0]},
    **{"observed": '{"replication_factor": 1}', "required": '{"replication_factor": 3}'},
}


def verdicts(*rows: dict) -> pa.Table:
    return pa.Table.from_pylist([SMALL | row for row in rows], tables.VERDICTS.arrow)


def worded(rows: pa.Table, faults: Faults | None) -> dict[str, dict]:
    none = pa.Table.from_pylist([], tables.DISAGREEMENTS.arrow)
    return {f["resource"]: f for f in pa.concat_tables(findings_of([rows], Disputes(none), None, faults)).to_pylist()}


def test_evidence_that_a_text_needs_and_lacks_costs_that_text(caplog):
    rows = verdicts({"resource": "orders"}, {"resource": "odd\x1b]0;", "evidence": "{}", "observed": "{}"})
    faults = Faults()
    with caplog.at_level(logging.ERROR):
        found = worded(rows, faults)
    assert found["orders"]["message"].startswith("partition 0: replication factor 1")
    assert found["orders"]["remediation"] and found["orders"]["remediation"] != NO_REMEDY
    odd = found["odd\x1b]0;"]
    assert (odd["outcome"], odd["severity"]) == ("FAIL", "critical")
    assert (odd["message"], odd["remediation"]) == (NO_MESSAGE, NO_REMEDY)
    assert faults.count == 2
    for told, what in zip(faults, ("message", "remediation"), strict=True):
        assert f"eu: the {what} of replication-factor for odd" in told and "\x1b" not in told
    assert "Traceback" in caplog.text
    with pytest.raises(Exception, match="replication_factor"):
        worded(rows, None)


def test_many_faults_are_told_in_few_lines():
    faults = Faults()
    for n in range(MOST + 5):
        faults.add(f"text {n}", KeyError("x"))
    told = list(faults)
    assert len(told) == MOST + 1
    assert told[-1].startswith("5 more texts could not be made")
