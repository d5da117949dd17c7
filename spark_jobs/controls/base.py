"""What all controls share: the shape of a finding, words, and the verdict on one number against one required."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.policy.catalogue import CONTROLS
from spark_jobs.flagged import Flagged, each

PASS, FAIL, UNKNOWN, NOT_APPLICABLE = "PASS", "FAIL", "UNKNOWN", "NOT_APPLICABLE"

INFEASIBLE = "policy:%s can't be met here"

IDS_SHOWN = 10
"""Partition ids named in a message; all are in the finding's `partitions`."""


def severity_of(control: str, category: str | None = None) -> str:
    """The catalogue's word on how much a FAIL weighs."""
    return CONTROLS[control].severity_of(category)


def providers_duty(control: str) -> Column:
    """Is the cluster's provider responsible for this control? Reads `provider`; see controls.yaml."""
    return F.coalesce(F.col("provider").isin(*CONTROLS[control].provider_duty), F.lit(False))


def say(text: str, *columns: Column) -> Column:
    """`text` with each `%s` replaced by a column's value.

    >>> spark.range(1).select(say("isr %s of %s", F.lit(1), F.lit(3)).alias("m")).show()
    +----------+
    |         m|
    +----------+
    |isr 1 of 3|
    +----------+
    """
    return F.format_string(text, *columns)


def bound(use: Callable[..., Column], *values: Column) -> Column:
    """`use` of `values`, each of which stands in the plan once however often `use` names it.

    Spark analyses and optimises an expression in time with its text. Not for rows by the million: what is bound is
    interpreted.

    >>> spark.range(3).select(bound(lambda square, i: square + square + i, F.col("id") ** 2, F.col("id")).alias("b")).show()
    +----+
    |   b|
    +----+
    | 0.0|
    | 3.0|
    |10.0|
    +----+
    """
    one = F.struct(*(value.alias(f"v{n}") for n, value in enumerate(values)))
    return F.element_at(F.transform(F.array(one), lambda v: use(*(v[f"v{n}"] for n in range(len(values))))), 1)


def listed(ids: Column, what: str = "") -> Column:
    """The first ids of an array, and how many more there are.

    >>> spark.range(1).select(listed(F.sequence(F.lit(0), F.lit(12))).alias("ids")).show(truncate=False)
    +--------------------------------------+
    |ids                                   |
    +--------------------------------------+
    |0, 1, 2, 3, 4, 5, 6, 7, 8, 9 (+3 more)|
    +--------------------------------------+
    """
    shown = F.array_join(F.slice(ids, 1, IDS_SHOWN).cast("array<string>"), ", ")
    more = F.when(F.size(ids) > IDS_SHOWN, say(" (+%s more)", F.size(ids) - IDS_SHOWN)).otherwise("")
    return F.concat(F.lit(what), shown, more)


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
    message: Column | str,
    remediation: Column | str,
    category: Column | None = None,
    severity: Column | None = None,
    partitions: Column | None = None,
) -> Column:
    """A finding as a struct, worded for a FAIL; `spark_jobs.findings.exploded` keeps the words where they apply.

    A NULL outcome is no finding. `words` is NULL where it is PASS: most are, and nobody reads what would have been said.
    """
    words = F.struct(
        F.lit(None).cast("string").alias("category") if category is None else category.alias("category"),
        (F.lit(severity_of(control)) if severity is None else severity).alias("severity"),
        _text(cause).alias("cause"),
        (F.lit(None).cast("array<int>") if partitions is None else partitions).alias("partitions"),
        _text(message).alias("message"),
        _text(remediation).alias("remediation"),
    )
    return F.struct(
        F.lit(control).alias("control"),
        _text(outcome).alias("outcome"),
        observed.alias("observed"),
        required.alias("required"),
        F.when(_text(outcome) != PASS, words).alias("words"),
    )


def _text(value: Column | str) -> Column:
    return F.lit(value) if isinstance(value, str) else value


def min_isr_cause(source: Column) -> Column:
    """The cause of what min.insync.replicas brings about, by where its value comes from; where that is unknown it is the
    topic's one replica that decides."""
    return F.when(source != "topic", "configuration:cluster-default").otherwise("configuration:topic")


def outcome_of(control: str) -> Column:
    """The outcome of a topic control, computed once by `spark_jobs.topics.measured`."""
    return F.col(f"{column(control)}_outcome")


def column(control: str) -> str:
    """The control's id as it stands in column names."""
    return control.replace("-", "_")


def partition_ids(flag: Column) -> Flagged:
    """Measure: the ids of the partitions where `flag` holds, in order."""
    return Flagged(flag, lambda those: F.sort_array(F.flatten(each(those, "ids"))))


