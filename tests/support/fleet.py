"""Clusters files, and the groups of a fleet, read as Airflow's tasks read them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from durability.steps.collect import collect_group


def write(path: Path, clusters: list[tuple[str, str, int]]) -> Path:
    """A clusters file: (id, Connection, seconds)."""
    rows = [{"id": name, "connection": c, "read_within": f"{seconds}s"} for name, c, seconds in clusters]
    path.write_text(json.dumps({"format": "durability-clusters/1", "clusters": rows}))
    return path


def read_all(lake, groups, connect) -> list[dict]:
    """Read all groups concurrently, as Airflow does."""
    with ThreadPoolExecutor(len(groups)) as pool:
        return list(pool.map(lambda group: collect_group(lake, group, connect, seconds=300.0), groups))
