"""What partitions can spare while brokers restart: the rows of `restart_capacity`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.assemble.loss_outcomes import of_snapshots, with_answers
from spark_jobs.lake_tables import Reader


def capacities(read: Reader, plan: Plan) -> DataFrame:
    """The rows of `restart_capacity`, without the run's keys: partitions with the same replicas, ISR and minimum are one row."""
    partitions, _ = of_snapshots(read, plan)
    # Once a reassignment is complete, removed replicas bind nothing. Until then they count.
    same = {
        "replicas": F.sort_array("replicas"),
        "isr": F.sort_array("live_isr"),
        "minimum": F.col("effective_min_isr"),
    }
    keys = ("cluster", "captured_at", "snapshot_id")
    named = with_answers(partitions).select(
        *keys, "topic", "partition", *(column.alias(name) for name, column in same.items())
    )
    example = F.min(F.struct("topic", "partition")).alias("example")
    grouped = named.groupBy(*keys, *same).agg(F.count("*").alias("partitions"), example)
    return grouped.select(*keys, *same, "partitions", F.col("example")["topic"].alias("topic"), "example.partition")
