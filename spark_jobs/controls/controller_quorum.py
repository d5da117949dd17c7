"""controller-quorum: can the KRaft quorum lose a controller, or a rack, and go on?

Fails with fewer than 3 voters, with a majority in one rack where the cluster has three or more, and with a voter that
last caught up more than 10 s before the leader (DescribeQuorum); an even number of voters is advice. In ZooKeeper mode
there is no such quorum.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base

CONTROL = "controller-quorum"
MAX_LAG_MS = 10_000


def _majority_possible(voters: Column, names: Column, largest: Column) -> Column:
    """Could unknown racks still put a majority into one of three racks?

    So many voters would have to join the largest one; the others, and brokers without a known rack, may each bring a name.
    """
    count = F.size(voters)
    majority = F.floor(count / 2) + 1
    unknown_racks = F.size(F.filter(voters, lambda v: v["rack"].isNull()))
    ids = F.transform(voters, lambda v: v["controller"])
    others = F.size(F.filter("brokers", lambda b: (b["rack_state"] == "unknown") & ~F.array_contains(ids, b["broker"])))
    largest_known = F.coalesce(largest, F.lit(0))
    joining = F.greatest(majority - largest_known, F.lit(0))
    new_names = unknown_racks - joining + others + F.when(largest_known == 0, 1).otherwise(0)
    return (count >= 3) & (unknown_racks + others > 0) & (joining <= unknown_racks) & (F.size(names) + new_names >= 3)


def cluster_verdicts(plan: Plan) -> list[Column]:
    """Reads `controllers`, `racks` and `quorum_mode` of a cluster."""
    voters = F.filter("controllers", lambda c: c["role"] == "voter")
    names = F.array_distinct(F.array_compact(F.concat(F.col("racks"), F.transform(voters, lambda v: v["rack"]))))
    largest = F.array_max(F.transform(names, lambda name: F.size(F.filter(voters, lambda v: v["rack"] == name))))
    return [_of_voters(voters, names, F.size(voters), largest)]


def _of_voters(voters: Column, names: Column, count: Column, largest: Column) -> Column:
    majority = F.floor(count / 2) + 1
    three_racks = (F.size(names) >= 3) & (count >= 3)
    lagging = F.transform(F.filter(voters, lambda v: v["lag_ms"] > MAX_LAG_MS), lambda v: v["controller"])
    lag_unknown = F.exists(voters, lambda v: v["lag_ms"].isNull())
    problems = F.array_compact(
        F.array(
            F.when(count < 3, "too-few-voters"),
            F.when(three_racks & (largest >= majority), "rack-majority"),
            F.when(F.size(lagging) > 0, "lagging-voter"),
            F.when((count >= 3) & (count % 2 == 0), "even-number"),
        )
    )
    worst = F.try_element_at(problems, F.lit(1))
    real = F.filter(problems, lambda p: p != "even-number")
    rack_unknown = _majority_possible(voters, names, largest)
    unread = F.col("quorum_mode").isNull() | (count == 0)
    outcome = (
        F.when(F.col("quorum_mode") == "zookeeper", base.NOT_APPLICABLE)
        .when(unread, base.UNKNOWN)
        .when(F.size(real) > 0, base.FAIL)
        .when(rack_unknown | lag_unknown, base.UNKNOWN)
        .when(F.size(problems) > 0, base.FAIL)
        .otherwise(base.PASS)
    )
    severity = F.when(F.size(real) == 0, base.severity_of(CONTROL, "even-number"))
    for problem in ("lagging-voter", "rack-majority", "too-few-voters"):
        severity = F.when(worst == problem, base.severity_of(CONTROL, problem)).otherwise(severity)
    return base.verdict(
        CONTROL,
        outcome,
        category=worst,
        severity=severity,
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
