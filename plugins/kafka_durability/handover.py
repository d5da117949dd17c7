"""What is too large for XCom, handed from task to task as JSON files beside the lake's tables."""

from __future__ import annotations

import json
import re

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


def drop(lake: str, run_id: str) -> None:
    """Remove everything that a finished run handed over."""
    files, root = _root(lake)
    folder = f"{root}/{re.sub(r'[^A-Za-z0-9._-]', '_', run_id)}"
    if files.get_file_info(folder).type == fs.FileType.Directory:
        files.delete_dir(folder)


def _root(lake: str) -> tuple[fs.FileSystem, str]:
    if "://" in lake:
        files, path = fs.FileSystem.from_uri(lake)
        return files, f"{path.rstrip('/')}/{FOLDER}"
    return fs.LocalFileSystem(), f"{lake.rstrip('/')}/{FOLDER}"
