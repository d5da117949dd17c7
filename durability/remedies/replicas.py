"""Remedies for replicas that are out of sync. Findings with the same cause get the same text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from durability.catalogue.causes import WORDED, worded
from durability.catalogue.listing import with_noun
from durability.remedies import disks as disk_copies
from durability.remedies import elections, elr, gone, lowering, providers, target
from durability.remedies.cluster import ClusterFacts, facts_of
from durability.remedies.commands import RUNNING, UNAVAILABLE, UNDER_REPLICATED
from durability.remedies.finding import Finding
from durability.remedies.steps import Remedy, Step, advice, restart

CANCEL_HARMS = (
    "Don't cancel the reassignment: without the replicas being added, no live replica in sync is left to spare, and the"
    " partition can lose its leader or its writes."
)
CANCEL = "Or cancel the reassignment, and so give up its new replicas: they count in the effective minimum already."
CANCEL_FILE = (
    'To cancel it, run the tool with --cancel and a file that names the partitions with "replicas": []. This also removes the'
    " throttle: add --preserve-throttles while other reassignments run. Don't use the file that started it if that names a broker"
    " that is down: the tool then waits for it, fails, and leaves throttles."
)

NO_LEADER, REASSIGNMENT = WORDED["no-leader"], "reassignment"
OBSERVERS = WORDED["observers"]
SEE_OBSERVERS = (
    "Compare the ISR with confluent.placement.constraints. Observers are out of the ISR by design. If another replica is missing"
    " there, find why it lags: load, disk, network, a leftover throttle"
)
WITHOUT_LEADER = (
    "A partition without a leader comes back without the records that only that broker had: by an unclean election of another"
    " replica that is up (kafka-leader-election). If there is none, first reassign the partition to two live brokers or more,"
    " then elect one of them: the topic's other partitions lose nothing, as they would with a new topic."
)
"""Seen on 4.3.1, in KRaft. With a single new replica the reassignment doesn't end by itself after the election."""
WITHOUT_LEADER_IN_ZOOKEEPER = (
    "A partition without a leader can't be moved. An unclean election of another replica brings it back without the records that"
    " only that broker had. If no other is left, a new broker with the same id and empty disks does: the topic's other partitions"
    " lose nothing, as they would with a new topic."
)
"""ZooKeeper's controller elects a broker that is in the ISR when it is back, whatever is on its disk."""
RUNS = "If the process of a broker runs, or ends again, see in its log why."
"""A broker that the controller fenced doesn't come back by a start, nor one whose disk is full."""
THEN_NONE = "Then this lists no partition, unless replicas lag on live brokers:"
COMPLETE = (
    "Let the reassignment complete. If its new replicas don't catch up, find why: load, disk, network, a throttle that is too"
    " low. This lists it:"
)
LEAVING = (
    "The replicas that are down leave with a running reassignment. If their broker is gone for good, let the reassignment"
    " complete: it needs no replica that it removes."
)
LEFT_THROTTLES = (
    "Throttles are left in this cluster, and no reassignment needs them. They can be why replicas lag: first delete them, as the"
    " finding of reassignment-leftovers says."
)
DISK = re.compile(rf"broker:(\d+) {WORDED['disk-offline']}")
LAGS = re.compile(r"broker:(\d+) lagging")
BROKER, RACK = re.compile(r"broker:(\d+) down"), re.compile(r"rack:(.+) down")

NO_HEADROOM_WANTED = (
    "Nothing to fix while the topic's tier requires no headroom. To keep writes possible without one of its brokers, give the"
    " topic a tier with write_headroom"
)


