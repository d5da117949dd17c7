"""The remedy for a topic that doesn't survive the loss of a broker or a rack.

The topic's target fixes the configuration. If only today's ISR is to blame, replicas have to come back. If a loss takes the
quorum's majority, controllers that are missing have to start, or controllers have to move. A majority that is lost already comes
back first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from durability.catalogue.causes import worded
from durability.catalogue.listing import listed
from durability.remedies import elections, elr, racks, replicas, target
from durability.remedies.cluster import facts_of
from durability.remedies.finding import Finding
from durability.remedies.steps import AGAIN, Remedy, advice

CONTROLLERS = (
    "Run three or five controllers so that no rack has half of them. This takes three racks; the third needs no broker"
)
THREE_CONTROLLERS = "Run three or five controllers, so that a majority is left when one fails"
SPREAD = (
    "Move replicas so that no rack holds as many of a partition's replicas as min.insync.replicas, and the replicas in the other"
    " racks reach it: three replicas in three racks with min.insync.replicas 2, for instance"
)
THIRD_RACK = "Add brokers in more racks: with one rack, every topic fails when it fails"
TWO_RACKS = (
    "Add brokers in a third rack, or give these topics a tier that the cluster can meet. With two racks, a rack that has"
    " min.insync.replicas replicas takes acknowledged writes with it. If neither rack has so many, the loss of either stops"
    " acks=all writes"
)
STATE = "State the controllers' racks in clusters.yaml, then audit again"
DESCRIBE = "Let the auditor describe all brokers, then audit again"
EACH = "Give each partition more replicas than its min.insync.replicas, and a min.insync.replicas of 2 or more"
Evidence = Mapping[str, Any]
"""Evidence of broker-loss or rack-loss."""


def remedy(finding: Finding) -> Remedy:
    """The remedy for broker-loss and rack-loss: for what the topic's replicas cause, and for the controllers."""
    evidence = finding["evidence"]
    if evidence["reason"] == "already":
        return _of_replicas(finding, finding["cause"], "today")
    why, majority_lost = evidence["while_kept"], evidence["majority_lost"]
    if majority_lost and why != "today":
        return advice(_majority_first(evidence), AGAIN)
    of_controllers = [] if majority_lost else _controllers(finding)
    by_quorum = evidence["reason"] == "quorum"
    if why is None:
        return of_controllers
    of_replicas = _of_replicas(finding, worded(evidence["missing"]) if by_quorum else finding["cause"], why)
    return [*of_controllers, *of_replicas] if by_quorum else [*of_replicas, *of_controllers]


def _of_replicas(finding: Finding, cause: str | None, why: str) -> Remedy:
    """The steps for what breaks although the controllers keep their majority.

    cause: of missing replicas, as findings show it. why: `today` if only today's ISR is to blame, or `configured`.
    """
    evidence, facts = finding["evidence"], facts_of(finding)
    aims, of_rack = evidence["target"], finding["required"]["survive"] == "rack"
    missing = worded(evidence["missing"])
    if why == "today" and evidence["minimum_above_replicas"] and missing and facts.led is not False:
        accept = replicas.accept_writes(aims, finding["resource"]) or target.remedy(finding)
        back = replicas.bring_back(missing, facts, evidence["leaving"])
        return [*accept, *back] if evidence["reason"] == "already" else [*back, *accept]
    if why == "today" and cause is not None and not cause.startswith("configuration:"):
        back = replicas.bring_back(cause, facts, evidence["leaving"])
        return elr.before(back, finding) if aims["elr_at_risk"] else back
    if of_rack and evidence["racks"] == 1:
        return advice(THIRD_RACK)
    if facts.led is False:
        return advice(elections.CONTROLLERS_FIRST)
    few = advice(TWO_RACKS) if of_rack and evidence.get("few_racks") else []
    back = replicas.bring_back(missing, facts, evidence["leaving"]) if missing else []
    if target.differs(aims):
        return [*few, *back, *target.remedy(finding)]
    return [*back, *(few or advice(SPREAD if of_rack else EACH))]


def _majority_first(evidence: Evidence) -> str:
    missing = evidence["voters_missing"]
    which = f" (missing: {listed(missing)})" if missing else ""
    return f"{elections.CONTROLLERS_FIRST}{which}"


def _controllers(finding: Finding) -> Remedy:
    """The step for losses that take the controllers' majority."""
    evidence = finding["evidence"]
    of_rack, losing = finding["required"]["survive"] == "rack", evidence["losing_quorum"]
    outnumbering, missing = evidence["outnumbering"], evidence["voters_missing"]
    said = []
    if missing and set(losing) != set(outnumbering):
        one_more = f"without them, the loss of one more {'rack' if of_rack else 'broker'} can take the majority"
        said.append(f"Start the controllers that are missing ({listed(missing)}): {one_more}")
    if outnumbering:
        names = listed(outnumbering)
        said.append(f"{CONTROLLERS} (racks: {names})" if of_rack else f"{THREE_CONTROLLERS} (brokers: {names})")
    return advice(*said) if said else []


def unplaced(finding: Finding) -> Remedy:
    """The remedy for nodes that may be in any rack."""
    evidence, facts = finding["evidence"], facts_of(finding)
    brokers = evidence["unplaced"]
    steps = [racks.set_racks(brokers, facts)] if brokers else []
    if evidence["unplaced_voters"]:
        steps.append(STATE)
    return advice(*(steps or [DESCRIBE]))
