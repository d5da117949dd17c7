"""Which cluster-nights of a period are expected, as the inventories of each run say.

Without an inventory, a cluster is expected from its first snapshot on. A run that compared inventories decides from its night on:

- A cluster that an inventory lists is expected, audited or not.
- A cluster that was listed and isn't any more is not expected. Neither is one that is in no inventory and not in clusters.yaml.
- An inventory that could not be read changes nothing: a cluster that it may list stays as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from durability.plan.inventory import Inventory

REMOVED = "removed from the inventory"
RETIRED = "in no inventory, and not in clusters.yaml"
DROPPED = "not in clusters.yaml, which has no inventory any more"
NOT_AUDITED = "in the inventory, not audited"


def renamed(cluster: str) -> str:
    return f"audited as {cluster}"


@dataclass(frozen=True)
class State:
    """What a run's inventories say of a cluster from that night on.

    expected: None: as without an inventory.
    reason: why the cluster is not expected, or why no run can evaluate it.
    """

    expected: bool | None
    reason: str | None = None


@dataclass
class Expected:
    """By cluster, its states with the nights from which they count, oldest first."""

    states: dict[str, list[tuple[date, State]]] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)

    def on(self, cluster: str, day: date, first: datetime | None) -> tuple[bool, str | None]:
        """Is the cluster expected that night, and why it isn't, or why no run can evaluate it? first: its first snapshot."""
        known = [state for since, state in self.states.get(cluster, ()) if since <= day]
        if known and known[-1].expected is not None:
            return known[-1].expected, known[-1].reason
        return first is not None and first.astimezone(UTC).date() <= day, None

    def changed(self, cluster: str, start: date, end: date) -> bool:
        """Did a run from `start` on, before `end`, change the cluster's state?"""
        return any(start <= since < end for since, _ in self.states.get(cluster, ()))

    def add(self, day: date, found: Inventory, known: Iterable[str]) -> None:
        """A run's inventories. known: clusters that the lake has snapshots of."""
        if not found.sources:
            for cluster in self.states:
                self._from(cluster, day, State(None))
            for cluster in self.listed - set(known):
                self._from(cluster, day, State(False, DROPPED))
            self.listed.clear()
            return
        fleet = {*found.unlisted, *(listed.cluster for listed in found.clusters if listed.cluster)}
        others = {listed.id: listed.cluster for listed in found.clusters if listed.cluster}
        now = set()
        for listed in found.clusters:
            name = listed.cluster or listed.id
            now.add(name)
            self._from(name, day, State(True, None if listed.cluster else NOT_AUDITED))
        if found.unread:
            self.listed |= now
            return
        for cluster in self.listed - now:
            other = others.get(cluster)
            self._from(cluster, day, State(False, renamed(other) if other else REMOVED))
        for cluster in {*known} - fleet - now - self.listed:
            self._from(cluster, day, State(False, RETIRED))
        for cluster in found.unlisted:
            if cluster not in self.listed:
                self._from(cluster, day, State(None))
        self.listed |= now

    def _from(self, cluster: str, day: date, state: State) -> None:
        states = self.states.setdefault(cluster, [])
        while states and states[-1][0] >= day:
            states.pop()
        if not states or states[-1][1] != state:
            states.append((day, state))


def read(runs: Iterable[Mapping[str, Any]], first: Mapping[str, datetime]) -> Expected:
    """From rows of `runs`, oldest first. first: by cluster, its first snapshot."""
    expected = Expected()
    for run in runs:
        if text := run.get("inventory"):
            day = run["captured_at"].astimezone(UTC).date()
            known = [cluster for cluster, moment in first.items() if moment <= run["captured_at"]]
            expected.add(day, Inventory.from_dict(json.loads(text)), known)
    return expected


def inventories(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The inventories that these runs compared, by name: how many runs read each, and how many could not."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for source in Inventory.from_dict(json.loads(run["inventory"])).sources if run.get("inventory") else ():
            entry = found.setdefault(
                source.name, {"name": source.name, "kind": source.kind, "read": 0, "unread": 0, "clusters": None}
            )
            entry["unread" if source.clusters is None else "read"] += 1
            entry["clusters"] = entry["clusters"] if source.clusters is None else source.clusters
            entry["last_problem"] = source.reason or entry.get("last_problem")
    return [found[name] for name in sorted(found)]
