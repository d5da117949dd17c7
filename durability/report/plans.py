"""Writes a run's reassignment plans into OUT/plans, with an index; see `durability.findings.reassignments`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from durability.atomic import unfinished, write_whole
from durability.findings import reassignments
from durability.findings.clusters import facts_of_clusters
from durability.plan.plan import Plan
from durability.remedies import gone
from durability.remedies.cluster import ClusterFacts, Gone
from durability.remedies.plans import FOLDER, FORMAT, INDEX, folder, written


def write(lake: Any, plan: Plan, out: Path) -> Path | None:
    """Write a run's plans into OUT/plans, with an index that also names topics without a plan and the reason.

    Files of an earlier run are removed. Returns the folder; None, without an index, if nothing has to move.
    """
    found = reassignments.read(lake, plan)
    _clear(out / FOLDER)
    if not found:
        return None
    texts: dict[Path, str] = {}
    plans: list[dict[str, str]] = []
    for made in found.made:
        file = f"{folder(made.cluster)}/{made.topic}.json"
        plans.append({"cluster": made.cluster, "topic": made.topic, "file": file, **made.not_before})
        texts[out / FOLDER / file] = written((made.topic, *move) for move in made.moves)
    without = [{"cluster": cluster, "topic": topic, "why": why} for (cluster, topic), why in found.without.items()]
    of_gone = replace(plan, snapshots=[part for part in plan.snapshots if part.cluster in found.gone])
    facts = facts_of_clusters(lake, of_gone, found) if found.gone else {}
    of_brokers = [_gone(cluster, one, facts[cluster], texts, out) for cluster, one in found.gone.items()]
    index = json.dumps({"format": FORMAT, "plans": plans, "without": without, "gone": of_brokers}, indent=1) + "\n"
    with unfinished(out) as temporary:
        # Write the index first: the next run removes the files that it lists, even if this run is killed now.
        for path, text in {out / FOLDER / INDEX: index, **texts}.items():
            write_whole(path, [text], temporary)
    return out / FOLDER


def _gone(cluster: str, one: Gone, facts: ClusterFacts, texts: dict[Path, str], out: Path) -> dict[str, Any]:
    """The index's entry for a plan for dead brokers. Adds the texts of its files to `texts`."""
    files = {"file": f"{folder(cluster)}/{gone.PLAN}", "script": f"{folder(cluster)}/{gone.SCRIPT}"}
    texts |= {out / FOLDER / files["file"]: gone.written(one), out / FOLDER / files["script"]: gone.script(one, facts)}
    return {"cluster": cluster, "brokers": list(one.brokers), **files, "partitions": len(one.moves), "left": one.left}


def _clear(plans: Path) -> None:
    """Remove the index of an earlier run and the files that it lists. Other files stay.

    If the index is damaged, every file with the form of a plan for the topic in its name is removed. A plan of an earlier run
    must not be mistaken for one of this run.
    """
    index = plans / INDEX
    if not index.is_file():
        return
    for file in files(plans):
        if file.resolve().is_relative_to(plans.resolve()):
            file.unlink(missing_ok=True)
    index.unlink()
    for path in (*plans.iterdir(), plans):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def files(plans: Path) -> list[Path]:
    """The files that the index of a folder of plans lists, without the index. If it is damaged, those with the form of one."""
    index = plans / INDEX
    try:
        found = json.loads(index.read_text(encoding="utf-8"))
        of_brokers = found.get("gone", ())
        names = [entry["file"] for entry in (*found["plans"], *of_brokers)]
        names += [entry["script"] for entry in of_brokers]
        return [index.parent / name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError):
        own = [file for name in (gone.PLAN, gone.SCRIPT) for file in index.parent.glob(f"*/{name}")]
        return own + [file for file in index.parent.glob("*/*.json") if file not in own and _is_plan(file)]


def _is_plan(file: Path) -> bool:
    """Whether a file is a reassignment of the topic in its name, or empty or cut short."""
    try:
        moves = json.loads(file.read_text(encoding="utf-8"))["partitions"]
        return {move["topic"] for move in moves} == {file.stem}
    except (ValueError, KeyError, TypeError):
        return written(()).encode().startswith(file.read_bytes()[:14])
