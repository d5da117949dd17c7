"""What is too large for XCom, handed from task to task as JSON files beside the lake's tables."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

from pyarrow import fs

FOLDER = "_handover"


def put(lake: str, run_id: str, name: str, value: object) -> str:
    """Write `value` as JSON where every worker that reaches the lake can read it; returns the reference for `get`."""
    files, root = _root(lake)
    reference = f"{re.sub(r'[^A-Za-z0-9._-]', '_', run_id)}/{name}.json"
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


def prune(lake: str, days: int = 30) -> None:
    """Remove what runs older than `days` handed over: until then their tasks can be cleared."""
    files, root = _root(lake)
    oldest = datetime.now(UTC) - timedelta(days=days)
    for entry in files.get_file_info(fs.FileSelector(root, allow_not_found=True, recursive=True)):
        if entry.type == fs.FileType.File and entry.mtime < oldest:
            files.delete_file(entry.path)


def _root(lake: str) -> tuple[fs.FileSystem, str]:
    if "://" in lake:
        files, path = fs.FileSystem.from_uri(lake)
        return files, f"{path.rstrip('/')}/{FOLDER}"
    return fs.LocalFileSystem(), f"{lake.rstrip('/')}/{FOLDER}"
