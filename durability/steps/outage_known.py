"""What a snapshot in the lake knows of its cluster, for the changes of `rack_outage`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from durability.apply.outage_run import Known
    from durability.lake import Lake


def racks_of(lake: Lake, snapshot: Mapping[str, Any]) -> dict[str, list[int]]:
    """By rack, the ids of its brokers. Brokers without a known rack are left out."""
    from durability.lake.tables import BROKERS

    racks: dict[str, list[int]] = {}
    for row in lake.facts(BROKERS, snapshot).select(["broker", "rack"]).sort_by("broker").to_pylist():
        if row["rack"]:
            racks.setdefault(row["rack"], []).append(row["broker"])
    return racks


def known_of(lake: Lake, snapshot: Mapping[str, Any]) -> Known:
    """What a snapshot knows of its cluster. It leaves out what only the places of new replicas need."""
    from durability.apply.outage_run import Known
    from durability.lake.tables import BROKERS, CLUSTERS
    from durability.remedies.elr import FEATURE
    from durability.remedies.plans import Broker, has_room

    [cluster] = lake.facts(CLUSTERS, snapshot).to_pylist()
    brokers = [
        Broker(
            row["broker"], row["rack"], row["live"], has_room(row["log_dirs"], row["offline_log_dirs"], row["configs"])
        )
        for row in lake.facts(BROKERS, snapshot).to_pylist()
    ]
    elr = None if cluster["features"] is None else dict(cluster["features"]).get(FEATURE, 0) > 0
    return Known(brokers, {}, elr, False)


def known_for_changes(lake: Lake, snapshot: Mapping[str, Any], knows_racks: bool) -> Known:
    """`known_of` with the number of replicas on each broker. knows_racks: see `durability.apply.outage.Facts`."""
    import pyarrow.compute as pc

    from durability.lake.conditions import of_attempts
    from durability.lake.tables import PARTITIONS

    load: Counter[int] = Counter()
    for part in lake.parts(PARTITIONS, of_attempts([snapshot]), ["replicas"]):
        for count in pc.value_counts(pc.list_flatten(part["replicas"])).to_pylist():
            load[count["values"]] += count["counts"]
    return replace(known_of(lake, snapshot), load=load, knows_racks=knows_racks)
