"""Passes data too large for XCom between Airflow tasks, as JSON files beside the lake's tables."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from pyarrow import fs

FOLDER = "_handover"
KEEP_DAYS = {"nightly": 30, "pulse": 1}
"""How long a run's tasks can be cleared, in days by the kind of run. A pulse's facts are removed at its end."""


class TaskArtifacts:
    """The artifacts of one DAG run. They are in the lake, which every worker can reach."""

    def __init__(self, lake: str, dag_id: str, run_id: str):
        if "://" in lake:
            from durability.lake.encryption import encrypting

            files, root = fs.FileSystem.from_uri(lake)
            self._files = encrypting(files)
        else:
            self._files, root = fs.LocalFileSystem(), lake
        self._root = f"{root.rstrip('/')}/{FOLDER}"
        self._dag = dag_id
        # Runs of two DAGs that start at the same minute have the same run id.
        self._run = f"{dag_id}/{re.sub(r'[^A-Za-z0-9._-]', '_', run_id)}"

    def put(self, name: str, value: object) -> str:
        """Write `value` as JSON, datetimes as text. Returns the reference for `get`."""
        reference = f"{self._run}/{name}.json"
        self._files.create_dir(f"{self._root}/{self._run}", recursive=True)
        path = f"{self._root}/{reference}"
        # An object appears in S3 only when it is complete. A local file is visible while it is written.
        partial = f"{path}.partial" if isinstance(self._files, fs.LocalFileSystem) else path
        with self._files.open_output_stream(partial) as stream:
            stream.write(json.dumps(value, default=str).encode())
        if partial != path:
            self._files.move(partial, path)
        return reference

    def get(self, reference: str) -> Any:
        """The value that `put` wrote under `reference`."""
        with self._files.open_input_stream(f"{self._root}/{reference}") as stream:
            return json.loads(stream.read())

    def prune(self, days: int) -> None:
        """Remove artifacts of the DAG's runs whose newest file is older than `days` days."""
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
