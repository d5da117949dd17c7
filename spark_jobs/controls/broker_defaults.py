"""broker-defaults: what a topic created without a word would get is weaker than the tier of the last selector.

`replication.factor` -1 takes the active controller's default.replication.factor, auto-creation the broker's. Brokers, or
brokers and controllers, that disagree are a problem of their own. Dead brokers answer nothing and decide nothing.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base, elr_guard

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


def _fixes(
    weak_rf: Column,
    weak_min: Column,
    weak_unclean: Column,
    differ: Column,
    changes_min_isr: Column,
    auto: Column,
    want_rf: object,
    want_min: object,
) -> Column:
    """What mends each weakness; nothing that changes min.insync.replicas while that could cost an ELR."""
    unsafe = elr_guard.unsafe("elr_cluster_at_risk")
    waits = unsafe & changes_min_isr
    advice = F.array_compact(
        F.array(
            F.when(
                weak_rf,
                f"Set default.replication.factor={want_rf} in server.properties of every broker and controller, and restart"
                " them one after the other",
            ),
            F.when(
                auto,
                "Set auto.create.topics.enable=false there too, unless producers shall create topics with these defaults",
            ),
            F.when(differ & ~waits, "Give all brokers and controllers the same values"),
            F.when(waits, elr_guard.WAIT),
        )
    )
    commands = F.array_compact(
        F.array(
            F.when(weak_min & ~unsafe, base.cluster_config("min.insync.replicas", F.lit(want_min))),
            F.when(weak_unclean, base.cluster_config("unclean.leader.election.enable", F.lit("false"))),
        )
    )
    return F.when(F.size(commands) == 0, F.array_join(advice, ". ")).otherwise(
        F.array_join(F.concat(F.transform(advice, base.comment), commands), "\n")
    )


def _words(
    required: dict[str, object], rf: Column, min_isr: Column, unclean: Column, weak_unclean: Column, auto: Column
) -> Column:
    """What is wrong, a sentence each; auto: do brokers create topics with these weak values?"""
    want_rf, want_min = required.get("replication_factor", 1), required.get("min_insync_replicas", 1)
    return F.array_compact(
        F.array(
            F.when(
                F.array_min(rf) < want_rf,
                base.say(f"default.replication.factor %s, {want_rf} required", F.array_min(rf)),
            ),
            F.when(
                F.array_min(min_isr) < want_min,
                base.say(f"min.insync.replicas %s, {want_min} required", F.array_min(min_isr)),
            ),
            F.when(weak_unclean, "unclean leader election on by default"),
            F.when(
                auto,
                "auto.create.topics.enable=true: a name that a client asks for becomes a topic",
            ),
            F.when(F.size(rf) > 1, base.listed(rf, "default.replication.factor differs: ")),
            F.when(F.size(min_isr) > 1, base.listed(min_isr, "min.insync.replicas differs: ")),
            F.when(F.size(unclean) > 1, "controllers differ on unclean leader election"),
        )
    )


def finding(required: dict[str, object]) -> Column:
    """required: the requirements of the tier that the last selector gives. Reads a cluster's brokers and controllers."""

    def held(live: Column, rf: Column, min_isr: Column, unclean: Column) -> Column:
        auto = F.exists(live, lambda b: b["auto_create"])
        return base.bound(lambda auto: _of_values(required, live, rf, min_isr, unclean, auto), auto)

    live = F.filter("brokers", lambda b: F.coalesce(b["live"], F.lit(True)))
    return base.bound(held, live, _values("default_rf"), _values("min_isr"), _values("unclean", brokers_too=False))


def _of_values(
    required: dict[str, object], live: Column, rf: Column, min_isr: Column, unclean: Column, auto: Column
) -> Column:
    """live: the brokers that count; rf, min_isr, unclean: the distinct values in force; auto: does a live broker create?"""
    want_rf, want_min = required.get("replication_factor", 1), required.get("min_insync_replicas", 1)
    forbids_unclean = required.get("unclean_leader_election") is False
    unread = _unread(live, forbids_unclean)
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
    words = _words(required, rf, min_isr, unclean, weak_unclean, auto & (weak_rf | weak_min))
    outcome = F.when(F.size(problems) > 0, base.FAIL).when(unread, base.UNKNOWN).otherwise(base.PASS)
    return base.finding(
        CONTROL,
        outcome,
        cause="configuration:cluster-default",
        observed=base.as_json(
            default_replication_factor=F.array_min(rf),
            min_insync_replicas=F.array_min(min_isr),
            auto_create_topics=auto,
            unclean_leader_election=F.col("unclean_default"),
            problems=problems,
        ),
        required=base.as_json(
            default_replication_factor=F.lit(want_rf),
            min_insync_replicas=F.lit(want_min),
            unclean_leader_election=F.lit(False if forbids_unclean else None).cast("boolean"),
        ),
        message=F.when(outcome == base.FAIL, F.array_join(words, "; ")).when(
            outcome == base.UNKNOWN, "configs of a live broker or of the controllers could not be read"
        ),
        remediation=F.when(
            outcome == base.FAIL,
            _fixes(
                weak_rf,
                weak_min,
                weak_unclean,
                differ,
                weak_min | (F.size(min_isr) > 1),
                auto & (weak_rf | weak_min),
                want_rf,
                want_min,
            ),
        ).otherwise("Give the auditor DescribeConfigs on the cluster"),
    )
