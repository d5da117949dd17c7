"""The tables of collected facts. NULL means that a fact could not be read. It never means "no" or empty."""

from __future__ import annotations

import pyarrow as pa

from durability.lake.table import CONFIGS, FACT_KEYS, INTS, STRINGS, TIMESTAMP, Table, structs

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
        ("unreadable", structs(path=pa.string(), reason=pa.string())),
        ("kafka_cluster_id", pa.string()),  # as brokers state it; NULL: unknown, as in most documents
        # How it was read: JSON, see `durability.collect.provenance`; NULL: a document, or of an earlier version
        ("collection", pa.string()),
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
        ("log_dirs", structs(path=pa.string(), error=pa.string(), total_bytes=pa.int64(), usable_bytes=pa.int64())),
        ("future_replicas", pa.int32()),  # being moved to another log dir of the broker (KIP-113); NULL: unknown
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
        ("live", pa.bool_()),  # was it reached? NULL: unknown, or not tried
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
        # Replicas of the partition with the fewest; in a reassignment, before or after it. NULL: a partition's are unknown.
        ("replication_factor", pa.int32()),
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

# Groups of partitions that rules can't tell apart, a row per topic and group, with the facts of the first partition. Clusters
# with few partitions have none. See `durability.lake.partition_groups`.
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

_MEMBERS = structs(
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
        ("clients", structs(process=pa.string(), tags=CONFIGS, active=STRINGS, standby=STRINGS)),
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
