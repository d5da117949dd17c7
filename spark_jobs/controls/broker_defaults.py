"""broker-defaults: a topic created without settings of its own would be weaker than the last selector's tier requires.

A topic created with replication factor -1 gets default.replication.factor of the active controller, an auto-created topic that
of the broker. It is also a problem if brokers, or brokers and controllers, have different values. Dead brokers don't count.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.policy.numbers import AT_MOST
from spark_jobs.frames import base, elr_guard, inherited
from spark_jobs.frames.columns import certain, let, live_brokers, possible, struct
from spark_jobs.frames.facts import INTERNAL

CONTROL = "broker-defaults"


def _recorded() -> Column:
    """Do controllers record their min.insync.replicas as the cluster-wide one?

    They do so with ELR on, if brokers have read no such value.
    """
    stated = F.exists("brokers", lambda b: b["min_isr_source"] == "cluster-default")
    return certain("elr_on") & ~certain(stated)


def _values(field: str, brokers: Column | None) -> Column:
    """The distinct values of these brokers and of the controllers that could be read."""
    read = F.filter("controllers", lambda c: c["configs_known"])
    if field == "min_isr":
        # With ELR on, a controller's static value becomes the cluster-wide one, or Kafka's default if its file states none.
        # Otherwise a controller without a value changes nothing. Nor does it if brokers have read a cluster-wide value.
        recorded = _recorded()
        read = F.filter(read, lambda c: c["min_isr_stated"] | recorded)
    values = read[field] if brokers is None else F.concat(brokers[field], read[field])
    return F.array_sort(F.array_distinct(F.array_compact(values)))


class _Required:
    """What the last tier requires of a cluster's defaults, as columns."""

    def __init__(self, plan: Plan) -> None:
        required = plan.policy.required.get(plan.policy.last_tier or "", {})
        self.replication_factor = F.lit(required.get("replication_factor", 1))
        self.most_replication_factor = F.lit(required.get(f"replication_factor{AT_MOST}")).cast("int")
        self.min_isr = inherited.default_min_isr(plan)
        self.forbids_unclean = F.lit(required.get("unclean_leader_election") is False)


def _overrides(broker: Column) -> Column:
    """Does the broker override the cluster-wide min.insync.replicas with a dynamic value of its own?"""
    return certain(broker["min_isr_source"] == "broker-dynamic")


def _read() -> dict[str, Column]:
    """What the rule reads of brokers and controllers, by name. others: min.insync.replicas of those that don't override it."""
    live = live_brokers()
    return {
        "live": live,
        "replication_factors": _values("default_rf", live),
        "min_isrs": _values("min_isr", live),
        "uncleans": _values("unclean", None),
        "others": _values("min_isr", F.filter(live, lambda b: ~_overrides(b))),
        "recorded": _recorded(),
        "uncreatable": _uncreatable(),
    }


class _Defaults:
    """The defaults of a cluster's brokers and controllers, compared with what is required. read: the struct of `_read`."""

    def __init__(self, required: _Required, read: Column) -> None:
        self.replication_factors, self.min_isrs = read["replication_factors"], read["min_isrs"]
        self.uncleans = read["uncleans"]
        self.auto_create = F.exists(read["live"], lambda b: b["auto_create"])
        self.few_replicas = F.array_min(self.replication_factors) < required.replication_factor
        self.too_many_replicas = certain(F.array_max(self.replication_factors) > required.most_replication_factor)
        # A recorded value overrides those in brokers' files.
        in_force = F.when(read["recorded"] & (F.size("recorded_min_isr") == 1), F.element_at("recorded_min_isr", 1))
        self.in_force = in_force
        self.shown_min_isr = F.coalesce(in_force, F.array_min(self.min_isrs))
        self.low_min_isr = self.shown_min_isr < required.min_isr

    @property
    def only_too_many_replicas(self) -> Column:
        """Is the replication factor above the maximum, and nowhere below the minimum?"""
        return self.too_many_replicas & ~certain(self.few_replicas)

    @property
    def shown_replication_factor(self) -> Column:
        """The worst default.replication.factor."""
        lowest, highest = F.array_min(self.replication_factors), F.array_max(self.replication_factors)
        return F.when(self.only_too_many_replicas, highest).otherwise(lowest)

    def short(self, node: Column, required: _Required) -> Column:
        """Has the node a default.replication.factor that the finding names?"""
        high = self.only_too_many_replicas & (node["default_rf"] > required.most_replication_factor)
        return certain((node["default_rf"] < required.replication_factor) | high)

    def problems(self, required: _Required) -> Column:
        """The settings that are wrong, and "brokers-disagree", as an array."""
        differ = [F.size(values) > 1 for values in (self.replication_factors, self.min_isrs, self.uncleans)]
        return F.array_compact(
            F.array(
                F.when(self.few_replicas | self.too_many_replicas, "default.replication.factor"),
                F.when(self.low_min_isr, "min.insync.replicas"),
                F.when(self.auto_create & (self.few_replicas | self.low_min_isr), "auto.create.topics.enable"),
                F.when(required.forbids_unclean & certain("unclean_default"), "unclean.leader.election.enable"),
                F.when(differ[0] | differ[1] | differ[2], "brokers-disagree"),
            )
        )


