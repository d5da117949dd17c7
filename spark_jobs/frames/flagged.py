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
MASK = "mask"
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


def mask(measures: Mapping[str, Column | Flagged]) -> Column:
    """What a partition is flagged for, a bit for each flag of `measures`: its column MASK."""
    found = F.lit(0).cast("long")
    for bit, flag in _bits(measures).values():
        found += F.when(flag, F.lit(bit)).otherwise(0)
    return found


def _bits(measures: Mapping[str, Column | Flagged]) -> dict[int, tuple[int, Column]]:
    """Bit and flag by the flag's identity, in the order of the measures."""
    flags = {id(m.flag): m.flag for m in measures.values() if isinstance(m, Flagged)}
    return {number: (1 << place, flag) for place, (number, flag) in enumerate(flags.items())}


def aggregated(partitions: DataFrame, measures: Mapping[str, Column | Flagged]) -> DataFrame:
    """One row a topic (cluster, topic) with `measures` over its rows of `partitions`: aggregates, or Flagged.

    partitions: with their MASK of the same measures.
    """
    gathered = F.collect_list(F.when(F.col(MASK) > 0, F.struct(MASK, *CARRIED)))
    at_once = [m.alias(name) for name, m in measures.items() if not isinstance(m, Flagged)]
    per_topic = partitions.groupBy("cluster", "topic").agg(*at_once, gathered.alias(GATHERED))
    bits = _bits(measures)

    def those(flag: Column) -> Column:
        return F.filter(GATHERED, lambda p: p[MASK].bitwiseAND(F.lit(bits[id(flag)][0])) != 0)

    later = {name: m for name, m in measures.items() if isinstance(m, Flagged)}
    found = {name: m.of(those(m.flag)).alias(name) for name, m in later.items()}
    names = [n for n in per_topic.columns if n != GATHERED]
    return per_topic.select(*names, *found.values())


def each(partitions: Column, field: str) -> Column:
    """A field of flagged partitions, where it isn't NULL."""
    return F.array_compact(F.transform(partitions, lambda p: p[field]))
