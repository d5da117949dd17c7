"""Which cluster-nights of a period are expected, as the inventories of each run say.

Without an inventory, a cluster is expected from its first snapshot on. A run that compared inventories decides from its night on:

- A cluster that an inventory lists is expected, audited or not.
- A cluster that was listed and isn't any more is not expected. Neither is one that is in no inventory and not in clusters.yaml.
- An inventory that could not be read changes nothing: a cluster that it may list stays as it was.

A lake may have the runs of several fleets, each with a clusters file. Each fleet decides about its own clusters, and a cluster is
expected if one of them expects it. A run of no clusters file, such as one of documents, decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from durability.plan.inventory import Inventory
from durability.plan.plan import COUNTED

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
class Fleet:
    """The states of a fleet's clusters, by cluster with the nights from which they count, oldest first.

    named: clusters that a run of the fleet had in its clusters file.
    """

    states: dict[str, list[tuple[date, State]]] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)

    def on(self, cluster: str, day: date) -> State | None:
        """The cluster's state that night; None: the fleet has no run that says anything about it."""
        known = [state for since, state in self.states.get(cluster, ()) if since <= day]
        return known[-1] if known else None

    def add(self, day: date, found: Inventory, known: Iterable[str]) -> None:
        """A run's inventories. known: clusters that the lake has snapshots of, and that may be of this fleet."""
        if not found.sources:
            for cluster in {*self.states, *self.named}:
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


@dataclass
class Expected:
    """What all fleets of a lake say."""

    fleets: dict[str | None, Fleet] = field(default_factory=dict)

    @property
    def clusters(self) -> set[str]:
        """Those that a fleet has a state of."""
        return {cluster for fleet in self.fleets.values() for cluster in fleet.states}

    def on(self, cluster: str, day: date, first: datetime | None) -> tuple[bool, str | None]:
        """Is the cluster expected that night, and why it isn't, or why no run can evaluate it? first: its first snapshot."""
        states = [state for fleet in self.fleets.values() if (state := fleet.on(cluster, day))]
        if stated := [state for state in states if state.expected]:
            return True, None if any(state.reason is None for state in stated) else stated[0].reason
        if states and all(state.expected is False for state in states):
            return False, states[0].reason
        return first is not None and first.astimezone(UTC).date() <= day, None

    def changed(self, cluster: str, start: date, end: date) -> bool:
        """Did a run from `start` on, before `end`, change the cluster's state?"""
        states = (state for fleet in self.fleets.values() for state in fleet.states.get(cluster, ()))
        return any(start <= since < end for since, _ in states)

    def add(self, run: Mapping[str, Any], first: Mapping[str, datetime]) -> None:
        """A row of `runs`."""
        found = Inventory.from_dict(json.loads(run["inventory"]))
        fleet = self.fleets.setdefault(found.fleet, Fleet())
        fleet.named |= {part["cluster"] for part in run["snapshots"] or () if part["status"] != COUNTED}
        others = {cluster for other in self.fleets.values() if other is not fleet for cluster in other.named}
        known = [cluster for cluster, moment in first.items() if moment <= run["captured_at"]]
        day = run["captured_at"].astimezone(UTC).date()
        fleet.add(day, found, {*known} - (others - fleet.named))


def read(runs: Iterable[Mapping[str, Any]], first: Mapping[str, datetime]) -> Expected:
    """From rows of `runs`, oldest first. first: by cluster, its first snapshot."""
    expected = Expected()
    for run in runs:
        if run.get("inventory"):
            expected.add(run, first)
    return expected


def inventories(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The inventories that these runs compared, by name: how many runs read each, and how many could not."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for compared in (Inventory.from_dict(json.loads(run["inventory"])) for run in runs if run.get("inventory")):
        for source in compared.sources:
            entry = found.setdefault(
                (source.name, compared.fleet or ""),
                {"name": source.name, "kind": source.kind, "read": 0, "unread": 0, "clusters": None},
            )
            entry["unread" if source.clusters is None else "read"] += 1
            entry["clusters"] = entry["clusters"] if source.clusters is None else source.clusters
            entry["last_problem"] = source.reason or entry.get("last_problem")
    return [found[name] for name in sorted(found)]
