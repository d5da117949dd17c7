"""The voters of a KRaft quorum, of a cluster's row."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain


def voters() -> Column:
    """The cluster's `controllers` that vote."""
    return F.filter("controllers", lambda c: c["role"] == "voter")


def majority(count: Column) -> Column:
    """The number of voters that elect a leader and commit metadata, of so many voters."""
    return (F.floor(count / 2) + 1).cast("int")


def is_missing(voter: Column) -> Column:
    """Did the voter never catch up with the leader, or is it or its combined broker known to be down?

    The leader isn't missing.
    """
    down = F.filter("brokers", lambda b: ~b["live"])["broker"]
    gone = certain(~voter["caught_up"]) | certain(~voter["live"]) | F.array_contains(down, voter["controller"])
    return ~certain(voter["leader"]) & gone
