"""What a topic should become, and the way there: one replication factor and one min.insync.replicas a topic.

Every remedy of a topic speaks of this target, so that no two of its findings ask for different things. It meets all
that the topic's tier requires of copies and headroom at once, with as few replicas and as little change as that takes;
min.insync.replicas is lowered only where headroom or the replication factor asks for it, never below what the tier
requires.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs import packing
from spark_jobs import racks as rack_counts
from spark_jobs.controls import base, elr_guard

COLUMNS = ("target_replication_factor", "target_min_insync_replicas", "target_racks", "target_acked_racks", "reassign")
REMEDY, SPREAD = "target_remedy", "target_spread_replication_factor"
PLACED = ("replica-rack-spread", "isr-rack-spread")
MORE = 8
"""Replicas tried above those that are needed otherwise."""
THROTTLE = 50_000_000
"""Bytes a second: a plan executed without a throttle competes with producers and consumers for the network."""


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


def default_min_isr(last_tier: dict[str, object]) -> int | None:
    """What the policy wants as the clusters' default min.insync.replicas: the copies of its last tier, if any."""
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
    return F.when(_too_few_brokers(), base.say(base.INFEASIBLE, F.col("tier")))


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


def with_remedies(topics: DataFrame) -> DataFrame:
    """`topics` with what each should do about its target, worded once for all of its findings.

    Reads beside the columns of `steps` `led_isr_least` (the smallest ISR that has a leader), `plan_folder`,
    `default_min_isr` (what the policy wants as the clusters' default, may be NULL) and `elr_cluster_at_risk`.
    """
    return packing.beside(topics, {REMEDY: _remedy()})


def remedy() -> Column:
    """The way to the target: commands in the order in which they are safe, or why there is none yet."""
    return F.col(REMEDY)


def spreads() -> Column:
    """Would the same replicas do, were they spread evenly?"""
    return F.col("reassign") & F.col("target_acked_racks").isNotNull() & ~_grows()


def differs() -> Column:
    """Is there a way to go?"""
    changed = F.col("target_min_insync_replicas") != _configured()
    return F.col("reassign") | _too_few_brokers() | F.coalesce(changed, F.lit(False))


def _remedy() -> Column:
    rf, least, moves = F.col("target_replication_factor"), F.col("target_min_insync_replicas"), F.col("reassign")
    lowers, raises = (F.coalesce(changed, F.lit(False)) for changed in (least < _configured(), least > _configured()))
    everywhere = raises & (F.col("min_insync_replicas_seen")["min_isr_source"] != "topic")
    everywhere &= F.coalesce(least == F.col("default_min_isr"), F.lit(False))
    own = base.topic_config("min.insync.replicas", least)
    default = base.script(
        base.comment(
            "The default of every topic without a value of its own: one with fewer replicas in sync than that will refuse"
            " acks=all writes."
        ),
        base.cluster_config("min.insync.replicas", least),
    )
    refused = base.comment(
        base.say(
            "First bring back the replicas that are out of sync: with %s in sync, as now, acks=all writes would be refused.",
            F.col("led_isr_least"),
        )
    )
    set_min = F.when(everywhere, default).otherwise(base.script(F.when(F.col("led_isr_least") < least, refused), own))
    places = base.comment(base.say("%s: some of its replicas go to other racks.", F.col("topic")))
    copies_wanted = base.comment(
        base.say(
            "Target for %s: replication factor %s, min.insync.replicas %s (now %s and %s).",
            *(F.col("topic"), _or(rf, "as it is"), _or(least, "as it is")),
            *(_or(F.col("replication_factor_worst"), "unknown"), _or(_configured(), "unknown")),
        )
    )
    # Replicas being added count towards the effective min ISR before they are in sync (seen on 4.3.1).
    at_once = raises & (~moves | (least <= F.col("replication_factor_worst")))
    # What acks=all guarantees now goes when the value is lowered before the replicas stand elsewhere.
    at_last = lowers & moves & F.col("target_acked_racks").isNotNull() & _leans()
    steps = base.script(
        F.when(~everywhere | moves, F.when(lowers | raises | _grows(), copies_wanted).otherwise(places)),
        F.when(lowers & ~at_last, base.script(_why_lower(least), own)),
        F.when(moves, _reassign()),
        F.when(at_once, set_min),
        F.when(
            (raises & ~at_once) | at_last,
            base.comment(base.say("When it is complete, audit again: min.insync.replicas=%s comes next.", least)),
        ),
    )
    risky = F.when(everywhere, elr_guard.unsafe("elr_cluster_at_risk")).otherwise(
        elr_guard.unsafe("elr_partitions_at_risk")
    )
    return (
        F.when(
            _too_few_brokers(),
            base.say(
                "Give the cluster %s brokers (it has %s), or the topic a tier that asks for less",
                rf,
                F.col("broker_count"),
            ),
        )
        .when((lowers | raises) & risky, elr_guard.WAIT)
        .when(lowers | raises | moves, steps)
        .otherwise("Give all brokers the same min.insync.replicas: partitions of this topic have different ones")
    )


