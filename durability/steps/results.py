"""Results of collect and gate for later steps: values in one process, JSON files between Airflow's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from durability.plain import plain

if TYPE_CHECKING:
    from durability.lake import Attempt
    from expectations.gate import Verdict


@dataclass(frozen=True)
class Failure:
    """A source that could not be read, with the reason and the time."""

    cluster: str
    reason: str
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def text(self) -> str:
        """The reason with the cluster's name, which is on one line: it may be the name of a file.

        >>> Failure("a\\nb.json", "not JSON").text
        'a?b.json: not JSON'
        """
        name = plain(self.cluster)
        return self.reason if self.cluster in self.reason or name in self.reason else f"{name}: {self.reason}"


@dataclass
class Collected:
    """The results of one group. Each name in `sources` has attempts or a failure."""

    sources: list[str]
    attempts: list[Attempt] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any]) -> Collected:
        """From JSON of `asdict`."""
        return cls(list(stated["sources"]), _attempts(stated), _failures(stated))


@dataclass
class Gated:
    """The results of all groups after the gate, with one verdict per attempt."""

    attempts: list[Attempt]
    verdicts: list[Verdict]
    failures: list[Failure]

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any]) -> Gated:
        """From JSON of `asdict`."""
        from expectations.gate import Verdict

        return cls(_attempts(stated), [Verdict(**v) for v in stated["verdicts"]], _failures(stated))


def _attempts(stated: Mapping[str, Any]) -> list[Attempt]:
    from durability.lake import Attempt

    return [Attempt(**a) for a in _with_datetimes(stated["attempts"], "captured_at")]


def _failures(stated: Mapping[str, Any]) -> list[Failure]:
    return [Failure(**f) for f in _with_datetimes(stated["failures"], "at")]


def _with_datetimes(rows: Iterable[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    return [{**row, name: datetime.fromisoformat(row[name])} for row in rows]
