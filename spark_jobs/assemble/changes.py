"""Compares verdicts with the last run that evaluated the cluster: each finding is new, persisting, or resolved for a reason.

If a cluster isn't evaluated now, none of its findings are resolved. A finding isn't resolved either while its control is UNKNOWN
for the resource.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.controls import at_min_isr_over_time
from spark_jobs.frames import base

LISTED = ("FAIL", "UNKNOWN", "EXEMPT")
"""Outcomes that are reported."""
KEYS = ("cluster", "control", "resource_type", "resource")
CLEARED = ("severity", "outcome", "waiver", "expired", "was", "provider")
"""Columns that a resolved finding doesn't take over from the previous run."""
DELETABLE = ("topic", "broker", "application", "tier")
"""Types of resources that can be deleted."""


def first_run(verdicts: DataFrame) -> DataFrame:
    """`verdicts` with the columns of `compared` for a cluster's first run: every reported finding is new."""
    listed = F.col("outcome").isin(*LISTED)
    return verdicts.withColumns(
        {
            "change": F.when(listed, "new"),
            "why": F.lit(None).cast("string"),
            "since": F.when(listed, F.col("captured_at")),
            "previous_outcome": F.lit(None).cast("string"),
            "previous_severity": F.lit(None).cast("string"),
        }
    )


def compared(verdicts: DataFrame, previous: DataFrame, resolved: DataFrame, clusters: DataFrame) -> DataFrame:
    """`verdicts` with change, why and since, and a row for every previous FAIL or EXEMPT that is resolved.

    A finding that turns from FAIL to EXEMPT is resolved because it is waived, and stays listed. A finding that was listed before
    persists, even if it is worse now: `previous_outcome` and `previous_severity` tell readers what it was.

    previous: the findings of the last run that evaluated each cluster. `policy_changed`: that run's policy had another
        fingerprint.
    resolved: this run's resources. A missing resource is deleted, unless `clusters` says that not all could be listed.
    """
    # A resolved finding is reported for the snapshot that no longer has it.
    before = previous.where(F.col("outcome").isin(*LISTED)).drop("captured_at", "snapshot_id")
    return _since(verdicts, before).unionByName(_gone(verdicts, before, resolved, clusters), allowMissingColumns=True)


def compared_fleet(
    verdicts: DataFrame, previous: DataFrame, captured_at: Column, *, unread: bool, dropped: bool
) -> DataFrame:
    """As `compared`, for verdicts on inventories and on clusters in inventory or fleet.

    previous: findings of the same controls in the last run that compared inventories.
    captured_at: the time of a resolved finding.
    unread: an inventory could not be read, so nothing is resolved that has no verdict now.
    dropped: no inventory is stated any more.
    """
    before = previous.where(F.col("outcome").isin(*LISTED)).drop("captured_at", "snapshot_id")
    now = _since(verdicts, before)
    passes = verdicts.where(F.col("outcome") == base.PASS).select("cluster", "id", F.lit(True).alias("passes"))
    still = verdicts.where(F.col("outcome").isin(*LISTED)).select("cluster", "id")
    gone = (
        before.where(F.col("outcome") != base.UNKNOWN)
        .join(still, ["cluster", "id"], "left_anti")
        .join(passes, ["cluster", "id"], "left")
        .where(F.col("passes").isNotNull() | ~F.lit(unread))
        .withColumns({"captured_at": captured_at, "snapshot_id": F.lit(None).cast("string")})
    )
    why = F.lit("policy-changed") if dropped else F.when(F.col("passes"), "fixed").otherwise("resource-deleted")
    outcome = F.when(F.col("passes"), base.PASS).otherwise(base.NOT_APPLICABLE)
    return now.unionByName(_resolved(gone, before, verdicts, outcome, why), allowMissingColumns=True)


def _since(verdicts: DataFrame, before: DataFrame) -> DataFrame:
    """`verdicts` with change, why and since. before: the listed findings to compare with."""
    was = before.select(
        "cluster",
        "id",
        F.col("outcome").alias("previous_outcome"),
        F.col("severity").alias("previous_severity"),
        F.col("since").alias("was_since"),
    )
    listed = F.col("outcome").isin(*LISTED)
    previous_outcome = F.col("previous_outcome")
    waived = (previous_outcome == base.FAIL) & (F.col("outcome") == "EXEMPT")
    return (
        verdicts.join(was, ["cluster", "id"], "left")
        .withColumns(
            {
                "change": F.when(
                    listed, F.when(waived, "resolved").when(previous_outcome.isNull(), "new").otherwise("persisting")
                ),
                "why": F.when(waived, "waived"),
                "since": F.when(listed, F.coalesce("was_since", "captured_at")),
                "previous_outcome": F.when(listed, previous_outcome),
                "previous_severity": F.when(listed, F.col("previous_severity")),
            }
        )
        .drop("was_since")
    )


def _priority(severity: Column) -> Column:
    """3 for critical, 2 for warning, 1 for any other severity."""
    return F.when(severity == "critical", 3).when(severity == "warning", 2).otherwise(1)


