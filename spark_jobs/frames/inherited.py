"""Topics that inherit min.insync.replicas: what a higher cluster-wide value would do to them.

A cluster-wide value applies at once to every topic without a value of its own. A leader with fewer replicas in sync then rejects
acks=all writes.
"""

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.policy.numbers import AT_MOST, BELOW_RF
from spark_jobs.frames import target
from spark_jobs.frames.columns import possible


def default_min_isr(plan: Plan) -> Column:
    """The min.insync.replicas that the policy's last tier requires of a cluster's default. Reads `default_rf`."""
    stated = _last_tier(plan).get("min_insync_replicas", 1)
    return F.greatest(F.lit(stated).cast("int"), relative_min_isr(plan))


def relative_min_isr(plan: Plan) -> Column:
    """The same where it is relative to the replication factor of new topics, as it is once it is no weaker than the last tier
    requires; else NULL. Reads `default_rf`, the largest default.replication.factor."""
    last_tier = _last_tier(plan)
    below = last_tier.get(f"min_insync_replicas{BELOW_RF}")
    if below is None:
        return F.lit(None).cast("int")
    replicas = F.greatest(F.lit(last_tier.get("replication_factor", 1)), "default_rf")
    most = last_tier.get(f"replication_factor{AT_MOST}")
    replicas = replicas if most is None else F.least(replicas, F.lit(most))
    return F.greatest(F.lit(1), replicas - F.lit(below)).cast("int")


def _last_tier(plan: Plan) -> dict[str, Any]:
    return plan.policy.required.get(plan.policy.last_tier or "", {})


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
    least = F.when(_inherits() & ~F.col("diskless"), F.when(offline, 0).otherwise(_least()))
    short = least <= default_min_isr(plan)
    return [
        F.min(least).alias("inherited_least"),
        F.count_if(short).alias("inherited_short"),
        F.min(F.when(short, F.col("topic"))).alias("inherited_first"),
    ]
