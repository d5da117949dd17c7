"""Brokers as the planner of moves reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from durability.remedies.moves.model import Broker
from durability.remedies.plans import has_room


def of_rows(rows: Iterable[Mapping[str, Any]]) -> list[Broker]:
    """Brokers from rows of the lake's table `brokers`.

    A fenced broker isn't live here: Kafka's tool rejects a plan that names one.
    """
    return [
        Broker(
            id=row["broker"],
            rack=row["rack"],
            live=False if row["fenced"] else row["live"],
            usable_bytes=_sum(row["log_dirs"], "usable_bytes"),
            total_bytes=_sum(row["log_dirs"], "total_bytes"),
            room=has_room(row["log_dirs"], row["offline_log_dirs"], row["configs"]),
            log_dirs=tuple(
                (d["usable_bytes"], d["total_bytes"])
                for d in row["log_dirs"] or ()
                if not d["error"] and d["usable_bytes"] is not None
            ),
        )
        for row in sorted(rows, key=lambda row: row["broker"])
    ]


def _sum(log_dirs: Sequence[Mapping[str, Any]] | None, name: str) -> int | None:
    """The sum over the log dirs that work; None if one doesn't state it, or none is known.

    >>> _sum([{"error": None, "total_bytes": 5}, {"error": "EIO", "total_bytes": None}], "total_bytes"), _sum(None, "total_bytes")
    (5, None)
    """
    values = [d[name] for d in log_dirs or () if not d["error"]]
    return None if not values or None in values else sum(values)
