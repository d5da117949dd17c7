"""A run's reassignment plans, written into OUT/plans with an index; see `durability.findings.reassignments`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from durability.findings.reassignments import plans_of
from durability.plan.plan import Plan
from durability.remedies.plans import FOLDER, FORMAT, INDEX, folder, written


def write(lake: Any, plan: Plan, out: Path) -> Path | None:
    """Write the plans of a run into OUT/plans, with an index that also names topics without a plan and why.

    What an earlier run wrote is removed. Returns the folder; None if there is nothing to move, and then no index.
    """
    found = plans_of(lake, plan)
    _clear(out / FOLDER)
    if not found.made and not found.without:
        return None
    plans: list[dict[str, str]] = []
    for made in found.made:
        file = f"{folder(made.cluster)}/{made.topic}.json"
        plans.append({"cluster": made.cluster, "topic": made.topic, "file": file, **made.not_before})
        path = out / FOLDER / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written(made.topic, made.moves), encoding="utf-8")
    without = [{"cluster": cluster, "topic": topic, "why": why} for (cluster, topic), why in found.without.items()]
    index = json.dumps({"format": FORMAT, "plans": plans, "without": without}, indent=1) + "\n"
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    (out / FOLDER / INDEX).write_text(index, encoding="utf-8")
    return out / FOLDER


def _clear(plans: Path) -> None:
    """Remove the index of an earlier run and the files that it lists; other files stay."""
    index = plans / INDEX
    if not index.is_file():
        return
    for entry in json.loads(index.read_text(encoding="utf-8"))["plans"]:
        file = plans / entry["file"]
        if file.resolve().is_relative_to(plans.resolve()):
            file.unlink(missing_ok=True)
    index.unlink()
    for path in (*plans.iterdir(), plans):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
