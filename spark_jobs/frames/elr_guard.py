"""Prevents changes of min.insync.replicas that wipe an ELR. With eligible leader replicas on, every change does (KIP-966).

Seen on 4.3.1: after the change, a partition with ISR [] and ELR [0, 1] had no leader, even with both brokers back. A topic
is at risk if a partition is offline, has an empty ISR or has an ELR, or if any of this is unknown.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain, possible


def measures() -> dict[str, Column]:
    """Can a change of min.insync.replicas leave one of the topic's partitions without a leader? Unknown counts as yes.

    Diskless topics have no such partition.
    """
    safe = ~F.col("offline") & (F.size("isr") > 0) & (F.size("elr") == 0) & (F.size("last_known_elr") == 0)
    return {"elr_partitions_at_risk": possible(F.bool_or(~certain(safe) & ~F.col("diskless")))}


def unsafe(at_risk: str) -> Column:
    """Can ELR be on and the change do damage? `at_risk`: the column that says so. Reads `elr_on`."""
    return possible("elr_on") & possible(at_risk)
