"""The settings of a run, which every step gets: policy, input, and where results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durability.lake import Lake

NIGHTLY, PULSE = "nightly", "pulse"
SNAPSHOT_KINDS = {NIGHTLY: "full", PULSE: "pulse"}
"""By a run's kind the kind of its snapshots: those of a pulse keep no facts."""
SIZES_SINCE = {NIGHTLY: timedelta(days=3), PULSE: timedelta(minutes=30)}
"""How far back a run looks for the sizes of clusters and for those that could not be read: a few runs."""


@dataclass(frozen=True)
class Settings:
    """One run's settings: paths as the user gave them, `lake` a folder or an s3:// address.

    `topology` None: the clusters of the file `clusters` are read over the network.
    """

    policy: Path
    waivers: Path
    clusters: Path
    out: Path
    lake: str
    topology: Path | None

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Settings:
        """From a DAG run's params, whose keys are this class's fields."""
        paths = {name: Path(params[name]) for name in ("policy", "waivers", "clusters", "out")}
        return cls(**paths, lake=params["lake"], topology=Path(params["topology"]) if params["topology"] else None)

    def to_params(self) -> dict[str, str | None]:
        """What `from_params` reads; JSON, no secrets."""
        return {name: None if value is None else str(value) for name, value in vars(self).items()}

    def open_lake(self) -> Lake:
        """The lake; Refused or Unreachable where its address can't be used."""
        from durability.lake import Lake

        return Lake.open(self.lake)
