"""What all controls share: the shape of a verdict, its cause, and the outcome of a number against a requirement.

Spark computes outcomes, codes and numbers. `durability.findings.words` writes the message and the remediation, from
`observed`, `required` and `evidence`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.catalogue import CONTROLS
from durability.catalogue.model import CONTRADICTED, requirements
from durability.plan.plan import Plan
from spark_jobs.frames.columns import certain, let, struct
from spark_jobs.frames.flagged import Flagged, each
from spark_jobs.frames.literals import literal, spark_type
from spark_jobs.frames.settings import Setting, broker_setting, topic_setting

PASS, FAIL, UNKNOWN, NOT_APPLICABLE, EXEMPT = "PASS", "FAIL", "UNKNOWN", "NOT_APPLICABLE", "EXEMPT"
NOT_PASSED = (FAIL, UNKNOWN, NOT_APPLICABLE)

SNAPSHOT = ("cluster", "captured_at", "snapshot_id")
"""The columns that identify a row's snapshot."""
REASON = "reason"
"""The member of `evidence` that selects one of several texts for an outcome."""


def providers_duty(control: str) -> Column:
    """Is the cluster's provider responsible for this control? Reads `provider`."""
    return certain(F.col("provider").isin(*CONTROLS[control].provider_duty))


def platform_hides(control: Column, *controls: str) -> Column:
    """Does the cluster's platform hide what this control needs, or contradict its declared provider? Reads `provider`.

    control: the control's id. controls: the ids that it may be; without any, all.
    """
    hides = [f"{provider} {c}" for c in controls or CONTROLS for provider in CONTROLS[c].provider_hides]
    return certain((F.col("provider") == CONTRADICTED) | F.concat_ws(" ", "provider", control).isin(*hides))


def as_json(values: Mapping[str, Column]) -> Column:
    """A JSON object as text. NULL values are written as null.

    >>> spark.range(1).select(as_json({"id": F.col("id"), "rack": F.lit(None).cast("string")}).alias("j")).show(truncate=False)
    +--------------------+
    |j                   |
    +--------------------+
    |{"id":0,"rack":null}|
    +--------------------+
    """
    return F.to_json(struct(values), {"ignoreNullFields": "false"}) if values else F.lit("{}")


def verdict(
    control: str,
    outcome: Column,
    *,
    cause: Column | str,
    observed: Mapping[str, Column] | None = None,
    required: Mapping[str, Column] | None = None,
    also_observed: Mapping[str, Column] | None = None,
    also_required: Mapping[str, Column] | None = None,
    evidence: Mapping[str, Column] | None = None,
    evidence_of: tuple[str, ...] = (FAIL, UNKNOWN),
    category: Column | str | None = None,
    severity_of: Column | str | None = None,
    partitions: Column | None = None,
) -> Column:
    """A verdict as a struct. There is no verdict where `outcome` is NULL. `details` is NULL for PASS.

    also_observed, also_required: members that only verdicts of some tiers have. They are left out where NULL.
    partitions: ids.
    evidence: short codes, numbers and ids that the texts need besides `observed` and `required`.
    evidence_of: the outcomes with evidence. Most topics pass or have no requirement, and their texts need none.
    severity_of: the category whose severity in the catalogue applies, if it isn't `category`.
    """

    def of(outcome: Column, category: Column | str | None) -> Column:
        details = {
            "category": F.lit(None).cast("string") if category is None else _column(category),
            "severity": _severity(control, category if severity_of is None else severity_of),
            "cause": _column(cause),
            "partitions": F.lit(None).cast("array<int>") if partitions is None else partitions,
            "evidence": F.when(outcome.isin(*evidence_of), as_json(evidence or {})),
        }
        return F.struct(
            F.lit(control).alias("control"),
            outcome.alias("outcome"),
            _with(observed or {}, also_observed or {}).alias("observed"),
            _with(required or {}, also_required or {}).alias("required"),
            F.when(outcome != PASS, struct(details)).alias("details"),
        )

    if not isinstance(category, Column):
        return let(outcome, lambda outcome: of(outcome, category))
    return let(F.struct(outcome.alias("o"), category.alias("c")), lambda both: of(both["o"], both["c"]))


