"""The brokers and racks of clusters, each of which may be lost by itself."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import base, quorum
from spark_jobs.frames.single_losses import KEPT, LOST, LOST_NOW, UNSURE

STATES = ("quorum", "outnumbers", "down")
"""The columns of `names` about the loss itself."""


def elsewhere(quorum: Column) -> Column:
    """A number for all racks without a replica. quorum: after the loss of such a rack with the nodes of unknown racks."""
    return -1 - quorum


def with_elsewhere() -> Column:
    """`losses` of `single_losses.broken`, with what racks without a replica may break. `elsewhere` is their place."""
    kept, lost = F.col("elsewhere")["kept"], F.col("elsewhere")["lost"]
    none = [F.lit(0).alias(name) for name in ("breaks", "kept")]

    def of_any(quorum: int, unsure: Column) -> Column:
        place = elsewhere(F.lit(quorum)).alias("place")
        more = (unsure.alias("unsure"), F.lit(False).alias("anywhere"))
        return F.when(unsure != 0, F.struct(F.lit(True).alias("rack"), place, *none, *more))

    by_quorum = {KEPT: kept, LOST: lost, LOST_NOW: lost, UNSURE: kept.bitwiseOR(lost)}
    return F.concat("losses", F.array_compact(F.array(*(of_any(*one) for one in by_quorum.items()))))


def id_at(place: Column) -> Column:
    """The replica at a place, from 1. `elsewhere` stays as it is."""
    return F.when(place < 0, place).otherwise(F.get("replicas", place - 1))


def names(clusters: DataFrame) -> DataFrame:
    """`base.SNAPSHOT`, rack (is it one?), number, name, and STATES. clusters: `loss_patterns.codes`.

    - number: the broker's id, or the rack's place in `racks`, from 1.
    - quorum: after the loss. outnumbers: are the other voters no majority, even if all of them are up?
    - down: is the broker down, or are all brokers of the rack?

    `elsewhere`: of a rack, the number `elsewhere`.
    """
    down = F.filter("brokers", lambda b: ~b["live"])["broker"]
    clusters = clusters.withColumn("down", F.coalesce(down, F.array().cast("array<int>")))

    def quorum_of(code: Column) -> Column:
        lost = F.when(code.isin(LOST, LOST_NOW), "lost")
        # With ZooKeeper, nothing is known of the nodes that elect controllers.
        return lost.when((code == KEPT) & (F.col("quorum_mode") == "kraft"), "kept").otherwise("unknown")

    brokers = F.transform(
        F.map_entries("code_of"),
        lambda e: F.struct(
            F.lit(False).alias("rack"),
            e["key"].alias("number"),
            e["key"].cast("string").alias("name"),
            quorum_of(F.shiftright(e["value"], 32).bitwiseAND(F.lit(3))).alias("quorum"),
            quorum.outnumbers(F.array(e["key"])).alias("outnumbers"),
            F.array_contains("down", e["key"]).alias("down"),
            F.lit(None).cast("int").alias("elsewhere"),
        ),
    )
    racks = F.transform(
        "racks",
        lambda rack, i: F.struct(
            F.lit(True).alias("rack"),
            (i + 1).alias("number"),
            rack.alias("name"),
            quorum_of(
                F.when(F.get("rack_quorum", i).isin(LOST, LOST_NOW), LOST)
                .when(F.get("rack_quorum_with", i) == KEPT, KEPT)
                .otherwise(UNSURE)
            ).alias("quorum"),
            F.get("rack_outnumbers", i).alias("outnumbers"),
            F.array_contains(F.col("lost_racks")["rack"], rack).alias("down"),
            elsewhere(F.get("rack_quorum_with", i)).alias("elsewhere"),
        ),
    )
    return clusters.select(*base.SNAPSHOT, F.inline(F.concat(brokers, racks)))
