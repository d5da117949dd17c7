"""controller-quorum: does the KRaft quorum have a majority, and does it keep one if a controller or a rack is lost?

It has lost its majority if there is no leader, or if too few voters are caught up. It can't lose a voter if it has fewer than 3.
A voter is missing if it never caught up with the leader, or if its combined broker is down. The quorum can't lose a rack if half
of the voters or more are in it. This counts in clusters of two racks or more. An even number of voters is advice. A cluster in
ZooKeeper mode has no such quorum.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base
from spark_jobs.frames.columns import certain

CONTROL = "controller-quorum"
MAX_LAG_MS = 10_000
ADVICE = "even-number"


def _blocking_possible(voters: Column, names: Column, largest: Column) -> Column:
    """Can one of two racks or more have half of the voters, depending on racks that are unknown?

    Voters of unknown racks may all be in the largest known rack. The other voters of unknown racks, and brokers of unknown
    racks, may each add a rack. Where no rack is named or unknown but those of controllers, the cluster has no racks.
    """
    count = F.size(voters)
    unknown_voters = F.size(F.filter(voters, lambda v: v["rack"].isNull()))
    ids = voters["controller"]
    unknown_brokers = F.size(
        F.filter("brokers", lambda b: (b["rack_state"] == "unknown") & ~F.array_contains(ids, b["broker"]))
    )
    combined_unknown = F.exists(
        "brokers", lambda b: (b["rack_state"] == "unknown") & F.array_contains(ids, b["broker"])
    )
    largest_known = F.coalesce(largest, F.lit(0))
    joining = F.greatest(_blocking(count) - largest_known, F.lit(0))
    new_names = unknown_voters - joining + unknown_brokers + F.when(largest_known == 0, 1).otherwise(0)
    has_racks = (F.size(names) > 0) | (unknown_brokers > 0) | combined_unknown
    any_unknown = unknown_voters + unknown_brokers > 0
    return has_racks & (count >= 3) & any_unknown & (joining <= unknown_voters) & (F.size(names) + new_names >= 2)


def _majority(count: Column) -> Column:
    return (F.floor(count / 2) + 1).cast("int")


def _blocking(count: Column) -> Column:
    """The number of voters without which the others are no majority."""
    return count - _majority(count) + 1


def _missing(voters: Column) -> Column:
    """The voters that aren't there: never caught up with the leader, or on a combined node whose broker is down."""
    down = F.filter("brokers", lambda b: ~b["live"])["broker"]
    return F.filter(
        voters,
        lambda v: ~certain(v["leader"]) & (certain(~v["caught_up"]) | F.array_contains(down, v["controller"])),
    )


def _left(present: Column, names: Column) -> Column:
    """How many of the voters that are present are left if the worst rack is lost."""
    outside = F.transform(names, lambda name: F.size(F.filter(present, lambda v: ~certain(v["rack"] == name))))
    return F.array_min(outside)


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `controllers`, `brokers`, `racks`, `quorum_mode` and `quorum_leader` of a cluster."""
    voters = F.filter("controllers", lambda c: c["role"] == "voter")
    count = F.size(voters)
    names = F.array_distinct(F.array_compact(F.concat(F.col("racks"), voters["rack"])))
    in_racks = F.transform(
        names,
        lambda name: F.struct(F.size(F.filter(voters, lambda v: v["rack"] == name)).alias("n"), name.alias("rack")),
    )
    largest = F.array_max(in_racks)["n"]
    blocking = F.filter(in_racks, lambda r: (F.size(names) >= 2) & (count >= 3) & (r["n"] >= _blocking(count)))
    missing = F.sort_array(_missing(voters)["controller"])
    late = F.filter(voters, lambda v: (v["lag_ms"] > MAX_LAG_MS) & ~F.array_contains(missing, v["controller"]))
    lagging = late["controller"]
    present = count - F.size(missing)
    left = _left(F.filter(voters, lambda v: ~F.array_contains(missing, v["controller"])), names)
    no_leader = F.col("quorum_leader").isNull() & F.forall(voters, lambda v: v["leader"].isNotNull())
    short = (F.size(missing) > 0) & (
        (present - 1 < _majority(count)) | certain((F.size(names) >= 2) & (left < _majority(count)))
    )
    # The worst first: it is the category.
    problems = F.array_compact(
        F.array(
            F.when(no_leader | (present - F.size(lagging) < _majority(count)), "majority-lost"),
            F.when(count < 3, "too-few-voters"),
            F.when(F.size(blocking) > 0, "rack-majority"),
            F.when(short, "no-spare-voter"),
            F.when((F.size(missing) > 0) & ~short, "missing-voter"),
            F.when(F.size(lagging) > 0, "lagging-voter"),
            F.when((count >= 3) & (count % 2 == 0), ADVICE),
        )
    )
    worst = F.try_element_at(problems, F.lit(1))
    unread = F.col("quorum_mode").isNull() | (count == 0)
    lag_unread = F.exists(
        voters, lambda v: v["caught_up"].isNull() & ~certain(v["leader"]) & ~F.array_contains(missing, v["controller"])
    )
    unknown = _blocking_possible(voters, names, largest) | lag_unread
    yield base.verdict(
        CONTROL,
        F.when(F.col("quorum_mode") == "zookeeper", base.NOT_APPLICABLE)
        .when(unread, base.UNKNOWN)
        .when(worst != ADVICE, base.FAIL)
        .when(unknown, base.UNKNOWN)
        .when(worst.isNotNull(), base.FAIL)
        .otherwise(base.PASS),
        category=worst,
        cause="controller quorum",
        observed={
            "voters": F.when(~unread, count),
            "problems": problems,
            "largest_rack": largest,
            "blocking_racks": F.sort_array(blocking["rack"]),
            "missing": missing,
            "lagging": lagging,
            "leader": F.col("quorum_leader"),
            "problem": worst,
        },
        required={"voters": F.lit(3), "max_lag_ms": F.lit(MAX_LAG_MS)},
        evidence={
            "majority": _majority(count),
            "caught_up": present - F.size(lagging),
            "no_leader": no_leader,
            "rack_unknown": F.exists(voters, lambda v: v["rack"].isNull()),
            "lag_unknown": F.sort_array(
                F.filter(voters, lambda v: v["caught_up"].isNull() & ~certain(v["leader"]))["controller"]
            ),
        },
    )