def _outcomes_now(verdicts: DataFrame) -> DataFrame:
    """This run's outcomes and `required` per control and resource."""
    return (
        verdicts.select("cluster", "control", "resource", "resource_type", "outcome", "required", "provider")
        .groupBy(*KEYS)
        .agg(
            F.bool_or(F.col("outcome") == base.UNKNOWN).alias("unknown_now"),
            F.max("required").alias("required_now"),
            F.bool_or(F.col("outcome") == base.NOT_APPLICABLE).alias("not_applicable_now"),
        )
    )


def _undecided(verdicts: DataFrame) -> DataFrame:
    """Controls that resolve no finding of a resource without its own verdict, because they are UNKNOWN for the whole cluster.

    at-min-isr-over-time is one of them, too, while there are too few readings.
    """
    too_few = (F.col("control") == at_min_isr_over_time.CONTROL) & (F.col("outcome") == base.NOT_APPLICABLE)
    return (
        verdicts.where(((F.col("outcome") == base.UNKNOWN) | too_few) & (F.col("resource_type") == "cluster"))
        .select("cluster", "control", F.lit(True).alias("undecided"))
        .distinct()
    )


def _replaced(verdicts: DataFrame, before: DataFrame) -> DataFrame:
    """The highest priority among the new FAILs of a control on a resource.

    A new finding of the same or a higher priority replaces a previous one, which then isn't resolved. For example, under-min-isr
    replaces at-min-isr.
    """
    return (
        verdicts.where(F.col("outcome") == base.FAIL)
        .join(before.select("cluster", "id"), ["cluster", "id"], "left_anti")
        .groupBy(*KEYS)
        .agg(F.max(_priority(F.col("severity"))).alias("replaced"))
    )


def _gone(verdicts: DataFrame, before: DataFrame, resolved: DataFrame, clusters: DataFrame) -> DataFrame:
    """Previous FAIL and EXEMPT findings that are no longer listed, as resolved findings with a reason."""
    still = verdicts.where(F.col("outcome").isin(*LISTED)).select("cluster", "id")
    exists = resolved.select("cluster", "resource_type", "resource", F.lit(True).alias("exists"))
    listed = clusters.select("cluster", "captured_at", "snapshot_id", "topics_known", "brokers_known", "streams_known")
    absent = F.col("exists").isNull() & F.col("resource_type").isin(*DELETABLE)
    deleted = absent & ~_not_listed()
    gone = (
        before.where(F.col("outcome") != base.UNKNOWN)
        .join(still, ["cluster", "id"], "left_anti")
        .join(_outcomes_now(verdicts), list(KEYS), "left")
        .join(_undecided(verdicts), ["cluster", "control"], "left")
        .join(exists, ["cluster", "resource_type", "resource"], "left")
        .join(_replaced(verdicts, before), list(KEYS), "left")
        .join(listed, "cluster", "left")
        .where(~F.coalesce("unknown_now", F.lit(False)))
        .where(F.coalesce("replaced", F.lit(0)) < _priority(F.col("severity")))
        .where((~absent | deleted) & F.col("topics_known").isNotNull())
        .where(F.col("undecided").isNull() | F.col("unknown_now").isNotNull() | deleted)
    )
    outcome = F.when(deleted, base.NOT_APPLICABLE).otherwise(base.PASS)
    return _resolved(gone, before, verdicts, outcome, _why(deleted))


def _resolved(gone: DataFrame, before: DataFrame, verdicts: DataFrame, outcome: Column, why: Column) -> DataFrame:
    """Findings that are no longer listed, as resolved ones with this outcome and reason."""
    return gone.select(
        "captured_at",
        "snapshot_id",
        *(c for c in before.columns if c in set(verdicts.columns) - {*CLEARED}),
        F.col("message").alias("was"),
        F.lit(None).cast("string").alias("severity"),
        F.col("outcome").alias("previous_outcome"),
        F.col("severity").alias("previous_severity"),
        outcome.alias("outcome"),
        F.lit(None).cast("int").alias("waiver"),
        F.lit("resolved").alias("change"),
        why.alias("why"),
        "since",
    )


def _not_listed() -> Column:
    """Could resources of this type not all be listed? True also for clusters that aren't evaluated now."""
    unlisted = (
        ((F.col("resource_type") == "topic") & ~F.col("topics_known"))
        | ((F.col("resource_type") == "broker") & ~F.col("brokers_known"))
        | ((F.col("resource_type") == "application") & ~F.col("streams_known"))
    )
    return F.coalesce(unlisted, F.lit(True))


def _why(deleted: Column) -> Column:
    """Why a finding is resolved."""
    cause = F.col("cause")
    cleared = (
        cause.endswith(" down")
        | cause.endswith(" sync")
        | cause.endswith(" lagging")
        | cause.endswith(" offline")
        | (cause == "reassignment")
    )
    policy = F.col("policy_changed") & (
        F.coalesce(F.col("not_applicable_now"), F.lit(False)) | (F.col("required_now") != F.col("required"))
    )
    return (
        F.when(deleted, "resource-deleted")
        .when(policy, "policy-changed")
        .when(cleared, "cause-cleared")
        .otherwise("fixed")
    )
