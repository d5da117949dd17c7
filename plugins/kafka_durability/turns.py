"""Whose turn it is to be read, within what a worker can hold and how long it may take."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Turn:
    """A cluster to read: what it is read with, how many partitions it is taken to have, how many seconds it may take."""

    what: Any
    partitions: int
    seconds: float


class Turns:
    """Clusters in their order, handed to as many threads as ask.

    most: partitions read at once, since all of a cluster is in memory from its first answer until it is staged. A cluster
    goes as soon as it fits beside those being read, also past a larger one before it; one above `most` goes alone.
    seconds: of all together. A cluster that could no longer have its own seconds, or half of these, isn't begun.
    """

    def __init__(self, waiting: Sequence[Turn], most: int, seconds: float):
        self.left = list(waiting)
        self._most, self._half = most, seconds / 2
        self._end = time.monotonic() + seconds
        self._held = 0
        self._changed = threading.Condition()

    def take(self) -> tuple[Turn, float] | None:
        """The next one and the seconds it has, once it fits; None when nobody's turn comes any more."""
        with self._changed:
            while self.left:
                remaining = self._end - time.monotonic()
                timely = [turn for turn in self.left if remaining >= min(turn.seconds, self._half)]
                if not timely:
                    return None
                for turn in timely:
                    if not self._held or self._held + turn.partitions <= self._most:
                        self.left.remove(turn)
                        self._held += turn.partitions
                        return turn, min(turn.seconds, remaining)
                self._changed.wait(remaining)
            return None

    def done(self, turn: Turn) -> None:
        """It is read and staged, or isn't going to be: what it held is free."""
        with self._changed:
            self._held -= turn.partitions
            self._changed.notify_all()

    def stop(self) -> None:
        """Nobody's turn comes any more."""
        with self._changed:
            self._end = 0.0
            self._changed.notify_all()
