"""What a table of the lake is: its columns, keys and order."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

NAMESPACE = "audit"
CATALOG = "durability"

TIMESTAMP = pa.timestamp("us", tz="UTC")
STRINGS = pa.list_(pa.string())
INTS = pa.list_(pa.int32())
CONFIGS = pa.map_(pa.string(), pa.string())
UNREADABLE = pa.list_(pa.struct([("path", pa.string()), ("reason", pa.string())]))

FACT_KEYS = (
    ("cluster", pa.string()),
    ("captured_at", TIMESTAMP),
    ("snapshot_id", pa.string()),
    ("attempt_id", pa.string()),
)
RESULT_KEYS = (
    ("cluster", pa.string()),
    ("captured_at", TIMESTAMP),
    ("snapshot_id", pa.string()),
    ("run_id", pa.string()),
    ("result_id", pa.string()),
)


@dataclass(frozen=True)
class Table:
    """A table: its columns (Arrow types), whether it is partitioned by day(captured_at), and its sort order.

    retired: columns that an earlier version wrote. A lake that has them keeps them; new rows are NULL there.
    """

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]
    by_day: bool = True
    sort: tuple[str, ...] = ("cluster",)
    retired: tuple[str, ...] = ()

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(n, t) for n, t in self.columns])

    @property
    def identifier(self) -> str:
        return f"{NAMESPACE}.{self.name}"
