"""Remedies for invalid values of min.insync.racks (KIP-1290)."""

from __future__ import annotations

from durability.remedies import target
from durability.remedies.finding import Finding
from durability.remedies.racks import first_set, of_brokers
from durability.remedies.steps import AGAIN, Remedy, advice

DESCRIBE_ONE = (
    "Bring the broker back, unregister it if it was removed for good and has no replica, or let the auditor describe it"
)
DESCRIBE = "Bring back the brokers whose racks are unknown, or let the auditor describe them"


def valid(finding: Finding) -> Remedy:
    """The remedy for a min.insync.racks of a topic or a broker that is invalid, or may be.

    Brokers without broker.rack may be in further racks. So their racks are set before a value is compared with the racks.
    """
    evidence, problem, racks = finding["evidence"], finding["observed"]["problem"], finding["evidence"]["racks"]
    unracked = evidence["unracked_brokers"] or []
    number = "the number of racks that brokers name" if unracked else "the number of racks in this cluster"
    within = f"Set min.insync.racks to a value from 1 to {max(racks, 1)}, {number}"
    if finding["resource_type"] == "broker":
        return _of_broker(finding, within)
    by_policy = problem == "above-known-racks" and evidence["by_policy"]
    if problem == "broker-without-rack" or (by_policy and unracked and racks == 0):
        return of_brokers(finding)
    if problem == "above-known-racks" and finding["observed"]["min_insync_racks"] <= racks + len(unracked):
        return advice(*first_set(finding, unracked))
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
    if evidence["reason"] == "unplaced":
        unracked = evidence["unracked_brokers"]
        return advice(*(first_set(finding, unracked) if unracked else (DESCRIBE, AGAIN)))
    if finding["observed"]["problem"] in ("below-one", "above-known-racks"):
        return advice(within)
    if evidence["rack_state"] == "unknown" or evidence["setting_unread"]:
        return advice(DESCRIBE_ONE)
    return of_brokers(finding)
