"""broker-defaults: a topic created without settings of its own would be weaker than the last selector's tier requires.

A topic created with replication factor -1 gets default.replication.factor of the active controller, an auto-created one that
of the broker. It is also a problem if brokers, or brokers and controllers, have different values. Dead brokers don't count.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from durability.policy.numbers import AT_MOST
from spark_jobs.frames import base, elr_guard, inherited
from spark_jobs.frames.columns import certain, live_brokers

CONTROL = "broker-defaults"


def _values(field: str, brokers_too: bool = True) -> Column:
    """The distinct values of the controllers that could be read, and of the live brokers."""
    read = F.filter("controllers", lambda c: c["configs_known"])
    if field == "min_isr":
        # With ELR on, a controller's static value becomes the cluster-wide one, Kafka's default if its file is silent. Otherwise
        # a controller without a value changes nothing, nor where brokers have read a cluster-wide value.
        stated = F.exists("brokers", lambda b: b["min_isr_source"] == "cluster-default")
        recorded = certain("elr_on") & ~certain(stated)
        read = F.filter(read, lambda c: c["min_isr_stated"] | recorded)
    values = F.concat(live_brokers()[field], read[field]) if brokers_too else read[field]
    return F.array_sort(F.array_distinct(F.array_compact(values)))


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads a cluster's `brokers`, `controllers`, `unclean_default` and the columns of `inherited.by_cluster`."""
    required = plan.policy.required.get(plan.policy.last_tier or "", {})
    required_rf, required_min_isr = required.get("replication_factor", 1), inherited.default_min_isr(plan)
    most_rf = F.lit(required.get(f"replication_factor{AT_MOST}")).cast("int")
    forbids_unclean = F.lit(required.get("unclean_leader_election") is False)
    rf, min_isr, unclean = _values("default_rf"), _values("min_isr"), _values("unclean", brokers_too=False)

    def weak(node: Column) -> Column:
        return certain(node["min_isr"] < required_min_isr)

    def overrides(broker: Column) -> Column:
        return certain(broker["min_isr_source"] == "broker-dynamic")

    def unrecorded(controller: Column) -> Column:
        """Is the value that this controller would record with ELR on unknown?"""
        return certain("elr_on") & controller["min_isr"].isNull()

    auto_create = F.exists(live_brokers(), lambda b: b["auto_create"])
    weak_rf, weak_min_isr = F.array_min(rf) < required_rf, F.array_min(min_isr) < required_min_isr
    above = certain(F.array_max(rf) > most_rf)
    problems = F.array_compact(
        F.array(
            F.when(weak_rf | above, "default.replication.factor"),
            F.when(weak_min_isr, "min.insync.replicas"),
            F.when(auto_create & (weak_rf | weak_min_isr), "auto.create.topics.enable"),
            F.when(forbids_unclean & certain("unclean_default"), "unclean.leader.election.enable"),
            F.when((F.size(rf) > 1) | (F.size(min_isr) > 1) | (F.size(unclean) > 1), "brokers-disagree"),
        )
    )
    unread = (
        ~F.col("brokers_known")
        | (F.size(live_brokers()) == 0)
        | F.exists(
            live_brokers(), lambda b: b["default_rf"].isNull() | b["min_isr"].isNull() | b["auto_create"].isNull()
        )
        | ~F.col("controllers_known")
        | F.exists("controllers", lambda c: c["configs_known"] & (c["default_rf"].isNull() | unrecorded(c)))
        | (forbids_unclean & F.col("unclean_default").isNull())
    )
    yield base.verdict(
        CONTROL,
        F.when(F.size(problems) > 0, base.FAIL).when(unread, base.UNKNOWN).otherwise(base.PASS),
        cause="configuration:cluster-default",
        observed={
            "default_replication_factor": F.when(above & ~certain(weak_rf), F.array_max(rf)).otherwise(F.array_min(rf)),
            "min_insync_replicas": F.array_min(min_isr),
            "auto_create_topics": auto_create,
            "unclean_leader_election": F.col("unclean_default"),
            "problems": problems,
        },
        required={
            "default_replication_factor": F.lit(required_rf),
            "min_insync_replicas": required_min_isr,
            "unclean_leader_election": F.when(forbids_unclean, F.lit(False)),
        },
        also_required={f"default_replication_factor{AT_MOST}": most_rf},
        evidence={
            "above_maximum": above & ~certain(weak_rf),
            "replication_factors": rf,
            "min_insync_replicas": min_isr,
            "unclean_leader_elections": unclean,
            "overriding_brokers": F.filter(live_brokers(), lambda b: overrides(b) & weak(b))["broker"],
            "weak_elsewhere": F.exists(live_brokers(), lambda b: ~overrides(b) & weak(b))
            | F.exists("controllers", lambda c: weak(c) & certain(c["min_isr_stated"])),
            "elr_at_risk": elr_guard.unsafe("elr_cluster_at_risk"),
            "inherited_least": F.col("inherited_least"),
            "inherited_short": F.col("inherited_short"),
            "inherited_first": F.col("inherited_first"),
            "all_topics_shown": base.all_topics_shown(),
            "brokers": F.when(F.col("brokers_known"), F.size("brokers")),
        },
    )
