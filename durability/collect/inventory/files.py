"""The files of inventories."""

from __future__ import annotations

import hashlib
from pathlib import Path

from durability.errors import BadInput
from durability.policy.yamlfile import shown

MAX_BYTES = 64 << 20
ALLOW_EMPTY = "state `allow_empty: true` in `inventory` of the clusters file"
"""What to do about an inventory that is meant to have no cluster."""


def content(path: Path) -> bytes:
    """A file's bytes. Raises BadInput if it can't be read, or is larger than MAX_BYTES."""
    again = "correct its name in `inventory` of the clusters file, or export it again"
    try:
        with path.open("rb") as file:
            found = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(path, "", f"the inventory can't be read: {error.strerror}; {again}") from None
    if len(found) > MAX_BYTES:
        raise BadInput(path, "", f"the inventory is larger than {MAX_BYTES >> 20} MiB; export the clusters alone")
    return found


def text(path: Path, found: bytes) -> str:
    """Bytes of UTF-8, with or without a byte order mark, as text. Raises BadInput."""
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = found.count(b"\n", 0, error.start) + 1
        raise BadInput(path, f"line {line}", "isn't UTF-8; export it as UTF-8") from None


def sha256(found: bytes) -> str:
    return hashlib.sha256(found).hexdigest()


def check_name(path: Path, where: str, what: str, name: str) -> None:
    """Raises BadInput for a name that is empty or has characters that no cluster's name needs."""
    if not name:
        raise BadInput(path, where, f"{what} is empty; each cluster needs one")
    if not name.isprintable() or len(name) > 500:
        raise BadInput(path, where, f"{what} {shown(name)}: expected at most 500 printable characters")