def bring_back(causes: str, facts: ClusterFacts, leaving: bool = False, offline: bool = False) -> Remedy:
    """The remedy for a short ISR, by its cause.

    leaving: does a running reassignment remove all replicas that are down? offline: have partitions no leader?
    """
    each = causes.split(", ")
    down, disks = (any(cause.endswith(state) for cause in each) for state in (" down", " offline"))
    if (down or disks) and providers.runs_brokers(facts.provider):
        return _let_provider(each, facts)
    if facts.led is False and (down or not disks):
        return advice(
            f"{elections.CONTROLLERS_FIRST}. Then {_start(each)}"
            if down
            else f"{elections.CONTROLLERS_FIRST} ({causes})"
        )
    if causes == NO_LEADER:
        return [
            Step(
                UNAVAILABLE,
                (
                    elections.PROVIDER_ELECTS
                    if providers.moves_replicas(facts.provider)
                    else elections.ELECTION_MISSING,
                ),
            )
        ]
    if down:
        start, failed = _start(each), DISK.findall(causes)
        kept = disk_copies.only_copies(facts, [int(broker) for broker in failed])
        if failed and kept is None:
            who, it = with_noun(failed, "broker"), "it" if len(failed) == 1 else "them"
            start += f", and replace the failed disks of {who}: restart {it} when the others are back in sync"
        begin = Step(UNDER_REPLICATED, (f"{start[0].upper()}{start[1:]}. {RUNS} {THEN_NONE}",))
        for_good = LEAVING if leaving else _gone_for_good(facts, offline)
        return [begin, *(advice(kept) if kept else ()), *advice(for_good)]
    if disks:
        brokers = [int(broker) for broker in DISK.findall(causes)]
        return advice(disk_copies.replaced(f"Replace the disk ({causes})", "restart the broker", facts, brokers))
    if causes == OBSERVERS:
        return advice(SEE_OBSERVERS)
    if causes == "unreadable":
        return advice("Let the auditor read the partition's replicas, then audit again")
    if causes == REASSIGNMENT:
        # kafka-topics takes no partition for under-replicated that misses only replicas being added.
        return [Step(UNDER_REPLICATED if facts.before(2, 6) else RUNNING, (COMPLETE,))]
    find = f"Find why replicas lag ({causes}): load, disk, network, a leftover throttle. This lists them:"
    if providers.moves_replicas(facts.provider):
        find = f"Ask the cluster's provider why replicas lag ({causes}). This lists them:"
    first = (LEFT_THROTTLES,) if facts.throttled else ()
    return [Step(UNDER_REPLICATED, (*first, *_common(facts), *_stopped(causes, facts), find))]


def _stopped(causes: str, facts: ClusterFacts) -> tuple[str, ...]:
    """What helps if a single broker lags because its fetchers stopped; nothing if it isn't the only one that may be at fault.

    >>> _stopped("broker:2 lagging", ClusterFacts())  # doctest: +ELLIPSIS
    ('See in the log of broker 2 whether its fetchers stopped, and restart it if they did. Before each restart, see ...',)
    >>> _stopped("broker:2 lagging, broker:3 lagging", ClusterFacts())
    ()
    """
    alone = LAGS.fullmatch(causes)
    if alone is None or facts.lag_shares is not None or providers.runs_brokers(facts.provider):
        return ()
    broker = int(alone[1])
    change = f"See in the log of broker {broker} whether its fetchers stopped"
    return (restart(change, "restart it if they did", facts, [broker]) + ".",)


def _common(facts: ClusterFacts) -> tuple[str, ...]:
    """Sentences on the broker that all lagging replicas of the cluster have in common; none without such a broker.

    A leader may serve its clients and be cut off from the other brokers or from ZooKeeper (KAFKA-2729).
    """
    if facts.lag_shares is None:
        return ()
    broker = facts.lag_shares
    if providers.runs_brokers(facts.provider):
        return (f"Every lagging replica of the cluster is on broker {broker} or has it as leader.",)
    first = f"First examine broker {broker}: every lagging replica of the cluster is on it or has it as leader."
    only = (facts.fragile.by_broker if facts.fragile else None) or {}
    if broker not in only or not only[broker].single:
        return (first,)
    number, name = only[broker].single, only[broker].first_single
    what = f"partition {name}" if number == 1 else f"{number:,} partitions (such as {name})"
    takes = "can take" if facts.elr else "takes"  # A replica of the ELR that is up leads next, and loses nothing.
    harm = f"a restart {takes} {'it' if number == 1 else 'them'} offline"
    loses = "or can lose acknowledged records if unclean leader election is on"
    return first, f"It has the only replica in sync of {what}: {harm}, {loses}."


def _let_provider(causes: Sequence[str], facts: ClusterFacts) -> Remedy:
    """What the provider of a managed cluster has to do: its customers can't start brokers, replace disks or move replicas."""
    failed = [broker for cause in causes for broker in DISK.findall(cause)]
    kept = disk_copies.only_copies(facts, [int(broker) for broker in failed], provided=True)
    down = [cause for cause in causes if not DISK.fullmatch(cause)]
    if kept:
        failed = []
    todo = [_start(causes).replace("start", "bring back", 1)] if down else []
    todo += [f"replace the failed disks of {with_noun(failed, 'broker')}"] if failed else []
    let = [Step(UNDER_REPLICATED, (f"Let the cluster's provider {' and '.join(todo)}. {THEN_NONE}",))] if todo else []
    return [*let, *(advice(kept) if kept else ())]


