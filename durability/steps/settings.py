"""The settings of a run, passed to every step: policy, input and output locations."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.errors import AuditError

if TYPE_CHECKING:
    from durability.lake import Lake

NIGHTLY, PULSE = "nightly", "pulse"
SNAPSHOT_KINDS = {NIGHTLY: "full", PULSE: "pulse"}
"""The kind of snapshot by the kind of run. Facts of pulse snapshots are not kept."""
SIZES_SINCE = {NIGHTLY: timedelta(days=3), PULSE: timedelta(minutes=30)}
"""How far back to look for cluster sizes and failed reads, by the kind of run. This covers a few runs."""


@dataclass(frozen=True)
class Settings:
    """One run's settings. Paths are as the user gave them.

    lake: a folder or an s3:// address.
    topology: a document or folder; None to read the clusters in the file `clusters` over the network.
    framework: the framework to whose controls the reports are cut; None for all controls.
    ad_hoc: `clusters` was made for this run alone, as for a single address. So it says nothing about the fleet.
    scratch: the lake is a temporary folder. Its catalog is in it, even if DURABILITY_CATALOG names another one.
    """

    policy: Path
    waivers: Path
    clusters: Path
    out: Path
    lake: str
    topology: Path | None
    framework: str | None = None
    ad_hoc: bool = False
    scratch: bool = False

    @property
    def has_fleet(self) -> bool:
        """Whether `clusters` is the clusters file of a fleet, which inventories are compared with."""
        return self.topology is None and not self.ad_hoc

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Settings:
        """From a DAG run's params. Their keys are the fields of this class."""
        policy, waivers, clusters, out = (Path(params[name]) for name in ("policy", "waivers", "clusters", "out"))
        topology = Path(params["topology"]) if params["topology"] else None
        # A run of an earlier version has no such param, and its tasks can be cleared.
        framework = params.get("framework") or None
        return cls(policy, waivers, clusters, out, params["lake"], topology, framework)

    def to_params(self) -> dict[str, str | None]:
        """Params for `from_params`, as JSON values without secrets. Only DAGs that write reports have `framework`."""
        # A DAG's run has neither of these two.
        named = {name: value for name, value in vars(self).items() if name not in ("ad_hoc", "scratch")}
        stated = {name: None if value is None else str(value) for name, value in named.items()}
        return {name: value for name, value in stated.items() if name != "framework" or value}

    @property
    def fleet(self) -> str | None:
        """The name of the fleet in the lake, which several fleets may share; None for documents or a wrong clusters file."""
        from durability.policy import fleet_name

        # A wrong clusters file is reported elsewhere.
        with suppress(AuditError):
            return fleet_name(self.clusters) if self.clusters and not self.topology else None
        return None

    def open_lake(self) -> Lake:
        """The lake. Raises Refused or Unreachable if its address can't be used."""
        from durability.lake import Lake

        return Lake.open(self.lake, {} if self.scratch else None)
