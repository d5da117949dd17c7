"""findings.csv: a row per finding, safe to open in a spreadsheet. It is written column by column, because most cells repeat."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from durability.plan.plan import to_text
from durability.report.cells import safe_column
from durability.report.data import results

COLUMNS = (
    *("id", "cluster", "resource_type", "resource", "control", "category", "outcome", "severity", "cause"),
    *("observed", "required", "partition_count", "partitions", "message", "remediation", "change", "why", "since"),
    *("tier", "waiver_owner", "waiver_approved_by", "waiver_reason", "waiver_ticket", "waiver_expires"),
    *("previous_severity", "waiver_requested_by", "waiver_approved_at", "waiver_approved_count", "waiver_risk"),
    *("waiver_compensating_control", "team", "previous_outcome"),
)
"""The columns of findings.csv."""


def write(file: BinaryIO, listed: pa.Table, waivers: Sequence[dict[str, Any]]) -> None:
    """Write findings.csv. listed: rows with the columns `results.KEYS`. waivers: the run's."""
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    with csv.CSVWriter(file, schema, write_options=csv.WriteOptions(quoting_style="all_valid")) as writer:
        # In slices: the messages of half a million findings can exceed the 2 GB of one Arrow string array.
        for batch in listed.select(results.KEYS).to_batches(max_chunksize=50_000):
            columns = _cells(batch, waivers)
            writer.write_batch(pa.record_batch([columns[name] for name in COLUMNS], schema=schema))


def _cells(batch: pa.RecordBatch, waivers: Sequence[dict[str, Any]]) -> dict[str, pa.Array]:
    """Each column of a batch as the cells of findings.csv."""
    rows = dict(zip(batch.schema.names, batch.columns, strict=True))
    partitions = rows.pop("partitions")
    for name in ("observed", "required"):
        rows[name] = results.text_of_each(rows[name], lambda text: pairs(json.loads(text or "{}")))
    rows["since"] = results.text_of_each(rows["since"], to_text)
    rows["partitions"] = pc.binary_join(partitions.cast(pa.list_(pa.string())), ";")
    rows["partition_count"] = pc.fill_null(pc.list_value_length(partitions), 0)
    waived = results.waived(waivers)
    of_rows = list(map(waived, rows.pop("waiver").to_pylist(), rows["tier"].to_pylist()))
    for name in results.WAIVER_KEYS:
        stated = [waiver and waiver[name] for waiver in of_rows]
        rows[f"waiver_{name}"] = pa.array([None if cell is None else str(cell) for cell in stated], pa.string())
    return {name: safe_column(column) for name, column in rows.items()}


def pairs(values: Mapping[str, object]) -> str:
    """Members as `name=value`, joined by semicolons.

    >>> pairs({"replication_factor": 2, "source": "topic", "acks": {"1": None}})
    'replication_factor=2; source=topic; acks={"1": null}'
    """
    return "; ".join(f"{k}={v if isinstance(v, str) or type(v) is int else _as_json(v)}" for k, v in values.items())


_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # `json.dumps` would create an encoder per call
