"""What the record of changes says of a plan as a whole, also when the plan's folder is gone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from durability.apply.record import BEGIN, REASSIGN, SET_CONFIG
from durability.lake.change_table import CHANGES, REMEDIATE

if TYPE_CHECKING:
    from durability.lake import Lake


@dataclass(frozen=True)
class Recorded:
    """A plan that was applied, or a part of it.

    before: `placements` and `settings` of what it changed, in the form of before.json. findings: ids of those that the plan was
    for, or improved. changed_at: when its last row was written.
    """

    cluster: str
    kafka_cluster_id: str | None
    before: Mapping[str, Any]
    findings: frozenset[str]
    changed_at: datetime


def plans(lake: Lake) -> list[str]:
    """The ids of all plans with rows."""
    from pyiceberg.expressions import EqualTo

    if not lake.has(CHANGES):
        return []
    return sorted({row["plan"] for row in lake.scan(CHANGES, EqualTo("purpose", REMEDIATE), ["plan"]).to_pylist()})


def plan(lake: Lake, id: str) -> Recorded | None:
    """What the rows of a plan say; None if it has none."""
    from pyiceberg.expressions import And, EqualTo

    if not lake.has(CHANGES):
        return None
    rows = lake.scan(CHANGES, And(EqualTo("purpose", REMEDIATE), EqualTo("plan", id))).to_pylist()
    if not rows:
        return None
    rows.sort(key=lambda row: row["captured_at"])
    begun = [json.loads(row["was"]) for row in rows if row["kind"] == BEGIN]
    kafka_id = begun[-1]["kafka_cluster_id"] if begun else None
    # Rows of an earlier release name no findings.
    findings = frozenset(id for was in begun for id in was.get("findings", ()))
    return Recorded(rows[0]["cluster"], kafka_id, _before(rows), findings, rows[-1]["captured_at"])


def _before(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """rows: in the order in which they were written. The first value of each setting is the one from before the plan."""
    placements: dict[tuple[str, int], dict[str, Any]] = {}
    settings: dict[tuple[str | None, str], dict[str, Any]] = {}
    for row in rows:
        if row["kind"] == REASSIGN:
            for placed in json.loads(row["was"])["placements"]:
                placements.setdefault((placed["topic"], placed["partition"]), placed)
        elif row["kind"] == SET_CONFIG:
            for setting in json.loads(row["was"]):
                stated = {name: setting[name] for name in ("topic", "name", "value")}
                settings.setdefault((setting["topic"], setting["name"]), stated)
    return {"placements": [placements[key] for key in sorted(placements)], "settings": list(settings.values())}