def _or(number: Column, word: str) -> Column:
    return F.coalesce(number.cast("string"), F.lit(word))


def _why_lower(least: Column) -> Column:
    """What lowering min.insync.replicas costs, and what it leaves."""
    enforced = F.col("min_insync_replicas_seen")["effective"]
    return base.comment(
        F.concat(
            F.when(enforced <= least, "Brokers enforce no more than this already.")
            .when(enforced > F.col("replication_factor_worst"), "No acks=all write can pass as it is.")
            .otherwise(
                base.say(
                    "Lowers what an acks=all write waits for from %s replicas to %s.", _or(enforced, "more"), least
                )
            ),
            F.when(
                least == F.col("target_replication_factor"),
                base.say(
                    " It leaves no headroom: one replica out of sync, and acks=all writes are refused. With headroom: give"
                    " the topic %s replicas.",
                    least + 1,
                ),
            ).otherwise(""),
        )
    )


def _reassign() -> Column:
    """Executes the reassignment plan that the report wrote for the topic (`durability.report.plans`). Reads `plan_folder`
    and `replicas_down`: while a broker is down the tool can neither name it nor throttle it."""
    file = F.concat(F.lit("plans/"), F.col("plan_folder"), F.lit("/"), F.col("topic"), F.lit(".json"))
    seen = F.col("min_isr_within_replication_factor_worst")
    least = F.coalesce(F.least("target_min_insync_replicas", _configured()), seen["min_isr"])
    down = F.col("replicas_down")
    one = "Not before %s is back: the tool refuses a plan that names it."
    several = "Not before %s are back: the tool refuses a plan that names one of them."
    return base.script(
        F.when(
            F.size(down) > 0,
            base.comment(
                F.when(F.size(down) == 1, base.say(one, base.listed(down, "broker "))).otherwise(
                    base.say(several, base.listed(down, "brokers "))
                )
            ),
        ),
        base.comment("The plan stands in the report's folder: read it, and run this there in a quiet hour."),
        F.when(
            _grows() & (least > seen["rf"]),
            base.comment(
                "Until the new replicas are in sync acks=all writes are refused: min.insync.replicas is above the ISR."
            ),
        ),
        base.say(
            f'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP" --execute --throttle {THROTTLE}'
            " --reassignment-json-file %s",
            file,
        ),
        base.say(
            'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP" --verify --reassignment-json-file %s'
            " # again until it is complete, which removes the throttle",
            file,
        ),
    )


def place() -> Column:
    """What mends replicas on too few racks."""
    return (
        F.when(F.size("racks") == 0, base.set_racks())
        .when(
            _too_few_racks(),
            base.say(
                "Add racks (%s are wanted, the cluster has %s), or give the topic a tier that asks for fewer",
                F.col("target_racks"),
                F.size("racks"),
            ),
        )
        .when(
            F.col("target_racks") > F.col("target_replication_factor"),
            base.say("Want fewer racks than %s of this topic, or give it as many replicas", F.col("target_racks")),
        )
        .otherwise(remedy())
    )
