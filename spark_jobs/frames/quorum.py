"""The voters of a KRaft quorum, of a cluster's row."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain, struct

MAX_LAG_MS = 10_000


def with_voters(clusters: DataFrame) -> DataFrame:
    """Adds `voters`, the controllers that vote, each with `missing`, and `voting`, what rules read of all of them.

    `voting`: struct<racks, missing, present, lagging, no_leader>: the names of all racks, of brokers and voters; the ids of the
    voters that are missing; the other voters; the ids of those that lag behind (MAX_LAG_MS); is it known that no controller
    leads? Columns of their own keep expressions small: rules read them up to a hundred times.
    """
    voters = F.transform(
        F.filter("controllers", lambda c: c["role"] == "voter"), lambda v: v.withField("missing", _is_missing(v))
    )
    present = F.filter("voters", lambda v: ~v["missing"])
    voting = {
        "racks": F.array_distinct(F.array_compact(F.concat(F.col("racks"), F.col("voters")["rack"]))),
        "missing": F.sort_array(F.filter("voters", lambda v: v["missing"])["controller"]),
        "present": present,
        "lagging": F.filter(present, lambda v: v["lag_ms"] > MAX_LAG_MS)["controller"],
        "no_leader": F.col("quorum_leader").isNull() & _leader_known(),
    }
    return clusters.withColumn("voters", voters).withColumn("voting", struct(voting))


def _leader_known() -> Column:
    """Is it known who leads, or that no controller does? It may be so while the voters are unknown."""
    unread = F.exists("unreadable", lambda entry: entry["path"].startswith("/cluster/quorum/leader"))
    without_voters = certain(F.col("quorum_mode") == "kraft") & ~certain(unread)
    return F.when(F.size("voters") > 0, F.forall("voters", lambda v: v["leader"].isNotNull())).otherwise(without_voters)


def majority(count: Column) -> Column:
    """The number of voters that elect a leader and commit metadata, of so many voters."""
    return (F.floor(count / 2) + 1).cast("int")


def _is_missing(voter: Column) -> Column:
    """Did the voter never catch up with the leader, or is it or its combined broker known to be down?

    The leader isn't missing.
    """
    down = F.filter("brokers", lambda b: ~b["live"])["broker"]
    gone = certain(~voter["caught_up"]) | certain(~voter["live"]) | F.array_contains(down, voter["controller"])
    return ~certain(voter["leader"]) & gone


def left(lost: Column) -> Column:
    """The quorum after the loss of the nodes with these ids, as struct<voters, left, needed, kept>.

    left: the voters that aren't known to be missing. kept: are they a majority, and may a controller lead? NULL where voters are
    unknown, or where a voter decides of which nothing is known. Where no controller leads now, a loss makes none lead. In
    ZooKeeper mode there are no voters, and ZooKeeper is taken to survive.
    """
    everyone = F.col("voters")
    remaining = F.filter(everyone, lambda v: ~F.array_contains(lost, v["controller"]) & ~v["missing"])
    needed, stated = majority(F.size(everyone)), (F.col("quorum_mode") == "kraft") & (F.size(everyone) > 0)
    no_leader = F.col("voting")["no_leader"]
    kept = F.when(F.size(remaining) < needed, False).when(F.size(F.filter(remaining, _is_there)) >= needed, True)
    fields = {"voters": F.size(everyone), "left": F.size(remaining), "needed": needed}
    known = {name: F.when(stated, number) for name, number in fields.items()}
    return struct(
        {**known, "kept": F.when(no_leader, False).when(stated, kept).when(F.col("quorum_mode") == "zookeeper", True)}
    )


def kept_once_up(lost: Column) -> Column:
    """Do voters that run with brokers that are down give the controllers a majority after the loss, once they are up?

    Never NULL; False if there are no such voters.
    """
    down = F.filter("brokers", lambda b: certain(~b["live"]))["broker"]
    left = F.filter("voters", lambda v: ~F.array_contains(lost, v["controller"]))
    back = F.filter(left, lambda v: v["missing"] & F.array_contains(down, v["controller"]))
    there = F.filter(left, lambda v: ~v["missing"] & _is_there(v))
    enough = F.size(back) + F.size(there) >= majority(F.size("voters"))
    return certain((F.col("quorum_mode") == "kraft") & (F.size(back) > 0) & enough)


def _is_there(voter: Column) -> Column:
    """Is it known that the voter votes?"""
    return certain(voter["leader"]) | certain(voter["caught_up"]) | certain(voter["live"])


def before() -> Column:
    """Have the controllers a majority and a leader, as they are? NULL if unknown, as in `left`."""
    return left(F.array().cast("array<int>"))["kept"]


def majority_of_cluster() -> dict[str, Column]:
    """`lost`: have the controllers no majority or no leader, as they are? `voters`: their number.

    `missing`: ids of those that are missing. `zookeeper`: does ZooKeeper elect the controller?
    """
    stated = F.col("quorum_mode") == "kraft"
    return {
        "lost": certain(~before()),
        "voters": F.when(stated & (F.size("voters") > 0), F.size("voters")),
        "missing": F.when(stated, F.col("voting")["missing"]),
        "zookeeper": certain(F.col("quorum_mode") == "zookeeper"),
    }


def outnumbers(lost: Column) -> Column:
    """Are these nodes so many voters that the others are no majority, even with all of them up?"""
    others = F.filter("voters", lambda v: ~F.array_contains(lost, v["controller"]))
    short = F.size(others) < majority(F.size("voters"))
    return certain((F.col("quorum_mode") == "kraft") & (F.size("voters") > 0) & short)
