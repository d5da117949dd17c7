"""What the log of an upkeep says of a table."""

from __future__ import annotations

from datetime import datetime


def removed(table: str, dropped: int, rewritten: int) -> str:
    """dropped: files dropped by name; rewritten: files that lost some of their rows."""
    return f"{table}: {dropped} files dropped, rows removed from {rewritten}"


def compacted(before: int, after: int) -> str:
    return f"{before} files compacted into {after}"


def fewer_manifests(before: int) -> str:
    return f"{before} manifests made fewer"


def expired(before: datetime) -> str:
    return f"states before {before:%Y-%m-%d %H:%M} forgotten"


def orphans_removed(count: int) -> str:
    return f"{count} files of no table removed"
