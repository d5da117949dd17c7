"""Checks whether a command is safe in the evaluated snapshot, with the preconditions of each kind of command.

`checked` is applied to every remedy before it is printed, for all planners and templates. Planners state reasons that they can
describe better. Cases that a planner doesn't handle are found here. An unknown fact is a reason against a command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from durability.catalogue.listing import with_noun
from durability.remedies import elr, providers
from durability.remedies.cluster import ClusterFacts, facts_of
from durability.remedies.commands import Command, Config, Elect, Feature, Reassign, Show, Unregister
from durability.remedies.finding import Finding
from durability.remedies.gone import NEW_BROKER
from durability.remedies.plans import HALTED, LIMIT, NOTHING, ROOM, SUFFICE, UNRACKED
from durability.remedies.steps import NO_CONTROLLER, Remedy

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
THROTTLED = ".replication.throttled."
NO_LEADER = (
    "First bring back a leader for the partitions that have none: start the broker, repair its disk, or find why none is"
    " elected"
)
NO_PLAN = {
    ROOM: "Add disks or brokers first, replace failed disks, and uncordon the log dirs of brokers that stay: a full disk takes"
    " all its partitions offline",
    SUFFICE: "Start the brokers that are down, or add brokers or racks",
    LIMIT: "Run the plans that there are, or use a tool that balances",
    NOTHING: "Let the running reassignment complete",
    HALTED: "First restore the controller quorum",
    UNRACKED: "First set broker.rack in server.properties of every broker",
}
"""What to do, by the reason why a topic has no plan."""
RUNNING_FIRST = (
    "First let the running reassignments of this cluster complete, or cancel them: the tool starts no other before"
)
MINIMUM_UNKNOWN = (
    "First find out the topic's min.insync.replicas: replicas being added count before they are in sync, so a value above the"
    " number of replicas would reject acks=all writes until then"
)
MINIMUM_DIFFERS = (
    "First set the same min.insync.replicas on all brokers: it is above the number of replicas of some partitions, and replicas"
    " being added count before they are in sync, so acks=all writes to these would be rejected until then"
)
MISSING = object()
CAPPED = (3, 7)
"""Since this release brokers enforce no more than the number of replicas (KAFKA-15583)."""
WAITS_FOR_IN_SYNC = (4, 3)
"""Before this release a reassignment may be complete only when all replicas of its target are in sync (KAFKA-19975)."""


def checked(remedy: Remedy, finding: Finding) -> Remedy:
    """The remedy, with the reason against each command that isn't safe as its step's `unless`."""
    remedy = providers.reworded(remedy, finding)
    steps: Remedy = []
    before: list[Command] = []
    for step in remedy:
        if step.command is not None and step.unless is None:
            unless = reason(step.command, finding, before)
            # The sentences of the step describe the command, so they are left out with it.
            step = step if unless is None else replace(step, unless=unless)
        if step.command is not None:
            before.append(step.command)
        about = tuple(providers.delegated(sentence, finding) for sentence in step.about)
        steps.append(replace(step, about=about, unless=step.unless and providers.delegated(step.unless, finding)))
    return steps


def reason(command: Command, finding: Finding, before: Sequence[Command] = ()) -> str | None:
    """Why the command must not run now, as a sentence without its full stop; None if it is safe.

    before: the commands that run before it.
    """
    if (refused := providers.against(command, finding.get("provider"))) is not None:
        return refused
    if not isinstance(command, Show) and any(isinstance(earlier, Reassign) for earlier in before):
        return "First let the reassignment complete"
    if isinstance(command, Config):
        return next((why for key, value in command.values if (why := _setting(command, key, value, finding))), None)
    if isinstance(command, Reassign):
        return _reassign(command, finding, before)
    if isinstance(command, Feature):
        return _feature(command, finding, before)
    if isinstance(command, Unregister):
        return "First move the broker's replicas to live brokers"
    if isinstance(command, Elect):
        up = command.partition in (finding["evidence"].get("electable") or ())
        return None if up else "No replica in sync is known to be up, and only such a replica may be elected"
    return None


def _setting(command: Config, key: str, value: str | None, finding: Finding) -> str | None:
    if key == UNCLEAN:
        return None if value == "false" else "Unclean leader election can lose acknowledged records"
    if THROTTLED in key:
        running = value is None and finding["evidence"].get("left") is not True
        return (
            "A reassignment may be running, and its throttle protects the brokers. First let it complete"
            if running
            else None
        )
    if key != MIN_ISR:
        return None
    if command.entity == "topics":
        return _topic_min_isr(command.name or "", value, finding)
    own = command.name is not None and int(command.name) not in finding["evidence"].get("overriding_brokers", ())
    if own or value is None:
        return f"Don't change {MIN_ISR} here: it is unknown which partitions the change affects"
    if command.name is not None and facts_of(finding).elr:
        return f"With eligible leader replicas on, Kafka refuses changes of a single broker's {MIN_ISR}"
    return _cluster_min_isr(int(value), finding)


def _topic_min_isr(topic: str, value: str | None, finding: Finding) -> str | None:
    """A change of a topic's minimum must not wipe an ELR, stop writes, or fall below what the tier requires."""
    target = finding["evidence"].get("target")
    if value is None and target is not None:
        restored = facts_of(finding).restored(topic, target["min_insync_replicas"])
        value = str(restored.value) if restored is not None and not restored.own else None
    if target is None or value is None:
        return f"Don't change {MIN_ISR} here: the state of the topic's partitions with the new value is unknown"
    if target["elr_at_risk"]:
        return elr.wait(finding).rstrip(".")
    new, least, now = int(value), target["min_insync_replicas"], target["min_insync_replicas_now"]
    if now is None:
        return f"Don't change {MIN_ISR} here: its present value is unknown"
    if new < now:
        unless = f"Don't lower {MIN_ISR} to {new}: acks=all would guarantee less than the tier requires"
        enough = least is not None and new >= least
        return None if enough or not weakens(new, target) else unless
    if new > now and (least is None or new > least):
        return f"Don't raise {MIN_ISR} to {new}: the topic would have less headroom than its tier requires"
    return _raised(new, target) if new > now else None


