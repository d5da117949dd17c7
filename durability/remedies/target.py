"""The remedy that takes a topic to its target: one replication factor and one min.insync.replicas for all its findings.

`spark_jobs.frames.target` decides the target. This module gives the steps in a safe order. A step whose precondition doesn't
hold in the snapshot states why, and no command follows it.
"""

from __future__ import annotations

from dataclasses import replace

from durability.remedies import elr, lowering, providers, racks, safety, throttles
from durability.remedies.cluster import ClusterFacts, facts_of
from durability.remedies.commands import ONE_BY_ONE, Reassign, cluster_setting, topic_setting
from durability.remedies.finding import Finding
from durability.remedies.lowering import KEY, MIN_ISR, Target
from durability.remedies.plans import UNRACKED, folder
from durability.remedies.steps import AGAIN, Remedy, Step, advice, restart

MEANWHILE = (
    "Let the reassignment complete, or cancel it, then audit again. Until then old and new replicas together form the ISR,"
    " and the worst accepted ISR spans fewer racks than before or after the reassignment"
)
UNEVEN = (
    "The partitions have different numbers of replicas. A min.insync.replicas that suits those with few lets acks=all guarantee"
    " fewer copies on the others: decide this yourself"
)


def differs(target: Target) -> bool:
    """Does the topic differ from its target?"""
    impossible = target["too_few_brokers"] or target.get("at_most") is not None
    return target["reassign"] or impossible or safety.lowers(target) or _raises(target)


def _raises(target: Target) -> bool:
    least, now = target["min_insync_replicas"], target["min_insync_replicas_now"]
    return least is not None and now is not None and least > now


def _grows(target: Target) -> bool:
    """Do partitions need more replicas?"""
    copies, now = target["replication_factor"], target["replication_factor_now"]
    return copies is not None and now is not None and copies > now


def _everywhere(target: Target, facts: ClusterFacts) -> bool:
    """Should the cluster's default min.insync.replicas be raised, instead of the topic's?

    Not if a topic that inherits it has no more replicas in sync than the new value. Then its acks=all writes would be rejected at
    once, or after one more loss. Nor if new topics would reject them. Nor if a leader's own dynamic value applies: it overrides
    the cluster-wide one. Nor if another topic has eligible leader replicas: a cluster-wide change wipes those of every topic,
    but the topic's own value wipes only its own.
    """
    source, least, inherited = target[f"{KEY}_source"], target[KEY], target["inherited_least"]
    of_cluster = source not in (None, "topic", "broker-dynamic") and least == target["default_min_insync_replicas"]
    safe = of_cluster and least < (inherited or 0) and not safety.rejects_new_topics(least, facts)
    safe = safe and not target["elr_at_risk_in_cluster"]
    return _raises(target) and safe and not facts.before(1, 1)


def remedy(finding: Finding) -> Remedy:
    """The remedy that takes the topic to its target. It is the same for every finding of the topic."""
    target, facts = finding["evidence"]["target"], facts_of(finding)
    if target["reassign"] and target[KEY] is not None and providers.fixes(MIN_ISR, finding):
        return remedy({**finding, "evidence": {**finding["evidence"], "target": {**target, KEY: None}}})
    if (copies := lowering.keeps_copies(target)) is not None:
        return remedy({**finding, "evidence": {**finding["evidence"], "target": {**target, KEY: copies}}})
    changes = safety.lowers(target) or _raises(target)
    if target.get("at_most") is not None:
        return advice(impossible(target) or "")
    if target["too_few_brokers"]:
        return _too_few_brokers(target, finding)
    if target["reassign"] and facts.unracked and facts.without.get(finding["resource"]) == UNRACKED:
        return advice(*racks.first_set(finding, list(facts.unracked)))
    if target["elr_at_risk"] and facts.led is not False and (changes or safety.pinned(target, facts) is not None):
        return advice(elr.wait(finding))
    if target.get("above_maximum") is not None and not changes and not _grows(target):
        return _remove(target["above_maximum"])
    if changes or target["reassign"]:
        return _steps(finding)
    if (evened := _evened(target)) is not None:
        return advice(evened, AGAIN)
    return advice("Set the same min.insync.replicas on all brokers: partitions of this topic have different values")


