"""What a topic should become: one replication factor and one min.insync.replicas a topic.

Every remedy of a topic speaks of this target, so that no two of its findings ask for different things. It meets all
that the topic's tier requires of copies and headroom at once, with as few replicas and as little change as that takes;
min.insync.replicas is lowered only where headroom or the replication factor asks for it, never below what the tier
requires.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, elr_guard
from spark_jobs.frames import racks as rack_counts

COLUMNS = ("target_replication_factor", "target_min_insync_replicas", "target_racks", "target_acked_racks", "reassign")
TARGET, SPREAD = "target", "target_spread_replication_factor"
PLACED = ("replica-rack-spread", "isr-rack-spread")
MORE = 8
"""Replicas tried above those that are needed otherwise."""


def _need(key: str) -> Column:
    """A requirement of the topic's tier; NULL where it has none."""
    return F.col("required")[key]


def _survives(what: str | None = None) -> Column:
    """Must a loss (of a broker or a rack, `what`, or any) be survived?"""
    asked = F.size(_need("survive")) > 0 if what is None else F.array_contains(_need("survive"), what)
    return F.coalesce(asked, F.lit(False))


def copies() -> Column:
    """Least min.insync.replicas by which the tier's acknowledged copies and racks can be had."""
    wanted = [_need(key) for key in ("min_insync_replicas", "acked_copies", "acked_racks")]
    return F.greatest(F.lit(1), *wanted, F.when(_survives(), 2))


def headroom() -> Column:
    """Least replicas above min.insync.replicas."""
    return F.greatest(F.lit(0), _need("write_headroom"), F.when(_survives(), 1))


def racks() -> Column:
    """Racks that the replicas must span."""
    wanted = [_need(key) for key in ("replica_racks", "min_insync_racks", "acked_racks")]
    return F.greatest(F.lit(1), *wanted, F.when(_survives("rack"), 2))


def default_min_isr(plan: Plan) -> int | None:
    """What the policy wants as the clusters' default min.insync.replicas: the copies of its last tier, if any."""
    last_tier = plan.policy.tiers.get(plan.policy.last_tier or "", {})
    wanted = [last_tier.get(key) for key in ("min_insync_replicas", "acked_copies", "acked_racks")]
    return max((n for n in [*wanted, 2 if last_tier.get("survive") else None] if n), default=None)


def beside() -> tuple[Column, Column, Column]:
    """Brokers wanted outside the racks that have most of them, those there, and there at most; the first is NULL where no
    racks have to be acknowledged. Reads `rack_layout`, see `racks.beside`."""
    wanted = F.when(_need("acked_racks") > 1, headroom() + 1)
    return wanted, *rack_counts.beside(F.col("rack_layout"), _need("acked_racks"))


def few_beside() -> Column:
    """Does the tier want acknowledged racks that no placement on this cluster's brokers gives together with its headroom?"""
    wanted, _, at_most = beside()
    return F.coalesce(F.col("brokers_known") & (wanted > at_most), F.lit(False))


def infeasible() -> Column:
    """Cause of what fails where the topic's target asks for more brokers than the cluster has; NULL otherwise.

    Then policy-feasible fails for its tier too.
    """
    return F.when(_too_few_brokers(), base.infeasible(F.col("tier")))


def _needed() -> Column:
    """Replicas needed but for acked racks. Never fewer than the worst partition has: `replication_factor_worst`."""
    # Racks that the cluster hasn't ask for no replicas.
    spread = F.least(racks(), F.size("racks") + F.col("unknown_racks"))
    known = F.col("replication_factor_worst")
    return F.when(known.isNotNull(), F.greatest(known, _need("replication_factor"), spread, copies() + headroom()))


def _kept() -> Column:
    """The min.insync.replicas that guarantees the acked racks with the replicas where they are; NULL: none with headroom."""
    smallest = F.greatest(copies(), "acked_smallest_min_isr")
    stays = _needed() == F.col("replication_factor_worst")
    return F.when(F.col("acked_smallest_min_isr").isNotNull() & stays & (smallest + headroom() <= _needed()), smallest)


def _evenly(replicas: Column) -> Column:
    """The min.insync.replicas that guarantees copies and acked racks with so many replicas, spread evenly over the racks;
    NULL where there aren't so many brokers with a rack."""
    held = rack_counts.most_held(F.col("rack_layout"), replicas, _need("acked_racks") - 1)
    return F.when(held.isNotNull(), F.greatest(copies(), held + 1))


def _spread_replication_factor() -> Column:
    """The first number of replicas that, spread evenly, guarantees the acked racks with headroom; NULL: none does.

    On few racks that takes more replicas than copies and headroom do.
    """
    more = F.filter(F.sequence(_needed(), _needed() + MORE), lambda n: _evenly(n) + headroom() <= n)
    return F.try_element_at(more, F.lit(1))


def _replication_factor() -> Column:
    """Of every partition, at least; NULL where the replicas that there are can't be told."""
    return F.when(F.col("target_acked_racks").isNull(), _needed()).otherwise(F.col(SPREAD))


def _acked_racks() -> Column:
    """Racks that acks=all must guarantee and that the replicas have to be spread evenly for; NULL: none, or no spread helps."""
    wanted = _need("acked_racks")
    helps = (F.size("racks") >= wanted) & F.col(SPREAD).isNotNull()
    return F.when((wanted > 1) & _kept().isNull() & helps, wanted)


