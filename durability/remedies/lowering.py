"""Lowers a topic's min.insync.replicas: when it may be lowered, what that gives up, and what its undo harms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from durability.remedies import safety
from durability.remedies.commands import Config, topic_setting
from durability.remedies.steps import Remedy, Step

MIN_ISR = "min.insync.replicas"
KEY = "min_insync_replicas"
Target = Mapping[str, Any]
"""`evidence.target` of a topic's verdict. Unknown numbers are None."""


def to_tier(target: Target, topic: str) -> Remedy:
    """The steps that let the topic accept acks=all writes again while replicas are missing.

    They lower min.insync.replicas as far as the tier allows. Empty if that doesn't suffice, can wipe an ELR, or leaves a single
    copy.
    """
    least, in_sync = target[KEY], target["smallest_led_isr"]
    if not safety.lowers(target) or target["reassign"] or target["elr_at_risk"] or target["offline"] != 0:
        return []
    if least < 2 or in_sync is None or in_sync < least:
        return []
    harm = harm_of_undo(target)
    why = "Until then, this accepts acks=all writes again."
    if harm:
        why = "Even with all replicas in sync, min.insync.replicas is above their number. This accepts acks=all writes again."
    why += f" They have at least {least} copies, as the topic's tier requires."
    return [Step(topic_setting(topic, MIN_ISR, least), (why,), undo=undo(target, topic), harm=harm)]


def keeps_copies(target: Target) -> int | None:
    """The min.insync.replicas that ends a rejection of every write, where the target's leaves a single copy; else None."""
    least, enforced, now = target[KEY], target["min_insync_replicas_enforced"], target["replication_factor_now"]
    return now if least == 1 and None not in (enforced, now) and enforced > now > 1 else None


def lower(target: Target, topic: str) -> Step:
    """Lowers the topic's min.insync.replicas, unless acks=all would then no longer guarantee a second copy."""
    command = topic_setting(topic, MIN_ISR, target[KEY])
    if (unless := decided_by_hand(target)) is not None:
        return Step(command, unless=unless)
    return Step(command, (_why_lower(target),), undo=undo(target, topic), harm=harm_of_undo(target))


def decided_by_hand(target: Target) -> str | None:
    """Why the target's lower min.insync.replicas is no change for a script; None if it is one."""
    least, enforced, now = target[KEY], target["min_insync_replicas_enforced"], target["replication_factor_now"]
    if least == 1 and enforced is not None and now is not None and enforced > 1 < now:
        return (
            "First add brokers for another replica. Without it only min.insync.replicas=1 gives the headroom, and acks=all then"
            " guarantees a single copy: decide this yourself"
        )
    return None


def _why_lower(target: Target) -> str:
    """The effect of lowering min.insync.replicas."""
    least, enforced = target[KEY], target["min_insync_replicas_enforced"]
    now = target["replication_factor_now"]
    if enforced is not None and enforced <= least and target["rejects"]:
        why = "As configured now, some partitions reject every acks=all write. The others already enforce no more than this."
    elif enforced is not None and enforced <= least:
        why = "Brokers already enforce no more than this."
    elif enforced is not None and now is not None and enforced > now:
        why = "As configured now, every acks=all write is rejected."
    elif now is not None and target["min_insync_replicas_now"] > now:
        why = f"A value above the number of replicas leaves no headroom. {_gives_up(target)}"
    else:
        why = (
            "The cluster has too few brokers for another replica. To keep the guarantee of acks=all, add a broker first, then"
            f" audit again. Otherwise lower the value. {_gives_up(target)}"
        )
    if least == target["replication_factor"]:
        why += (
            " It leaves no headroom: if one replica falls out of sync, acks=all writes are rejected. For headroom, give the topic"
            f" {least + 1} replicas."
        )
    return why


def _gives_up(target: Target) -> str:
    """The copies that acks=all no longer guarantees with the lower value."""
    enforced = target["min_insync_replicas_enforced"]
    instead = "" if enforced is None else f" instead of {enforced}"
    return f"acks=all then guarantees {copies_in_words(target[KEY])}{instead}."


def undo(target: Target, topic: str) -> Config:
    """Restores the topic's present min.insync.replicas: a value of its own, or the inherited one."""
    own = target["min_insync_replicas_source"] == "topic"
    return topic_setting(topic, MIN_ISR, target["min_insync_replicas_now"] if own else None)


def harm_of_undo(target: Target, moved: bool = True) -> str | None:
    """What restoring the present min.insync.replicas does if brokers then reject every acks=all write, though all replicas are in
    sync; None if they don't.

    moved: will the replicas that the target adds be there by then?
    """
    replicas = target["replication_factor" if target["reassign"] and moved else "replication_factor_now"]
    enforced = target["min_insync_replicas_enforced"]
    value = target["min_insync_replicas_now"] if enforced is None else enforced
    above = value is not None and replicas is not None and value > replicas
    return "which rejects every acks=all write until there are more replicas" if above else None


def copies_in_words(number: int) -> str:
    return "1 copy" if number == 1 else f"{number} copies"
