"""Streams applications for reading (KIP-708): which tasks lose every warm copy of their state with one tag value.

From the judgements that the run resolved with its policy; what of it is a finding was decided by the rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from durability.report.words import clipped

COLUMNS = ("cluster", "resource", "tier", "placement")
"""Columns of `resolved_policy`, of its applications."""
DOCUMENTED = 1_000
"""Applications in findings.json, at most."""
SHOWN, VALUES, TASKS = 100, 6, 6
"""Applications on the page, and of each tag of one the values, and of each value the tasks."""


def applications(resolved: pa.Table | None) -> list[dict[str, Any]]:
    """One document for each application that a line of the policy matches, those that a loss hurts most first.

    `cluster`, `group`, `type`, `tier`, `unknown` (why it can't be judged, or null), `clients`, `stateful_tasks`,
    `standby_replicas` (of the task with the fewest), `rack_aware_tags`, `losses` (`tag`, `value`, `count` of the tasks that
    lose their active and all their standbys with it, `tasks`: some of them).
    """
    rows = resolved.select(COLUMNS).to_pylist() if resolved is not None else []
    found = [_document(row, json.loads(row["placement"])) for row in rows if row["placement"]]
    return sorted((d for d in found if d is not None), key=lambda d: (-_worst(d), d["cluster"], d["group"]))


def _document(row: dict, judged: dict[str, Any]) -> dict[str, Any] | None:
    if judged.get("rack_aware_tags") is None:  # no line of the policy matches it
        return None
    return {
        "cluster": row["cluster"],
        "group": row["resource"],
        "type": judged.get("type"),
        "tier": row["tier"],
        "unknown": judged.get("unknown"),
        "clients": judged.get("clients"),
        "stateful_tasks": judged.get("tasks"),
        "standby_replicas": judged.get("standbys"),
        "rack_aware_tags": judged["rack_aware_tags"],
        "losses": judged.get("losses", []),
    }


def _worst(document: dict[str, Any]) -> int:
    return max((loss["count"] for loss in document["losses"]), default=0)


def on_page(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page shows of them, cut to size; `left`: applications that it leaves out."""
    shown = [{**d, "group": clipped(d["group"], 260), "tags": list(_tags(d["losses"]))} for d in documents[:SHOWN]]
    return {"shown": shown, "left": len(documents) - len(shown)}


def _tags(losses: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    for tag in dict.fromkeys(loss["tag"] for loss in losses):
        values = [loss for loss in losses if loss["tag"] == tag]
        told = [
            {**v, "tasks": v["tasks"][:TASKS], "more": v["count"] - len(v["tasks"][:TASKS])} for v in values[:VALUES]
        ]
        yield {"tag": tag, "lost": told, "more": len(values) - len(told)}