def _uncreatable() -> Column:
    """Kafka's own topics that can't be created, as struct<setting, topic, value>: the setting is above the number of brokers.

    ZooKeeper's controller needs so many live brokers; KRaft's also takes others that are registered. A topic that is there needs
    no setting any more. Of topics that may be hidden it is unknown whether they are there.
    """

    def found(place: int, setting: str, topic: str) -> Column:
        value = F.array_max(F.transform(live_brokers(), lambda b: b["internal_rfs"][place]))
        there = possible(F.array_contains(F.coalesce("internal_there", F.array().cast("array<string>")), topic))
        known = F.col("topics_known") & F.col("brokers_known") & base.all_topics_shown()
        row = F.struct(F.lit(setting).alias("setting"), F.lit(topic).alias("topic"), value.alias("value"))
        return F.when(certain(known & (value > F.size("brokers"))) & ~there, row)

    return F.array_compact(F.array(*(found(n, *pair) for n, pair in enumerate(INTERNAL.items()))))


def _unread(required: _Required, live: Column) -> Column:
    """Could a default that may be a problem not be read? live: the brokers that aren't known to be down."""
    unread_broker = F.exists(
        live, lambda b: b["default_rf"].isNull() | b["min_isr"].isNull() | b["auto_create"].isNull()
    )
    # With ELR on, each controller records its min.insync.replicas.
    unread_controller = F.exists(
        "controllers",
        lambda c: c["configs_known"] & (c["default_rf"].isNull() | (certain("elr_on") & c["min_isr"].isNull())),
    )
    return (
        ~F.col("brokers_known")
        | (F.size(live) == 0)
        | unread_broker
        | ~F.col("controllers_known")
        | unread_controller
        | (required.forbids_unclean & F.col("unclean_default").isNull())
    )


def _min_isr_evidence(required: _Required, read: Column) -> dict[str, Column]:
    """Where min.insync.replicas comes from: brokers that override the cluster-wide value, by a low or another one; or others."""
    live, others = read["live"], read["others"]

    def weak(node: Column) -> Column:
        return certain(node["min_isr"] < required.min_isr)

    # If the others agree, those with another value of their own are why the brokers don't.
    common = F.when((F.size(others) == 1) & (F.element_at(others, 1) >= required.min_isr), F.element_at(others, 1))
    weak_broker = F.exists(live, lambda b: ~_overrides(b) & weak(b))
    weak_controller = F.exists("controllers", lambda c: weak(c) & certain(c["min_isr_stated"]))
    return {
        "overriding_brokers": F.filter(live, lambda b: _overrides(b) & weak(b))["broker"],
        "differing_brokers": F.filter(live, lambda b: _overrides(b) & certain(b["min_isr"] > common))["broker"],
        "weak_elsewhere": weak_broker | weak_controller,
    }


def _short(found: _Defaults, required: _Required, read: Column) -> dict[str, Column]:
    """The nodes with a default.replication.factor that the finding names. A controller that is also a broker is with these."""
    brokers = F.filter(read["live"], lambda b: found.short(b, required))["broker"]
    controllers = F.filter("controllers", lambda c: found.short(c, required))["controller"]
    both = F.array_intersect(controllers, F.col("brokers")["broker"])
    return {
        "short_brokers": F.array_sort(F.array_union(brokers, both)),
        "short_controllers": F.array_except(controllers, both),
    }


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads a cluster's `brokers`, `controllers`, `recorded_min_isr` and `unclean_default`.

    It also reads the columns of `inherited.by_cluster`.
    """
    required = _Required(plan)
    yield let(struct(_read()), lambda read: _verdict(required, read))


def _verdict(required: _Required, read: Column) -> Column:
    found = _Defaults(required, read)
    problems = F.concat(found.problems(required), read["uncreatable"]["setting"])
    return base.verdict(
        CONTROL,
        F.when(F.size(problems) > 0, base.FAIL)
        .when(_unread(required, read["live"]), base.UNKNOWN)
        .otherwise(base.PASS),
        cause="configuration:cluster-default",
        observed={
            "default_replication_factor": found.shown_replication_factor,
            "min_insync_replicas": found.shown_min_isr,
            "auto_create_topics": found.auto_create,
            "unclean_leader_election": F.col("unclean_default"),
            "problems": problems,
        },
        required={
            "default_replication_factor": required.replication_factor,
            "min_insync_replicas": required.min_isr,
            "unclean_leader_election": F.when(required.forbids_unclean, F.lit(False)),
        },
        also_required={f"default_replication_factor{AT_MOST}": required.most_replication_factor},
        evidence={
            "above_maximum": found.only_too_many_replicas,
            "replication_factors": found.replication_factors,
            **_short(found, required, read),
            "min_insync_replicas": found.min_isrs,
            "recorded_min_insync_replicas": found.in_force,
            "unclean_leader_elections": found.uncleans,
            **{name: F.when(F.size(name) > 0, F.col(name)) for name in ("unclean_brokers", "unclean_controllers")},
            **_min_isr_evidence(required, read),
            "uncreatable": F.when(F.size(read["uncreatable"]) > 0, read["uncreatable"]),
            "elr_at_risk": elr_guard.unsafe("elr_cluster_at_risk"),
            "inherited_least": F.col("inherited_least"),
            "inherited_short": F.col("inherited_short"),
            "inherited_first": F.col("inherited_first"),
            "all_topics_shown": base.all_topics_shown(),
            "brokers": F.when(F.col("brokers_known"), F.size("brokers")),
        },
    )
