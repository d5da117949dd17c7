"""What plan.json and before.json say of a plan in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from durability.remedies.change.draft import Draft
from durability.remedies.change.model import Change, topic_ids
from durability.remedies.moves.model import Load


def before(change: Change) -> dict[str, Any]:
    """The placements and settings that the plan changes, as they are before it. value: null if there is none of its own.

    topic_ids: Kafka's ids of their topics, as far as they are known. They are the same before and after.
    """
    placements = [
        {"topic": move.topic, "partition": move.partition, "replicas": list(move.before)}
        for step in change.steps
        for move in step.moves
    ]
    settings: dict[tuple[str | None, str], str | None] = {}
    for step in change.steps:
        for setting in step.settings:
            settings.setdefault((setting.topic, setting.name), setting.was)
    topics, ids = {topic for step in change.steps for topic in step.topics}, topic_ids(change.planned)
    return {
        "topic_ids": {topic: ids[topic] for topic in sorted(topics & ids.keys())},
        "placements": sorted(placements, key=lambda row: (row["topic"], row["partition"])),
        "settings": [{"topic": topic, "name": name, "value": value} for (topic, name), value in settings.items()],
    }


def numbers(draft: Draft) -> dict[str, Any]:
    """moved, load, leaders and copysets of plan.json. Without a solution only what moves is known."""
    moves = [move for step in draft.change.steps for move in step.moves]
    replicas, copied = sum(len(move.added) for move in moves), sum(move.copied for move in moves)
    solution = draft.solution
    if solution is None:
        moved = {"replicas": replicas, "bytes": copied, "bound_replicas": replicas, "bound_bytes": copied}
        return {"moved": {**moved, "unknown_bytes": 0, "why_not_bound": []}} | dict.fromkeys(
            ("load", "load_bytes", "leaders", "copysets")
        )
    return {
        "moved": {**asdict(solution.moved), "why_not_bound": list(solution.moved.why_not_bound)},
        "load": {**_load(solution.load), "above_limit": list(solution.above_limit)},
        "load_bytes": None if solution.load_bytes is None else _load(solution.load_bytes),
        "leaders": _load(solution.leaders),
        "copysets": _plain(asdict(solution.copysets)),
    }


def notes(draft: Draft) -> list[dict[str, str]]:
    """Which part of their target the moves of topics don't reach."""
    return [{"topic": topic, "why": why} for topic, why in sorted(draft.notes.items())]


def _load(load: Load) -> dict[str, Any]:
    """By broker, in the order of ids. JSON's keys are text."""

    def by_id(found: Mapping[int, int]) -> dict[str, int]:
        return {str(broker): found[broker] for broker in sorted(found)}

    return {"before": by_id(load.before), "after": by_id(load.after), "bound": load.bound}


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    """Tuples as lists."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}
