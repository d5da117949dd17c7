"""Remedies for invalid values of min.insync.racks (KIP-1290)."""

from __future__ import annotations

from durability.remedies import target
from durability.remedies.finding import Finding
from durability.remedies.racks import of_brokers
from durability.remedies.steps import Remedy, advice


def valid(finding: Finding) -> Remedy:
    """The remedy for an invalid min.insync.racks of a topic or a broker."""
    evidence, problem, racks = finding["evidence"], finding["observed"]["problem"], finding["evidence"]["racks"]
    within = f"Set min.insync.racks to a value from 1 to {max(racks, 1)}, the number of racks in this cluster"
    if finding["resource_type"] == "broker":
        return _of_broker(finding, within)
    by_policy = problem == "above-known-racks" and evidence["by_policy"]
    unnamed = racks == 0 and bool(evidence["unracked_brokers"])
    if problem == "broker-without-rack" or (by_policy and unnamed):
        return of_brokers(finding)
    if by_policy:
        tier = finding["tier"]
        return advice(
            f"Lower min_insync_racks of tier {tier} to at most {racks}, the number of racks in this cluster, or add racks"
        )
    if problem in ("below-one", "above-known-racks"):
        return advice(within)
    if evidence["target"]["reassign"]:
        return target.remedy(finding)
    return advice("Spread the topic's replicas over more racks, or require fewer racks for this topic")


def _of_broker(finding: Finding, within: str) -> Remedy:
    evidence = finding["evidence"]
    if finding["observed"]["problem"] in ("below-one", "above-known-racks"):
        return advice(within)
    if evidence["rack_state"] == "unknown" or evidence["setting_unread"]:
        return advice("Bring the broker back, or let the auditor describe it")
    return of_brokers(finding)
