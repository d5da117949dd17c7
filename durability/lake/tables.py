"""The lake's tables. This is the only place that defines their columns.

Columns are only ever added, as nullable columns. None is renamed or retyped. A column that is no longer written is `retired`, and
lakes that have it keep it. Readers and writers use column names, so the order doesn't matter.

Facts are written under an `attempt_id` and count once a row of `snapshots` names that attempt. Results are written under a
`run_id` and a `result_id` (the attempt at evaluating) and count once a row of `runs` names that result.
NULL means that a fact could not be read. It never means "no" or empty.
"""

from __future__ import annotations

import pyarrow as pa

from durability.lake.alert_table import ALERTS
from durability.lake.change_table import CHANGES
from durability.lake.drill_table import DRILLS
from durability.lake.fact_tables import (
    BROKERS,
    CLUSTERS,
    CONTROLLERS,
    FACTS,
    GROUPS,
    PARTITION_GROUPS,
    PARTITIONS,
    SNAPSHOTS,
    TOPICS,
)
from durability.lake.loss_tables import FAILURE_COSTS, LOSS_OUTCOMES, LOSS_SETS, RESTART_CAPACITY, VIEWS
from durability.lake.table import (
    CATALOG,
    CONFIGS,
    FACT_KEYS,
    INTS,
    NAMESPACE,
    RESULT_KEYS,
    STRINGS,
    TIMESTAMP,
    Table,
    structs,
)

__all__ = [
    "ALERTS",
    "BROKERS",
    "CATALOG",
    "CHANGES",
    "CLUSTERS",
    "CONFIGS",
    "CONFIGURED",
    "CONTROLLERS",
    "COUNTED",
    "DISAGREEMENTS",
    "DRILLS",
    "FACTS",
    "FACT_KEYS",
    "FAILURE_COSTS",
    "FINDINGS",
    "GROUPS",
    "HEALTH_COUNTERS",
    "INTS",
    "LED_COUNTS",
    "LOSS_OUTCOMES",
    "LOSS_SETS",
    "NAMESPACE",
    "ONE_FAILURE",
    "OUTAGE_ENTRY",
    "PARTITIONS",
    "PARTITION_GROUPS",
    "PARTITION_HEALTH",
    "PLANS",
    "RESOLVED_POLICY",
    "RESTART_CAPACITY",
    "RESULTS",
    "RESULT_KEYS",
    "RUNS",
    "SNAPSHOTS",
    "SPARK_TYPES",
    "STRINGS",
    "TABLES",
    "TIER_COUNTS",
    "TIMESTAMP",
    "TOPICS",
    "TOPIC_POSTURE",
    "VERDICTS",
    "VIEWS",
    "Table",
]

# The policy as resolved for one run: each resource's tier and the waivers (indexes into the plan) that match its name.
RESOLVED_POLICY = Table(
    "resolved_policy",
    (
        *RESULT_KEYS,
        ("resource_type", pa.string()),
        ("resource", pa.string()),
        ("tier", pa.string()),  # NULL: no selector matched
        ("waivers", INTS),
        ("placement", pa.string()),  # of a Streams application (KIP-708): JSON, see `durability.streams.judgement`
        # the tiers that a topic may be in, while its replication factor is unknown; NULL: `tier` is certain
        ("undecided", STRINGS),
    ),
    sort=("cluster", "resource"),
)

