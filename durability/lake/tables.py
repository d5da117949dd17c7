"""The lake's tables, as data: the one place that says which columns exist.

Columns are only ever added, as nullable; none is renamed or retyped. A column that is no longer written is `retired`: lakes that
have it keep it. Readers and writers use columns' names, so their order doesn't matter.

Facts are written under an `attempt_id` and count once a row of `snapshots` names that attempt. Results are written under a
`run_id` and a `result_id` (the attempt at evaluating) and count once a row of `runs` names that result.
A NULL fact is one that could not be read: never "no" and never empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

NAMESPACE = "audit"
CATALOG = "durability"

TIMESTAMP = pa.timestamp("us", tz="UTC")
STRINGS = pa.list_(pa.string())
INTS = pa.list_(pa.int32())
CONFIGS = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True)
class Table:
    """A table, partitioned by day(captured_at): its columns (Arrow types) and its sort order.

    retired: columns that an earlier version wrote. A lake that has them keeps them; new rows are NULL there.
    """

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]
    sort: tuple[str, ...] = ("cluster",)
    retired: tuple[str, ...] = ()

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema(self.columns)

    @property
    def identifier(self) -> str:
        return f"{NAMESPACE}.{self.name}"


def _structs(**fields: pa.DataType) -> pa.ListType:
    return pa.list_(pa.struct(list(fields.items())))


FACT_KEYS = (
    ("cluster", pa.string()),
    ("captured_at", TIMESTAMP),
    ("snapshot_id", pa.string()),
    ("attempt_id", pa.string()),
)
RESULT_KEYS = (*FACT_KEYS[:3], ("run_id", pa.string()), ("result_id", pa.string()))

# One row per cluster. `*_known`: whether that part could be read. `declared_*`: the numbers that the cluster itself stated.
CLUSTERS = Table(
    "clusters",
    (
        *FACT_KEYS,
        ("kafka_version", pa.string()),
        ("provider", pa.string()),  # self, msk, msk-serverless, confluent, ...
        ("team", pa.string()),
        ("source", pa.string()),  # "live", or the document's file name
        ("sha256", pa.string()),  # of the topology's canonical JSON
        ("consistent", pa.bool_()),  # False: changed while being read; NULL: could not be read again
        ("features", pa.map_(pa.string(), pa.int32())),  # finalized feature levels
        ("quorum_mode", pa.string()),  # kraft, zookeeper; NULL: unreadable
        ("quorum_leader", pa.int32()),
        ("controllers_stated", pa.bool_()),  # False: the document says nothing about controllers' configs
        ("controllers_known", pa.bool_()),  # False: their configs could not be read
        ("brokers_known", pa.bool_()),
        ("topics_known", pa.bool_()),
        ("streams_known", pa.bool_()),
        ("reassignments_known", pa.bool_()),
        ("declared_brokers", pa.int64()),
        ("declared_topics", pa.int64()),
        ("declared_partitions", pa.int64()),
        ("hidden_partitions", pa.int64()),  # on log dirs but not in metadata; NULL: log dirs unreadable
        ("unreadable", _structs(path=pa.string(), reason=pa.string())),
        ("kafka_cluster_id", pa.string()),  # as brokers state it; NULL: unknown, as in most documents
    ),
)

BROKERS = Table(
    "brokers",
    (
        *FACT_KEYS,
        ("broker", pa.int32()),
        ("rack", pa.string()),
        ("rack_state", pa.string()),  # named, none (no broker.rack), unknown, carried (from the last accepted snapshot)
        ("described", pa.bool_()),  # False: seen only as a replica
        ("live", pa.bool_()),
        ("fenced", pa.bool_()),
        ("kafka_version", pa.string()),  # the broker's, else the cluster's
        ("max_metadata_version", pa.int32()),  # of its supported features: 14 = 3.6, 15 = 3.7; NULL in documents
        ("offline_log_dirs", pa.int32()),
        ("log_dirs", _structs(path=pa.string(), error=pa.string(), total_bytes=pa.int64(), usable_bytes=pa.int64())),
        ("configs", CONFIGS),  # NULL: unreadable
        ("config_sources", CONFIGS),  # topic, cluster-default (dynamic), broker-dynamic, broker (static), default
        ("unreadable_configs", STRINGS),
    ),
)

# Quorum members and controllers, one row per node id.
CONTROLLERS = Table(
    "controllers",
    (
        *FACT_KEYS,
        ("controller", pa.int32()),
        ("role", pa.string()),  # voter, observer, or controller (configs known, not in the quorum's answer)
        ("leader", pa.bool_()),
        ("rack", pa.string()),
        ("rack_state", pa.string()),  # named, unknown
        ("lag_ms", pa.int64()),  # behind the quorum's leader; NULL: never caught up, or unknown
        ("configs", CONFIGS),  # NULL: unreadable or not stated
        ("config_sources", CONFIGS),
        ("caught_up", pa.bool_()),  # False: never with this leader; NULL: unknown, or there is no leader
    ),
)

TOPICS = Table(
    "topics",
    (
        *FACT_KEYS,
        ("topic", pa.string()),
        ("internal", pa.bool_()),
        ("configs", CONFIGS),  # as DescribeConfigs resolved them, or overrides only (documents); NULL: unreadable
        ("config_sources", CONFIGS),
        ("unreadable_configs", STRINGS),
        ("partitions_known", pa.bool_()),
        ("declared_partitions", pa.int32()),
    ),
    sort=("cluster", "topic"),
)

PARTITIONS = Table(
    "partitions",
    (
        *FACT_KEYS,
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("leader", pa.int32()),  # NULL: none, unless "leader" is in `unreadable`
        ("replicas", INTS),
        ("isr", INTS),
        ("elr", INTS),
        ("last_known_elr", INTS),
        ("adding", INTS),
        ("removing", INTS),
        ("bytes", pa.int64()),
        ("unreadable", STRINGS),  # names of this partition's fields that could not be read; NULL: all were
        # The same for partitions of a cluster that only their topic tells apart; NULL: like no other, or not looked at.
        ("partition_group", pa.int32()),
        # Both readings, where this partition's facts contradict each other: "isr 1,2,4; replicas 1,2,3". Then all are NULL.
        ("contradiction", pa.string()),
    ),
    sort=("cluster", "topic", "partition"),
    retired=("stands_for", "placement", "alike", "alike_leaders", "room"),
)

# Partitions that rules can't tell apart, a row per topic and group: the facts of the first one and which the others are. Of
# clusters with few partitions there are none. See `durability.lake.partition_groups`.
PARTITION_GROUPS = Table(
    "partition_groups",
    (
        *(column for column in PARTITIONS.columns if column[0] != "bytes"),
        ("partitions", INTS),  # their numbers, that of the first one included
        ("leaders", INTS),  # of each
        (
            "reads",
            pa.string(),
        ),  # what the groups were made by: those of an earlier version may join what rules now tell apart
    ),
    sort=("cluster", "topic", "partition"),
)

_MEMBERS = _structs(
    member_id=pa.string(), client_id=pa.string(), client_host=pa.string(), metadata=pa.binary(), assignment=pa.binary()
)
GROUPS = Table(
    "groups",
    (
        *FACT_KEYS,
        ("group", pa.string()),
        ("type", pa.string()),  # classic, streams
        ("state", pa.string()),
        ("in_transition", pa.bool_()),
        ("stateful_tasks", STRINGS),
        ("clients", _structs(process=pa.string(), tags=CONFIGS, active=STRINGS, standby=STRINGS)),
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        ("members", _MEMBERS),  # raw bytes as DescribeGroups gave them
        ("subscription_version", pa.int32()),  # of SubscriptionInfo and AssignmentInfo: the oldest among the members;
        ("assignment_version", pa.int32()),  # NULL: no classic Streams group, or not decoded
        ("internal_topics", STRINGS),  # changelog and repartition topics; NULL: no Streams group
        ("unread", pa.string()),  # why clients, tags, stateful_tasks or all of it is NULL
    ),
)

FACTS = (CLUSTERS, BROKERS, CONTROLLERS, TOPICS, PARTITIONS, PARTITION_GROUPS, GROUPS)

# The row that makes an attempt count. status: accepted, rejected (by the gate), failed (could not be read).
SNAPSHOTS = Table(
    "snapshots",
    (
        *FACT_KEYS,
        ("status", pa.string()),
        ("reason", pa.string()),
        ("sha256", pa.string()),
        ("source", pa.string()),
        ("published_at", TIMESTAMP),
        ("kind", pa.string()),  # full; pulse: counters and unhealthy partitions only
        ("partitions", pa.int64()),
    ),
)

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
    ),
    sort=("cluster", "resource"),
)

# A row per topic and group of equal partitions (`partition_groups`) that isn't healthy; the brokers of each are in `partitions`.
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
"""What a broker's own metrics count over the partitions that it leads; unknown: those with an unknown category."""
_LEADERS = _structs(broker=pa.int32(), rack=pa.string(), live=pa.bool_(), **dict.fromkeys(LED_COUNTS, pa.int64()))

