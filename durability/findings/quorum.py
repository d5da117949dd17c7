"""Does a controller lead each cluster? Without one nothing can be changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from durability.lake.tables import CONTROLLERS


def led(lake: Any, attempts: Iterable[str]) -> dict[str, bool | None]:
    """By cluster of these snapshots, whether one of its voters leads; None if unknown. Clusters without voters are left out.

    lake: has `scan(table, where, columns) -> pa.Table`.
    """
    from pyiceberg.expressions import In

    leading: defaultdict[str, list[bool | None]] = defaultdict(list)
    columns = ("cluster", "role", "leader")
    for row in lake.scan(CONTROLLERS, In("attempt_id", set(attempts)), columns=columns).to_pylist():
        if row["role"] == "voter":
            leading[row["cluster"]].append(row["leader"])
    return {cluster: None if None in stated else any(stated) for cluster, stated in leading.items()}