# Unhealthy partitions, a row per topic and group of equal partitions (`partition_groups`). `partitions` has the brokers of each.
PARTITION_HEALTH = Table(
    "partition_health",
    (
        *RESULT_KEYS,
        ("topic", pa.string()),
        ("partitions", INTS),
        ("categories", STRINGS),  # offline, under-min-isr, at-min-isr, under-replicated
        ("by_configuration", pa.bool_()),  # at-min-isr with the ISR whole
        ("min_insync_replicas", pa.int32()),
        ("effective_min_insync_replicas", pa.int32()),
        ("replication_factor", pa.int32()),
        ("out_of_sync", INTS),
        ("cause", pa.string()),  # codes, see `durability.catalogue.causes`
        # Codes: where kafka-topics shows this partition otherwise, and why (`durability.catalogue.listing`).
        ("cli_differs", pa.string()),
        ("categories_known", pa.bool_()),  # False: some category is unknown
        # KIP-1290. A partition may be listed for its racks alone, without a category of KIP-427's.
        ("isr_racks", pa.int32()),  # IsrRackCount; NULL: a rack is unknown
        ("min_insync_racks", pa.int32()),  # the stricter of the setting and the tier's; in a pulse, the setting
        ("rack_category", pa.string()),  # under-min-rack-isr, at-min-rack-isr, none; NULL: unknown
        ("rack_by_placement", pa.bool_()),  # at-min-rack-isr with the ISR whole, or replicas in no more racks than it
        # What brokers answer acks=all: NONE, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT, LEADER_NOT_AVAILABLE.
        ("acks_all_error", pa.string()),
        ("acks_all_kip_1290_error", pa.string()),  # what KIP-1290's would: the same, else NOT_ENOUGH_RACKS
    ),
    retired=("partition", "leader", "replicas", "isr", "elr"),
)

LED_COUNTS = ("under_min_isr", "at_min_isr", "under_replicated", "under_min_rack_isr", "at_min_rack_isr", "unknown")
"""What a broker's own metrics count over the partitions that it leads. unknown: partitions with an unknown category."""
_LEADERS = structs(broker=pa.int32(), rack=pa.string(), live=pa.bool_(), **dict.fromkeys(LED_COUNTS, pa.int64()))

ONE_FAILURE = (
    *("one_broker_from_refusing", "one_broker_from_losing", "one_rack_from_refusing", "one_rack_from_losing"),
    "one_failure_unknown",
)
"""Partitions that the loss of one broker, or one rack, would make refuse acks=all writes or put at risk, or that are so already.

They start from the ISR as it is (`loss_tables.VIEWS`). one_failure_unknown: partitions for which one of these is unknown.
NULL: not counted, for example by an earlier version.
"""
TIER_COUNTS = ("partitions", *ONE_FAILURE)
_TIERS = structs(tier=pa.string(), **dict.fromkeys(TIER_COUNTS, pa.int64()))

# Partitions by category, a row per cluster (topic NULL), and a row per topic with a count above 0.
HEALTH_COUNTERS = Table(
    "health_counters",
    (
        *RESULT_KEYS,
        ("topic", pa.string()),
        ("partitions", pa.int64()),
        ("unknown", pa.int64()),
        ("offline", pa.int64()),
        ("under_min_isr", pa.int64()),
        ("at_min_isr", pa.int64()),
        ("at_min_isr_by_configuration", pa.int64()),
        ("under_replicated", pa.int64()),
        ("under_min_rack_isr", pa.int64()),  # KIP-1290's categories, apart from KIP-427's
        ("at_min_rack_isr", pa.int64()),
        ("at_min_rack_isr_by_placement", pa.int64()),
        ("rack_unknown", pa.int64()),
        # In a cluster's row: brokers that lead any such partition. Separate rows would be counted twice.
        ("brokers", _LEADERS),
        ("lost_racks", structs(rack=pa.string(), brokers=INTS)),  # in a cluster's row: all of whose brokers are down
        ("under_min_isr_by_configuration", pa.int64()),  # the ISR is whole and min.insync.replicas above it
        ("out_of_sync", INTS),  # brokers whose replicas are missing from an ISR, or down; NULL: not written then
        *((name, pa.int64()) for name in ONE_FAILURE),
        # In a cluster's row: all partitions, and those of ONE_FAILURE, by tier (NULL: topics without one). A pulse uses the tiers
        # of the last nightly run. NULL: not counted, or no nightly run has resolved the tiers.
        ("tiers", _TIERS),
    ),
)

COUNTED = tuple(name for name, kind in HEALTH_COUNTERS.columns if kind == pa.int64() and name not in ONE_FAILURE)
"""The columns of `health_counters` that count partitions by category. Every row has them. Rows may lack those of ONE_FAILURE."""