# Per cluster (topic NULL) and per topic with anything to count: partitions by category.
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
        # In a cluster's row: brokers that lead any such partition. As rows of their own they would be counted twice.
        ("brokers", _LEADERS),
        ("lost_racks", _structs(rack=pa.string(), brokers=INTS)),  # in a cluster's row: all of whose brokers are down
        ("under_min_isr_by_configuration", pa.int64()),  # the ISR is whole and min.insync.replicas above it
        ("out_of_sync", INTS),  # brokers whose replicas are missing from an ISR, or down; NULL: not written then
    ),
)

COUNTED = tuple(name for name, kind in HEALTH_COUNTERS.columns if kind == pa.int64())
"""The columns of `health_counters` that count partitions."""

# Verdicts that are one order between two numbers, which Great Expectations checks again; the order is the catalogue's
# (`durability.catalogue.SCALAR_CONTROLS`). known: False if there is no verdict to check; never NULL.
_CHECKS = _structs(control=pa.string(), observed=pa.float64(), required=pa.float64(), known=pa.bool_())
_ONCE_CHECKED = (
    *("replication_factor", "min_insync_replicas", "min_isr_within_replication_factor", "write_headroom"),
    *("unclean_leader_election", "replica_rack_spread", "isr_rack_spread"),
)

