"""Why a topic has too little headroom: its min.insync.replicas is too high, or it has too few replicas."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames import base, target
from spark_jobs.frames.columns import certain


def cause() -> Column:
    """The source of min.insync.replicas, or the topic's number of replicas. Reads `write_headroom_at_worst`.

    The value is the cause if it is above the number of replicas, if the target lowers it, or if the replicas are enough with the
    smallest value that the tier allows. A tier that requires no copies states no such value: its topics lack replicas.
    """
    worst, required = F.col("write_headroom_at_worst"), F.col("required")
    configured, replicas = worst["min_isr"], worst["rf"]
    least = F.greatest(
        *(required[key] for key in ("min_insync_replicas", "acked_copies", "acked_racks")),
        F.when(target.survives(), 2),
        F.when(required["acked_racks"] > 1, F.col("acked_smallest_min_isr")),
        replicas - target.below_rf("min_insync_replicas"),
    )
    enough = certain((configured > least) & (least + target.headroom() <= replicas))
    lowered = certain(F.col("target_min_insync_replicas") < configured)
    by_value = enough | lowered | certain(configured > replicas)
    return F.when(by_value, base.min_isr_cause(worst["min_isr_source"])).otherwise("configuration:topic")