def impossible(target: Target) -> str | None:
    """What it takes before the topic can get to its target; None if it can now."""
    if target.get("at_most") is not None:
        return (
            f"Change the tier: it needs {target['replication_factor']} replicas and allows at most {target['at_most']}"
        )
    if target["too_few_brokers"]:
        wanted, there = target["replication_factor"], target["brokers"]
        return f"Add brokers ({wanted} required, the cluster has {there}), or give the topic a tier that requires fewer"
    return None


def _evened(target: Target) -> str | None:
    """Advice on a minimum relative to the number of replicas, if partitions have different numbers of them; else None."""
    below = target.get("below_replication_factor")
    if below is None:
        return None
    fewest, most = target["replication_factor_now"], target["most_replicas"]
    if None in (fewest, most) or fewest >= most:
        return None
    return (
        f"The tier requires min.insync.replicas rf-{below}, but the partitions of this topic have {fewest} to {most} replicas."
        " First give all of them the same number of replicas: otherwise one value is too low for some or leaves others too little"
        f" headroom. With {most} replicas, set min.insync.replicas={max(1, most - below)}"
    )


def _too_few_brokers(target: Target, finding: Finding) -> Remedy:
    """Advice to add brokers. If the configuration rejects every acks=all write, also the way to accept them until then."""
    topic = finding["resource"]
    now, more = target["replication_factor_now"], impossible(target) or ""
    if (grown := safety.grown(target, facts_of(finding))) is not None:
        more = f"{more}. {grown}"
    enforced, configured = target["min_insync_replicas_enforced"], target["min_insync_replicas_now"]
    if None in (enforced, configured, now) or enforced <= now or not now:
        return advice(more)
    if target["elr_at_risk"]:
        return advice(more, elr.wait(finding))
    if safety.weakens(now, target):
        return advice(more, safety.RUNNING_FIRST if target["reassigning_in_cluster"] else UNEVEN)
    why = (
        f"As configured now, every acks=all write is rejected. Until there are more replicas, this accepts them again."
        f" acks=all then guarantees no more than {lowering.copies_in_words(now)}, as many as there are."
    )
    in_sync = target["smallest_led_isr"]
    unless = None if in_sync is not None and in_sync >= now else "First bring back the out-of-sync replicas"
    lower = Step(
        topic_setting(topic, MIN_ISR, now), (why,), unless, lowering.undo(target, topic), lowering.harm_of_undo(target)
    )
    return [Step(about=(f"{more}.",)), lower]


def _steps(finding: Finding) -> Remedy:
    target, topic, facts = finding["evidence"]["target"], finding["resource"], facts_of(finding)
    least, now = target[KEY], target["replication_factor_now"]
    lowers, raises, moves = safety.lowers(target), _raises(target), target["reassign"]
    pinned = safety.pinned(target, facts)
    pin = None if pinned is None else _pin(target, topic, pinned, facts)
    # A value at the present number of replicas would leave no headroom until the new ones are in sync.
    at_once = raises and (not moves or (now is not None and least < now))
    at_last = safety.lowers_last(target)
    lower = lowering.lower(target, topic) if pin is None and lowers and not at_last else None
    move = _reassign(finding, pin or lower) if moves else None
    later = raises and not at_once
    steps: Remedy = []
    if pin is not None and pinned is not None:
        enforced = target["min_insync_replicas_enforced"]
        if move is None or move.unless is None or enforced is None or enforced > pinned:
            steps.append(pin)
    elif lower is not None:
        steps.append(lower)
    if at_once:
        steps.append(_raise(target, topic, facts))
    if move is not None:
        steps.append(move)
    if pin is not None and at_last:
        steps.append(Step(about=("When the reassignment is complete, audit again for the last step.",)))
    elif at_last or pin is not None or later:
        after = (
            f"When the reassignment is complete, audit again: then set min.insync.replicas={_or(least, 'as before')}."
        )
        steps.append(Step(about=(after, *(_trade_off(target) if later else ()))))
    if moves or not _everywhere(target, facts):
        line = _target_line(target, topic) if lowers or raises or _grows(target) else _places(topic)
        steps[:1] = [replace(step, about=(line, *step.about)) for step in steps[:1]] or [Step(about=(line,))]
    return steps


