"""The brokers and racks of clusters, each of which may be lost by itself."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import base, quorum, single_losses

STATES = ("quorum", "outnumbers", "down")
"""The columns of `names` about the loss itself."""


def names(clusters: DataFrame) -> DataFrame:
    """`base.SNAPSHOT`, rack (is it one?), number, name, and STATES. clusters: `loss_patterns.codes`.

    - number: the broker's id, or the rack's place in `racks`, from 1.
    - quorum: after the loss. outnumbers: are the other voters no majority, even if all of them are up?
    - down: is the broker down, or are all brokers of the rack?
    """
    down = F.filter("brokers", lambda b: ~b["live"])["broker"]
    clusters = clusters.withColumn("down", F.coalesce(down, F.array().cast("array<int>")))

    def quorum_of(code: Column) -> Column:
        lost = F.when(code == single_losses.LOST, "lost")
        # With ZooKeeper, nothing is known of the nodes that elect controllers.
        return lost.when((code == single_losses.KEPT) & (F.col("quorum_mode") == "kraft"), "kept").otherwise("unknown")

    brokers = F.transform(
        F.map_entries("code_of"),
        lambda e: F.struct(
            F.lit(False).alias("rack"),
            e["key"].alias("number"),
            e["key"].cast("string").alias("name"),
            quorum_of(F.shiftright(e["value"], 32).bitwiseAND(F.lit(3))).alias("quorum"),
            quorum.outnumbers(F.array(e["key"])).alias("outnumbers"),
            F.array_contains("down", e["key"]).alias("down"),
        ),
    )
    racks = F.transform(
        "racks",
        lambda rack, i: F.struct(
            F.lit(True).alias("rack"),
            (i + 1).alias("number"),
            rack.alias("name"),
            quorum_of(
                F.when(F.get("rack_quorum", i) == single_losses.LOST, single_losses.LOST)
                .when(F.get("rack_quorum_with", i) == single_losses.KEPT, single_losses.KEPT)
                .otherwise(single_losses.UNSURE)
            ).alias("quorum"),
            F.get("rack_outnumbers", i).alias("outnumbers"),
            F.array_contains(F.col("lost_racks")["rack"], rack).alias("down"),
        ),
    )
    return clusters.select(*base.SNAPSHOT, F.inline(F.concat(brokers, racks)))
