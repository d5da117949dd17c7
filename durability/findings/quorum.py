"""The controller quorum of clusters in the evaluated snapshots: without one nothing can be changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from durability.lake.tables import BROKERS, CLUSTERS, CONTROLLERS


@dataclass(frozen=True)
class Quorum:
    """led: does a controller lead a majority of the voters? None if unknown. spare: does a majority stay without one more voter?
    None while that is unknown. missing: ids of the voters that are known to be down or never caught up."""

    led: bool | None
    spare: bool | None
    missing: tuple[int, ...] = ()


def read(lake: Any, attempts: Iterable[str]) -> dict[str, Quorum]:
    """By cluster of these snapshots, its quorum. Clusters without voters are left out, unless no controller leads.

    lake: has `scan(table, where, columns) -> pa.Table`.
    """
    from pyiceberg.expressions import In

    named = set(attempts)
    if not named:
        return {}
    snapshots = In("attempt_id", named)
    columns = ("cluster", "controller", "role", "leader", "live", "caught_up", "lag_ms")
    voters: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in lake.scan(CONTROLLERS, snapshots, columns=columns).to_pylist():
        if row["role"] == "voter":
            voters[row["cluster"]].append(row)
    clusters = lake.scan(
        CLUSTERS, snapshots, columns=("cluster", "quorum_mode", "quorum_leader", "unreadable")
    ).to_pylist()
    leaderless = {row["cluster"]: Quorum(False, False) for row in clusters if _leaderless(row)}
    if not voters:
        return leaderless
    brokers = lake.scan(BROKERS, snapshots, columns=("cluster", "broker", "live")).to_pylist()
    down = {(row["cluster"], row["broker"]) for row in brokers if row["live"] is False}
    leader = {row["cluster"]: row["quorum_leader"] for row in clusters}
    return leaderless | {
        cluster: _of(rows, {number for of, number in down if of == cluster}, leader.get(cluster))
        for cluster, rows in voters.items()
    }


def _leaderless(row: Mapping[str, Any]) -> bool:
    """Does the snapshot say that no controller leads?"""
    unread = any(entry["path"].startswith("/cluster/quorum/leader") for entry in row["unreadable"] or ())
    return row["quorum_mode"] == "kraft" and row["quorum_leader"] is None and not unread


def led(lake: Any, attempts: Iterable[str]) -> dict[str, bool | None]:
    """By cluster of these snapshots, `Quorum.led`."""
    return {cluster: quorum.led for cluster, quorum in read(lake, attempts).items()}


def _of(voters: list[Mapping[str, Any]], down: set[int], leader: int | None) -> Quorum:
    """The quorum of these voters. It has a majority by the same facts as in the control controller-quorum, which a test compares.

    down: ids of brokers that are down. A leader that is no voter is leaving the quorum, or answers contradict each other.
    """
    missing = [row["controller"] for row in voters if not row["leader"] and _missing(row, down)]
    up = len(voters) - len(missing)
    majority = len(voters) // 2 + 1
    stated = [row["leader"] for row in voters]
    outsider = leader is not None and not any(stated)
    leads = None if None in stated or outsider else any(stated)
    unknown = any(row["caught_up"] is None and row["lag_ms"] is None and not row["leader"] for row in voters)
    spare = False if up - 1 < majority else None if unknown else True
    return Quorum(False if up < majority else leads, spare, tuple(sorted(missing)))


def _missing(voter: Mapping[str, Any], down: set[int]) -> bool:
    """Is the voter known to be down, or did it never catch up with the leader?"""
    never = voter["caught_up"] is False and voter["lag_ms"] is None
    return never or voter["live"] is False or voter["controller"] in down