def _places(topic: str) -> str:
    return f"Target for {topic}: some of its replicas move to other racks."


def _target_line(target: Target, topic: str) -> str:
    copies, least = (_or(target[name], "unchanged") for name in ("replication_factor", KEY))
    now, configured = (_or(target[name], "unknown") for name in ("replication_factor_now", "min_insync_replicas_now"))
    return f"Target for {topic}: replication factor {copies}, min.insync.replicas {least} (now {now} and {configured})."


def _or(number: int | None, word: str) -> str:
    return word if number is None else str(number)


def _pin(target: Target, topic: str, value: int, facts: ClusterFacts) -> Step:
    """Sets min.insync.replicas to the present number of replicas before replicas are added."""
    enforced = target["min_insync_replicas_enforced"]
    if enforced is None:
        now = "Brokers enforce no more than this now, or reject every acks=all write: which of the two is unknown"
    elif enforced <= value:
        now = "Brokers enforce no more than this now"
    else:
        now = "As configured now, every acks=all write is rejected"
    why = (
        f"{now}. Replicas that are being added count before they are in sync: with a higher value, acks=all writes would be"
        " rejected until then."
    )
    if safety.weakens(value, target):
        # A running reassignment has other numbers of replicas before and after it, also of a single partition.
        unless = safety.RUNNING_FIRST if target["reassigning_in_cluster"] else UNEVEN
        return Step(topic_setting(topic, MIN_ISR, value), unless=safety.first_cancel(target, facts) or unless)
    harm = lowering.harm_of_undo(target)
    return Step(topic_setting(topic, MIN_ISR, value), (why,), undo=lowering.undo(target, topic), harm=harm)


def _raise(target: Target, topic: str, facts: ClusterFacts) -> Step:
    least, in_sync = target[KEY], target["smallest_led_isr"]
    about = _trade_off(target)
    if target["offline"] != 0:
        return Step(about=about, unless=safety.NO_LEADER)
    now = target["replication_factor_now"]
    # Replicas that are out of sync may be being added, if reassignments can't be read. Then the value must leave one to spare.
    if in_sync is None or in_sync < least or in_sync < (least + 1 if now is None else now):
        here = f"with {_or(in_sync, 'an unknown number')} in sync, as now, acks=all writes would be rejected"
        here += " after one more loss" if in_sync is not None and in_sync >= least else ""
        return Step(about=about, unless=f"First bring back the out-of-sync replicas: {here}. Don't raise it before")
    if _everywhere(target, facts):
        why = "This is the default of every topic without an override. All of them have more replicas in sync."
        return Step(cluster_setting(MIN_ISR, least), (*about, why))
    if (restored := facts.restored(topic, least)) is not None:
        verb = "had" if restored.own else "inherited"
        why = f"{MIN_ISR} was lowered in a rack outage. Before the outage, the topic {verb} {least}. This restores the value."
        return Step(topic_setting(topic, MIN_ISR, restored.value if restored.own else None), (*about, why))
    return Step(topic_setting(topic, MIN_ISR, least), about)


def _trade_off(target: Target) -> tuple[str, ...]:
    """What a higher min.insync.replicas costs if a rack is lost: acks=all writes that are accepted with the present value."""
    least, now, racks_there = target[KEY], target["min_insync_replicas_now"], target["racks_there"]
    losses = target.get("rack_losses") or []
    if None in (least, now) or not racks_there or racks_there < 2:
        return ()
    costly = [(loss["left"], loss["replicas"]) for loss in losses if now <= loss["left"] < least]
    if not costly:
        return ()
    left, copies = min(costly)
    cost = (
        f"If a rack is lost, {left} of {copies} replicas can be left: acks=all writes are then rejected with"
        f" min.insync.replicas={least}, and accepted with {now}."
    )
    if racks_there == 2:
        cost += " On two racks, no value both guarantees two racks and survives the loss of either: that needs a third rack."
    return (cost,)


