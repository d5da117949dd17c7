"""Remedies for replicas that are out of sync. Findings with the same cause get the same text."""

from __future__ import annotations

from durability.remedies import elr, target
from durability.remedies.cluster import ClusterFacts, facts_of
from durability.remedies.commands import RUNNING, UNDER_REPLICATED
from durability.remedies.finding import Finding
from durability.remedies.steps import Remedy, Step, advice

CANCEL_HARMS = (
    "Don't cancel the reassignment: without the replicas being added, too few live replicas are in sync, and the partition can"
    " lose its leader or its writes."
)
CANCEL_FILE = (
    "To cancel it, run the tool with --cancel and the file that started it, or another file that names the partitions. This also"
    " removes the throttle."
)

NO_HEADROOM_WANTED = (
    "Nothing to fix while the topic's tier requires no headroom. To keep writes possible without one of its brokers, give the"
    " topic a tier with write_headroom"
)


def bring_back(causes: str, facts: ClusterFacts) -> Remedy:
    """The remedy for a short ISR, by its cause."""
    if causes.endswith(" down"):
        start = f"Start what is down ({causes}). Then this lists no partition:"
        return [Step(UNDER_REPLICATED, (start,)), *advice(_gone_for_good(facts))]
    if causes.endswith(" offline"):
        return advice(f"Replace the disk and restart the broker ({causes})")
    find = f"Find why replicas lag ({causes}): load, disk, network, a leftover throttle. This lists them:"
    return [Step(UNDER_REPLICATED, (find,))]


def _gone_for_good(facts: ClusterFacts) -> str:
    """What to do about brokers that never come back.

    The tool can't set a throttle on a broker that is down. ZooKeeper forgets a broker when its session ends, but the controllers
    of KRaft keep it until it is unregistered.
    """
    move = (
        "If a broker is gone for good, don't wait for it: move its replicas to live brokers with kafka-reassign-partitions,"
        " without a throttle. Its data is lost where no other replica is in sync."
    )
    unregister = " Then unregister it (kafka-cluster unregister), when it has no replica left."
    return move if facts.kraft is False else move + unregister


def of_cause(finding: Finding) -> Remedy:
    """The remedy for a short ISR, by the finding's cause."""
    return bring_back(finding["cause"], facts_of(finding))


def health(finding: Finding) -> Remedy:
    """The remedy for partition-health: bring replicas back, or change the configuration if every replica is in sync."""
    evidence, facts = finding["evidence"], facts_of(finding)
    if evidence["shrunk"]:
        back = bring_back(finding["cause"], facts)
        if finding["category"] == "under-min-isr" and evidence["growing"]:
            back = _or_take_back(back, evidence["cancel_harms"], facts)
        return [Step(about=(elr.WAIT,)), *back] if evidence["target"]["elr_at_risk"] else back
    return target.remedy(finding) if target.differs(evidence["target"]) else advice(NO_HEADROOM_WANTED)


def _or_take_back(back: Remedy, harms: bool, facts: ClusterFacts) -> Remedy:
    """Adds the advice to cancel: a reassignment that adds replicas raises the effective min ISR (seen on 4.3.1).

    Before 2.6 the tool can't cancel.
    """
    if harms:
        return [*back, Step(about=(CANCEL_HARMS,))]
    cancel = "Or cancel the reassignment: replicas being added count already."
    return [*back, Step(RUNNING, (cancel, CANCEL_FILE))] if not facts.before(2, 6) else back


def isr_racks(finding: Finding) -> Remedy:
    """The remedy for an ISR in too few racks: move replicas, or bring them back in sync."""
    evidence = finding["evidence"]
    return target.place(finding) if evidence["by_placement"] else bring_back(evidence["missing"], facts_of(finding))
