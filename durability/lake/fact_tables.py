"""The tables of facts, and of what makes them count. See `tables` for the rules that columns follow."""

from __future__ import annotations

import pyarrow as pa

from durability.lake.table import CONFIGS, FACT_KEYS, INTS, STRINGS, TIMESTAMP, UNREADABLE, Table

# One row per cluster. `*_known`: could that part be read. `declared_*`: what the cluster itself said, to hold rows against.
CLUSTERS = Table(
    "clusters",
    (
        *FACT_KEYS,
        ("kafka_version", pa.string()),
        ("provider", pa.string()),  # self, msk, msk-serverless, confluent, ...
        ("team", pa.string()),
        ("source", pa.string()),  # "live", or the document's file name
        ("sha256", pa.string()),  # of the topology's canonical JSON
        ("consistent", pa.bool_()),  # False: changed while being read
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
        ("unreadable", UNREADABLE),
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
        (
            "log_dirs",
            pa.list_(
                pa.struct(
                    [
                        ("path", pa.string()),
                        ("error", pa.string()),
                        ("total_bytes", pa.int64()),
                        ("usable_bytes", pa.int64()),
                    ]
                )
            ),
        ),
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
        ("lag_ms", pa.int64()),  # behind the quorum's leader; NULL: unknown
        ("configs", CONFIGS),  # NULL: unreadable or not stated
        ("config_sources", CONFIGS),
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
        # Partitions of a topic that no rule can tell apart (`alike`): the row that stands for them has how many they
        # are, their ids and their leaders; the others have 0. NULL: the row stands for itself.
        ("stands_for", pa.int32()),
        ("placement", pa.int32()),  # the same for those of a cluster that only their topic tells apart; NULL: its own
        ("alike", INTS),
        ("alike_leaders", INTS),
        # In-sync replicas beyond min.insync.replicas, where it is plain what applies. The same for all that one row stands
        # for: by it a large run leaves rows unread (`spark_jobs.assemble.topics.worth_reading`).
        ("room", pa.int32()),
    ),
    sort=("cluster", "topic", "partition"),
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
        (
            "clients",
            pa.list_(
                pa.struct(
                    [
                        ("process", pa.string()),
                        ("tags", pa.map_(pa.string(), pa.string())),
                        ("active", STRINGS),
                        ("standby", STRINGS),
                    ]
                )
            ),
        ),
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        (
            "members",  # raw bytes as DescribeGroups gave them
            pa.list_(
                pa.struct(
                    [
                        ("member_id", pa.string()),
                        ("client_id", pa.string()),
                        ("client_host", pa.string()),
                        ("metadata", pa.binary()),
                        ("assignment", pa.binary()),
                    ]
                )
            ),
        ),
        ("subscription_version", pa.int32()),  # of SubscriptionInfo and AssignmentInfo: the oldest among the members;
        ("assignment_version", pa.int32()),  # NULL: no classic Streams group, or not decoded
        ("internal_topics", STRINGS),  # changelog and repartition topics; NULL: no Streams group
        ("unread", pa.string()),  # why clients, tags, stateful_tasks or all of it is NULL
    ),
)

FACTS = (CLUSTERS, BROKERS, CONTROLLERS, TOPICS, PARTITIONS, GROUPS)

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