def _start(causes: Sequence[str]) -> str:
    """What to start, of these causes.

    >>> _start(["broker:5 down"]), _start(["broker:3 down", "broker:5 down", "rack:az2 down", "broker:7 log dir offline"])
    ('start broker 5', 'start brokers 3, 5 and the brokers of rack az2')
    """
    brokers = [found[1] for cause in causes if (found := BROKER.fullmatch(cause))]
    racks = [found[1] for cause in causes if (found := RACK.fullmatch(cause))]
    if len(brokers) + len(racks) + len([cause for cause in causes if DISK.fullmatch(cause)]) < len(causes):
        # A rack's name may contain what separates causes.
        return f"start the brokers that are down ({', '.join(causes)})"
    named = [with_noun(brokers, "broker")] if brokers else []
    named += [with_noun(racks, "the brokers of rack")] if racks else []
    return f"start {' and '.join(named)}"


def _gone_for_good(facts: ClusterFacts, offline: bool) -> str:
    """What to do about brokers that never come back.

    The tool can't set a throttle on a broker that is down. ZooKeeper forgets a broker when its session ends, but the controllers
    of KRaft keep it until it is unregistered.
    """
    back = WITHOUT_LEADER_IN_ZOOKEEPER if facts.kraft is False or facts.before(2, 8) else WITHOUT_LEADER
    leaderless = f" {back}" if offline else ""
    if facts.gone is not None:
        return gone.advice(facts.gone) + leaderless
    unregister = (
        "" if facts.kraft is False else " Then unregister it (kafka-cluster unregister), when it has no replica left."
    )
    return (
        "If a broker is gone for good, don't wait for it: move its replicas to live brokers with kafka-reassign-partitions,"
        f" without a throttle.{unregister} If too few brokers are live for that, first add brokers, leave out replicas that the"
        f" topic's tier doesn't require, or {gone.NEW_BROKER}.{leaderless}"
    )


def of_cause(finding: Finding) -> Remedy:
    """The remedy for a short ISR, by the finding's cause."""
    return bring_back(finding["cause"], facts_of(finding))


def health(finding: Finding) -> Remedy:
    """The remedy for partition-health: bring replicas back, or change the configuration if every replica is in sync."""
    evidence, facts = finding["evidence"], facts_of(finding)
    if finding["cause"] == NO_LEADER:
        return elections.elect(finding["resource"], evidence["electable"], facts, evidence.get("only_electable") or ())
    if evidence["shrunk"]:
        back = bring_back(finding["cause"], facts, evidence["leaving"], finding["category"] == "offline")
        if evidence.get("electable"):
            # Others are missing their brokers. These are missing an election.
            only = evidence.get("only_electable") or ()
            back = [*elections.elect(finding["resource"], evidence["electable"], facts, only), *back]
        expected = elections.expected(evidence, facts)
        # Without a controller that leads, no broker starts.
        back = [*back, *expected] if facts.led is False else [*expected, *back]
        if finding["category"] != "under-min-isr" or facts.led is False:
            return elr.before(back, finding) if evidence["target"]["elr_at_risk"] else back
        if evidence.get("lagging"):
            back = [*back, Step(about=(_lag_too(evidence["lagging"], facts),))]
        if evidence["cancel_harms"]:
            back = [*back, Step(about=(CANCEL_HARMS,))]
        cancel = _cancel(evidence, facts, shown=finding["cause"] == REASSIGNMENT)
        if evidence["target"]["elr_at_risk"]:
            return elr.before([*back, *_on_live_brokers(finding["resource"], facts), *cancel], finding)
        # A lower minimum and a cancelled reassignment guarantee the same now, but only the first ends with all replicas.
        return [*back, *accept_writes(evidence["target"], finding["resource"], evidence["growing"]), *cancel]
    if finding["category"] == "under-min-isr" and evidence["missing"]:
        return _minimum_first(finding)
    aims = evidence["target"]
    copies, least = aims["replication_factor"], aims["min_insync_replicas"]
    if finding["category"] == "at-min-isr" and None not in (copies, least):
        # If the topic has its target's numbers and yet no headroom, its partitions have different minimums.
        return target.remedy(finding) if copies > least else advice(NO_HEADROOM_WANTED)
    return target.remedy(finding) if target.differs(aims) else advice(NO_HEADROOM_WANTED)


