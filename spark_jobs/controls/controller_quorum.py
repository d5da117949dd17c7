"""controller-quorum: can the KRaft quorum survive the loss of a controller, or of a rack?

It fails with fewer than 3 voters, with a majority of the voters in one rack where the cluster has three racks or more, and with
a voter that last caught up more than 10 s before the leader (DescribeQuorum). An even number of voters is advice. A cluster in
ZooKeeper mode has no such quorum.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base

CONTROL = "controller-quorum"
MAX_LAG_MS = 10_000


def _majority_possible(voters: Column, names: Column, largest: Column) -> Column:
    """Can a majority be in one of three racks, depending on racks that are unknown?

    Voters of unknown racks may all be in the largest known rack. The other voters of unknown racks, and brokers of unknown
    racks, may each add a rack.
    """
    count = F.size(voters)
    majority = F.floor(count / 2) + 1
    unknown_voters = F.size(F.filter(voters, lambda v: v["rack"].isNull()))
    ids = voters["controller"]
    unknown_brokers = F.size(
        F.filter("brokers", lambda b: (b["rack_state"] == "unknown") & ~F.array_contains(ids, b["broker"]))
    )
    largest_known = F.coalesce(largest, F.lit(0))
    joining = F.greatest(majority - largest_known, F.lit(0))
    new_names = unknown_voters - joining + unknown_brokers + F.when(largest_known == 0, 1).otherwise(0)
    any_unknown = unknown_voters + unknown_brokers > 0
    return (count >= 3) & any_unknown & (joining <= unknown_voters) & (F.size(names) + new_names >= 3)


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `controllers`, `brokers`, `racks` and `quorum_mode` of a cluster."""
    voters = F.filter("controllers", lambda c: c["role"] == "voter")
    count = F.size(voters)
    names = F.array_distinct(F.array_compact(F.concat(F.col("racks"), voters["rack"])))
    largest = F.array_max(F.transform(names, lambda name: F.size(F.filter(voters, lambda v: v["rack"] == name))))
    three_racks = (F.size(names) >= 3) & (count >= 3)
    lagging = F.filter(voters, lambda v: v["lag_ms"] > MAX_LAG_MS)["controller"]
    # The worst first: it is the category.
    problems = F.array_compact(
        F.array(
            F.when(count < 3, "too-few-voters"),
            F.when(three_racks & (largest >= F.floor(count / 2) + 1), "rack-majority"),
            F.when(F.size(lagging) > 0, "lagging-voter"),
            F.when((count >= 3) & (count % 2 == 0), "even-number"),
        )
    )
    worst = F.try_element_at(problems, F.lit(1))
    unread = F.col("quorum_mode").isNull() | (count == 0)
    unknown = _majority_possible(voters, names, largest) | F.exists(voters, lambda v: v["lag_ms"].isNull())
    yield base.verdict(
        CONTROL,
        F.when(F.col("quorum_mode") == "zookeeper", base.NOT_APPLICABLE)
        .when(unread, base.UNKNOWN)
        .when(worst != "even-number", base.FAIL)
        .when(unknown, base.UNKNOWN)
        .when(worst.isNotNull(), base.FAIL)
        .otherwise(base.PASS),
        category=worst,
        cause="controller quorum",
        observed={
            "voters": F.when(~unread, count),
            "problems": problems,
            "largest_rack": largest,
            "lagging": lagging,
            "problem": worst,
        },
        required={"voters": F.lit(3), "max_lag_ms": F.lit(MAX_LAG_MS)},
    )