def _with(members: Mapping[str, Column], also: Mapping[str, Column]) -> Column:
    """A JSON object of `members`, with `also` if one of these isn't NULL."""
    plain = as_json(members)
    if not also:
        return plain
    there = reduce(Column.__or__, (value.isNotNull() for value in also.values()))
    return F.when(there, as_json({**members, **also})).otherwise(plain)


def _column(value: Column | str) -> Column:
    return F.lit(value) if isinstance(value, str) else value


def _severity(control: str, category: Column | str | None) -> Column:
    """The catalogue's severity of a FAIL: that of its category, else that of the control."""
    declared = CONTROLS[control]
    if not isinstance(category, Column):
        return F.lit(declared.severity_of(category))
    severity = F.lit(declared.severity)
    for name, its_own in declared.severities.items():
        if its_own != declared.severity:
            severity = F.when(category == name, its_own).otherwise(severity)
    return severity


def outcome_of(control: str) -> Column:
    """The outcome of a topic control, computed once by `spark_jobs.assemble.topics.measured`."""
    return F.col(f"{column(control)}_outcome")


def column(control: str) -> str:
    """The control's id as column names spell it."""
    return control.replace("-", "_")


# Whole clusters.

TOPICS_HIDDEN = "topics-hidden"
"""The cause of an UNKNOWN about a whole cluster of which topics are hidden, or may be."""


def all_topics_shown() -> Column:
    """Is it certain that the auditor sees all topics of the cluster? If not, no statement about all of them can pass.

    Metadata silently omits topics that the principal may not describe. Reads `topics_known` and `hidden_partitions`. The latter
    is NULL if log dirs could not be read.
    """
    return certain(F.col("topics_known") & (F.col("hidden_partitions") == 0))


# Causes.


def min_isr_cause(source: Column) -> Column:
    """The cause of an effect of min.insync.replicas, by the source of its value.

    An unknown source counts as the topic's own. It is unknown if the topic's single replica decides.
    """
    return F.when(source != "topic", "configuration:cluster-default").otherwise("configuration:topic")


def minimum_above_replicas() -> Column:
    """Does the partition's minimum reject acks=all writes even if all its replicas are in sync (before Kafka 3.7)?"""
    return certain(F.col("effective_min_isr") > F.col("replica_count")) & ~certain("reassigning")


def causes_where(flag: Column) -> Flagged:
    """Measure: the distinct causes of the partitions for which `flag` holds."""
    return Flagged(flag, lambda flagged: F.array_distinct(F.flatten(each(flagged, "causes"))))


def dominant(causes: str) -> Column:
    """One cause for all brokers that miss replicas: those that are down or have a failed disk, else those that lag; else NULL.

    It names all of them, so that topics with the same problem have the same cause.
    """
    faults = F.filter(causes, lambda cause: cause.endswith(" down") | cause.endswith(" disk-offline"))
    chosen = F.array_sort(F.when(F.size(faults) > 0, faults).otherwise(F.col(causes)))
    return F.when(F.size(chosen) > 0, F.array_join(chosen, ", "))


def infeasible(tier: Column) -> Column:
    """The cause of a FAIL on a cluster that can't meet the tier; see policy-feasible."""
    return F.concat(F.lit("policy:"), tier, F.lit(" infeasible"))


def not_feasible(wanted: Column, available: Column) -> Column:
    """The cause if the tier requires more than the cluster has; else NULL."""
    return F.when(F.col("brokers_known") & (wanted > available), infeasible(F.col("tier")))


def contradicted() -> dict[str, Column]:
    """Evidence of a topic whose facts contradict each other: the reason that selects the text of an UNKNOWN, and both readings.

    Reads `health_contradictions` (`partition_health.measures`).
    """
    readings = F.when(F.size("health_contradictions") > 0, F.col("health_contradictions"))
    return {REASON: F.when(readings.isNotNull(), "contradiction"), "contradictions": readings}


