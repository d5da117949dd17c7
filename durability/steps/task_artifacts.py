"""What is too large for XCom: JSON files beside the lake's tables, from one Airflow task to the next."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

from pyarrow import fs

FOLDER = "_handover"
KEEP_DAYS = {"nightly": 30, "pulse": 1}
"""By a run's kind: how long its tasks can be cleared. The facts of a pulse are gone when it ends."""
_ODD = re.compile(r"[^A-Za-z0-9._-]")


def run_name(dag_id: str, run_id: str) -> str:
    """A run's name among those of all DAGs: two DAGs that are due at the same minute have runs of the same id."""
    return f"{dag_id}/{_ODD.sub('_', run_id)}"


def put(lake: str, run: str, name: str, value: object) -> str:
    """Write `value` as JSON where every worker that reaches the lake can read it; returns the reference for `get`.

    run: as `run_name` names it.
    """
    files, root = _root(lake)
    reference = f"{run}/{name}.json"
    folder, _, _ = f"{root}/{reference}".rpartition("/")
    files.create_dir(folder, recursive=True)
    with files.open_output_stream(f"{root}/{reference}") as stream:
        stream.write(json.dumps(value, default=str).encode())
    return reference


def get(lake: str, reference: str) -> object:
    """What `put` wrote under `reference`."""
    files, root = _root(lake)
    with files.open_input_stream(f"{root}/{reference}") as stream:
        return json.loads(stream.read())


def prune(lake: str, dag_id: str, days: int) -> None:
    """Remove the artifacts of a DAG's runs whose newest file is so old: until then their tasks can be cleared."""
    files, root = _root(lake)
    oldest = datetime.now(UTC) - timedelta(days=days)
    last: dict[str, datetime] = {}
    here = f"{root}/{dag_id}"
    for entry in files.get_file_info(fs.FileSelector(here, allow_not_found=True, recursive=True)):
        if entry.type == fs.FileType.File:
            run = entry.path.removeprefix(f"{here}/").partition("/")[0]
            last[run] = max(entry.mtime, last.get(run, entry.mtime))
    for run, mtime in last.items():
        if mtime < oldest:
            files.delete_dir(f"{here}/{run}")


def _root(lake: str) -> tuple[fs.FileSystem, str]:
    if "://" in lake:
        files, path = fs.FileSystem.from_uri(lake)
        return files, f"{path.rstrip('/')}/{FOLDER}"
    return fs.LocalFileSystem(), f"{lake.rstrip('/')}/{FOLDER}"