def weakens(new: int, target: Any) -> bool:
    """Does a lower minimum let acks=all guarantee fewer copies, on any partition? Unknown counts as yes.

    Brokers enforce no more than the number of replicas, or reject every write, which guarantees nothing. But partitions of a
    topic can have different numbers of replicas.
    """
    configured = [target["min_insync_replicas_now"], target["highest_min_insync_replicas"]]
    most = target["most_replicas"]
    return most is None or min(max(n for n in [*configured, new] if n is not None), most) > new


def _raised(new: int, target: Any) -> str | None:
    if target["offline"] != 0:
        return NO_LEADER
    in_sync = target["smallest_led_isr"]
    if in_sync is None or in_sync < new:
        here = "an unknown number" if in_sync is None else in_sync
        return (
            f"First bring back the out-of-sync replicas: with {here} in sync, as now, acks=all writes would be rejected"
        )
    return None


def _cluster_min_isr(new: int, finding: Finding) -> str | None:
    """A cluster-wide value applies at once to every topic without a value of its own.

    A broker's own dynamic value applies to the partitions among them that the broker leads, so it follows the same rule.
    """
    facts = facts_of(finding)
    if facts.elr is not False and _stated(finding, "elr_at_risk_in_cluster", "elr_at_risk") is not False:
        return elr.wait(finding).rstrip(".")
    least = _stated(finding, "inherited_least")
    raises = facts.lowest_min_isr is None or new > facts.lowest_min_isr
    if raises and (least is MISSING or (least is not None and least <= new)):
        return f"Don't set {MIN_ISR}={new} for the whole cluster now: a topic that inherits it has too few replicas in sync"
    if raises and rejects_new_topics(new, facts):
        return (
            f"Don't set {MIN_ISR}={new} for the whole cluster now: new topics with the default replication factor of"
            f" {facts.lowest_default_rf} would inherit it, and reject every acks=all write. First raise"
            " default.replication.factor on all brokers"
        )
    if facts.highest_min_isr is None or facts.highest_min_isr > new:
        there = "unknown" if facts.highest_min_isr is None else f"up to {facts.highest_min_isr}"
        return (
            f"Don't set {MIN_ISR}={new} for the whole cluster: it overrides the brokers' own values, which are {there}"
        )
    return None


def caps(facts: ClusterFacts) -> bool:
    """Do all brokers take min.insync.replicas for at most the number of replicas? Then it may be above it."""
    return facts.release is not None and facts.release >= CAPPED


def rejects_new_topics(new: int, facts: ClusterFacts) -> bool:
    """Would topics that are created with the default replication factor reject every acks=all write with this minimum?

    Before 1.1 both settings are in the brokers' files, and change with the same restart.
    """
    default = facts.lowest_default_rf
    return not caps(facts) and not facts.before(1, 1) and default is not None and default < new


def _stated(finding: Finding, *names: str) -> Any:
    """The first of these members of the evidence, or of its target; MISSING if there is none."""
    evidence = finding["evidence"]
    for members in (evidence.get("target") or {}, evidence):
        for name in names:
            if name in members:
                return members[name]
    return MISSING


