"""Eligible leader replicas (KIP-966): when no change of min.insync.replicas is offered, and how to switch the feature on."""

from __future__ import annotations

from durability.remedies.commands import cluster_config, comment, script
from durability.remedies.finding import Finding

FEATURE = "eligible.leader.replicas.version"
WAIT = (
    "Don't change min.insync.replicas now: with eligible leader replicas on, the change would wipe the ELR and could leave "
    "partitions without a leader. Bring the brokers back first, then audit again."
)


def switch_on(finding: Finding) -> str:
    """The upgrade takes min.insync.replicas from a controller's static value and makes it cluster-wide, where it beats
    brokers' own (seen on 4.3.1); a value that is cluster-wide already stays. Not while replicas are missing."""
    evidence = finding["evidence"]
    if evidence["degraded"] or evidence["least"] is None:
        return "Not now: replicas are out of sync or that is unknown. Bring them back first, then audit again."
    return script(
        comment(
            "First: the upgrade makes min.insync.replicas cluster-wide, by a controller's static value unless it is so"
            " already, and that beats the brokers' own."
        ),
        cluster_config("min.insync.replicas", evidence["least"]),
        f'kafka-features --bootstrap-server "$BOOTSTRAP" upgrade --feature {FEATURE}=1',
    )