def unknown_because() -> dict[str, Column]:
    """`unknown_apart_from_observers` for controls that count replicas. Reads `has_observers`, too.

    Confluent's observers are among the replicas and don't count.
    """
    observers = F.when(F.col("has_observers"), "observers")
    because = unknown_apart_from_observers()
    return {**because, REASON: F.coalesce(contradicted()[REASON], observers, because[REASON])}


def unknown_apart_from_observers() -> dict[str, Column]:
    """`contradicted` for controls that read settings of brokers. Settings of dead brokers are unknown.

    These matter if a partition has no leader. Reassignments matter if an ISR is short: its missing replicas may be new ones.
    Reads `offline_ids` (`partition_health.measures`), `replicas_down` (`target.measures`) and `moves_unread`, too.
    """
    because = contradicted()
    down = certain((F.size("offline_ids") > 0) & (F.size("replicas_down") > 0))
    unread = F.when(down, "brokers-down").when(F.col("moves_unread"), "reassignments-unread")
    return {**because, REASON: F.coalesce(because[REASON], unread)}


def moves_unread() -> Column:
    """Measure: does a partition's number of replicas depend on a reassignment that could not be read?"""
    return certain(F.bool_or(F.col("rf").isNull() & F.col("adding").isNull() & F.col("replica_count").isNotNull()))


# Measures over a topic's partitions.


def partition_ids(flag: Column) -> Flagged:
    """Measure: the sorted ids of the partitions for which `flag` holds."""
    return Flagged(flag, lambda flagged: F.sort_array(F.flatten(each(flagged, "ids"))))


def at_worst_partition(fields: Column, value: Column, or_unknown: bool = False) -> Column:
    """Aggregate: `fields` of the partition with the least `value`, the first of several, so that every run gives the same.

    If no value is known: NULL, or with `or_unknown` the fields of the first partition.
    """
    order = F.struct(value.isNull(), value, F.col("partition"))
    return F.min_by(fields, order if or_unknown else F.when(value.isNotNull(), order))


def check(control: str, observed: Column, required: Column, outcome: Column | None = None) -> Column:
    """An entry of `topic_posture.checks`, which Great Expectations checks again. Its numbers are never NULL.

    `known`: is there a verdict to compare with?
    """
    outcome = outcome_of(control) if outcome is None else outcome
    known = certain(outcome.isin(PASS, FAIL)) & ~providers_duty(control) & ~platform_hides(F.lit(control), control)
    compared = struct(
        {
            "control": F.lit(control),
            "observed": observed.cast("double"),
            "required": required.cast("double"),
            "known": F.lit(True),
        }
    )
    nothing = {"control": F.lit(control), "observed": F.lit(0.0), "required": F.lit(0.0), "known": F.lit(False)}
    return F.when(known, compared).otherwise(struct(nothing))


def worse(*outcomes: Column) -> Column:
    """The outcome of a control that requires several things: FAIL, else UNKNOWN, else PASS, else NOT_APPLICABLE."""
    found = F.array(*outcomes)
    return (
        F.when(F.array_contains(found, FAIL), FAIL)
        .when(F.array_contains(found, UNKNOWN), UNKNOWN)
        .when(F.array_contains(found, PASS), PASS)
        .otherwise(NOT_APPLICABLE)
    )


# Controls on one setting.

WRONG: dict[str, Callable[[Setting, Column], Column]] = {
    ">=": lambda setting, required: setting.least < required,
    "<=": lambda setting, required: setting.most > required,
    "==": lambda setting, required: (setting.least != required) | (setting.most != required),
}
"""By required order: does a value violate it?"""


