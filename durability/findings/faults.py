"""Faults of the audit itself. A text that can't be made is missing, but the rest of the report is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from durability.plain import plain

log = logging.getLogger(__name__)

MOST = 20
"""The most faults that are reported one by one. The log has all of them."""
Made = TypeVar("Made")


class Faults:
    """What could not be made, and why. Steps report faults as problems."""

    def __init__(self) -> None:
        self.count = 0
        self._told: list[str] = []

    def add(self, what: str, error: Exception) -> None:
        """Add a fault and log the error's traceback. what: the cluster and what is missing."""
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
    """The result of `make`. If it fails, the fault is added and the result is `otherwise`.

    Without `faults`, the error is raised.
    """
    try:
        return make()
    except Exception as error:
        if faults is None:
            raise
        faults.add(what, error)
        return otherwise
