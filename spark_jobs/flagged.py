"""Measures of a topic that look at some of its partitions: those are gathered once, marked with what they are flagged for.

An aggregate of its own for each such measure would be updated for every partition, sent along and merged for every topic,
while most topics have nothing to gather at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

GATHERED = "flagged"
CARRIED = (
    *("ids", "causes", "cli_differs", "acks_all_kip_1290_error", "isr_whole", "isr_count", "rf", "min_isr"),
    *("effective_min_isr", "min_isr_source", "replica_count"),
)
"""Columns of a flagged partition that measures may look at."""


@dataclass(frozen=True, eq=False)
class Flagged:
    """What `of` makes of the partitions for which `flag` holds, an array of structs of CARRIED in no order."""

    flag: Column
    of: Callable[[Column], Column]


def aggregated(partitions: DataFrame, measures: Mapping[str, Column | Flagged]) -> DataFrame:
    """One row a topic (cluster, topic) with `measures` over its rows of `partitions`: aggregates, or Flagged."""
    later = {name: m for name, m in measures.items() if isinstance(m, Flagged)}
    bits: dict[int, int] = {}
    for measure in later.values():
        bits.setdefault(id(measure.flag), 1 << len(bits))
    mask = F.lit(0).cast("long")
    for number, flag in {id(m.flag): m.flag for m in later.values()}.items():
        mask += F.when(flag, F.lit(bits[number])).otherwise(0)
    gathered = F.collect_list(F.when(F.col("mask") > 0, F.struct("mask", *CARRIED)))
    at_once = [m.alias(name) for name, m in measures.items() if not isinstance(m, Flagged)]
    per_topic = partitions.withColumn("mask", mask).groupBy("cluster", "topic").agg(*at_once, gathered.alias(GATHERED))

    def those(bit: int) -> Column:
        return F.filter(GATHERED, lambda p: p["mask"].bitwiseAND(F.lit(bit)) != 0)

    found = {name: m.of(those(bits[id(m.flag)])).alias(name) for name, m in later.items()}
    names = [n for n in per_topic.columns if n != GATHERED]
    return per_topic.select(*names, *found.values())


def each(partitions: Column, field: str) -> Column:
    """A field of flagged partitions, where it isn't NULL."""
    return F.array_compact(F.transform(partitions, lambda p: p[field]))
