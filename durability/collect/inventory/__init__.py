"""Reads the inventories of the clusters file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from durability.errors import AuditError, printable
from durability.policy.inventory import MSK, STRIMZI, InventorySource, Listing

log = logging.getLogger(__name__)

THREADS = 8


def check(sources: Sequence[InventorySource]) -> None:
    """Read the files among `sources`, so that a wrong one is refused before any cluster is read. Raises BadInput."""
    for source in sources:
        if source.kind != MSK:
            _list(source)


def read(sources: Sequence[InventorySource]) -> list[Listing]:
    """What each inventory lists, in the order of `sources`. One that can't be read has the problem instead."""
    if not sources:
        return []
    with ThreadPoolExecutor(min(THREADS, len(sources))) as pool:
        return list(pool.map(_read, sources))


def _list(source: InventorySource) -> Listing:
    # Imported on first use: that of MSK takes a moment.
    if source.kind == MSK:
        from durability.collect.inventory import msk

        return msk.read(source)
    if source.kind == STRIMZI:
        from durability.collect.inventory import strimzi

        return strimzi.read(source)
    from durability.collect.inventory import csv_file

    return csv_file.read(source)


def _read(source: InventorySource) -> Listing:
    try:
        return _list(source)
    except AuditError as error:
        return Listing(source, problem=str(error))
    except Exception as error:
        log.error("reading the inventory %s failed", source.name, exc_info=error)
        return Listing(source, problem=printable(f"defect while reading: {type(error).__name__}"))
