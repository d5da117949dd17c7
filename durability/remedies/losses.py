"""The remedy for a topic that doesn't survive the loss of a broker or a rack.

The topic's target mends the configuration. Where only today's ISR is to blame, replicas have to come back. Where a loss takes the
quorum's majority, controllers have to move.
"""

from __future__ import annotations

from durability.catalogue.causes import worded
from durability.catalogue.listing import listed
from durability.remedies import elr, racks, replicas, target
from durability.remedies.cluster import facts_of
from durability.remedies.finding import Finding
from durability.remedies.steps import Remedy, advice

CONTROLLERS = (
    "Run three or five controllers so that no rack has half of them. This takes three racks; the third needs no broker"
)
ONE_BY_ONE = "Start controllers that are down. Run three or five of them, so that a majority is left when one fails"
SPREAD = (
    "Move replicas so that no rack holds as many of a partition's replicas as min.insync.replicas, and the replicas in the other"
    " racks reach it: three replicas in three racks with min.insync.replicas 2, for instance"
)
THIRD_RACK = "Add brokers in more racks: with one rack, every topic fails when it fails"
STATE = "State the controllers' racks in clusters.yaml, then audit again"
DESCRIBE = "Let the auditor describe all brokers, then audit again"
EACH = "Give each partition more replicas than its min.insync.replicas, and a min.insync.replicas of 2 or more"


def remedy(finding: Finding) -> Remedy:
    """The remedy for broker-loss and rack-loss."""
    evidence, facts = finding["evidence"], facts_of(finding)
    aims = evidence["target"]
    of_rack = finding["required"]["survive"] == "rack"
    if evidence["reason"] in ("already", "today") and not finding["cause"].startswith("configuration:"):
        back = replicas.of_cause(finding)
        return elr.before(back, finding) if aims["elr_at_risk"] else back
    if evidence["reason"] == "quorum":
        losing = listed(evidence["losing_quorum"])
        return advice(f"{CONTROLLERS} (racks: {losing})" if of_rack else f"{ONE_BY_ONE} (brokers: {losing})")
    if of_rack and evidence["racks"] == 1:
        return advice(THIRD_RACK)
    if facts.led is False:
        return advice(replicas.CONTROLLERS_FIRST)
    if target.differs(aims):
        missing = worded(evidence["missing"])
        back = replicas.bring_back(missing, facts) if missing else []
        return [*back, *target.remedy(finding)]
    return advice(SPREAD if of_rack else EACH)


def unplaced(finding: Finding) -> Remedy:
    """The remedy for nodes that may stand in any rack."""
    evidence, facts = finding["evidence"], facts_of(finding)
    brokers = evidence["unplaced"]
    steps = [racks.set_racks(brokers, facts)] if brokers else []
    if evidence["unplaced_voters"]:
        steps.append(STATE)
    return advice(*(steps or [DESCRIBE]))
