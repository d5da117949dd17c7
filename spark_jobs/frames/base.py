"""What all controls share: the shape of a verdict, causes, and the outcome of one number against one required.

Spark decides and names; it writes no sentence. What a verdict says and what fixes it is put into words by
`durability.findings.words`, from `evidence`, `observed` and `required`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.catalogue import CONTROLS, requirements
from durability.plan.plan import Plan
from spark_jobs.frames.flagged import Flagged, each
from spark_jobs.frames.literals import literal, spark_type
from spark_jobs.frames.settings import Setting, broker_setting, topic_setting

PASS, FAIL, UNKNOWN, NOT_APPLICABLE, EXEMPT = "PASS", "FAIL", "UNKNOWN", "NOT_APPLICABLE", "EXEMPT"

SNAPSHOT = ("cluster", "captured_at", "snapshot_id")
"""What each row says of the snapshot that it is of."""
CHECK = ("control", "observed", "required", "known")
"""The fields of an entry of `topic_posture.checks`."""
REASON = "reason"
"""The member of `evidence` that says which of several texts an outcome has."""


def severity_of(control: str, category: str | None = None) -> str:
    """The catalogue's severity of a FAIL."""
    return CONTROLS[control].severity_of(category)


def providers_duty(control: str) -> Column:
    """Is the cluster's provider responsible for this control? Reads `provider`."""
    return F.coalesce(F.col("provider").isin(*CONTROLS[control].provider_duty), F.lit(False))


def as_json(values: Mapping[str, Column]) -> Column:
    """A JSON object; NULL values stay, as null.

    >>> spark.range(1).select(as_json({"id": F.col("id"), "rack": F.lit(None).cast("string")}).alias("j")).show(truncate=False)
    +--------------------+
    |j                   |
    +--------------------+
    |{"id":0,"rack":null}|
    +--------------------+
    """
    if not values:
        return F.lit("{}")
    return F.to_json(F.struct(*(v.alias(k) for k, v in values.items())), {"ignoreNullFields": "false"})


def verdict(
    control: str,
    outcome: Column,
    *,
    cause: Column | str,
    observed: Mapping[str, Column] | None = None,
    required: Mapping[str, Column] | None = None,
    evidence: Mapping[str, Column] | None = None,
    category: Column | None = None,
    severity: Column | None = None,
    partitions: Column | None = None,
) -> Column:
    """A verdict as a struct; a NULL outcome is none.

    evidence: what else words need, of short codes, numbers and ids. `details` is NULL where the outcome is PASS: most are,
    and they keep their numbers alone.
    """
    details = F.struct(
        F.lit(None).cast("string").alias("category") if category is None else category.alias("category"),
        (F.lit(severity_of(control)) if severity is None else severity).alias("severity"),
        _text(cause).alias("cause"),
        (F.lit(None).cast("array<int>") if partitions is None else partitions).alias("partitions"),
        as_json(evidence or {}).alias("evidence"),
    )
    return F.struct(
        F.lit(control).alias("control"),
        outcome.alias("outcome"),
        as_json(observed or {}).alias("observed"),
        as_json(required or {}).alias("required"),
        F.when(outcome != PASS, details).alias("details"),
    )


def _text(value: Column | str) -> Column:
    return F.lit(value) if isinstance(value, str) else value


def min_isr_cause(source: Column) -> Column:
    """The cause of what min.insync.replicas brings about, by where its value comes from; where that is unknown it is the
    topic's one replica that decides."""
    return F.when(source != "topic", "configuration:cluster-default").otherwise("configuration:topic")


def outcome_of(control: str) -> Column:
    """The outcome of a topic control, computed once by `spark_jobs.assemble.topics.measured`."""
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


def check(control: str, observed: Column, required: Column, outcome: Column | None = None) -> Column:
    """An entry of `topic_posture.checks`, which Great Expectations checks again: numbers never NULL, `known` where there is a
    verdict."""
    outcome = outcome_of(control) if outcome is None else outcome
    known = F.coalesce(outcome.isin(PASS, FAIL), F.lit(False)) & ~providers_duty(control)

    def entry(observed: Column, required: Column, known: bool) -> Column:
        values = (F.lit(control), observed.cast("double"), required.cast("double"), F.lit(known))
        return F.struct(*(v.alias(name) for v, name in zip(values, CHECK, strict=True)))

    return F.when(known, entry(observed, required, True)).otherwise(entry(F.lit(0.0), F.lit(0.0), False))


def causes_where(flag: Column) -> Flagged:
    """Measure: the distinct causes of the partitions where `flag` holds."""
    return Flagged(flag, lambda those: F.array_distinct(F.flatten(each(those, "causes"))))


def dominant(causes: str) -> Column:
    """One code for what keeps replicas away: what is down, else what lags; NULL where nothing does.

    A topic that misses several brokers names them all, so that topics with the same trouble share a cause.
    """
    down = F.filter(causes, lambda c: c.endswith(" down"))
    chosen = F.array_sort(F.when(F.size(down) > 0, down).otherwise(F.col(causes)))
    return F.when(F.size(chosen) > 0, F.array_join(chosen, ", "))


def infeasible(tier: Column) -> Column:
    """The cause of what fails since the cluster can't meet the tier."""
    return F.concat(F.lit("policy:"), tier, F.lit(" infeasible"))


def not_feasible(wanted: Column, available: Column) -> Column:
    """Cause where the tier asks more than the cluster has; NULL otherwise. See policy_feasible."""
    return F.when(F.col("brokers_known") & (wanted > available), infeasible(F.col("tier")))


