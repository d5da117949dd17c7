"""What is too large for XCom: JSON files beside the lake's tables, from one Airflow task to the next."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from pyarrow import fs

FOLDER = "_handover"
KEEP_DAYS = {"nightly": 30, "pulse": 1}
"""By a run's kind: how long its tasks can be cleared. The facts of a pulse are gone when it ends."""


class TaskArtifacts:
    """The artifacts of one DAG run, in the lake: every worker that reaches the lake can read them."""

    def __init__(self, lake: str, dag_id: str, run_id: str):
        if "://" in lake:
            from durability.lake.encryption import encrypting

            files, root = fs.FileSystem.from_uri(lake)
            self._files = encrypting(files)
        else:
            self._files, root = fs.LocalFileSystem(), lake
        self._root = f"{root.rstrip('/')}/{FOLDER}"
        self._dag = dag_id
        # Two DAGs that are due at the same minute have runs of the same id.
        self._run = f"{dag_id}/{re.sub(r'[^A-Za-z0-9._-]', '_', run_id)}"

    def put(self, name: str, value: object) -> str:
        """Write `value` as JSON, datetimes as text; returns the reference for `get`."""
        reference = f"{self._run}/{name}.json"
        self._files.create_dir(f"{self._root}/{self._run}", recursive=True)
        path = f"{self._root}/{reference}"
        # S3 shows an object once it is complete; a folder shows what is written so far.
        partial = f"{path}.partial" if isinstance(self._files, fs.LocalFileSystem) else path
        with self._files.open_output_stream(partial) as stream:
            stream.write(json.dumps(value, default=str).encode())
        if partial != path:
            self._files.move(partial, path)
        return reference

    def get(self, reference: str) -> Any:
        """What `put` wrote under `reference`."""
        with self._files.open_input_stream(f"{self._root}/{reference}") as stream:
            return json.loads(stream.read())

    def prune(self, days: int) -> None:
        """Remove the artifacts of the DAG's runs whose newest file is older: until then their tasks can be cleared."""
        oldest = datetime.now(UTC) - timedelta(days=days)
        newest: dict[str, datetime] = {}
        folder = f"{self._root}/{self._dag}"
        for entry in self._files.get_file_info(fs.FileSelector(folder, allow_not_found=True, recursive=True)):
            if entry.type == fs.FileType.File:
                run = entry.path.removeprefix(f"{folder}/").partition("/")[0]
                newest[run] = max(entry.mtime, newest.get(run, entry.mtime))
        for run, mtime in newest.items():
            if mtime < oldest:
                self._files.delete_dir(f"{folder}/{run}")
