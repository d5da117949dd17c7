"""The lake's tables, as data: the one place that says which columns exist.

Evolution is additive: a column may be added, as nullable; none is renamed or retyped. A column that is written no more is
`retired`: lakes that have it keep it. Readers and writers go by columns' names, so their order is no matter.

Facts are written under an `attempt_id` and count once a row of `snapshots` points at that attempt; results are written
under a `run_id` and a `result_id` (the attempt at evaluating) and count once a row of `runs` points at that result.
A NULL fact is one that could not be read: never "no" and never empty.
"""

from __future__ import annotations

from durability.lake.fact_tables import BROKERS, CLUSTERS, CONTROLLERS, FACTS, GROUPS, PARTITIONS, SNAPSHOTS, TOPICS
from durability.lake.result_tables import (
    CONFIGURED,
    COUNTED,
    DISAGREEMENTS,
    FINDINGS,
    HEALTH_COUNTERS,
    LED_COUNTS,
    OUTAGE_ENTRY,
    PARTITION_HEALTH,
    RESOLVED_POLICY,
    RUNS,
    SPARK_TYPES,
    TOPIC_POSTURE,
    VERDICTS,
)
from durability.lake.table import CATALOG, CONFIGS, FACT_KEYS, INTS, NAMESPACE, RESULT_KEYS, STRINGS, TIMESTAMP, Table

RESULTS = (RESOLVED_POLICY, PARTITION_HEALTH, HEALTH_COUNTERS, TOPIC_POSTURE, VERDICTS, FINDINGS, DISAGREEMENTS)
TABLES = {t.name: t for t in (*FACTS, SNAPSHOTS, *RESULTS, RUNS)}

__all__ = [
    "BROKERS",
    "CATALOG",
    "CLUSTERS",
    "CONFIGS",
    "CONFIGURED",
    "CONTROLLERS",
    "COUNTED",
    "DISAGREEMENTS",
    "FACTS",
    "FACT_KEYS",
    "FINDINGS",
    "GROUPS",
    "HEALTH_COUNTERS",
    "INTS",
    "LED_COUNTS",
    "NAMESPACE",
    "OUTAGE_ENTRY",
    "PARTITIONS",
    "PARTITION_HEALTH",
    "RESOLVED_POLICY",
    "RESULTS",
    "RESULT_KEYS",
    "RUNS",
    "SNAPSHOTS",
    "SPARK_TYPES",
    "STRINGS",
    "TABLES",
    "TIMESTAMP",
    "TOPICS",
    "TOPIC_POSTURE",
    "VERDICTS",
    "Table",
]
