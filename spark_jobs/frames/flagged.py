"""Measures of a topic over some of its partitions. These partitions are collected once, with a mask of their flags.

One aggregate per measure would be updated for every partition and merged for every topic, although most topics have no flagged
partition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

GATHERED = "flagged"
MASK = "mask"
CARRIED = (
    *("ids", "causes", "cli_differs", "acks_all_kip_1290_error", "isr_whole", "isr_count", "rf", "min_isr"),
    *("effective_min_isr", "acked_effective_min_isr", "min_isr_source", "replica_count", "caps", "partition"),
    *("contradiction", "blocking", "starts_first", "leaving", "lagging", "only_electable"),
    *("most_rf", "replica_racks", "required_replica_racks", "required_min_insync_replicas", "balance"),
)
"""The columns of a flagged partition that measures may read."""


@dataclass(frozen=True, eq=False)
class Flagged:
    """A measure: `of`, applied to the partitions for which `flag` holds, an unordered array of structs of CARRIED."""

    flag: Column
    of: Callable[[Column], Column]


def _bits(measures: Mapping[str, Column | Flagged]) -> dict[int, tuple[int, Column]]:
    """(bit, flag) by the identity of the flag. Measures that share a flag share its bit."""
    flags = {id(m.flag): m.flag for m in measures.values() if isinstance(m, Flagged)}
    return {number: (1 << place, flag) for place, (number, flag) in enumerate(flags.items())}


def mask(measures: Mapping[str, Column | Flagged]) -> Column:
    """MASK of a partition: a bit for each flag of `measures` that holds."""
    found = F.lit(0).cast("long")
    for bit, flag in _bits(measures).values():
        found += F.when(flag, F.lit(bit)).otherwise(0)
    return found


def aggregated(partitions: DataFrame, measures: Mapping[str, Column | Flagged]) -> DataFrame:
    """One row per topic: cluster, topic, and `measures` over its partitions.

    partitions: with the MASK of the same measures.
    """
    bits = _bits(measures)

    def measured(name: str, measure: Column | Flagged) -> Column:
        if not isinstance(measure, Flagged):
            return F.col(name)
        bit = bits[id(measure.flag)][0]
        return measure.of(F.filter(GATHERED, lambda p: p[MASK].bitwiseAND(F.lit(bit)) != 0)).alias(name)

    gathered = F.collect_list(F.when(F.col(MASK) > 0, F.struct(MASK, *CARRIED))).alias(GATHERED)
    aggregates = [m.alias(name) for name, m in measures.items() if not isinstance(m, Flagged)]
    per_topic = partitions.groupBy("cluster", "topic").agg(*aggregates, gathered)
    return per_topic.select("cluster", "topic", *(measured(*item) for item in measures.items()))


def each(partitions: Column, field: str) -> Column:
    """A field of flagged partitions, where it isn't NULL."""
    return F.array_compact(partitions[field])