# Controls on one setting.

WRONG: dict[str, Callable[[Setting, Column], Column]] = {
    ">=": lambda setting, required: setting.least < required,
    "<=": lambda setting, required: setting.most > required,
    "==": lambda setting, required: (setting.least != required) | (setting.most != required),
}


def compared(setting: Setting, order: str, required: Column) -> Column:
    """The outcome of a setting that must be in this order, one of WRONG, to what is required: one value that isn't fails it
    whatever is unknown of others, one that is unknown keeps it from passing.

    NOT_APPLICABLE where nothing is required.

    >>> df = spark.createDataFrame([(2, 3, True, 2), (1, 3, True, 2), (1, None, False, 2), (2, None, False, 2),
    ...                             (1, 1, True, None)], "least int, most int, known boolean, required int")
    >>> seen = Setting("num.replica.fetchers", F.col("least"), F.col("most"), F.lit("broker"), F.col("known"))
    >>> df.withColumn("outcome", compared(seen, ">=", F.col("required"))).show()
    +-----+----+-----+--------+--------------+
    |least|most|known|required|       outcome|
    +-----+----+-----+--------+--------------+
    |    2|   3| true|       2|          PASS|
    |    1|   3| true|       2|          FAIL|
    |    1|NULL|false|       2|          FAIL|
    |    2|NULL|false|       2|       UNKNOWN|
    |    1|   1| true|    NULL|NOT_APPLICABLE|
    +-----+----+-----+--------+--------------+
    """
    return (
        F.when(required.isNull(), NOT_APPLICABLE)
        .when(WRONG[order](setting, required), FAIL)
        .when(~setting.known, UNKNOWN)
        .otherwise(PASS)
    )


@dataclass(frozen=True)
class TopicSetting:
    """The rule of a control on topics that holds one setting against what the tier requires, in the catalogue's order.

    control: its id; its YAML file has `scalar` and one key under `requires`. setting, kind, unlimited: see
    `spark_jobs.frames.settings.topic_setting`. `observed` has the key, the worse value, and `source`; `evidence` both values.
    """

    control: str
    setting: str
    kind: str
    unlimited: str | None = None

    @property
    def key(self) -> str:
        (requirement,) = CONTROLS[self.control].requires
        return requirement.key

    @property
    def order(self) -> str:
        order = CONTROLS[self.control].scalar
        if order is None:
            raise ValueError(f'{self.control}: its YAML file has no order; it should say `scalar: ">="` or "<="')
        return order

    def seen(self) -> Setting:
        return topic_setting(self.setting, self.kind, unlimited=self.unlimited)

    def required(self) -> Column:
        return F.col("required")[self.key]

    def outcome(self) -> Column:
        return compared(self.seen(), self.order, self.required())

    def check(self) -> Column:
        return check(self.control, _worse(self.seen(), self.order), self.required())

    def topic_verdicts(self, plan: Plan) -> list[Column]:
        seen = self.seen()
        inherited = F.lit("configuration:cluster-default")
        cause = F.when(seen.source == "topic", "configuration:topic").otherwise(inherited)
        outcome = outcome_of(self.control)
        return [_of_setting(self.control, seen, self.order, self.key, self.required(), outcome, cause)]


@dataclass(frozen=True)
class BrokerSetting:
    """The rule of a control on brokers that holds one setting of each against a number, or against what tiers require.

    order: one of WRONG. required: a constant; None: the one key under `requires` of its YAML file, and of the tiers that
    topics of the cluster are in the strictest counts. Otherwise as TopicSetting.
    """

    control: str
    setting: str
    kind: str
    order: str = ">="
    required: Any = None
    unlimited: str | None = None

    def broker_verdicts(self, plan: Plan) -> list[Column]:
        """Reads `b`, the broker, and `tiers_used` of its cluster."""
        seen = broker_setting(self.setting, self.kind, unlimited=self.unlimited)
        fixed = self.required is not None
        key = "value" if fixed else CONTROLS[self.control].requires[0].key
        required = F.lit(self.required) if fixed else strictest(plan, key, self.order)
        outcome = compared(seen, self.order, required)
        unread = F.coalesce(F.col("b")["down"], F.lit("unreadable"))
        cause = F.when(outcome == UNKNOWN, unread).otherwise(f"configuration:{self.setting}")
        return [_of_setting(self.control, seen, self.order, key, required, outcome, cause)]


def strictest(plan: Plan, key: str, order: str = ">=") -> Column:
    """What the tiers in `tiers_used` require under `key`, the most (of "<=" the least); NULL where none does."""
    stated = {name: tier[key] for name, tier in plan.policy.tiers.items() if tier.get(key) is not None}
    by_tier = literal(stated, f"map<string,{spark_type(requirements()[key])}>")
    used = F.coalesce("tiers_used", F.array().cast("array<string>"))
    wanted = F.transform(used, lambda tier: F.try_element_at(by_tier, tier))
    return F.array_min(wanted) if order == "<=" else F.array_max(wanted)


def _worse(setting: Setting, order: str) -> Column:
    return setting.most if order == "<=" else setting.least


def _of_setting(
    control: str, seen: Setting, order: str, key: str, required: Column, outcome: Column, cause: Column
) -> Column:
    return verdict(
        control,
        outcome,
        cause=cause,
        observed={key: _worse(seen, order), "source": seen.source},
        required={key: required},
        evidence={"setting": F.lit(seen.name), "least": seen.least, "most": seen.most},
    )
