"""Why a whole cluster is left out of a plan."""

from __future__ import annotations

from durability.remedies import providers
from durability.remedies.change.model import Document
from durability.remedies.cluster import ClusterFacts
from durability.remedies.plans import HALTED
from durability.topology.observers import by_default, has_observers
from durability.topology.unreadable import Unreadable

OBSERVERS = (
    "topic {} has Confluent observers, so no plan is made for this cluster: change confluent.placement.constraints of its"
    " topics, and let Confluent's rebalancer move them"
)
UNREAD = "the replicas of {} could not be read: let the auditor read them, then audit again"
UNREAD_LEADER = "the leader of {} could not be read: let the auditor read it, then audit again"
RUNNING = "a reassignment is running ({}): let it complete, or cancel it, then audit again"
UNKNOWN_RUNNING = (
    "it is unknown whether a reassignment is running: let the auditor read reassignments, then audit again"
)


def of_cluster(document: Document, facts: ClusterFacts, reassigning_known: bool) -> str | None:
    """Why the whole cluster is left out; None if it can be planned.

    reassigning_known: could running reassignments be read? What a document states of an unreadable place is unknown.
    """
    if facts.led is False:
        return HALTED
    if (refused := providers.refusal(facts.provider, providers.REASSIGN)) is not None:
        return refused
    inherited = by_default(broker.get("configs") for broker in document["brokers"])
    unreadable = Unreadable(document)
    for index, topic in enumerate(document["topics"]):
        if has_observers(topic.get("configs"), inherited):
            return OBSERVERS.format(topic["name"])
        place = ("topics", index, "partitions")
        missing = min((part for part in unreadable.parts(*place) if isinstance(part, str)), default=None)
        if missing is not None:
            return UNREAD.format(f"{topic['name']}-{missing}")
        for number, partition in enumerate(topic.get("partitions") or [{}]):
            name = f"{topic['name']}-{partition.get('partition', '?')}"
            read = ("replicas", "isr", "leader", "adding", "removing")
            unread = {key for key in read if unreadable.covers(*place, number, key)}
            if unread & {"replicas", "isr"} or partition.get("replicas") is None or partition.get("isr") is None:
                return UNREAD.format(name)
            if "leader" in unread:
                return UNREAD_LEADER.format(name)
            if unread:
                return UNKNOWN_RUNNING
            if partition.get("adding") or partition.get("removing"):
                return RUNNING.format(name)
    return None if reassigning_known else UNKNOWN_RUNNING