def measure(control: str, value: Column, required: Column) -> dict[str, Column | Flagged]:
    """Measures over a topic's partitions: the worst value, whether any is unknown, which fall short of `required`."""
    name = column(control)
    return {
        f"{name}_worst": F.min(value),
        f"{name}_unknown": F.coalesce(F.bool_or(value.isNull()), F.lit(True)),
        f"{name}_failing": partition_ids(value < required),
    }


def of_the_least(what: Column, value: Column, or_unknown: bool = False) -> Column:
    """Aggregate: `what` is of the partition with the least `value`, the first of several, so that it is the same in
    every run; NULL where no value is known, or with `or_unknown` of the first partition then."""
    order = F.struct(value.isNull(), value, F.col("partition"))
    return F.min_by(what, order if or_unknown else F.when(value.isNotNull(), order))


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


def scalar_columns(
    control: str, observed: Column, required: Column, outcome: Column | None = None
) -> dict[str, Column]:
    """The three posture columns that Great Expectations checks again: never NULL, `known` where there is a verdict."""
    name = column(control)
    outcome = outcome_of(control) if outcome is None else outcome
    known = F.coalesce(outcome.isin(PASS, FAIL), F.lit(False)) & ~providers_duty(control)
    return {
        f"{name}_observed": F.when(known, observed).otherwise(0).cast("int"),
        f"{name}_required": F.when(known, required).otherwise(0).cast("int"),
        f"{name}_known": known,
    }


def causes_where(flag: Column) -> Flagged:
    """Measure: the distinct causes of the partitions where `flag` holds."""
    return Flagged(flag, lambda those: F.array_distinct(F.flatten(each(those, "causes"))))


def dominant(causes: str) -> Column:
    """One text for what keeps replicas away: what is down, else what lags; NULL where nothing does.

    A topic that misses several brokers names them all, so that topics with the same trouble share a cause.
    """
    down = F.filter(causes, lambda c: c.endswith(" down"))
    chosen = F.array_sort(F.when(F.size(down) > 0, down).otherwise(F.col(causes)))
    return F.when(F.size(chosen) > 0, F.array_join(chosen, ", "))


def not_feasible(wanted: Column, available: Column) -> Column:
    """Cause where the tier asks more than the cluster has; NULL otherwise. See policy_feasible."""
    return F.when(F.col("brokers_known") & (wanted > available), say(INFEASIBLE, F.col("tier")))


CONFIGS_COMMAND = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter'


def topic_config(setting: str, value: Column) -> Column:
    """The command that sets a topic override. Topic names hold nothing that a shell would read."""
    return say(
        f"{CONFIGS_COMMAND} --entity-type topics --entity-name %s --add-config {setting}=%s", F.col("topic"), value
    )


def cluster_config(setting: str, value: Column) -> Column:
    """The command that sets a cluster-wide dynamic default."""
    return say(f"{CONFIGS_COMMAND} --entity-type brokers --entity-default --add-config {setting}=%s", value)


def comment(text: Column | str) -> Column:
    """`text` as one line of shell comment, whatever stands in it."""
    return F.concat(F.lit("# "), F.regexp_replace(_text(text), r"[\p{Cntrl}\x{2028}\x{2029}]", " "))


def script(*lines: Column | str) -> Column:
    """Lines of shell, each a command or a comment; NULL ones are left out.

    A remediation is either such a script, which bash takes as it is, or a sentence of advice without a command.
    """
    return F.concat_ws("\n", *map(_text, lines))


UNDER_REPLICATED = 'kafka-topics --bootstrap-server "$BOOTSTRAP" --describe --under-replicated-partitions'

RUNNING = 'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP" --list'


def bring_back(causes: Column) -> Column:
    """What mends a short ISR, by its cause: the same words wherever the cause is the same."""
    return (
        F.when(
            causes.endswith(" down"),
            script(comment(say("Start what is down (%s); then this lists nothing:", causes)), UNDER_REPLICATED),
        )
        .when(causes.endswith(" offline"), say("Replace the disk and restart (%s)", causes))
        .otherwise(
            script(
                comment(say("Find why it lags (%s): load, disk, network, a throttle left behind. What lags:", causes)),
                UNDER_REPLICATED,
            )
        )
    )


def set_racks() -> Column:
    """What mends missing broker.rack, the same for every finding of a cluster. Reads `unracked_brokers`."""
    ids = F.col("unracked_brokers")
    return F.when(
        F.size(ids) == 1,
        say("Set broker.rack in server.properties of %s and restart it", listed(ids, "broker ")),
    ).otherwise(
        say("Set broker.rack in server.properties of %s, and restart them one after the other", listed(ids, "brokers "))
    )
