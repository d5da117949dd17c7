"""The effect of a higher cluster-wide min.insync.replicas on topics that inherit it.

A cluster-wide value applies at once to every topic without its own value. A leader with fewer replicas in sync then rejects
acks=all writes.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import target
from spark_jobs.frames.columns import possible
from spark_jobs.frames.facts import INTERNAL


def default_min_isr(plan: Plan) -> Column:
    """The min.insync.replicas that the policy's last tier requires of a cluster's default. Reads `default_rf`."""
    stated = target.last_tier(plan).get("min_insync_replicas", 1)
    return F.greatest(F.lit(stated).cast("int"), target.relative_min_isr(plan))


def _inherits() -> Column:
    """Does the topic inherit its min.insync.replicas? Unknown counts as yes."""
    return possible(F.col("min_insync_replicas_at_worst")["min_isr_source"] != "topic")


def _least() -> Column:
    """The smallest value that is too high for the topic; 0 if unknown.

    It is the smaller of two numbers: the replicas in sync, and the replicas minus the headroom beyond one broker that the tier
    requires.
    """
    replicas, in_sync = F.col("replication_factor_worst"), F.col("led_isr_least")
    known = replicas.isNotNull() & F.col("partitions_known")
    bears = replicas - F.greatest(F.lit(0), target.headroom() - 1)
    return F.when(known, F.least(bears, in_sync)).otherwise(0)


def by_cluster(plan: Plan) -> list[Column]:
    """Aggregates over a cluster's topics.

    `inherited_least`: the smallest value that is too high for a topic that inherits it; NULL if no topic does.
    `inherited_short`: the number of topics for which the policy's default is too high.
    `inherited_first`: the first name of these topics.
    `internal_there`: which of Kafka's own topics there are.
    """
    # A partition without a leader may return with a single replica in sync.
    offline = possible(F.size("offline_ids") > 0)
    least = F.when(_inherits() & ~F.col("diskless"), F.when(offline, 0).otherwise(_least()))
    short = least <= default_min_isr(plan)
    return [
        F.min(least).alias("inherited_least"),
        F.count_if(short).alias("inherited_short"),
        F.min(F.when(short, F.col("topic"))).alias("inherited_first"),
        F.collect_set(F.when(F.col("topic").isin(*INTERNAL.values()), F.col("topic"))).alias("internal_there"),
    ]
