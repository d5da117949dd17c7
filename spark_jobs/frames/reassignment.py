"""What a running reassignment removes, and what cancelling it would do to a partition (KIP-455).

Cancelling drops the replicas that are being added at once.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain, possible
from spark_jobs.frames.flagged import Flagged, each


def removes_dead(flag: Column) -> Flagged:
    """Measure: do running reassignments remove all replicas that are down, of the partitions for which `flag` holds?

    False if none is down.
    """

    def all_leave(flagged: Column) -> Column:
        leaving = each(flagged, "leaving")
        return (F.size(leaving) > 0) & F.forall(leaving, lambda removed: removed)

    return Flagged(flag, all_leave)


def cancel_harms() -> Column:
    """Could the partition lose its leader, acks=all writes, or live replicas that it needs for them, if it were cancelled?

    It needs those that would restore writes, and those that are its headroom: without them the loss of one more broker stops
    writes.

    Unknown counts as yes. False without a reassignment.
    """
    leads = possible(F.array_contains("adding", F.col("leader")))
    # A live replica that is being added still helps a partition that has too few without it.
    joins = F.exists("brokers", lambda b: F.array_contains("adding", b["broker"]) & possible(b["live"]))
    stops = (certain("enough") | joins) & ~certain(_enough())
    added = F.exists("in_sync", lambda b: F.array_contains("adding", b["broker"]) & possible(b["live"]))
    headroom = possible("enough") & certain(added) & ~certain(F.size(_remaining()) > _minimum())
    return certain("reassigning") & (leads | ~certain(F.size(_remaining()) > 0) | stops | headroom)


def cancel_restores() -> Column:
    """Would the partition have enough replicas in sync, if its reassignment were cancelled? It counts those being added, too."""
    return certain("reassigning") & certain(_enough())


def falls_below_minimum() -> Column:
    """Does the reassignment leave the partition fewer replicas than min.insync.replicas, which it has enough of without it?

    Once it is complete, acks=all writes are rejected or, since Kafka 3.7, guarantee fewer copies.
    """
    left = F.col("replica_count") - F.size("removing")
    return certain(F.col("reassigning") & (left < F.col("min_isr")) & (F.col("rf") >= F.col("min_isr")))


def _remaining() -> Column:
    """The live replicas in sync that aren't being added."""
    return F.filter("in_sync", lambda b: ~F.array_contains("adding", b["broker"]) & certain(b["live"]))


def _enough() -> Column:
    return F.size(_remaining()) >= _minimum()


def _minimum() -> Column:
    """The effective min ISR once it is cancelled. `rf` is the number of replicas that aren't being added."""
    return F.least(F.col("min_isr"), F.when(F.col("caps"), F.col("rf")))