# A topic's thresholds as configured, with where that is stated: what a later run restores.
CONFIGURED = (
    ("configured_min_insync_replicas", pa.int32()),
    ("configured_min_insync_replicas_source", pa.string()),
    ("configured_min_insync_racks", pa.int32()),
    ("configured_min_insync_racks_source", pa.string()),
)
# A threshold of a topic in a rack outage, or lowered in one; see `spark_jobs.history.rack_outage`.
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
        # What the topic should become (spark_jobs/frames/target.py), NULL where unknown; a plan of reassignment leads there.
        ("target_replication_factor", pa.int32()),
        ("target_min_insync_replicas", pa.int32()),
        ("target_racks", pa.int32()),
        ("target_acked_racks", pa.int32()),
        ("reassign", pa.bool_()),
        ("checks", _CHECKS),
    ),
    sort=("cluster", "topic"),
    # Until 0.1 a check was three columns.
    retired=tuple(f"{control}_{part}" for control in _ONCE_CHECKED for part in ("observed", "required", "known")),
)

# What a verdict and its finding have in common.
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
    ("previous_severity", pa.string()),  # of a resolved one
)

# What Spark decided, before the cross-check: codes and numbers, no sentence. `findings` are made of these.
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

# Verdicts, cross-checked and worded: what every reader reads.
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
        ("moves", _structs(partition=pa.int32(), replicas=INTS)),  # partitions that move, with their new replicas
        ("not_before", pa.string()),  # what has to happen before the plan can be run
        ("why", pa.string()),  # why there is no plan; NULL: there is one
        ("gone", INTS),  # the brokers that are down and whose replicas it moves; NULL: it leads to the topic's target
        ("left", pa.int32()),  # their partitions that stay
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

# The row that makes a run's results count. status: complete, incomplete (a cluster is missing), unverified.
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
            _structs(
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
    ),
    sort=("run_id",),
)

RESULTS = (RESOLVED_POLICY, PARTITION_HEALTH, HEALTH_COUNTERS, TOPIC_POSTURE, VERDICTS, FINDINGS, DISAGREEMENTS, PLANS)
TABLES = {t.name: t for t in (*FACTS, SNAPSHOTS, *RESULTS, RUNS)}
