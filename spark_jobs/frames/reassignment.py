"""What cancelling a running reassignment would do to a partition (KIP-455): its replicas being added are dropped at once."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain, possible


def cancel_harms() -> Column:
    """Could the partition lose its leader, or acks=all writes that it accepts, if its reassignment were cancelled?

    The replicas that remain are those that aren't being added. Unknown counts as yes. False without a reassignment.
    """
    adding = F.col("adding")
    remaining = F.filter("in_sync", lambda b: ~F.array_contains(adding, b["broker"]) & certain(b["live"]))
    leads = possible(F.array_contains(adding, F.col("leader")))
    # `rf` is the number of replicas that aren't being added.
    enough = F.size(remaining) >= F.least(F.col("min_isr"), F.when(F.col("caps"), F.col("rf")))
    stops = certain("enough") & ~certain(enough)
    return certain("reassigning") & (leads | ~certain(F.size(remaining) > 0) | stops)
