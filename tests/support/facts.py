"""The facts of a drawn cluster, without a lake."""

from __future__ import annotations

import pyarrow as pa

from durability.lake import rows
from durability.topology import validate


class Facts:
    """The facts of one snapshot, as a lake gives them."""

    def __init__(self, drawn: dict):
        self.tables = rows.build(validate(drawn, "eu.json"), "s", "attempt", provider="self")

    def scan(self, table, where, columns) -> pa.Table:
        return self.tables[table.name].select(list(columns))

    def parts(self, table, where, columns) -> list[pa.Table]:
        whole = self.scan(table, where, columns)
        return [whole.slice(at, 2) for at in range(0, whole.num_rows, 2)]
