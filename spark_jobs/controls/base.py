"""What all controls share: the shape of a finding, words, and the verdict on one number against one required."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.policy.catalogue import CONTROLS

PASS, FAIL, UNKNOWN, NOT_APPLICABLE = "PASS", "FAIL", "UNKNOWN", "NOT_APPLICABLE"

IDS_SHOWN = 10
"""Partition ids named in a message; all are in the finding's `partitions`."""


def severity_of(control: str, category: str | None = None) -> str:
    """The catalogue's word on how much a FAIL weighs."""
    return CONTROLS[control].severity_of(category)


def providers_duty(control: str) -> Column:
    """Is the cluster's provider responsible for this control? Reads `provider`; see controls.yaml."""
    return F.coalesce(F.col("provider").isin(*CONTROLS[control].provider_duty), F.lit(False))


def say(*parts: object) -> Column:
    """Words and columns as one text; a NULL reads "unknown", since a message must not vanish with one number.

    >>> spark.range(1).select(say("isr ", F.lit(1), " of ", F.lit(None)).alias("m")).show(truncate=False)
    +----------------+
    |m               |
    +----------------+
    |isr 1 of unknown|
    +----------------+
    """
    return F.concat(
        *(F.lit(p) if isinstance(p, str) else F.coalesce(p.cast("string"), F.lit("unknown")) for p in parts)
    )


def listed(ids: Column, what: str = "") -> Column:
    """The first ids of an array, and how many more there are.

    >>> spark.range(1).select(listed(F.sequence(F.lit(0), F.lit(12))).alias("ids")).show(truncate=False)
    +--------------------------------------+
    |ids                                   |
    +--------------------------------------+
    |0, 1, 2, 3, 4, 5, 6, 7, 8, 9 (+3 more)|
    +--------------------------------------+
    """
    more = F.size(ids) - IDS_SHOWN
    shown = F.array_join(F.slice(ids, 1, IDS_SHOWN).cast("array<string>"), ", ")
    return say(
        what, shown, F.when(more > 0, F.concat(F.lit(" (+"), more.cast("string"), F.lit(" more)"))).otherwise("")
    )


def partitions_listed(ids: Column) -> Column:
    return F.when(F.size(ids) == 1, listed(ids, "partition ")).otherwise(listed(ids, "partitions "))


def as_json(**values: Column) -> Column:
    """A JSON object; NULL values stay, as null."""
    return F.to_json(F.struct(*(v.alias(k) for k, v in values.items())), {"ignoreNullFields": "false"})


def finding(
    control: str,
    outcome: Column,
    *,
    cause: Column | str,
    observed: Column,
    required: Column,
    message: Column,
    remediation: Column,
    category: Column | None = None,
    severity: Column | None = None,
    partitions: Column | None = None,
) -> Column:
    """A finding as a struct. Words and severity are kept where there is something to say, numbers always."""
    speaks = outcome.isin(FAIL, UNKNOWN)
    none = F.lit(None).cast("string")
    return F.struct(
        F.lit(control).alias("control"),
        (none if category is None else F.when(speaks, category)).alias("category"),
        outcome.alias("outcome"),
        F.when(speaks, F.lit(severity_of(control)) if severity is None else severity).alias("severity"),
        F.when(speaks, F.lit(cause) if isinstance(cause, str) else cause).alias("cause"),
        observed.alias("observed"),
        required.alias("required"),
        (F.lit(None).cast("array<int>") if partitions is None else F.when(speaks, partitions)).alias("partitions"),
        message.alias("message"),
        F.when(speaks, remediation).alias("remediation"),
    )


def column(control: str) -> str:
    """The control's id as it stands in column names."""
    return control.replace("-", "_")


def partition_ids(flag: Column) -> Column:
    """Aggregate: the ids of the partitions where `flag` holds, in order."""
    return F.sort_array(F.collect_list(F.when(flag, F.col("partition"))))


def measure(control: str, value: Column, required: Column) -> dict[str, Column]:
    """Aggregates over a topic's partitions: the worst value, whether any is unknown, which fall short of `required`."""
    name = column(control)
    return {
        f"{name}_worst": F.min(value),
        f"{name}_unknown": F.coalesce(F.bool_or(value.isNull()), F.lit(True)),
        f"{name}_failing": partition_ids(value < required),
    }


def at_least(control: str, required: Column) -> Column:
    """The outcome of a topic whose worst partition must reach `required`: one failing partition fails it whatever is
    unknown of others, one unknown partition keeps it from passing.

    Reads the columns of `measure`. NOT_APPLICABLE where the tier requires nothing.
    """
    name = column(control)
    worst = F.col(f"{name}_worst")
    return (
        F.when(required.isNull(), NOT_APPLICABLE)
        .when(worst < required, FAIL)
        .when(F.coalesce(F.col(f"{name}_unknown"), F.lit(True)) | worst.isNull() | ~F.col("partitions_known"), UNKNOWN)
        .otherwise(PASS)
    )


def scalar_columns(control: str, outcome: Column, observed: Column, required: Column) -> dict[str, Column]:
    """The three posture columns that Great Expectations checks again: never NULL, `known` where there is a verdict."""
    name = column(control)
    known = F.coalesce(outcome.isin(PASS, FAIL), F.lit(False)) & ~providers_duty(control)
    return {
        f"{name}_observed": F.when(known, observed).otherwise(0).cast("int"),
        f"{name}_required": F.when(known, required).otherwise(0).cast("int"),
        f"{name}_known": known,
    }


def not_required(requirement: str) -> Column:
    """Why a topic isn't judged: its tier leaves the key out, or no selector gave it a tier."""
    return F.when(F.col("tier").isNull(), "no selector of the policy matches it").otherwise(
        say("tier ", F.col("tier"), f" doesn't require {requirement}")
    )


def not_feasible(wanted: Column, available: Column) -> Column:
    """Cause where the tier asks more than the cluster has; NULL otherwise. See policy_feasible."""
    return F.when(wanted > available, say("policy:", F.col("tier"), " can't be met here"))


def missing_facts(control: str) -> Column:
    """What an UNKNOWN topic verdict says."""
    return F.lit(f"{control} can't be judged: a fact it needs could not be read (see what isn't known)")


CONFIGS_COMMAND = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter'


def topic_config(setting: str, value: Column) -> Column:
    """The command that sets a topic override. Topic names hold nothing that a shell would read."""
    return say(
        f"{CONFIGS_COMMAND} --entity-type topics --entity-name ", F.col("topic"), f" --add-config {setting}=", value
    )


def cluster_config(setting: str, value: Column) -> Column:
    """The command that sets a cluster-wide dynamic default."""
    return say(f"{CONFIGS_COMMAND} --entity-type brokers --entity-default --add-config {setting}=", value)