def _lag_too(brokers: Sequence[int], facts: ClusterFacts) -> str:
    """What else brings writes back: live brokers, whose replicas lag while others are down."""
    who, up = with_noun(brokers, "broker"), "is" if len(brokers) == 1 else "are"
    find = "Ask the cluster's provider why" if providers.moves_replicas(facts.provider) else "Find why"
    more = "" if providers.moves_replicas(facts.provider) else ": load, disk, network, a leftover throttle"
    return (
        f"Replicas on {who}, which {up} up, lag too. {find}{more}. acks=all writes are accepted again as soon as enough replicas"
        " are in sync, wherever they are."
    )


def _on_live_brokers(topic: str, facts: ClusterFacts) -> Remedy:
    """How a topic whose min.insync.replicas may not be lowered gets acks=all writes back: with replicas on live brokers."""
    if facts.gone is None or not any(of == topic for of, _, _ in facts.gone.moves):
        return []
    who, have = with_noun(facts.gone.brokers, "broker"), "has" if len(facts.gone.brokers) == 1 else "have"
    return advice(
        "If writes can't wait and the brokers may come back, run the script with --keep: new replicas on live brokers count as"
        f" soon as they are in sync. Then {who} {have} no replica of these partitions any more"
    )


def _minimum_first(finding: Finding) -> Remedy:
    """The remedy where replicas are missing, and the minimum rejects writes even if they come back."""
    evidence, facts = finding["evidence"], facts_of(finding)
    back = bring_back(evidence["missing"], facts)
    if facts.led is False:
        return back
    aims, running = evidence["target"], evidence["missing"] == REASSIGNMENT
    accept = accept_writes(aims, finding["resource"], running=running)
    # New replicas end the rejections without a lower minimum.
    return [*back, *accept] if running and accept else [*(accept or target.remedy(finding)), *back]


def accept_writes(aims: lowering.Target, topic: str, growing: bool = False, running: bool = False) -> Remedy:
    """The change that accepts acks=all writes with the replicas that are in sync now; empty if there is none.

    growing: do writes of a partition wait for replicas that are being added? running: does a reassignment of the topic run?
    """
    return lowering.to_tier(aims, topic) or _meanwhile(aims, growing, running)


def _meanwhile(aims: lowering.Target, growing: bool, running: bool) -> Remedy:
    """The change that accepts acks=all writes before the replicas are back. It gives up copies, so no script does it."""
    left, now = aims["smallest_led_isr"], aims["min_insync_replicas_now"]
    if not left or now is None or left >= now:
        return []
    restore = (
        f"set it to {now} again" if aims["min_insync_replicas_source"] == "topic" else "delete the topic's own value"
    )
    harm = None if growing else lowering.harm_of_undo(aims, moved=False)
    above = "the number of replicas without the new ones" if running else "their number"
    in_sync = "" if running else "Even with all replicas in sync, "
    first = f"{in_sync}min.insync.replicas is above {above}. " if harm else ""
    when = "when all replicas are in sync, new ones included" if growing else "when the replicas are back"
    return advice(
        f"{first}If writes can't wait, set min.insync.replicas={left} on the topic. acks=all then guarantees no more than"
        f" {lowering.copies_in_words(left)}. To undo it, {restore}, {harm or when}."
    )


def _cancel(evidence: Mapping[str, Any], facts: ClusterFacts, shown: bool) -> Remedy:
    """How to cancel a reassignment that adds replicas: these raise the effective min ISR (seen on 4.3.1).

    evidence: `cancel_harms`: would cancelling harm a partition? `growing`: would it restore the writes of one?
    shown: has a step before it the command that lists the partitions to cancel?

    Before 2.6 the tool can't cancel.
    """
    offered = evidence["growing"] and not evidence["cancel_harms"] and not facts.before(2, 6)
    return [Step(None if shown else RUNNING, (CANCEL, CANCEL_FILE))] if offered else []


def isr_racks(finding: Finding) -> Remedy:
    """The remedy for an ISR in too few racks: move replicas, or bring them back in sync."""
    evidence = finding["evidence"]
    if (there := evidence["racks_at_most"]) is not None:
        where = "" if finding["cause"] == "configuration:topic" else " of the brokers"
        wanted = finding["required"]["min_insync_racks"]
        return advice(
            f"Add racks ({wanted} required, the cluster has {there}), or set min.insync.racks{where} to {there} or less"
        )
    return (
        target.place(finding)
        if evidence["by_placement"]
        else bring_back(worded(evidence["missing"]) or "", facts_of(finding), evidence["leaving"])
    )
