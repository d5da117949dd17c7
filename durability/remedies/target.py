"""The remedy that takes a topic to its target: one replication factor and one min.insync.replicas for all its findings.

`spark_jobs.frames.target` decides the target. This module gives the commands in a safe order, or the reason to wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from durability.catalogue.listing import listed
from durability.remedies import elr, racks
from durability.remedies.commands import REASSIGN, cluster_config, comment, script, topic_config
from durability.remedies.finding import Finding
from durability.remedies.plans import folder

THROTTLE = 50_000_000
"""Bytes per second. Without a throttle, a reassignment competes with producers and consumers for the network."""
MEANWHILE = (
    "Let the reassignment complete, or cancel it, then audit again. Until then old and new replicas together form the ISR,"
    " and the worst accepted ISR spans fewer racks than before or after the reassignment"
)
Target = Mapping[str, Any]
"""`evidence.target` of a topic's verdict. Unknown numbers are None."""


def differs(target: Target) -> bool:
    """Does the topic differ from its target?"""
    return target["reassign"] or target["too_few_brokers"] or _lowers(target) or _raises(target)


def _lowers(target: Target) -> bool:
    least, now = target["min_insync_replicas"], target["min_insync_replicas_now"]
    return least is not None and now is not None and least < now


def _raises(target: Target) -> bool:
    least, now = target["min_insync_replicas"], target["min_insync_replicas_now"]
    return least is not None and now is not None and least > now


def _grows(target: Target) -> bool:
    """Do partitions need more replicas?"""
    copies, now = target["replication_factor"], target["replication_factor_now"]
    return copies is not None and now is not None and copies > now


def _everywhere(target: Target) -> bool:
    """Must the cluster's default min.insync.replicas be raised, instead of the topic's?"""
    source = target["min_insync_replicas_source"]
    of_cluster = source is not None and source != "topic"
    return _raises(target) and of_cluster and target["min_insync_replicas"] == target["default_min_insync_replicas"]


def remedy(finding: Finding) -> str:
    """The remedy that takes the topic to its target, the same for every finding of the topic."""
    target, topic = finding["evidence"]["target"], finding["resource"]
    changes = _lowers(target) or _raises(target)
    if target["too_few_brokers"]:
        return (
            f"Add brokers ({target['replication_factor']} required, the cluster has {target['brokers']}), or give the topic a"
            " tier that requires fewer"
        )
    if changes and target["elr_at_risk_in_cluster" if _everywhere(target) else "elr_at_risk"]:
        return elr.WAIT
    if changes or target["reassign"]:
        return _steps(target, topic, finding["cluster"])
    return "Set the same min.insync.replicas on all brokers: partitions of this topic have different values"


def _steps(target: Target, topic: str, cluster: str) -> str:
    least, now = target["min_insync_replicas"], target["replication_factor_now"]
    lowers, raises, moves = _lowers(target), _raises(target), target["reassign"]
    own = topic_config(topic, "min.insync.replicas", least)
    # Replicas being added count in the effective min ISR before they are in sync (seen on 4.3.1).
    at_once = raises and (not moves or (now is not None and least <= now))
    later = raises and moves and now is not None and least > now
    # If the value is lowered before the replicas have moved, acks=all loses its present guarantee.
    at_last = lowers and moves and target["acked_racks"] is not None and target["leans"]
    lines: list[str | None] = []
    if moves or not _everywhere(target):
        lines.append(_target_line(target, topic) if lowers or raises or _grows(target) else _places(topic))
    if lowers and not at_last:
        lines += [_why_lower(target), own]
    if moves:
        lines.append(_reassign(target, topic, cluster))
    if at_once:
        lines.append(_raise(target, own))
    if later or at_last:
        lines.append(comment(f"When the reassignment is complete, audit again: then set min.insync.replicas={least}."))
    return script(*lines)


def _places(topic: str) -> str:
    return comment(f"Target for {topic}: some of its replicas move to other racks.")


def _target_line(target: Target, topic: str) -> str:
    copies, least = (_or(target[name], "unchanged") for name in ("replication_factor", "min_insync_replicas"))
    now, configured = (_or(target[name], "unknown") for name in ("replication_factor_now", "min_insync_replicas_now"))
    return comment(
        f"Target for {topic}: replication factor {copies}, min.insync.replicas {least} (now {now} and {configured})."
    )