def _reassign(command: Reassign, finding: Finding, before: Sequence[Command]) -> str | None:
    """Why a reassignment can't run or would do damage now; None if it can run.

    A partition without a leader has no live copy to read from. Kafka's tool can neither name nor throttle a dead broker. It
    starts nothing while a reassignment runs anywhere in the cluster. Replicas being added count in the effective minimum
    before they are in sync.
    """
    target, facts = finding["evidence"].get("target"), facts_of(finding)
    if target is None:
        return "The state of the topic's partitions is unknown"
    if facts.led is False:
        return NO_CONTROLLER
    if target["offline"] != 0:
        return f"{NO_LEADER}. Without a leader nothing can be copied"
    if (stops := first_cancel(target, facts)) is not None:
        return stops
    down = target["replicas_down"] or []
    if down:
        shrinking = _shrinking(target)
        if shrinking is not None and target.get("cancel_harms") is False and not facts.before(2, 4):
            return shrinking
        names = with_noun(down, "broker")
        if providers.runs_brokers(finding.get("provider")):
            return f"First let the cluster's provider bring back {names}: the tool rejects a plan with a broker that is down"
        it, one = ("it", "it is") if len(down) == 1 else ("one of them", "they are")
        if target["reassigning_in_cluster"] and facts.before(2, 4):
            first = f"First start {names}: before Kafka 2.4 no plan replaces a running reassignment"
            return f"{first}. If {one} gone for good, {NEW_BROKER}"
        return (
            f"First start {names}, or, if {one} gone for good, move these replicas to live brokers: the tool rejects a plan that"
            f" names {it}"
        )
    if facts.failed_disks and facts.before(*WAITS_FOR_IN_SYNC) and not _whole(target):
        of = with_noun(facts.failed_disks, "broker")
        return (
            f"First replace the failed disks of {of}, and let all replicas get in sync: before Kafka 4.3 a reassignment waits for"
            " each replica that stays"
        )
    if target["reassigning_in_cluster"] is None:
        return "First let the auditor read the running reassignments: the tool starts none beside another"
    if target["reassigning_in_cluster"]:
        return _shrinking(target) or RUNNING_FIRST
    if command.topic not in facts.planned:
        why = facts.without.get(command.topic, "none was made")
        todo = NO_PLAN.get(why, "Choose the brokers for the replicas yourself")
        if why == ROOM and facts.down:
            todo = todo.replace(
                "Add disks or brokers first", f"First start {with_noun(facts.down, 'broker')}, or add disks or brokers"
            )
        if why == SUFFICE and (more := grown(target, facts)) is not None:
            todo = f"{todo}. {more}"
        return f"There is no plan for this topic ({why}). {todo}"
    if target["minimum_unknown"]:
        return MINIMUM_UNKNOWN
    pin = pinned(target, facts)
    lowered_to = _last_min_isr(before)
    if pin is not None and (lowered_to is None or lowered_to > pin):
        return f"First set {MIN_ISR} to no more than {pin}: replicas being added count before they are in sync"
    return MINIMUM_DIFFERS if lowered_to is None and _rises(target, facts) else None


def grown(target: Any, facts: ClusterFacts) -> str | None:
    """What live brokers that are too few for the target can do for partitions with fewer replicas; None if nothing.

    A replica that is being added counts in the effective minimum before it is in sync. That costs nothing where every write is
    rejected already.
    """
    now, configured, there = target["replication_factor_now"], target["min_insync_replicas_now"], target["brokers"]
    if None in (now, configured, there, target["min_insync_replicas_enforced"]):
        return None
    # While other brokers are down, it helps most to have a second copy. More than that can wait for them.
    live = there if not facts.down else min(there - len(facts.down), 2)
    if now >= live or configured > now >= target["min_insync_replicas_enforced"]:
        return None
    possible = providers.refusal(facts.provider, providers.REASSIGN) is None and facts.led is not False
    if not possible or target["reassigning_in_cluster"] or (facts.down and target["replicas_down"] != []):
        return None
    done = f"Until then, a reassignment can give each partition {live} replicas"
    return f"{done}: no broker then has the only copy" if now == 1 else done


def _rises(target: Any, facts: ClusterFacts) -> bool:
    """Would replicas being added raise what a leader enforces, by a value of its broker that other brokers don't have?

    The topic's present value is the lowest one.
    """
    highest, there = target["highest_min_insync_replicas"], target["its_replication_factor"]
    capped = facts.newest is None or facts.newest >= CAPPED
    return bool(target["reassign"] and capped and None not in (highest, there) and highest > there)


