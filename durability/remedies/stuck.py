"""Remedies for reassignments that make no progress."""

from __future__ import annotations

import json
from collections.abc import Sequence

from durability.catalogue.listing import SHOWN, listed, with_noun
from durability.remedies import disks, providers, safety
from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import ONE_BY_ONE, RUNNING
from durability.remedies.finding import Finding
from durability.remedies.gone import NEW_BROKER
from durability.remedies.steps import NO_CONTROLLER, Remedy, Step, advice


def remedy(finding: Finding, facts: ClusterFacts) -> Remedy:
    """Cancelling drops the replicas being added at once, so it is offered only if enough others are live and in sync.

    Brokers cancel since 2.4, Kafka's tool since 2.6 (KIP-455).
    """
    if facts.led is False:
        return advice(NO_CONTROLLER)
    if providers.refusal(facts.provider, providers.REASSIGN) is not None:
        return advice("Ask the cluster's provider why the reassignment makes no progress: it moves replicas itself")
    observed, evidence = finding["observed"], finding["evidence"]
    harms, cancellable, dead = evidence["cancel_harms"], evidence["cancellable"], evidence["waits_for"]
    who, below = with_noun(dead, "broker"), evidence.get("below_minimum") or []
    cancel_first = bool(below) and not facts.before(2, 4) and set(below) <= set(cancellable)
    sentences = [_below_minimum(below, cancel_first, facts)] if below else []
    if dead:
        back = "Only then bring back" if below else "Bring back"
        sentences.append(f"{back} {who}, which stuck reassignments wait for, and the replicas that lag.")
    if failed := evidence.get("failed_disks"):
        sentences.append(_failed(failed, facts))
    elif not dead:
        sentences.append(
            "No stuck reassignment waits for a broker that is down. Find why replicas lag: load, disk, network."
        )
    throttled = (("broker", observed["throttled_brokers"]), ("topic", observed["throttled_topics"]))
    where = [with_noun(names, kind) for kind, names in throttled if names]
    if where:
        sentences.append(
            f"Throttles are set on {' and '.join(where)}. They may be why there is no progress: raise their rate. They stay when"
            " the reassignment ends without the tool: then audit again, which gives the commands that delete them."
        )
    if harms:
        sentences.append(
            f"Don't cancel the reassignment of {listed(harms)}: without the replicas being added, no live replica in sync is left"
            " to spare, and the partition can lose its leader or its writes."
        )
    if cancellable and not facts.before(2, 4):
        # --cancel deletes the throttles of all live brokers.
        others = bool(harms) or observed["reassigning"] > len(cancellable)
        throttle = (
            ". Add --preserve-throttles, since other reassignments run"
            if others
            else ", which also removes these topics' throttles and the brokers'"
        )
        tool = "the tool of Kafka 2.6 or later" if facts.before(2, 6) else "the tool"
        run = f"run {tool} with --cancel and a file that names these partitions, such as {_file(cancellable)}{throttle}"
        if cancel_first:
            sentences.insert(1, f"To cancel the reassignment of {listed(cancellable)}, {run}.")
        else:
            sentences.append(f"Or cancel the reassignment of {listed(cancellable)}: {run}")
    if dead and (evidence["stuck_kept"] or facts.before(2, 4)):
        sentences += _never_back(who, evidence["stuck_kept"] or observed["stuck"], facts)
    return [*advice(*sentences), Step(RUNNING)] if not facts.before(2, 6) else advice(*sentences)


def _below_minimum(below: list[str], cancel_first: bool, facts: ClusterFacts) -> str:
    """What comes before the end of stuck reassignments that leave these partitions fewer replicas than min.insync.replicas.

    Starting the broker that such a reassignment waits for completes it.
    """
    if facts.before(2, 4):
        todo = (
            "First set min.insync.replicas to no more than it leaves: before Kafka 2.4 nothing cancels a reassignment"
        )
    else:
        todo = "First cancel it" if cancel_first else "First replace the plan by one that leaves enough replicas"
    leaves = f"The reassignment of {listed(below)} leaves fewer replicas than min.insync.replicas"
    return f"{leaves}. {safety.once_below(facts)}. {todo}."


def _failed(brokers: Sequence[int], facts: ClusterFacts) -> str:
    """What to do about live brokers with an offline log dir that stuck reassignments wait for."""
    who, one = with_noun(brokers, "broker"), len(brokers) == 1
    wait = f"Stuck reassignments wait for {who}, which {'has' if one else 'have'} an offline log dir"
    if providers.runs_brokers(facts.provider):
        return f"{wait}. Let the cluster's provider replace {'its disk' if one else 'their disks'}."
    change, act = ("Replace its disk", "restart it") if one else ("Replace their disks", ONE_BY_ONE)
    return f"{wait}. {disks.replaced(change, act, facts, brokers)}."


def _never_back(who: str, partitions: list[str], facts: ClusterFacts) -> list[str]:
    """What ends a reassignment that can't be cancelled, if the brokers that it waits for are lost.

    Since 2.4 a new plan replaces a running one (KIP-455). Older brokers accept no plan beside another.
    """
    lost = f"If {who} never {'comes' if who.startswith('broker ') else 'come'} back"
    if facts.before(2, 4):
        return [f"{lost}, {NEW_BROKER}."]
    tool = "the tool of Kafka 2.6 or later" if facts.before(2, 6) else "the tool"
    return [
        f"{lost}, replace the plan of {listed(partitions)}: run {tool} with --execute --additional, without --throttle. The new"
        " plan keeps the live replicas that are in sync, and names other live brokers in place of those that are lost."
    ]


def _file(partitions: list[str]) -> str:
    """A file for --cancel, which reads no more than topics and partitions. partitions: names such as orders-0."""
    named = [name.rsplit("-", 1) for name in partitions[:SHOWN]]
    rows = [{"topic": topic, "partition": int(number), "replicas": []} for topic, number in named]
    return json.dumps({"version": 1, "partitions": rows})
