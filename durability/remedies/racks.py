"""Remedies for brokers without broker.rack, and for tiers that the cluster can't meet."""

from __future__ import annotations

from durability.catalogue.listing import with_noun
from durability.remedies.cluster import ClusterFacts, facts_of
from durability.remedies.commands import ONE_BY_ONE
from durability.remedies.finding import Finding
from durability.remedies.steps import AGAIN, Remedy, advice, restart

CONTRADICTS = "Change the tier: no cluster can meet it"
MORE = "Add brokers or racks, or give these topics a tier that the cluster can meet"
UNREAD = "Start the brokers that are down, or let the auditor list and describe the brokers. Then audit again"


def set_racks(unracked: list[int] | None, facts: ClusterFacts) -> str:
    """The remedy for missing racks, the same for every finding of a cluster. unracked: ids of brokers without broker.rack."""
    ids = unracked or []
    act = "restart it" if len(ids) == 1 else ONE_BY_ONE
    return restart(f"Set broker.rack in server.properties of {with_noun(ids, 'broker')}", act, facts, ids)


def of_brokers(finding: Finding) -> Remedy:
    """The remedy for missing racks of the finding's cluster."""
    return advice(set_racks(finding["evidence"]["unracked_brokers"], facts_of(finding)))


def of_topic(finding: Finding) -> Remedy:
    """The same, for a topic's finding."""
    return advice(set_racks(finding["evidence"]["target"]["unracked_brokers"], facts_of(finding)))


def first_set(finding: Finding, unracked: list[int]) -> tuple[str, ...]:
    """The remedy for too few racks where only some brokers have one: the others may be in further racks."""
    return set_racks(unracked, facts_of(finding)), AGAIN


def feasible(finding: Finding) -> Remedy:
    """The remedy for a tier that the cluster can't meet."""
    evidence = finding["evidence"]
    if finding["outcome"] == "UNKNOWN":
        return advice(UNREAD)
    if evidence.get("few_allowed") or evidence.get("few_spare"):
        return advice(CONTRADICTS)
    if evidence["few_brokers"] or not evidence["unracked_brokers"]:
        return advice(MORE)
    return (
        of_brokers(finding) if evidence["no_rack_named"] else advice(*first_set(finding, evidence["unracked_brokers"]))
    )
