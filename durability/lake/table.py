"""A table of the lake as data, and the types and keys that tables share."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

NAMESPACE = "audit"
CATALOG = "durability"

TIMESTAMP = pa.timestamp("us", tz="UTC")
STRINGS = pa.list_(pa.string())
INTS = pa.list_(pa.int32())
CONFIGS = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True)
class Table:
    """A table, partitioned by day(captured_at), with its columns (Arrow types) and its sort order.

    retired: columns that an earlier version wrote. A lake keeps them if it has them. They are NULL in new rows.
    """

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]
    sort: tuple[str, ...] = ("cluster",)
    retired: tuple[str, ...] = ()

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema(self.columns)

    @property
    def identifier(self) -> str:
        return f"{NAMESPACE}.{self.name}"


def structs(**fields: pa.DataType) -> pa.ListType:
    return pa.list_(pa.struct(list(fields.items())))


FACT_KEYS = (
    ("cluster", pa.string()),
    ("captured_at", TIMESTAMP),
    ("snapshot_id", pa.string()),
    ("attempt_id", pa.string()),
)
RESULT_KEYS = (*FACT_KEYS[:3], ("run_id", pa.string()), ("result_id", pa.string()))
