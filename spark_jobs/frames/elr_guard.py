"""When a change of min.insync.replicas must not be offered: with eligible leader replicas on it wipes the ELR.

KIP-966, seen on 4.3.1: with ISR [] and ELR [0, 1] the change left a partition without a leader although both brokers
came back. A topic is at risk while a partition is offline, has an empty ISR or an ELR, or any of this is unknown.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def partition_at_risk() -> Column:
    """Could a change of min.insync.replicas cost this partition its leader? Unknown counts as yes."""
    safe = ~F.col("offline") & (F.size("isr") > 0) & (F.size("elr") == 0) & (F.size("last_known_elr") == 0)
    return ~F.coalesce(safe, F.lit(False))


def measures() -> dict[str, Column]:
    return {"elr_partitions_at_risk": F.coalesce(F.bool_or(partition_at_risk()), F.lit(True))}


def unsafe(at_risk: str) -> Column:
    """May the ELR be on, and anything be lost with it? `at_risk`: the column that says the latter."""
    return F.coalesce(F.col("elr_on"), F.lit(True)) & F.coalesce(F.col(at_risk), F.lit(True))
