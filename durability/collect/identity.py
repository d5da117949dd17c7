"""Checks that a Connection still leads to the same cluster, because history and waivers are kept by the cluster's name here."""

from __future__ import annotations

from datetime import UTC, datetime

from durability.errors import Refused
from durability.policy.yamlfile import shown
from durability.topology import Topology


def check(topology: Topology, *, stated: str | None, last: tuple[str, datetime] | None) -> None:
    """Refuse a reading of another cluster than expected. A broker that states no id proves nothing and is accepted.

    stated: `kafka_cluster_id` of the clusters file. It overrides `last`.
    last: the id in the last accepted snapshot, and the time of that snapshot.
    Raises Refused, with both ids and what the user can do.
    """
    name, found = topology.cluster, topology.document["cluster"].get("kafka_cluster_id")
    expected = stated or (last and last[0])
    if not expected or not found or found == expected:
        return
    here = f"cluster {name}: another Kafka cluster answers, with the id {shown(found)}"
    if stated:
        raise Refused(
            f"{here}. The clusters file expects {shown(stated)}. Correct the Connection, or kafka_cluster_id in the file."
        )
    moment = f"{last[1].astimezone(UTC):%Y-%m-%d %H:%M} UTC" if last else ""
    raise Refused(
        f"{here}. Its last full snapshot, of {moment}, is of {shown(expected)}; history and waivers under this name are that "
        "cluster's. Correct the Connection, or give the other cluster a name of its own. If it replaces the first one and "
        f"continues its history, state kafka_cluster_id: {shown(found)} for it in the clusters file."
    )