def _shrinking(target: Any) -> str | None:
    """What to do about a running reassignment that leaves fewer replicas than the tier requires; None if it doesn't.

    A removed replica would be copied again later. A broker that it waits for completes it when it starts.
    """
    left, wanted = target["replication_factor_now"], target["replication_factor"]
    if not target.get("shrinks") or None in (left, wanted) or left >= wanted:
        return None
    leaves = f"It leaves {left} replica{'s' * (left != 1)}, and the tier requires {wanted}"
    if target.get("replicas_down"):
        return f"First cancel the running reassignment of this topic. {leaves}"
    return (
        f"First end the running reassignment of this topic. {leaves}. Cancel it if it only removes replicas. Otherwise let it"
        " complete: the tool starts no other before"
    )


def first_cancel(target: Any, facts: ClusterFacts) -> str | None:
    """What to do about a running reassignment that leaves fewer replicas than min.insync.replicas; None if it doesn't.

    It may wait for a broker that is down, whose start completes it. Before 2.4, brokers don't cancel.
    """
    left, now = target["replication_factor_now"], target["min_insync_replicas_now"]
    if not target.get("shrinks") or not target["reassigning_in_cluster"] or None in (left, now) or left >= now:
        return None
    leaves = f"leaves {left} replica{'s' * (left != 1)}, and min.insync.replicas is {now}. {once_below(facts)}"
    if facts.before(2, 4):
        return f"First set min.insync.replicas={left} on the topic: its running reassignment {leaves}"
    if target.get("cancel_harms") is not False:
        return None
    return f"First cancel the running reassignment of this topic. It {leaves}"


def once_below(facts: ClusterFacts) -> str:
    """What acks=all does once a partition has fewer replicas than min.insync.replicas.

    >>> once_below(ClusterFacts(newest=(3, 6)))
    'Once it is complete, every acks=all write is rejected'
    >>> once_below(ClusterFacts(release=(4, 1)))
    'Once it is complete, acks=all guarantees fewer copies'
    """
    if facts.newest is not None and facts.newest < CAPPED:
        return "Once it is complete, every acks=all write is rejected"
    if facts.release is not None and facts.release >= CAPPED:
        return "Once it is complete, acks=all guarantees fewer copies"
    return "Once it is complete, every acks=all write is rejected or, since Kafka 3.7, acks=all guarantees fewer copies"


def _whole(target: Any) -> bool:
    """Are all replicas of the topic known to be in sync?"""
    in_sync, now = target["smallest_led_isr"], target["replication_factor_now"]
    return None not in (in_sync, now) and in_sync >= now


def _last_min_isr(commands: Sequence[Command]) -> int | None:
    """The last min.insync.replicas that these commands set; None if they set none."""
    last = None
    for command in commands:
        for key, value in command.values if isinstance(command, Config) else ():
            if key == MIN_ISR and value is not None:
                last = int(value)
    return last


def pinned(target: Any, facts: ClusterFacts) -> int | None:
    """The min.insync.replicas that the topic needs while replicas are added or moved; None if its value may stay.

    Replicas being added count in the effective min ISR before they are in sync (seen on 4.3.1). So a value above the replication
    factor would reject acks=all writes until the new replicas are in sync. Before 3.7 such a value rejects them now, whatever
    the number of replicas. Then the value stays if a lower one would weaken other partitions.
    """
    now, there = target["min_insync_replicas_now"], target["its_replication_factor"]
    wanted = [n for n in (now if lowers_last(target) else target["min_insync_replicas"], now) if n is not None]
    meanwhile = min(wanted) if wanted else target["highest_min_insync_replicas"]
    waits = target["reassign"] and meanwhile is not None and there is not None and meanwhile > there
    before = facts.newest is not None and facts.newest < CAPPED
    return there if waits and not (before and weakens(there, target)) else None


def lowers(target: Any) -> bool:
    """Is the target's min.insync.replicas lower than now?"""
    least, now = target["min_insync_replicas"], target["min_insync_replicas_now"]
    return least is not None and now is not None and least < now


def lowers_last(target: Any) -> bool:
    """Must the value be lowered after moving the replicas? Before that, acks=all would lose its present guarantee."""
    return lowers(target) and target["reassign"] and target["acked_racks"] is not None and target["leans"]


def _feature(command: Feature, finding: Finding, before: Sequence[Command]) -> str | None:
    """The upgrade can't be undone. With ELR it keeps a cluster-wide min.insync.replicas, so there must be one."""
    if command.name != elr.FEATURE:
        return f"It is unknown what feature {command.name} changes"
    stated = any(isinstance(c, Config) and c.name is None and dict(c.values).get(MIN_ISR) for c in before)
    if finding["evidence"].get("degraded") is not False or not stated:
        return "Replicas are out of sync, or min.insync.replicas isn't set cluster-wide"
    return None
