"""The topology documents of recent snapshots, compressed, beside the lake's tables. A run copies its own into its evidence."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from durability.lake.attempt import Attempt
from durability.lake.files import Files
from durability.topology.document import Topology, canonical

FOLDER = "_documents"
KEPT = timedelta(days=30)
"""As long as the tasks of a nightly run can be cleared (`durability.steps.task_artifacts`)."""
_LEVEL = 3
"""Of gzip: half the time of the default, for files that are a tenth larger."""


class Documents:
    """The documents of one lake. Methods raise Unreachable if the store fails."""

    def __init__(self, files: Files):
        self._files = files
        self._folder = f"{files.warehouse}/{FOLDER}"

    def keep(self, attempt: Attempt, topology: Topology) -> None:
        """Keep the canonical JSON of what an attempt staged. Its SHA-256 is the attempt's."""
        content = gzip.compress(canonical(topology.document), _LEVEL, mtime=0)
        self._files.write_bytes(self._address(attempt.attempt_id), content)

    def read(self, attempt_id: str) -> bytes | None:
        """An attempt's document as gzip; None if it isn't kept."""
        address = self._address(attempt_id)
        return self._files.read_bytes(address) if self._files.exists(address) else None

    def discard(self, older_than: timedelta = KEPT) -> int:
        """Remove documents of that age. Returns how many."""
        before = datetime.now(UTC) - older_than
        old = [entry.base_name for entry in self._files.listed(self._folder) if entry.mtime < before]
        return self._files.remove(f"{self._folder}/{name}" for name in old)

    def remove(self, attempts: Iterable[Attempt]) -> int:
        """Remove what is kept of attempts. Returns how many documents were removed."""
        return self._files.remove(self._address(attempt.attempt_id) for attempt in attempts)

    def _address(self, attempt_id: str) -> str:
        return f"{self._folder}/{attempt_id}.json.gz"
