"""Facts about brokers, clusters and topics as tables. Both peers measure partitions with them.

Brokers are numbered over the whole fleet, from 1, cluster after cluster. `base` is the number of a cluster's broker 0. Racks are
bits. The lowest bit is for all brokers without broker.rack. A requirement is NULL if the tier doesn't have it.
"""

from __future__ import annotations

BROKERS = """
CREATE TEMP TABLE broker_facts AS
WITH known AS (
  SELECT cluster, broker, rack, live, configs, config_sources, coalesce(offline_log_dirs, 0) > 0 AS disk,
    CAST(split_part(kafka_version, '.', 1) AS INT) * 1000 + CAST(split_part(kafka_version, '.', 2) AS INT) AS release,
    release >= 3007 AS caps,
    rack IS NOT NULL AND NOT bool_or(live) OVER mates AS lost, count(*) OVER mates AS mates,
    CASE WHEN rack IS NULL THEN 1 ELSE 1::BIGINT << dense_rank() OVER (PARTITION BY cluster ORDER BY rack) END AS bit
  FROM brokers WINDOW mates AS (PARTITION BY cluster, rack)
)
SELECT *, row_number() OVER (ORDER BY cluster, broker) AS place,
  CASE WHEN NOT live THEN CASE WHEN lost AND mates > 1 THEN 'rack:' || rack || ' down'
    ELSE 'broker:' || broker || ' down' END WHEN disk THEN 'broker:' || broker || ' disk-offline' END AS fault,
  'broker:' || broker || CASE WHEN disk THEN ' disk-offline' ELSE ' lagging' END AS lag
FROM known ORDER BY place
"""
# `elects`: do controllers elect unclean leaders? KRaft's do since 3.9. `sizes`: brokers in each named rack, the most first.
# `lost`: the bits of racks that are down completely.
CLUSTERS = """
CREATE TEMP TABLE cluster_facts AS
WITH racked AS (
  SELECT cluster, list(size ORDER BY size DESC) AS sizes
  FROM (SELECT cluster, count(*)::INT AS size FROM broker_facts WHERE rack IS NOT NULL GROUP BY cluster, rack)
  GROUP BY cluster
), grouped AS (
  SELECT cluster, min(place)::INT AS base, count(*)::INT AS brokers, any_value(caps) AS caps, min(release) AS release,
    CAST(coalesce(any_value(configs['min.insync.replicas']), '1') AS INT) AS min_isr,
    CASE WHEN any_value(configs['min.insync.replicas']) IS NULL THEN 'default'
      ELSE coalesce(any_value(config_sources['min.insync.replicas']), 'broker') END AS min_isr_source,
    list(DISTINCT rack ORDER BY rack) FILTER (rack IS NOT NULL) AS racks,
    bool_or(rack IS NULL)::INT AS unnamed,
    coalesce(bit_or(bit) FILTER (lost), 0) AS lost
  FROM broker_facts GROUP BY cluster
)
SELECT grouped.*, quorum_mode <> 'kraft' OR release >= 3009 AS elects, coalesce(sizes, []) AS sizes,
  len(coalesce(racks, []))::INT AS rack_count,
  coalesce(features['eligible.leader.replicas.version'], 0) > 0 AS elr_on
FROM grouped LEFT JOIN racked USING (cluster) JOIN clusters USING (cluster)
"""
TOPICS = """
CREATE TEMP TABLE topic_facts AS
SELECT row_number() OVER ()::INT AS tid, cluster, captured_at, snapshot_id, topic, internal, tier, base, caps, lost,
  coalesce(CAST(configs['min.insync.replicas'] AS INT), cluster_facts.min_isr) AS min_isr,
  CASE WHEN configs['min.insync.replicas'] IS NULL THEN cluster_facts.min_isr_source
    ELSE coalesce(config_sources['min.insync.replicas'], 'topic') END AS min_isr_source,
  CAST(coalesce(configs['unclean.leader.election.enable'], 'false') AS BOOLEAN) AS unclean, unclean AND elects AS elects_unclean,
  CASE WHEN configs['unclean.leader.election.enable'] IS NULL THEN 'broker'
    ELSE coalesce(config_sources['unclean.leader.election.enable'], 'topic') END AS unclean_source,
  tiers.* EXCLUDE tier,
  CASE WHEN min_insync_racks > 1 THEN min_insync_racks END AS wanted
FROM topics JOIN cluster_facts USING (cluster)
LEFT JOIN (SELECT cluster, resource AS topic, tier FROM resolved WHERE resource_type = 'topic') USING (cluster, topic)
LEFT JOIN tiers USING (tier)
"""
