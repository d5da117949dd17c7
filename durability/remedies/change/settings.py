"""What a topic's settings become: before its replicas move, and after.

The target decides the values (`durability.remedies.target`), and `durability.remedies.safety` when they may change. This module
puts both on the time line of a plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from durability.remedies import effects, elr, safety
from durability.remedies.change.model import MIN_ISR, SAFE, UNCLEAN, Document, Move, Setting, TopicSettings
from durability.remedies.cluster import KEY as CLUSTER_FACTS
from durability.remedies.cluster import ClusterFacts, facts_of
from durability.remedies.commands import Reassign
from durability.remedies.finding import Finding
from durability.remedies.lowering import decided_by_hand
from durability.remedies.target import UNEVEN
from durability.topology.elr import electable
from durability.topology.unreadable import Unreadable

OUT_OF_SYNC = (
    "First bring back the out-of-sync replicas: a higher min.insync.replicas would reject acks=all writes, or leave no"
    " headroom"
)
NO_HEADROOM = (
    "Its min.insync.replicas isn't raised to the number of its replicas: the loss of any of them would then stop acks=all"
    " writes. Give it more replicas first"
)
BELOW = ("broker", "default", None)
"""Sources of a broker's setting that show no cluster-wide dynamic value: it would apply instead. A document without sources has
static settings."""
NOBODY = "It is unknown what min.insync.replicas of the topic is now: let the auditor read the topic's settings"


def override(topic: Document, name: str) -> str | None:
    """The topic's own value of a setting; None if it inherits one.

    Without sources, a document states overrides only.
    """
    value = (topic.get("configs") or {}).get(name)
    return value if (topic.get("config_sources") or {}).get(name, "topic") == "topic" else None


def odd(topic: Document) -> str | None:
    """Why nothing of the topic is changed; None if it may be.

    One of its values is none of Kafka's, so that no script may restore it. Or it has a list of throttled replicas, which
    Kafka's tool would replace, and delete at the end.
    """
    lists = [
        name for side in ("leader", "follower") if override(topic, name := f"{side}.replication.throttled.replicas")
    ]
    if lists:
        named = " and ".join(lists)
        return f"it has {named}, which Kafka's tool would delete. Delete it first, unless a reassignment that runs needs it"
    for name in (MIN_ISR, UNCLEAN):
        value = override(topic, name)
        if value is not None and not SAFE.fullmatch(value):
            return f"its {name} is no value of Kafka's: correct it first"
    return None


def refusal(finding: Finding, moving: bool = True) -> str | None:
    """Why no replica of the topic may be moved now; None if the plan may move them.

    finding: any of the topic with a target. Replicas on brokers that are down are no reason here: their moves wait for these.
    """
    target, facts = finding["evidence"]["target"], facts_of(finding)
    topic = finding["resource"]
    planned = replace(facts, planned=facts.planned | {topic})
    up = {**target, "replicas_down": [], "reassign": moving}
    of_move = {**finding, "evidence": {**finding["evidence"], "target": up}, CLUSTER_FACTS: planned}
    pin = pinned(target, facts)
    if pin is not None and target["elr_at_risk"]:
        return elr.wait(finding).rstrip(".")
    if pin is not None and safety.weakens(pin, target):
        return safety.RUNNING_FIRST if target["reassigning_in_cluster"] else UNEVEN
    lowered = [] if pin is None else [Setting(topic, MIN_ISR, None, str(pin)).command]
    return safety.reason(Reassign(topic, "", None), of_move, lowered)


def pinned(target: Mapping[str, Any], facts: ClusterFacts) -> int | None:
    """The min.insync.replicas while replicas are added, no lower than what is enforced today; None if it may stay as it is."""
    now = target["min_insync_replicas_now"]
    return safety.pinned({**target, "min_insync_replicas": now, "reassign": True}, facts)


def of_target(finding: Finding, topic: Document, moves: Collection[Move], live: Collection[int]) -> TopicSettings:
    """How the topic's min.insync.replicas gets to its target.

    finding: any of the topic with a target. moves: those of the topic. Without the change before them, they are blocked.
    """
    target, facts = finding["evidence"]["target"], facts_of(finding)
    least, now, was = target["min_insync_replicas"], target["min_insync_replicas_now"], override(topic, MIN_ISR)
    pin = pinned(target, facts) if moves else None
    before = None if pin is None else Setting(topic["name"], MIN_ISR, was, str(pin))
    current = now if pin is None else pin
    if now is None:
        # Replicas that are being added could raise what is enforced.
        return TopicSettings(held=NOBODY, blocks=bool(moves))
    final, lowers, held = now if least is None else least, before is not None, None
    if final > now and not _headroom(topic, moves, final):
        final, held = now, NO_HEADROOM
    if final > current and not _whole(topic, moves, live, final):
        # After `before`, the value would stay lowered.
        return TopicSettings(held=OUT_OF_SYNC, blocks=lowers)
    if final == now:
        # It comes back exactly as it was: a value of its own, or none.
        restored = None if before is None else Setting(topic["name"], MIN_ISR, before.value, was)
        return TopicSettings(before, restored, held=held)
    if target["elr_at_risk"]:
        return TopicSettings(held=elr.wait(finding).rstrip("."), blocks=lowers)
    if final < current and (by_hand := decided_by_hand(target)) is not None:
        return TopicSettings(held=by_hand, blocks=lowers)
    if final == current:  # what is enforced today is the target
        return TopicSettings(before)
    # Without a value of its own, the topic inherits again what it inherited before a rack outage.
    former = facts.restored(topic["name"], final)
    value = None if former is not None and not former.own else str(final)
    changed = Setting(topic["name"], MIN_ISR, was if before is None else before.value, value)
    if not moves and final < now and not safety.weakens(final, target):  # brokers enforce no more today
        return TopicSettings(changed)
    return TopicSettings(before, changed, raises=final > current)


def _headroom(topic: Document, moves: Iterable[Move], least: int) -> bool:
    """Has each partition more than so many replicas after the moves?"""
    moved = {move.partition: move.after for move in moves}
    return all(len(moved.get(p["partition"], p["replicas"])) > least for p in topic["partitions"])


def _whole(topic: Document, moves: Iterable[Move], live: Collection[int], least: int) -> bool:
    """Has each partition a leader, all its replicas in sync and at least so many, once its move is complete?"""
    moved = {move.partition: move.after for move in moves}
    for partition in topic["partitions"]:
        replicas = moved.get(partition["partition"])
        in_sync = partition["isr"] if replicas is None else effects.in_sync_after(partition, replicas, live)
        wanted = len(partition["replicas"] if replicas is None else replicas)
        if partition["leader"] is None or in_sync is None or len(in_sync) < max(wanted, least):
            return False
    return True


def elr_at_risk(document: Document, facts: ClusterFacts) -> set[str]:
    """The topics of which a change of min.insync.replicas could wipe an ELR that is still needed (KIP-966).

    That is so with the feature on, or unknown, while a partition is offline, has an empty ISR or a non-empty ELR, or one that
    could not be read.
    """
    if facts.elr is False:
        return set()
    unreadable = Unreadable(document)
    return {
        topic["name"]
        for index, topic in enumerate(document["topics"])
        for number, p in enumerate(topic["partitions"])
        if p["leader"] is None
        or not p["isr"]
        or electable(p.get("elr"), p["replicas"]) != []
        or unreadable.covers("topics", index, "partitions", number, "elr")
    }


def unclean_off(finding: Finding, document: Document, topic: Document | None) -> Setting:
    """Switches unclean leader election off: on the topic if it has an override, else cluster-wide."""
    if topic is not None and finding["evidence"].get("own"):
        return Setting(topic["name"], UNCLEAN, override(topic, UNCLEAN), "false")
    return Setting(None, UNCLEAN, cluster_wide(document, UNCLEAN), "false")


def unread(document: Document, *names: str) -> set[str]:
    """The topics of which one of these settings could not be read."""
    unreadable = Unreadable(document)
    return {
        topic["name"]
        for index, topic in enumerate(document["topics"])
        if topic.get("configs") is None or any(unreadable.covers("topics", index, "configs", name) for name in names)
    }


def cluster_wide_known(document: Document, name: str) -> bool:
    """Is it known what `cluster_wide` returns? Otherwise an undo could delete a value that was there."""
    unreadable = Unreadable(document)
    for index, broker in enumerate(document["brokers"]):
        configs, sources = broker.get("configs"), broker.get("config_sources") or {}
        if configs is None or unreadable.covers("brokers", index, "configs", name):
            continue
        value, source = configs.get(name), sources.get(name)
        if source == "cluster-default":
            return bool(SAFE.fullmatch(value or ""))
        # A value of the broker itself hides one of the whole cluster.
        if source in BELOW if value is not None else "default" not in sources.values():
            return True
    return False


def cluster_wide(document: Document, name: str) -> str | None:
    """The cluster-wide dynamic value of a setting; None if no broker shows one."""
    for broker in document["brokers"]:
        if (broker.get("config_sources") or {}).get(name) == "cluster-default":
            value = (broker.get("configs") or {}).get(name)
            return value if value is not None and SAFE.fullmatch(value) else None
    return None


def min_isr(document: Document) -> dict[str, int]:
    """By topic its configured min.insync.replicas, as far as it is one number."""
    default = default_min_isr(document)
    stated = {t["name"]: (t.get("configs") or {}).get(MIN_ISR) for t in document["topics"]}
    found = {
        name: default if value is None else int(value) if value.isdecimal() else None for name, value in stated.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def recorded_min_isr(document: Document) -> set[str | None]:
    """The min.insync.replicas that controllers recorded cluster-wide, as KRaft does with ELR on: it overrides the brokers' own.

    None is an unknown value. Empty if the brokers' values count: with ELR off, without described controllers, or if brokers
    state a cluster-wide value, which is the record.
    """
    cluster, unreadable = document["cluster"], Unreadable(document)
    if not (cluster.get("features") or {}).get(elr.FEATURE, 0):
        return set()
    if any((broker.get("config_sources") or {}).get(MIN_ISR) == "cluster-default" for broker in document["brokers"]):
        return set()
    found: set[str | None] = set()
    for index, controller in enumerate(cluster.get("controllers") or ()):
        if controller.get("configs") is None or unreadable.covers("cluster", "controllers", index, "configs", MIN_ISR):
            continue
        described = "default" in (controller.get("config_sources") or {}).values()
        found.add(controller["configs"].get(MIN_ISR, None if described else "1"))
    return found


def default_min_isr(document: Document) -> int | None:
    """The min.insync.replicas that topics inherit; None if brokers, or controllers, have different ones. Kafka's default is 1."""
    stated = recorded_min_isr(document)
    stated = stated or {(broker.get("configs") or {}).get(MIN_ISR, "1") for broker in document["brokers"]}
    value = stated.pop() if len(stated) == 1 else None
    return int(value) if value is not None and value.isdecimal() else None
