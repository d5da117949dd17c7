"""Bringing replicas back in sync: the same words wherever the cause is the same."""

from __future__ import annotations

from durability.remedies import elr, target
from durability.remedies.commands import RUNNING, UNDER_REPLICATED, comment, is_script, script
from durability.remedies.finding import Finding

NO_HEADROOM_WANTED = (
    "Nothing to mend while the topic's tier asks for no headroom; if writes shall go on without one of its brokers, give it"
    " a tier with write_headroom"
)


def bring_back(causes: str) -> str:
    """What mends a short ISR, by its cause."""
    if causes.endswith(" down"):
        return script(comment(f"Start what is down ({causes}); then this lists nothing:"), UNDER_REPLICATED)
    if causes.endswith(" offline"):
        return f"Replace the disk and restart ({causes})"
    return script(
        comment(f"Find why it lags ({causes}): load, disk, network, a throttle left behind. What lags:"),
        UNDER_REPLICATED,
    )


def of_cause(finding: Finding) -> str:
    return bring_back(finding["cause"])


def health(finding: Finding) -> str:
    """Of a category of partition-health: replicas come back, or the configuration leaves room."""
    evidence = finding["evidence"]
    if evidence["shrunk"]:
        back = bring_back(finding["cause"])
        if finding["category"] == "under-min-isr" and evidence["growing"]:
            back = _or_take_back(back)
        return _or_wait(back) if evidence["target"]["elr_at_risk"] else back
    return target.remedy(finding) if target.differs(evidence["target"]) else NO_HEADROOM_WANTED


def _or_take_back(back: str) -> str:
    """Raising the replication factor did it: finishing or cancelling that undoes it (seen on 4.3.1)."""
    cancel = "Or take back what adds replicas, they count already: --cancel, with the file it was started from."
    return script(back if is_script(back) else comment(back), comment(cancel), RUNNING)


def _or_wait(back: str) -> str:
    return script(comment(elr.WAIT), back) if is_script(back) else f"{back}. {elr.WAIT}"


def isr_racks(finding: Finding) -> str:
    """Of an ISR in too few racks: its replicas stand wrongly, or some are out of sync."""
    evidence = finding["evidence"]
    return target.place(finding) if evidence["by_placement"] else bring_back(evidence["missing"])