# Verdicts that compare two numbers. Great Expectations checks them again with the order in the catalogue
# (`durability.catalogue.SCALAR_CONTROLS`). known: False if there is no verdict to check; never NULL.
_CHECKS = structs(control=pa.string(), observed=pa.float64(), required=pa.float64(), known=pa.bool_())
_ONCE_CHECKED = (
    *("replication_factor", "min_insync_replicas", "min_isr_within_replication_factor", "write_headroom"),
    *("unclean_leader_election", "replica_rack_spread", "isr_rack_spread"),
)

# A topic's thresholds as configured, with their sources. A later run restores them.
CONFIGURED = (
    ("configured_min_insync_replicas", pa.int32()),
    ("configured_min_insync_replicas_source", pa.string()),
    ("configured_min_insync_racks", pa.int32()),
    ("configured_min_insync_racks_source", pa.string()),
)
# A topic's threshold during a rack outage, or lowered in one; see `spark_jobs.history.rack_outage`.
OUTAGE_ENTRY = pa.struct(
    [
        ("setting", pa.string()),  # min.insync.replicas or min.insync.racks
        ("step", pa.string()),  # guarded, lower, hold, restore
        ("value", pa.int32()),  # remembered: the threshold before it was lowered
        ("source", pa.string()),  # of that value: topic, cluster-default, broker, default, policy
        ("configured", pa.int32()),  # then
        ("now", pa.int32()),  # configured now
        ("now_source", pa.string()),
        ("lower_to", pa.int32()),  # what every affected partition's ISR reaches
        ("since", TIMESTAMP),  # captured_at of the first run that saw it
        ("racks", STRINGS),  # lost ones in which the topic misses replicas
        ("partitions", pa.int32()),  # under the threshold now
    ]
)
SPARK_TYPES = {pa.string(): "string", pa.int32(): "int", TIMESTAMP: "timestamp", STRINGS: "array<string>"}

TOPIC_POSTURE = Table(
    "topic_posture",
    (
        *RESULT_KEYS,
        ("topic", pa.string()),
        ("internal", pa.bool_()),
        ("tier", pa.string()),
        ("partitions", pa.int32()),
        *CONFIGURED,
        ("rack_outage_step", pa.string()),  # the most urgent one; NULL: none
        ("rack_outage", pa.list_(OUTAGE_ENTRY)),
        # What the topic should become (spark_jobs/frames/target.py); NULL if unknown. A reassignment plan leads there.
        ("target_replication_factor", pa.int32()),
        ("target_min_insync_replicas", pa.int32()),
        ("target_racks", pa.int32()),
        ("target_acked_racks", pa.int32()),
        ("reassign", pa.bool_()),
        ("checks", _CHECKS),
        ("target_own_racks", pa.bool_()),  # each replica in a rack of its own; NULL: not required
        ("target_rack_balance", pa.bool_()),  # replicas spread evenly over all racks; NULL: not required
    ),
    sort=("cluster", "topic"),
    # In version 0.1 a check was three columns.
    retired=tuple(f"{control}_{part}" for control in _ONCE_CHECKED for part in ("observed", "required", "known")),
)

# Columns of both a verdict and its finding.
_VERDICT = (
    *RESULT_KEYS,
    ("id", pa.string()),  # stable between runs
    ("resource_type", pa.string()),  # topic, broker, cluster, tier, application, waiver
    ("resource", pa.string()),
    ("control", pa.string()),
    ("category", pa.string()),
    ("outcome", pa.string()),  # PASS, FAIL, UNKNOWN, EXEMPT, NOT_APPLICABLE
    ("severity", pa.string()),  # critical, warning, info
    ("cause", pa.string()),  # in `verdicts` a code, see `durability.catalogue.causes`
    ("observed", pa.string()),  # JSON object
    ("required", pa.string()),  # JSON object
    ("partitions", INTS),
    ("change", pa.string()),  # new, persisting, resolved
    ("why", pa.string()),  # of a resolved one: fixed, waived, policy-changed, resource-deleted, cause-cleared
    ("since", TIMESTAMP),
    ("waiver", pa.int32()),  # index into the run's waivers
    ("tier", pa.string()),
    # In the previous run, if it listed the finding. NULL severity: it was UNKNOWN. In results of before, only the severity of
    # a resolved one.
    ("previous_severity", pa.string()),
    ("previous_outcome", pa.string()),
)

