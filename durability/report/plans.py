"""A run's reassignment plans, written into OUT/plans with an index; see `durability.findings.reassignments`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from durability.atomic import unfinished, write_whole
from durability.findings import reassignments
from durability.plan.plan import Plan
from durability.remedies.plans import FOLDER, FORMAT, INDEX, folder, written


def write(lake: Any, plan: Plan, out: Path) -> Path | None:
    """Write the plans of a run into OUT/plans, with an index that also names topics without a plan and why.

    What an earlier run wrote is removed. Returns the folder; None if there is nothing to move, and then no index.
    """
    found = reassignments.read(lake, plan)
    _clear(out / FOLDER)
    if not found.made and not found.without:
        return None
    texts: dict[Path, str] = {}
    plans: list[dict[str, str]] = []
    for made in found.made:
        file = f"{folder(made.cluster)}/{made.topic}.json"
        plans.append({"cluster": made.cluster, "topic": made.topic, "file": file, **made.not_before})
        texts[out / FOLDER / file] = written(made.topic, made.moves)
    without = [{"cluster": cluster, "topic": topic, "why": why} for (cluster, topic), why in found.without.items()]
    index = json.dumps({"format": FORMAT, "plans": plans, "without": without}, indent=1) + "\n"
    with unfinished(out) as temporary:
        # The index first: the next run removes what it lists, also if this run is killed in between.
        for path, text in {out / FOLDER / INDEX: index, **texts}.items():
            write_whole(path, text, temporary)
    return out / FOLDER


def _clear(plans: Path) -> None:
    """Remove the index of an earlier run and the files that it lists; other files stay.

    A damaged index lists nothing. Then every file is removed that has the form of a plan for the topic in its name: a plan of
    an earlier run must not be taken for this one's.
    """
    index = plans / INDEX
    if not index.is_file():
        return
    for file in _listed(index):
        if file.resolve().is_relative_to(plans.resolve()):
            file.unlink(missing_ok=True)
    index.unlink()
    for path in (*plans.iterdir(), plans):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def _listed(index: Path) -> list[Path]:
    try:
        return [index.parent / entry["file"] for entry in json.loads(index.read_text(encoding="utf-8"))["plans"]]
    except (ValueError, KeyError, TypeError):
        return [file for file in index.parent.glob("*/*.json") if _is_plan(file)]


def _is_plan(file: Path) -> bool:
    """Whether a file is empty or cut short, or a reassignment of the topic in its name."""
    try:
        moves = json.loads(file.read_text(encoding="utf-8"))["partitions"]
        return {move["topic"] for move in moves} == {file.stem}
    except (ValueError, KeyError, TypeError):
        return written(file.stem, ()).encode().startswith(file.read_bytes()[:14])
