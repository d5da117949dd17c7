"""Faults of the audit itself: one text that can't be made costs that text, not the report of a fleet in an outage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from durability.plain import plain

log = logging.getLogger(__name__)

MOST = 20
"""Faults that are told one by one; the log has all."""
Made = TypeVar("Made")


class Faults:
    """What could not be made, and why. A step tells them as its problems."""

    def __init__(self) -> None:
        self.count = 0
        self._told: list[str] = []

    def add(self, what: str, error: Exception) -> None:
        """what: the cluster and what is missing. The error's traceback goes to the log."""
        text = plain(f"{what} could not be made, by a fault of the audit ({type(error).__name__}: {error})")
        log.error("%s", text, exc_info=error)
        self.count += 1
        if self.count <= MOST:
            self._told.append(f"{text}. Please report it: the log has the traceback")

    def __iter__(self) -> Iterator[str]:
        yield from self._told
        if self.count > MOST:
            yield f"{self.count - MOST} more texts could not be made, by faults of the audit: the log has them"


def made(faults: Faults | None, what: str, make: Callable[[], Made], otherwise: Made) -> Made:
    """What `make` gives; `otherwise` where it fails, and the fault is added. Without `faults`, the error is raised."""
    try:
        return make()
    except Exception as error:
        if faults is None:
            raise
        faults.add(what, error)
        return otherwise
