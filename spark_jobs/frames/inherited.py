"""Topics that inherit min.insync.replicas: what a higher cluster-wide value would do to them.

A cluster-wide value applies at once to every topic without a value of its own. A leader with fewer replicas in sync then rejects
acks=all writes.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import target
from spark_jobs.frames.columns import possible


def default_min_isr(plan: Plan) -> int:
    """The min.insync.replicas that the policy's last tier requires of a cluster's default."""
    return plan.policy.tiers.get(plan.policy.last_tier or "", {}).get("min_insync_replicas", 1)


def _inherits() -> Column:
    """Does the topic inherit its min.insync.replicas? Unknown counts as yes."""
    return possible(F.col("min_insync_replicas_at_worst")["min_isr_source"] != "topic")


def _least() -> Column:
    """The smallest value that is too high for the topic: 0 if unknown.

    It is the number of its replicas, less what its tier requires of headroom beyond one broker, or of its replicas in sync, if
    these are fewer.
    """
    replicas, in_sync = F.col("replication_factor_worst"), F.col("led_isr_least")
    known = replicas.isNotNull() & F.col("partitions_known")
    bears = replicas - F.greatest(F.lit(0), target.headroom() - 1)
    return F.when(known, F.least(bears, in_sync)).otherwise(0)


def by_cluster(plan: Plan) -> list[Column]:
    """Aggregates over a cluster's topics.

    `inherited_least`: the smallest value that is too high for a topic that inherits; NULL if no topic does.
    `inherited_short`, `inherited_first`: the topics for which the policy's default is too high: their number, and the first name.
    """
    # A partition without a leader may come back with a single replica in sync.
    offline = possible(F.size("offline_ids") > 0)
    least = F.when(_inherits(), F.when(offline, 0).otherwise(_least()))
    short = least <= default_min_isr(plan)
    return [
        F.min(least).alias("inherited_least"),
        F.count_if(short).alias("inherited_short"),
        F.min(F.when(short, F.col("topic"))).alias("inherited_first"),
    ]