def compared(setting: Setting, order: str, required: Column) -> Column:
    """The outcome of a setting against a requirement. order: a key of WRONG.

    One wrong value fails it, even if others are unknown. One unknown value prevents PASS. NOT_APPLICABLE where nothing is
    required.

    >>> df = spark.createDataFrame([(2, 3, True, 2), (1, 3, True, 2), (1, None, False, 2), (2, None, False, 2),
    ...                             (1, 1, True, None)], "least int, most int, known boolean, required int")
    >>> fetchers = Setting("num.replica.fetchers", F.col("least"), F.col("most"), F.lit("broker"), F.col("known"))
    >>> df.withColumn("outcome", compared(fetchers, ">=", F.col("required"))).show()
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
    """A rule for topics that compares one setting with the tier's requirement, in the catalogue's order.

    control: its id. Its YAML file has `scalar` and one key under `requires`.
    setting, kind, unlimited: as in `spark_jobs.frames.settings.topic_setting`.

    `observed` has the worse value under that key, and its `source`. `evidence` has the least and the greatest value.
    """

    control: str
    setting: str
    kind: str
    unlimited: str | None = None

    @property
    def order(self) -> str:
        order = CONTROLS[self.control].scalar
        if order is None:
            raise ValueError(f'{self.control}: its YAML file has no order; it should say `scalar: ">="` or "<="')
        return order

    def value(self) -> Setting:
        return topic_setting(self.setting, self.kind, unlimited=self.unlimited)

    def required(self) -> Column:
        return F.col("required")[_key(self.control)]

    def outcome(self) -> Column:
        return compared(self.value(), self.order, self.required())

    def check(self) -> Column:
        return check(self.control, _worse(self.value(), self.order), self.required())

    def topic_verdicts(self, plan: Plan) -> list[Column]:
        value, key = self.value(), _key(self.control)
        cause = F.when(value.source == "topic", "configuration:topic").otherwise("configuration:cluster-default")
        return [_of_setting(self.control, value, self.order, key, self.required(), outcome_of(self.control), cause)]


@dataclass(frozen=True)
class BrokerSetting:
    """A rule for brokers that compares one setting with a number or with the requirements of tiers.

    order: a key of WRONG.
    required: a number; None for the one key under `requires` in the YAML file. Then the strictest of the tiers in use on the
        cluster applies.

    The other fields are those of TopicSetting.
    """

    control: str
    setting: str
    kind: str
    order: str = ">="
    required: Any = None
    unlimited: str | None = None

    def broker_verdicts(self, plan: Plan) -> list[Column]:
        """Reads `b`, the broker, and `tiers_used` of its cluster."""
        value = broker_setting(self.setting, self.kind, unlimited=self.unlimited)
        fixed = self.required is not None
        key = "value" if fixed else _key(self.control)
        required = F.lit(self.required) if fixed else strictest(plan, key, self.order)
        outcome = compared(value, self.order, required)
        unread = F.coalesce(F.col("b")["down"], F.when(~value.unstated, "unreadable"))
        cause = F.coalesce(F.when(outcome == UNKNOWN, unread), F.lit(f"configuration:{self.setting}"))
        return [_of_setting(self.control, value, self.order, key, required, outcome, cause)]


def strictest(plan: Plan, key: str, order: str = ">=") -> Column:
    """The strictest requirement under `key` of the tiers in `tiers_used`; NULL if none has one."""
    stated = {name: tier[key] for name, tier in plan.policy.required.items() if tier.get(key) is not None}
    by_tier = literal(stated, f"map<string,{spark_type(requirements()[key])}>")
    used = F.coalesce("tiers_used", F.array().cast("array<string>"))
    wanted = F.transform(used, lambda tier: F.try_element_at(by_tier, tier))
    return F.array_min(wanted) if order == "<=" else F.array_max(wanted)


def _key(control: str) -> str:
    """The one key under `requires` in the control's YAML file."""
    (requirement,) = CONTROLS[control].requires
    return requirement.key


def _worse(setting: Setting, order: str) -> Column:
    return setting.most if order == "<=" else setting.least


def _of_setting(
    control: str, value: Setting, order: str, key: str, required: Column, outcome: Column, cause: Column
) -> Column:
    return verdict(
        control,
        outcome,
        cause=cause,
        observed={key: _worse(value, order), "source": value.source},
        required={key: required},
        evidence={
            "setting": F.lit(value.name),
            "least": value.least,
            "most": value.most,
            REASON: F.when((outcome == UNKNOWN) & value.unstated, "unstated"),
        },
    )