def _or(number: int | None, word: str) -> str:
    return word if number is None else str(number)


def _raise(target: Target, own: str) -> str:
    least = target["min_insync_replicas"]
    if _everywhere(target):
        return script(
            comment(
                "This is the default of every topic without an override. Topics with fewer replicas in sync then reject acks=all"
                " writes."
            ),
            cluster_config("min.insync.replicas", least),
        )
    in_sync = target["smallest_led_isr"]
    if in_sync is None or in_sync >= least:
        return own
    first = (
        f"First bring back the out-of-sync replicas: with {in_sync} in sync, as now, acks=all writes would be rejected."
    )
    return script(comment(first), own)


def _why_lower(target: Target) -> str:
    """A comment on the effect of lowering min.insync.replicas."""
    least, enforced = target["min_insync_replicas"], target["min_insync_replicas_enforced"]
    now = target["replication_factor_now"]
    if enforced is not None and enforced <= least:
        why = "Brokers already enforce no more than this."
    elif enforced is not None and now is not None and enforced > now:
        why = "As configured now, every acks=all write is rejected."
    else:
        why = f"An acks=all write then waits for {least} replicas instead of {_or(enforced, 'more')}."
    if least == target["replication_factor"]:
        why += (
            " It leaves no headroom: if one replica falls out of sync, acks=all writes are rejected. For headroom, give the topic"
            f" {least + 1} replicas."
        )
    return comment(why)


def _reassign(target: Target, topic: str, cluster: str) -> str:
    """The commands that execute the topic's plan (`durability.remedies.plans`), and the comments that they need.

    Kafka's tool can't handle a broker that is down: it can neither name it nor throttle it.
    """
    file = f"plans/{folder(cluster)}/{topic}.json"
    wanted = [n for n in (target["min_insync_replicas"], target["min_insync_replicas_now"]) if n is not None]
    least = min(wanted) if wanted else target["highest_min_insync_replicas"]
    there = target["its_replication_factor"]
    waits = _grows(target) and least is not None and there is not None and least > there
    return script(
        _not_before(target["replicas_down"] or []),
        comment("The plan is in the report's folder. Read it, then run this there in a quiet hour."),
        comment(
            "Until the new replicas are in sync, acks=all writes are rejected: min.insync.replicas is above the ISR."
        )
        if waits
        else None,
        f"{REASSIGN} --execute --throttle {THROTTLE} --reassignment-json-file {file}",
        f"{REASSIGN} --verify --reassignment-json-file {file} # repeat until it reports completion and removes the throttle",
    )


def _not_before(down: list[int]) -> str | None:
    if not down:
        return None
    if len(down) == 1:
        return comment(f"Wait until {listed(down, 'broker ')} is back: the tool rejects a plan that names it.")
    return comment(f"Wait until {listed(down, 'brokers ')} are back: the tool rejects a plan that names one of them.")


def place(finding: Finding) -> str:
    """The remedy for replicas on too few racks."""
    target = finding["evidence"]["target"]
    wanted, copies = target["racks"], target["replication_factor"]
    if target["racks_there"] == 0:
        return racks.set_racks(target["unracked_brokers"])
    if target["too_few_racks"]:
        return (
            f"Add racks ({wanted} required, the cluster has {target['racks_there']}), or give the topic a tier that requires"
            " fewer"
        )
    if wanted is not None and copies is not None and wanted > copies:
        return f"Require fewer than {wanted} racks for this topic, or give it {wanted} replicas"
    return remedy(finding)


def acked(finding: Finding) -> str:
    """The remedy for a guarantee of acks=all that is too weak."""
    evidence = finding["evidence"]
    if evidence["meanwhile"]:
        return MEANWHILE
    if evidence["no_rack_named"]:
        return racks.set_racks(evidence["target"]["unracked_brokers"])
    if evidence["infeasible"]:
        return racks.MORE
    if differs(evidence["target"]):
        return remedy(finding)
    return "Set broker.rack on every broker, then audit again: without it, no placement guarantees racks"
