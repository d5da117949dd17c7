"""The way to a topic's target: one replication factor and one min.insync.replicas, which all of its findings ask for.

`spark_jobs.frames.target` decides the target. Here are the commands in the order in which they are safe, or why there are
none yet.
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
"""Bytes a second: a plan executed without a throttle competes with producers and consumers for the network."""
MEANWHILE = (
    "Let the reassignment complete, or cancel it, then audit again: until then old and new replicas together make up the"
    " ISR, and the worst that is accepted stands in fewer racks than that of either end"
)
Target = Mapping[str, Any]
"""`evidence.target` of a topic's verdict; numbers are None where unknown."""


def differs(target: Target) -> bool:
    """Is there a way to go?"""
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
    """Is it the cluster's default that has to be raised?"""
    source = target["min_insync_replicas_source"]
    of_cluster = source is not None and source != "topic"
    return _raises(target) and of_cluster and target["min_insync_replicas"] == target["default_min_insync_replicas"]


def remedy(finding: Finding) -> str:
    """The way to the target, the same for every finding of a topic."""
    target, topic = finding["evidence"]["target"], finding["resource"]
    changes = _lowers(target) or _raises(target)
    if target["too_few_brokers"]:
        return (
            f"Give the cluster {target['replication_factor']} brokers (it has {target['brokers']}), or the topic a tier that"
            " asks for less"
        )
    if changes and target["elr_at_risk_in_cluster" if _everywhere(target) else "elr_at_risk"]:
        return elr.WAIT
    if changes or target["reassign"]:
        return _steps(target, topic, finding["cluster"])
    return "Give all brokers the same min.insync.replicas: partitions of this topic have different ones"


def _steps(target: Target, topic: str, cluster: str) -> str:
    least, now = target["min_insync_replicas"], target["replication_factor_now"]
    lowers, raises, moves = _lowers(target), _raises(target), target["reassign"]
    own = topic_config(topic, "min.insync.replicas", least)
    # Replicas being added count towards the effective min ISR before they are in sync (seen on 4.3.1).
    at_once = raises and (not moves or (now is not None and least <= now))
    later = raises and moves and now is not None and least > now
    # What acks=all guarantees now goes when the value is lowered before the replicas stand elsewhere.
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
        lines.append(comment(f"When it is complete, audit again: min.insync.replicas={least} comes next."))
    return script(*lines)


def _places(topic: str) -> str:
    return comment(f"{topic}: some of its replicas go to other racks.")


def _target_line(target: Target, topic: str) -> str:
    copies, least = (_or(target[name], "as it is") for name in ("replication_factor", "min_insync_replicas"))
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
                "The default of every topic without a value of its own: one with fewer replicas in sync than that will refuse"
                " acks=all writes."
            ),
            cluster_config("min.insync.replicas", least),
        )
    in_sync = target["smallest_led_isr"]
    if in_sync is None or in_sync >= least:
        return own
    first = (
        f"First bring back the replicas that are out of sync: with {in_sync} in sync, as now, acks=all writes would be"
    )
    return script(comment(f"{first} refused."), own)


def _why_lower(target: Target) -> str:
    """What lowering min.insync.replicas costs, and what it leaves."""
    least, enforced = target["min_insync_replicas"], target["min_insync_replicas_enforced"]
    now = target["replication_factor_now"]
    if enforced is not None and enforced <= least:
        why = "Brokers enforce no more than this already."
    elif enforced is not None and now is not None and enforced > now:
        why = "No acks=all write can pass as it is."
    else:
        why = f"Lowers what an acks=all write waits for from {_or(enforced, 'more')} replicas to {least}."
    if least == target["replication_factor"]:
        why += (
            " It leaves no headroom: one replica out of sync, and acks=all writes are refused. With headroom: give the topic"
            f" {least + 1} replicas."
        )
    return comment(why)


def _reassign(target: Target, topic: str, cluster: str) -> str:
    """Executes the reassignment plan that the report wrote for the topic (`durability.remedies.plans`). While a broker is
    down the tool can neither name it nor throttle it."""
    file = f"plans/{folder(cluster)}/{topic}.json"
    wanted = [n for n in (target["min_insync_replicas"], target["min_insync_replicas_now"]) if n is not None]
    least = min(wanted) if wanted else target["highest_min_insync_replicas"]
    there = target["its_replication_factor"]
    waits = _grows(target) and least is not None and there is not None and least > there
    return script(
        _not_before(target["replicas_down"] or []),
        comment("The plan stands in the report's folder: read it, and run this there in a quiet hour."),
        comment("Until the new replicas are in sync acks=all writes are refused: min.insync.replicas is above the ISR.")
        if waits
        else None,
        f"{REASSIGN} --execute --throttle {THROTTLE} --reassignment-json-file {file}",
        f"{REASSIGN} --verify --reassignment-json-file {file} # again until it is complete, which removes the throttle",
    )


def _not_before(down: list[int]) -> str | None:
    if not down:
        return None
    if len(down) == 1:
        return comment(f"Not before {listed(down, 'broker ')} is back: the tool refuses a plan that names it.")
    return comment(f"Not before {listed(down, 'brokers ')} are back: the tool refuses a plan that names one of them.")


def place(finding: Finding) -> str:
    """What mends replicas on too few racks."""
    target = finding["evidence"]["target"]
    wanted, copies = target["racks"], target["replication_factor"]
    if target["racks_there"] == 0:
        return racks.set_racks(target["unracked_brokers"])
    if target["too_few_racks"]:
        return (
            f"Add racks ({wanted} are wanted, the cluster has {target['racks_there']}), or give the topic a tier that asks for"
            " fewer"
        )
    if wanted is not None and copies is not None and wanted > copies:
        return f"Want fewer racks than {wanted} of this topic, or give it as many replicas"
    return remedy(finding)


def acked(finding: Finding) -> str:
    """Of what acks=all guarantees at worst."""
    evidence = finding["evidence"]
    if evidence["meanwhile"]:
        return MEANWHILE
    if evidence["no_rack_named"]:
        return racks.set_racks(evidence["target"]["unracked_brokers"])
    if evidence["infeasible"]:
        return "Add brokers or racks, or give these topics a tier that the cluster can meet"
    if differs(evidence["target"]):
        return remedy(finding)
    return "Give every broker its broker.rack, then audit again: without it no placement guarantees racks"
