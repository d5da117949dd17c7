"""What partitions can spare while brokers restart: the rows of `restart_capacity`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.assemble.loss_outcomes import of_snapshots
from spark_jobs.frames import min_isr
from spark_jobs.frames.columns import struct
from spark_jobs.frames.effective_min_isr import effective_min_isr
from spark_jobs.frames.loss_views import with_answers
from spark_jobs.lake_tables import Reader


def capacities(read: Reader, plan: Plan) -> DataFrame:
    """The rows of `restart_capacity`, without the run's keys. Partitions with the same replicas, ISR and minimum are one row.

    The minimum is the largest that one of the replicas' brokers enforces as leader. A running reassignment limits waves by what
    it leaves and by what there was before. The latter counts no partitions. The minimum is NULL too where a reassignment can't
    be ruled out.
    """
    partitions, _ = of_snapshots(read, plan)
    keys = ("cluster", "captured_at", "snapshot_id")
    judged = with_answers(partitions).select("*", F.explode(_ends()).alias("end")).select("*", "end.*")
    left = F.col("left")
    # Each of them leads while others restart.
    of_left = F.filter("brokers", lambda b: F.array_contains(left, b["broker"]))
    caps = F.forall(of_left, lambda b: b["caps"])
    minimum = effective_min_isr(min_isr.largest(of_left), F.size(left), caps)
    same = {
        "replicas": F.sort_array(left),
        "isr": F.sort_array(F.array_intersect("live_isr", left)),
        "minimum": F.when(F.col("adding").isNotNull() | (F.size("live_isr") >= F.size("replicas")), minimum),
    }
    named = judged.select(
        *keys, "topic", "partition", "counted", *(column.alias(name) for name, column in same.items())
    )
    example = F.min(F.struct("topic", "partition")).alias("example")
    grouped = named.groupBy(*keys, *same).agg(
        F.sum(F.col("counted").cast("int")).cast("bigint").alias("partitions"), example
    )
    return grouped.select(*keys, *same, "partitions", F.col("example")["topic"].alias("topic"), "example.partition")


def _ends() -> Column:
    """The replicas without those that are being removed, and without those being added, as array<struct<left, counted>>."""

    def without(gone: str) -> Column:
        return F.when(F.size(gone) > 0, F.array_except("replicas", gone)).otherwise(F.col("replicas"))

    after = struct({"left": without("removing"), "counted": F.lit(True)})
    before = struct({"left": without("adding"), "counted": F.lit(False)})
    moving = (F.size("adding") > 0) | (F.size("removing") > 0)
    return F.when(moving, F.array(after, before)).otherwise(F.array(after))
