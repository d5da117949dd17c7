"""Eligible leader replicas (KIP-966): the commands that enable the feature, and the advice while a change is unsafe."""

from __future__ import annotations

from durability.remedies.cluster import KEY, facts_of
from durability.remedies.commands import Feature, cluster_setting
from durability.remedies.finding import Finding
from durability.remedies.steps import NO_CONTROLLER, Remedy, Step, advice

FEATURE = "eligible.leader.replicas.version"
UNREAD = (
    "Don't change min.insync.replicas now: if eligible leader replicas are on, the change could wipe an ELR and leave partitions"
    " without a leader. Whether they are on could not be read. Let the auditor describe the cluster, then audit again."
)
METADATA_FIRST = (
    "The feature needs metadata.version 4.0-IV1 (level 23), and an earlier one is finalized. First finalize the metadata.version"
    " of the brokers' release with kafka-features, when every broker and controller runs it: that can't be undone. Then audit"
    " again"
)
WAIT = (
    "Don't change min.insync.replicas now: with eligible leader replicas on, the change would wipe the ELR and could leave "
    "partitions without a leader. Bring the replicas back in sync first, then audit again."
)


def wait(finding: Finding) -> str:
    """Why min.insync.replicas must not change while that could wipe an ELR.

    Without a controller nothing can be changed, whether ELR is on or not.
    """
    if facts_of(finding).led is False:
        return NO_CONTROLLER
    return UNREAD if KEY in finding and facts_of(finding).elr is None else WAIT


def before(back: Remedy, finding: Finding) -> Remedy:
    """The steps that bring replicas back, after the warning. Without a controller these steps say what comes first."""
    return back if facts_of(finding).led is False else [Step(about=(wait(finding),)), *back]


def switch_on(finding: Finding) -> Remedy:
    """Enables the feature, unless replicas are missing.

    Without a cluster-wide min.insync.replicas, the upgrade makes one of a controller's static value, which overrides the
    brokers' own values (seen on 4.3.1). A value that is cluster-wide already stays.
    """
    evidence = finding["evidence"]
    if evidence["degraded"] or evidence["least"] is None:
        return advice(
            "Not now: replicas are out of sync, or their state is unknown. Bring them back first, then audit again."
        )
    if evidence["metadata_first"]:
        return advice(METADATA_FIRST)
    why = (
        "First set min.insync.replicas cluster-wide. The upgrade keeps a cluster-wide value. If there is none, the upgrade"
        " sets one from a controller's static value, which overrides the brokers' own values."
    )
    return [Step(cluster_setting("min.insync.replicas", evidence["least"]), (why,)), Step(Feature(FEATURE, 1))]
