"""Schedules the reading of a fleet's clusters, which share threads, memory and time."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ClusterRead:
    """A cluster to read. source: how to read it. partitions: the expected number. seconds: how long it may take."""

    source: Any
    partitions: int
    seconds: float


class ClusterScheduler:
    """Hands out clusters in order, to any number of threads.

    partitions_at_once: the most partitions in memory at once. A cluster's whole topology is in memory until it is staged. A
        cluster that fits starts before a larger one that doesn't. A cluster above this number is read alone.
    seconds: for all clusters together. A cluster is started only while its own seconds, or half of all seconds, are left.
    """

    def __init__(self, waiting: Sequence[ClusterRead], partitions_at_once: int, seconds: float):
        self.waiting = list(waiting)
        self._partitions_at_once, self._half = partitions_at_once, seconds / 2
        self._end = time.monotonic() + seconds
        self._in_memory = 0
        self._changed = threading.Condition()

    def take(self) -> tuple[ClusterRead, float] | None:
        """Wait for the next cluster that fits. Returns it with its seconds, or None if no cluster is started any more."""
        with self._changed:
            while self.waiting:
                remaining = self._end - time.monotonic()
                timely = [read for read in self.waiting if remaining >= min(read.seconds, self._half)]
                if not timely:
                    return None
                for read in timely:
                    if not self._in_memory or self._in_memory + read.partitions <= self._partitions_at_once:
                        self.waiting.remove(read)
                        self._in_memory += read.partitions
                        return read, min(read.seconds, remaining)
                self._changed.wait(remaining)
            return None

    def done(self, read: ClusterRead) -> None:
        """Free the memory of a cluster that was staged or has failed."""
        with self._changed:
            self._in_memory -= read.partitions
            self._changed.notify_all()

    def stop(self) -> None:
        """Start no further cluster."""
        with self._changed:
            self._end = 0.0
            self._changed.notify_all()
