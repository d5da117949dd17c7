"""What the DuckDB program reads and measures: brokers, clusters, topics, all partitions, and more of the unhealthy ones.

Facts about brokers are in lists of the whole fleet's brokers, cluster after cluster; a topic's `base` says where the brokers
of its cluster begin. Racks are bits; the lowest bit is for all brokers without broker.rack.
"""

from __future__ import annotations

from bench.peers.verdicts import CLI_DIFFERS

NEVER = 1_000_000
"""In place of a min.insync.replicas that no partition can have."""
LISTS = ("bit", "live", "down", "lag")
"""Of brokers; `getvariable('bit')[base + id]`."""

BROKERS = """
CREATE TEMP TABLE k AS
WITH known AS (
  SELECT cluster, broker, rack, live, configs, config_sources, coalesce(offline_log_dirs, 0) > 0 AS disk,
    CAST(split_part(kafka_version, '.', 1) AS INT) * 1000 + CAST(split_part(kafka_version, '.', 2) AS INT) >= 3007
      AS caps,
    rack IS NOT NULL AND NOT bool_or(live) OVER mates AS lost, count(*) OVER mates AS mates,
    CASE WHEN rack IS NULL THEN 1 ELSE 1::BIGINT << dense_rank() OVER (PARTITION BY cluster ORDER BY rack) END AS bit
  FROM read_parquet($brokers) WINDOW mates AS (PARTITION BY cluster, rack)
)
SELECT *, row_number() OVER (ORDER BY cluster, broker) AS place,
  CASE WHEN NOT live THEN CASE WHEN lost AND mates > 1 THEN 'rack:' || rack || ' down'
    ELSE 'broker:' || broker || ' down' END END AS down,
  'broker:' || broker || CASE WHEN disk THEN ' disk-offline' ELSE ' lagging' END AS lag
FROM known
"""
# `sizes`: brokers in each named rack, most first. `lost`: the bits of racks that are down as a whole.
CLUSTERS = """
CREATE TEMP TABLE b AS
WITH racked AS (
  SELECT cluster, list(size ORDER BY size DESC) AS sizes
  FROM (SELECT cluster, count(*)::INT AS size FROM k WHERE rack IS NOT NULL GROUP BY cluster, rack) GROUP BY cluster
), brokers AS (
  SELECT cluster, min(place)::INT AS base, count(*)::INT AS brokers, any_value(caps) AS caps,
    CAST(coalesce(any_value(configs['min.insync.replicas']), '1') AS INT) AS min_isr,
    CASE WHEN any_value(configs['min.insync.replicas']) IS NULL THEN 'default'
      ELSE coalesce(any_value(config_sources['min.insync.replicas']), 'broker') END AS min_isr_source,
    list(DISTINCT rack ORDER BY rack) FILTER (rack IS NOT NULL) AS racks,
    bool_or(rack IS NULL)::INT AS unnamed,
    coalesce(bit_or(bit) FILTER (lost), 0) AS lost
  FROM k GROUP BY cluster
)
SELECT brokers.*, coalesce(sizes, []) AS sizes, len(coalesce(racks, []))::INT AS rack_count,
  coalesce(features['eligible.leader.replicas.version'], 0) > 0 AS elr_on
FROM brokers LEFT JOIN racked USING (cluster) JOIN read_parquet($clusters) USING (cluster)
"""
TOPICS = """
CREATE TEMP TABLE t AS
SELECT row_number() OVER ()::INT AS tid, cluster, captured_at, snapshot_id, topic, internal, tier, b.base, b.caps, b.lost,
  coalesce(CAST(configs['min.insync.replicas'] AS INT), b.min_isr) AS min_isr,
  CASE WHEN configs['min.insync.replicas'] IS NULL THEN b.min_isr_source
    ELSE coalesce(config_sources['min.insync.replicas'], 'topic') END AS min_isr_source,
  CAST(coalesce(configs['unclean.leader.election.enable'], 'false') AS BOOLEAN) AS unclean,
  CASE WHEN configs['unclean.leader.election.enable'] IS NULL THEN 'controller'
    ELSE coalesce(config_sources['unclean.leader.election.enable'], 'topic') END AS unclean_source,
  r.* EXCLUDE tier,
  CASE WHEN min_insync_racks > 1 THEN min_insync_racks END AS wanted
FROM read_parquet($topics) JOIN b USING (cluster)
LEFT JOIN (SELECT cluster, resource AS topic, tier
  FROM read_parquet($resolved) WHERE resource_type = 'topic') USING (cluster, topic)
LEFT JOIN read_parquet($tiers) r USING (tier)
"""
PARTITIONS = """
CREATE TEMP TABLE p AS
SELECT tid, base, partition, leader, replicas, isr, elr, len(replicas)::UTINYINT AS rf, len(isr)::UTINYINT AS isr_count,
  NOT coalesce(getvariable('live')[base + leader], false) AS offline, rack_bits(replicas, base) AS bits
FROM read_parquet($partitions) JOIN t USING (cluster, topic)
"""
# Partitions with several replicas in a rack: how many replicas the one, two, ... fullest racks have together. Few lists of
# racks differ, so each is counted once.
CROWDED = """
CREATE TEMP TABLE c AS
WITH racked AS (
  SELECT tid, partition, list_transform(replicas, lambda x: getvariable('bit')[base + x]) AS racks
  FROM p WHERE bit_count(bits) < rf
), counted AS (
  SELECT racks, len(list_filter(racks, lambda r: r = 1))::INT AS unracked,
    list_reverse_sort(map_values(list_aggregate(list_filter(racks, lambda r: r > 1), 'histogram'))) AS held
  FROM (SELECT DISTINCT racks FROM racked)
)
SELECT tid, partition, unracked,
  coalesce(list_transform(range(1, len(held) + 1), lambda n: list_sum(held[1:n])), [])::INT[] AS held_by
FROM racked JOIN counted USING (racks)
"""
# Unhealthy partitions, and those with no more racks than wanted. `racked`: KIP-1290's category, whoever leads.
TROUBLED = """
CREATE TEMP TABLE u AS
WITH facts AS (
  SELECT p.*, min_isr, caps, wanted, min_insync_racks, lost,
    CASE WHEN min_isr <= rf OR NOT caps THEN min_isr ELSE rf END AS effective
  FROM p JOIN t USING (tid)
), looked_at AS (
  SELECT *, NOT offline AND isr_count < effective AS under, NOT offline AND isr_count = effective AS at_min,
    NOT offline AND isr_count < rf AS under_replicated, isr_count >= rf AS whole,
    CASE WHEN isr_count < rf THEN list_filter(replicas, lambda x: NOT list_contains(isr, x)) ELSE [] END AS out_of_sync,
    CASE WHEN isr_count < rf THEN rack_bits(isr, base) ELSE bits END AS isr_bits
  FROM facts WHERE offline OR isr_count < rf OR isr_count <= effective OR wanted IS NOT NULL
), racked AS (
  SELECT *, bit_count(isr_bits)::INT AS isr_racks, CASE WHEN offline THEN replicas ELSE out_of_sync END AS absent,
    CASE WHEN bit_count(isr_bits) < wanted THEN 'under-min-rack-isr'
      WHEN bit_count(isr_bits) = wanted THEN 'at-min-rack-isr' ELSE 'none' END AS racked
  FROM looked_at
), judged AS (
  SELECT *, CASE WHEN offline THEN 'none' ELSE racked END AS rack_category,
    bit_count(bits) AS kip_span,
    CASE WHEN len(absent) > 0 THEN list_filter(list_transform(absent, lambda x: getvariable('down')[base + x]),
      lambda d: d IS NOT NULL) ELSE [] END AS down
  FROM racked
)
SELECT tid, base, partition, leader, replicas, isr, elr, rf, isr_count, min_isr, effective, offline, under, at_min,
  under_replicated, whole, out_of_sync, isr_racks, racked = 'under-min-rack-isr' AS few_racks, rack_category,
  racked = 'under-min-rack-isr' AND kip_span < wanted AS misplaced,
  racked = 'at-min-rack-isr' AND NOT whole AND kip_span > min_insync_racks AS at_racks,
  CASE WHEN len(down) > 0 THEN ordered(down)
    WHEN len(out_of_sync) > 0 THEN list_transform(out_of_sync, lambda x: getvariable('lag')[base + x])
    WHEN offline THEN ['no-leader'] ELSE [] END AS causes,
  CASE WHEN lost <> 0 AND len(absent) > 0 THEN rack_bits(absent, base) & lost ELSE 0 END AS missing,
  offline OR isr_count = 0 OR len(elr) > 0 AS at_risk
FROM judged WHERE offline OR under OR at_min OR under_replicated OR rack_category <> 'none'
"""
HEALTH = f"""
SELECT t.cluster, t.captured_at, t.snapshot_id, t.topic, partition,
  list_filter([CASE WHEN offline THEN 'offline' END, CASE WHEN under THEN 'under-min-isr' END,
    CASE WHEN at_min THEN 'at-min-isr' END, CASE WHEN under_replicated THEN 'under-replicated' END],
    lambda c: c IS NOT NULL) AS categories,
  at_min AND whole AS by_configuration, leader, replicas, isr, elr, u.min_isr AS min_insync_replicas,
  effective AS effective_min_insync_replicas, rf::INT AS replication_factor, out_of_sync,
  array_to_string(causes, ', ') AS cause, cli_differs, true AS categories_known,
  isr_racks, min_insync_racks, rack_category,
  rack_category = 'at-min-rack-isr' AND NOT at_racks AS rack_by_placement,
  CASE WHEN offline THEN 'LEADER_NOT_AVAILABLE' WHEN under THEN 'NOT_ENOUGH_REPLICAS' ELSE 'NONE' END AS acks_all_error,
  CASE WHEN offline THEN 'LEADER_NOT_AVAILABLE' WHEN under THEN 'NOT_ENOUGH_REPLICAS'
    WHEN rack_category = 'under-min-rack-isr' THEN 'NOT_ENOUGH_RACKS' ELSE 'NONE' END AS acks_all_kip_1290_error
FROM (SELECT *, {CLI_DIFFERS} AS cli_differs FROM u) u JOIN t USING (tid)
"""
# What a topic's partitions fall short in, one bit each; 8 of them below the partition's id in `marks`.
MARKS = {
    "few_replicas": "rf < replication_factor",
    "few_in_sync": "effective < min_insync_replicas",
    "above": "min_isr > rf",
    "no_headroom": "rf - effective < write_headroom",
    "few_racks": "span < replica_racks",
    "short": "copies < acked_copies OR racks < acked_racks",
    "above_rf": "rf < min_insync_racks",
    "above_span": "kip_span < min_insync_racks",
}
# What acks=all guarantees at worst is over every ISR of the effective size: filled from replicas without a rack, then from
# the racks that have most replicas (`held_by`, NULL if no rack has two). `badness` orders partitions, worst first: those that
# fall short, then by copies, racks, rejected writes, ISR and id.
MEASURED = f"""
CREATE TEMP TABLE m AS
WITH facts AS (
  SELECT p.*, t.* EXCLUDE (tid, base), CASE WHEN min_isr <= rf OR NOT caps THEN min_isr ELSE rf END AS effective,
    CASE WHEN min_isr <= rf THEN min_isr WHEN caps THEN rf ELSE 0 END AS copies,
    bit_count(bits)::INT AS kip_span, bit_count(bits >> 1)::INT AS span,
    CASE WHEN isr_count < rf THEN bit_count(rack_bits(isr, p.base)) ELSE bit_count(bits) END::INT AS isr_racks,
    coalesce(unracked, bits & 1)::INT AS unracked, held_by
  FROM p JOIN t USING (tid) LEFT JOIN c USING (tid, partition)
), guaranteed AS (
  SELECT *, CASE WHEN copies <= unracked THEN 0 WHEN held_by IS NULL THEN copies - unracked
      ELSE 1 + len(list_filter(held_by, lambda n: n < copies - unracked)) END::INT AS racks,
    CASE WHEN acked_racks IS NULL OR span < acked_racks THEN {NEVER} WHEN acked_racks = 1 THEN unracked + 1
      ELSE unracked + coalesce(held_by[acked_racks - 1], acked_racks - 1) + 1 END AS smallest,
    coalesce(unracked = 0 AND span >= acked_racks AND rf >= greatest(acked_copies, acked_racks), false) AS would_do
  FROM facts
), marked AS (
  SELECT *, {" | ".join(f"CASE WHEN {test} THEN {1 << n} ELSE 0 END" for n, test in enumerate(MARKS.values()))} AS mark,
    NOT offline AND isr_count >= effective AS accepted
  FROM guaranteed
), ordered AS (
  SELECT *, CASE WHEN {MARKS["short"]} THEN 0 ELSE 1::BIGINT << 60 END
    + (copies::BIGINT << 52) + (racks::BIGINT << 44) + ((NOT offline)::BIGINT << 43) + (accepted::BIGINT << 42)
    + ((accepted AND min_isr <= rf AND coalesce(isr_racks >= wanted, true))::BIGINT << 41)
    + (isr_count::BIGINT << 33) + (isr_racks::BIGINT << 25) + partition AS badness
  FROM marked
)
SELECT tid, count(*)::INT AS partitions, min(rf) AS rf, min(effective) AS effective, min(span) AS span,
  min(isr_racks) AS isr_racks,
  min((((rf - effective)::BIGINT + 1024) << 40) + (partition::BIGINT << 8) + rf) AS headroom,
  list_sort(list((partition::BIGINT << 8) + mark) FILTER (mark <> 0)) AS marks, bit_or(mark) AS mark,
  max(smallest) AS smallest, bool_and(would_do) AS would_do, min(badness) AS badness,
  arg_min({{leader: leader, replicas: replicas, isr: isr}}, badness) AS worst
FROM ordered GROUP BY tid
"""