# Spark's decisions before the cross-check: codes and numbers, no sentences. `findings` are made from them.
VERDICTS = Table(
    "verdicts",
    (
        *_VERDICT,
        ("evidence", pa.string()),  # JSON object: what else words need; NULL: nothing
        ("provider", pa.string()),
        ("was", pa.string()),  # of a resolved one: the finding's message in the run before
    ),
    sort=("cluster", "control", "resource"),
)

# Verdicts after the cross-check, with texts. All reports read this table.
FINDINGS = Table(
    "findings",
    (*_VERDICT, ("message", pa.string()), ("remediation", pa.string())),
    sort=("cluster", "control", "resource"),
)

# A row per topic that needs a reassignment plan; see `durability.findings.reassignments`.
PLANS = Table(
    "reassignment_plans",
    (
        *RESULT_KEYS,
        ("topic", pa.string()),
        ("moves", structs(partition=pa.int32(), replicas=INTS)),  # partitions that move, with their new replicas
        ("not_before", pa.string()),  # what has to happen before the plan can be run
        ("why", pa.string()),  # why there is no plan; NULL: there is one
        ("gone", INTS),  # the brokers that are down and whose replicas it moves; NULL: it leads to the topic's target
        ("left", pa.int32()),  # their partitions that stay
        ("running", pa.int32()),  # partitions of the cluster that are being reassigned; NULL in lakes of before
    ),
    sort=("cluster", "topic"),
)

# Verdicts on which Spark and Great Expectations disagree: their findings are UNKNOWN.
DISAGREEMENTS = Table(
    "disagreements",
    (
        *RESULT_KEYS,
        ("control", pa.string()),
        ("resource", pa.string()),
        ("spark", pa.string()),
        ("expectations", pa.string()),
    ),
)

# A run's results count once this row exists. status: complete, incomplete (a cluster is missing), unverified.
RUNS = Table(
    "runs",
    (
        ("run_id", pa.string()),
        ("result_id", pa.string()),
        ("kind", pa.string()),  # nightly, pulse
        ("captured_at", TIMESTAMP),  # of the newest snapshot judged, else started_at
        ("started_at", TIMESTAMP),
        ("finished_at", TIMESTAMP),
        ("status", pa.string()),
        ("verified", pa.bool_()),
        ("policy_name", pa.string()),
        ("policy_sha256", pa.string()),
        ("waivers", pa.string()),  # JSON list: what `findings.waiver` indexes
        (
            "snapshots",
            structs(
                cluster=pa.string(),
                snapshot_id=pa.string(),
                attempt_id=pa.string(),
                captured_at=TIMESTAMP,
                status=pa.string(),
                reason=pa.string(),
                sha256=pa.string(),
            ),
        ),
        ("summary", pa.string()),  # JSON object, as in findings.json
        # JSON of `durability.plan.inventory.Inventory`, without sources if the clusters file has no inventory.
        # NULL: a run that says nothing about a fleet, such as one of documents.
        ("inventory", pa.string()),
    ),
    sort=("run_id",),
)

RESULTS = (
    *(RESOLVED_POLICY, PARTITION_HEALTH, HEALTH_COUNTERS, TOPIC_POSTURE, VERDICTS, FINDINGS, DISAGREEMENTS, PLANS),
    *(FAILURE_COSTS, LOSS_OUTCOMES, LOSS_SETS, RESTART_CAPACITY, ALERTS),
)
TABLES = {t.name: t for t in (*FACTS, SNAPSHOTS, *RESULTS, DRILLS, CHANGES, RUNS)}
