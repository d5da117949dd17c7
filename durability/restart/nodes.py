"""The processes of a cluster that restart, from rows of its brokers and controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """A process that restarts. id: of the broker or controller. rack: None if it is unset or unknown. live: False if it is
    known to be down, None if that is unknown. voter: does it vote in the controller quorum? leads: is it the quorum's leader?"""

    id: int
    rack: str | None
    live: bool | None
    broker: bool
    voter: bool = False
    leads: bool = False


def nodes(brokers: Iterable[Mapping[str, Any]], controllers: Iterable[Mapping[str, Any]]) -> list[Node]:
    """The brokers and voters of a snapshot, from its rows of these tables."""
    of_brokers = {row["broker"]: row for row in brokers}
    voters = {row["controller"]: row for row in controllers if row["role"] == "voter"}
    found = []
    for id in sorted(of_brokers.keys() | voters.keys()):
        broker, voter = of_brokers.get(id), voters.get(id)
        row = broker or voter or {}
        found.append(
            Node(
                id=id,
                rack=row["rack"] or None,
                live=_live(broker, voter),
                broker=broker is not None,
                voter=voter is not None,
                leads=voter is not None and bool(voter["leader"]),
            )
        )
    return found


def _live(broker: Mapping[str, Any] | None, voter: Mapping[str, Any] | None) -> bool | None:
    """Is the node known to be up? A voter that never caught up with the quorum's leader is taken to be down."""
    states = [] if broker is None else [broker["live"]]
    if voter is not None and not voter["leader"]:
        caught_up = voter["caught_up"] if voter["live"] is None else voter["live"] and voter["caught_up"] is not False
        states.append(caught_up)
    return False if False in states else None if None in states else True
