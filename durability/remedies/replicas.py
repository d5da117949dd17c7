"""Remedies for replicas that are out of sync. Findings with the same cause get the same text."""

from __future__ import annotations

from durability.remedies import elr, target
from durability.remedies.commands import RUNNING, UNDER_REPLICATED, comment, is_script, script
from durability.remedies.finding import Finding

NO_HEADROOM_WANTED = (
    "Nothing to fix while the topic's tier requires no headroom. To keep writes possible without one of its brokers, give the"
    " topic a tier with write_headroom"
)


def bring_back(causes: str) -> str:
    """The remedy for a short ISR, by its cause."""
    if causes.endswith(" down"):
        return script(comment(f"Start what is down ({causes}). Then this lists no partition:"), UNDER_REPLICATED)
    if causes.endswith(" offline"):
        return f"Replace the disk and restart the broker ({causes})"
    return script(
        comment(f"Find why replicas lag ({causes}): load, disk, network, a leftover throttle. This lists them:"),
        UNDER_REPLICATED,
    )


def of_cause(finding: Finding) -> str:
    """The remedy for a short ISR, by the finding's cause."""
    return bring_back(finding["cause"])


def health(finding: Finding) -> str:
    """The remedy for partition-health: bring replicas back, or change the configuration if every replica is in sync."""
    evidence = finding["evidence"]
    if evidence["shrunk"]:
        back = bring_back(finding["cause"])
        if finding["category"] == "under-min-isr" and evidence["growing"]:
            back = _or_take_back(back)
        return _or_wait(back) if evidence["target"]["elr_at_risk"] else back
    return target.remedy(finding) if target.differs(evidence["target"]) else NO_HEADROOM_WANTED


def _or_take_back(back: str) -> str:
    """Adds the cancel command: a reassignment that adds replicas raises the effective min ISR (seen on 4.3.1)."""
    cancel = (
        "Or cancel the reassignment: replicas being added count already. Run --cancel with the file that started it."
    )
    return script(back if is_script(back) else comment(back), comment(cancel), RUNNING)


def _or_wait(back: str) -> str:
    return script(comment(elr.WAIT), back) if is_script(back) else f"{back}. {elr.WAIT}"


def isr_racks(finding: Finding) -> str:
    """The remedy for an ISR in too few racks: move replicas, or bring them back in sync."""
    evidence = finding["evidence"]
    return target.place(finding) if evidence["by_placement"] else bring_back(evidence["missing"])
