"""Remedies for replicas that are out of sync. Findings with the same cause get the same text."""

from __future__ import annotations

from collections.abc import Sequence

from durability.catalogue.causes import WORDED
from durability.remedies import elr, target
from durability.remedies.commands import (
    ELECT_PREFERRED,
    RUNNING,
    UNAVAILABLE,
    UNDER_REPLICATED,
    comment,
    is_script,
    script,
)
from durability.remedies.finding import Finding

NO_LEADER = WORDED["no-leader"]
ELECTION_MISSING = (
    "Replicas that can lead are up, but no leader is elected. See the active controller's log, and whether the brokers just"
    " started. This lists such partitions:"
)
SHOWN = 10
"""How many partitions get a command."""

NO_HEADROOM_WANTED = (
    "Nothing to fix while the topic's tier requires no headroom. To keep writes possible without one of its brokers, give the"
    " topic a tier with write_headroom"
)


def bring_back(causes: str) -> str:
    """The remedy for a short ISR, by its cause."""
    each = causes.split(", ")
    down, disks = (any(cause.endswith(state) for cause in each) for state in (" down", " offline"))
    if causes == NO_LEADER:
        return script(comment(ELECTION_MISSING), UNAVAILABLE)
    if down and disks:
        start = f"Start what is down, replace failed disks and restart their brokers ({causes})"
        return script(comment(f"{start}. Then this lists no partition:"), UNDER_REPLICATED)
    if down:
        return script(comment(f"Start what is down ({causes}). Then this lists no partition:"), UNDER_REPLICATED)
    if disks:
        return f"Replace the disk and restart the broker ({causes})"
    return script(
        comment(f"Find why replicas lag ({causes}): load, disk, network, a leftover throttle. This lists them:"),
        UNDER_REPLICATED,
    )


def elect(topic: str, partitions: Sequence[int], in_sync: int | None) -> str:
    """The remedy for partitions without a leader although their replicas are up.

    in_sync: the size of the smallest ISR. A preferred election takes the first replica of the ISR that is up: no record is lost.
    """
    if not in_sync:
        only = "With an empty ISR only replicas of the ELR can be elected without losing records."
        return script(comment(ELECTION_MISSING), UNAVAILABLE, comment(only))
    commands = (f"{ELECT_PREFERRED} --topic {topic} --partition {number}" for number in partitions[:SHOWN])
    asks = "This asks the controller to elect a leader among the replicas in sync:"
    return script(comment(ELECTION_MISSING), UNAVAILABLE, comment(asks), *commands)


def of_cause(finding: Finding) -> str:
    """The remedy for a short ISR, by the finding's cause."""
    return bring_back(finding["cause"])


def health(finding: Finding) -> str:
    """The remedy for partition-health: bring replicas back, or change the configuration if every replica is in sync."""
    evidence = finding["evidence"]
    if finding["cause"] == NO_LEADER:
        return elect(finding["resource"], finding["partitions"], finding["observed"]["isr"])
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
