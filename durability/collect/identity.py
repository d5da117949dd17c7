"""Checks that a name still leads to the same cluster, because history and waivers are kept by the cluster's name here."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from durability.errors import Refused
from durability.policy.yamlfile import shown
from durability.topology import Topology


def check(topology: Topology, *, stated: str | None, last: tuple[str, datetime] | None) -> None:
    """Refuse a reading of another cluster than expected. A broker that states no id proves nothing and is accepted.

    stated: `kafka_cluster_id` of the clusters file. It overrides `last`.
    last: the id in the last accepted snapshot, and the time of that snapshot.
    Raises Refused, with both ids and what the user can do.
    """
    name, found = topology.cluster, _id_of(topology)
    expected = stated or (last and last[0])
    if not expected or not found or found == expected:
        return
    here = f"cluster {name}: another Kafka cluster answers, with the id {shown(found)}"
    if stated:
        raise Refused(
            f"{here}. The clusters file expects {shown(stated)}. Correct the Connection, or kafka_cluster_id in the file."
        )
    raise Refused(
        f"{here}. Its last full snapshot, of {_moment(last)}, is of {shown(expected)}; history and waivers under this name are "
        "that cluster's. Correct the Connection, or give the other cluster a name of its own. If it replaces the first one and "
        f"continues its history, state kafka_cluster_id: {shown(found)} for it in the clusters file."
    )


def changed(topology: Topology, last: tuple[str, datetime] | None) -> str | None:
    """What to say of a document of another cluster than the last accepted snapshot under its name; None if it isn't.

    It isn't refused: documents have no clusters file that could accept the new id.
    """
    found = _id_of(topology)
    if last is None or not found or found == last[0]:
        return None
    return (
        f"cluster {topology.cluster}: {Path(topology.source).name} is of another Kafka cluster, with the id {shown(found)}. The "
        f"last full snapshot under this name, of {_moment(last)}, is of {shown(last[0])}. Findings are compared with that "
        "cluster's, and its waivers apply. If it doesn't replace that cluster, give it a name of its own as cluster.id in the "
        "document."
    )


def _id_of(topology: Topology) -> str | None:
    """The id that Kafka gave the cluster; None if its brokers state none."""
    return topology.document["cluster"].get("kafka_cluster_id")


def _moment(last: tuple[str, datetime] | None) -> str:
    return f"{last[1].astimezone(UTC):%Y-%m-%d %H:%M} UTC" if last else ""
