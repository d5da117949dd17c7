"""broker-defaults: what a topic created without a word would get is weaker than the tier of the last selector.

`replication.factor` -1 takes the active controller's default.replication.factor, auto-creation the broker's. Brokers, or
brokers and controllers, that disagree are a problem of their own. Dead brokers answer nothing and decide nothing.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, elr_guard

CONTROL = "broker-defaults"


def _values(field: str, brokers_too: bool = True) -> Column:
    """The distinct values of the brokers that are up, and of the controllers that could be asked."""
    live = F.filter("brokers", lambda b: F.coalesce(b["live"], F.lit(True)))
    asked = F.filter("controllers", lambda c: c["configs_known"])
    if field == "min_isr":
        # With ELR on controllers state it cluster-wide, and brokers then read that; unstated says nothing.
        asked = F.filter(asked, lambda c: c["min_isr_stated"])
    held = F.transform(asked, lambda c: c[field])
    if brokers_too:
        held = F.concat(F.transform(live, lambda b: b[field]), held)
    return F.array_sort(F.array_distinct(F.array_compact(held)))


def _unread(live: Column, forbids_unclean: bool) -> Column:
    """Is a value missing that could be the weak one?"""
    return (
        ~F.col("brokers_known")
        | (F.size(live) == 0)
        | F.exists(live, lambda b: b["default_rf"].isNull() | b["min_isr"].isNull() | b["auto_create"].isNull())
        | ~F.col("controllers_known")
        | (F.lit(forbids_unclean) & F.col("unclean_default").isNull())
    )


def cluster_verdicts(plan: Plan) -> list[Column]:
    """Against the tier that the last selector gives. Reads a cluster's brokers and controllers."""
    required = plan.policy.tiers.get(plan.policy.last_tier or "", {})
    live = F.filter("brokers", lambda b: F.coalesce(b["live"], F.lit(True)))
    rf, min_isr, unclean = _values("default_rf"), _values("min_isr"), _values("unclean", brokers_too=False)
    auto = F.exists(live, lambda b: b["auto_create"])
    want_rf, want_min = required.get("replication_factor", 1), required.get("min_insync_replicas", 1)
    forbids_unclean = required.get("unclean_leader_election") is False
    weak_rf, weak_min = F.array_min(rf) < want_rf, F.array_min(min_isr) < want_min
    weak_unclean = F.lit(forbids_unclean) & F.coalesce(F.col("unclean_default"), F.lit(False))
    differ = (F.size(rf) > 1) | (F.size(min_isr) > 1) | (F.size(unclean) > 1)
    problems = F.array_compact(
        F.array(
            F.when(weak_rf, "default.replication.factor"),
            F.when(weak_min, "min.insync.replicas"),
            F.when(auto & (weak_rf | weak_min), "auto.create.topics.enable"),
            F.when(weak_unclean, "unclean.leader.election.enable"),
            F.when(differ, "brokers-disagree"),
        )
    )
    unread = _unread(live, forbids_unclean)
    verdict = base.verdict(
        CONTROL,
        F.when(F.size(problems) > 0, base.FAIL).when(unread, base.UNKNOWN).otherwise(base.PASS),
        cause="configuration:cluster-default",
        observed={
            "default_replication_factor": F.array_min(rf),
            "min_insync_replicas": F.array_min(min_isr),
            "auto_create_topics": auto,
            "unclean_leader_election": F.col("unclean_default"),
            "problems": problems,
        },
        required={
            "default_replication_factor": F.lit(want_rf),
            "min_insync_replicas": F.lit(want_min),
            "unclean_leader_election": F.lit(False if forbids_unclean else None).cast("boolean"),
        },
        evidence={
            "replication_factors": rf,
            "min_insync_replicas": min_isr,
            "unclean_leader_elections": unclean,
            "elr_at_risk": elr_guard.unsafe("elr_cluster_at_risk"),
        },
    )
    return [verdict]
