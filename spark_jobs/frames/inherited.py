"""Topics that inherit min.insync.replicas: what a higher cluster-wide value would do to them.

A cluster-wide value applies at once to every topic without a value of its own. A leader with fewer replicas in sync then rejects
acks=all writes.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames.columns import possible


def default_min_isr(plan: Plan) -> int:
    """The min.insync.replicas that the policy's last tier requires of a cluster's default."""
    return plan.policy.tiers.get(plan.policy.last_tier or "", {}).get("min_insync_replicas", 1)


def _inherits() -> Column:
    """Does the topic inherit its min.insync.replicas? Unknown counts as yes."""
    return possible(F.col("min_insync_replicas_at_worst")["min_isr_source"] != "topic")


def _least() -> Column:
    """The topic's smallest number of replicas, or of replicas in sync where a partition has a leader; 0 if unknown."""
    replicas, in_sync = F.col("replication_factor_worst"), F.col("led_isr_least")
    known = replicas.isNotNull() & F.col("partitions_known")
    return F.when(known, F.least(replicas, in_sync)).otherwise(0)


def by_cluster(plan: Plan) -> list[Column]:
    """Aggregates over a cluster's topics.

    `inherited_least`: the least replicas, or replicas in sync, of a topic that inherits; NULL if no topic does.
    `inherited_short`, `inherited_first`: the number of topics with no more than the policy's default, and the first one's name.
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