def _min_insync_replicas() -> Column:
    """As it should be configured: what is configured, made to fit between the copies and the headroom that are wanted.

    NULL where that is unknown; by the copies alone where the replication factor is.
    """
    configured, rf = _configured(), F.col("target_replication_factor")
    spread = F.when(F.col("target_acked_racks").isNotNull(), _evenly(rf))
    least = F.greatest(copies(), F.when(_need("acked_racks") > 1, _kept()), spread)
    return F.when(configured.isNotNull(), F.greatest(least, F.least(configured, rf - headroom())))


def _configured() -> Column:
    return F.col("min_insync_replicas_seen")["min_isr"]


def _grows() -> Column:
    """Do partitions need more replicas?"""
    return F.coalesce(F.col("target_replication_factor") > F.col("replication_factor_worst"), F.lit(False))


def _too_few_racks() -> Column:
    """Does the tier ask for more racks than the cluster can have?"""
    return F.col("target_racks") > F.size("racks") + F.col("unknown_racks")


def _too_few_brokers() -> Column:
    few = F.col("target_replication_factor") > F.col("broker_count")
    return F.coalesce(F.col("brokers_known") & few, F.lit(False))


def _leans() -> Column:
    """Do the acknowledged racks rest on more min.insync.replicas than the target has, as long as the replicas stand here?"""
    return F.coalesce(F.col("target_min_insync_replicas") < F.col("acked_smallest_min_isr"), F.lit(False))


def _moves() -> Column:
    """Do replicas have to be added, or to move to other racks, and can they? Then there is a reassignment plan."""
    failed = F.array_contains(F.array(*(base.outcome_of(c) for c in PLACED)), F.lit(base.FAIL))
    placed = base.outcome_of(PLACED[0]) == base.FAIL
    placed = F.coalesce(placed, F.lit(False)) | F.coalesce(failed & F.col("isr_rack_spread_by_placement"), F.lit(False))
    uneven = F.col("target_acked_racks").isNotNull() & ((base.outcome_of("acked-durability") == base.FAIL) | _leans())
    misplaced = F.coalesce(
        (placed | F.coalesce(uneven, F.lit(False))) & ~_too_few_racks() & (F.size("racks") > 0), F.lit(False)
    )
    return (_grows() | misplaced) & ~_too_few_brokers()


def measures() -> dict[str, Column]:
    """Over a topic's partitions: `replicas_down`, the brokers that are known to be down and hold replicas of it."""
    held = F.flatten(F.collect_list(F.when(F.size("replicas_down") > 0, F.col("replicas_down"))))
    return {"replicas_down": F.sort_array(F.array_distinct(held))}


def steps() -> tuple[dict[str, Column], ...]:
    """A topic's target: `target_replication_factor` and `target_min_insync_replicas` (NULL where unknown), `target_racks`,
    `target_acked_racks` (racks for which the replicas have to be spread evenly, else NULL), and `reassign`: does a
    reassignment plan lead there? All stand in `topic_posture` too. Each step reads those before it, the first a row a topic
    as it is measured."""
    # The topic's own min.insync.racks may ask for more than its tier (KIP-1290).
    of_racks = {
        "target_racks": F.greatest(racks(), "min_racks").cast("int"),
        SPREAD: F.when(_need("acked_racks") > 1, _spread_replication_factor()),
    }
    return (
        of_racks,
        {"target_acked_racks": _acked_racks().cast("int")},
        {"target_replication_factor": _replication_factor().cast("int")},
        {"target_min_insync_replicas": _min_insync_replicas().cast("int")},
        {"reassign": _moves()},
    )


def with_target(topics: DataFrame, plan: Plan) -> DataFrame:
    """`topics` with TARGET, a struct of what every remedy of a topic is made from (`durability.remedies.target`).

    Reads beside the columns of `steps` `led_isr_least` (the smallest ISR that has a leader) and `elr_cluster_at_risk`.
    """
    return topics.withColumn(TARGET, _target(plan))


def evidence() -> Column:
    return F.col(TARGET)


def _target(plan: Plan) -> Column:
    seen, within = F.col("min_insync_replicas_seen"), F.col("min_isr_within_replication_factor_worst")
    fields = {
        "replication_factor": F.col("target_replication_factor"),
        "min_insync_replicas": F.col("target_min_insync_replicas"),
        "racks": F.col("target_racks"),
        "acked_racks": F.col("target_acked_racks"),
        "reassign": F.col("reassign"),
        "replication_factor_now": F.col("replication_factor_worst"),
        "min_insync_replicas_now": seen["min_isr"],
        "min_insync_replicas_source": seen["min_isr_source"],
        "min_insync_replicas_enforced": seen["effective"],
        "default_min_insync_replicas": F.lit(default_min_isr(plan)).cast("int"),
        "smallest_led_isr": F.col("led_isr_least"),
        "brokers": F.col("broker_count"),
        "racks_there": F.size("racks"),
        "unracked_brokers": F.when(F.size("racks") == 0, F.col("unracked_brokers")),
        "too_few_brokers": _too_few_brokers(),
        "too_few_racks": _too_few_racks(),
        "leans": _leans(),
        "replicas_down": F.col("replicas_down"),
        "highest_min_insync_replicas": within["min_isr"],
        "its_replication_factor": within["rf"],
        "elr_at_risk": elr_guard.unsafe("elr_partitions_at_risk"),
        "elr_at_risk_in_cluster": elr_guard.unsafe("elr_cluster_at_risk"),
    }
    return F.struct(*(column.alias(name) for name, column in fields.items()))


def spreads() -> Column:
    """Would the same replicas do, were they spread evenly?"""
    return F.col("reassign") & F.col("target_acked_racks").isNotNull() & ~_grows()