def _reassign(finding: Finding, first: Step | None) -> Step:
    """Executes the topic's plan (`durability.remedies.plans`). first: the step before it, which lowers min.insync.replicas."""
    topic = finding["resource"]
    command = Reassign(topic, f"plans/{folder(finding['cluster'])}/{topic}.json", throttles.RATE)
    unless = safety.reason(command, finding, [first.command] if first is not None and first.command is not None else [])
    about = (
        "The plan is in the report's folder. Read it, and compare the size of the topic with the room on the disks of its new"
        " brokers. Then run this there in a quiet hour."
    )
    return Step(command, () if unless else (about,), unless)


def too_many(finding: Finding) -> Remedy:
    """Advice on more replicas than the tier allows. Which replica can go is a choice: each may be the only one in its rack."""
    return _remove(finding["required"]["replication_factor_at_most"])


def _remove(wanted: int, choice: str = "Allow more replicas in the tier, or remove some") -> Remedy:
    return advice(
        f"{choice}: write a plan for kafka-reassign-partitions with at most {wanted} brokers for each of these partitions",
        "Keep the first replica and as many racks. Remove replicas that are down or out of sync first",
        "The replicas that stay must be in sync, and more than min.insync.replicas. Otherwise bring replicas back first",
    )


def place(finding: Finding) -> Remedy:
    """The remedy for replicas on too few racks."""
    target = finding["evidence"]["target"]
    wanted, copies, most = target["racks"], target["replication_factor"], target.get("above_maximum")
    if most is not None and (finding["required"].get("replica_racks") or 0) > most:
        return _remove(most)
    if target["too_few_brokers"]:
        return remedy(finding)
    if target["racks_there"] == 0:
        return racks.of_topic(finding)
    if (fewer := finding["evidence"].get("enough_racks_for")) is not None:
        needed, there = finding["required"]["replica_racks"], target["racks_there"]
        return _remove(
            fewer, f"Add racks ({needed} required for so many replicas, the cluster has {there}), or remove replicas"
        )
    if target["too_few_racks"]:
        if target["unracked_brokers"]:
            return advice(*racks.first_set(finding, target["unracked_brokers"]))
        return advice(
            f"Add racks ({wanted} required, the cluster has {target['racks_there']}), or give the topic a tier that requires"
            " fewer"
        )
    if copies is None:
        return advice(_uncounted(wanted, finding["evidence"].get("reason")))
    if wanted is not None and wanted > copies:
        return advice(f"Require fewer than {wanted} racks for this topic, or give it {wanted} replicas")
    return remedy(finding)


def _uncounted(racks_wanted: int | None, reason: str | None) -> str:
    """Advice where the number of replicas is unknown: a plan would guess which of them count."""
    if reason == "observers":
        return (
            f"Change confluent.placement.constraints of the topic so that its replicas span {racks_wanted} racks without the"
            " observers. Then let Confluent's rebalancer move them"
        )
    return (
        "There is no plan, since the number of replicas is unknown. Let the auditor read all partitions of the topic, then"
        " audit again"
    )


def acked(finding: Finding) -> Remedy:
    """The remedy for a guarantee of acks=all that is too weak."""
    evidence = finding["evidence"]
    if evidence["meanwhile"]:
        return advice(MEANWHILE)
    if evidence["no_rack_named"] and not evidence["target"]["too_few_brokers"]:
        return racks.of_topic(finding)
    if evidence["infeasible"]:
        unracked = evidence["target"]["unracked_brokers"]
        alone = unracked and not evidence["target"]["too_few_brokers"]
        return advice(*racks.first_set(finding, unracked)) if alone else advice(racks.MORE)
    if differs(evidence["target"]):
        return remedy(finding)
    return advice(
        restart(
            "Set broker.rack on every broker: without it, no placement guarantees racks", ONE_BY_ONE, facts_of(finding)
        ),
        AGAIN,
    )
