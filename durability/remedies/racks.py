"""Brokers without broker.rack, and tiers that ask for more racks or brokers than there are."""

from __future__ import annotations

from durability.catalogue.listing import listed
from durability.remedies.finding import Finding

MORE = "Give the cluster more brokers or racks, or its topics another tier"


def set_racks(unracked: list[int] | None) -> str:
    """What mends missing broker.rack, the same for every finding of a cluster. unracked: its brokers without one."""
    ids = unracked or []
    if len(ids) == 1:
        return f"Set broker.rack in server.properties of {listed(ids, 'broker ')} and restart it"
    return f"Set broker.rack in server.properties of {listed(ids, 'brokers ')}, and restart them one after the other"


def of_brokers(finding: Finding) -> str:
    return set_racks(finding["evidence"]["unracked_brokers"])


def feasible(finding: Finding) -> str:
    """Of a tier that the cluster can't meet."""
    evidence = finding["evidence"]
    named = evidence["few_racks"] and evidence["no_rack_named"] and not evidence["few_brokers"]
    return of_brokers(finding) if named else MORE
