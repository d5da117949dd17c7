"""Counters: one row per topic with unhealthy partitions, one row per cluster with its leaders'."""

from __future__ import annotations

_COUNTED = {
    "unknown": "0",
    "offline": "count(*) FILTER (offline)",
    "under_min_isr": "count(*) FILTER (under)",
    "at_min_isr": "count(*) FILTER (at_min)",
    "at_min_isr_by_configuration": "count(*) FILTER (at_min AND whole)",
    "under_replicated": "count(*) FILTER (under_replicated)",
    "under_min_rack_isr": "count(*) FILTER (rack_category = 'under-min-rack-isr')",
    "at_min_rack_isr": "count(*) FILTER (rack_category = 'at-min-rack-isr')",
    "at_min_rack_isr_by_placement": "count(*) FILTER (rack_category = 'at-min-rack-isr' AND NOT at_racks)",
    "rack_unknown": "0",
    "under_min_isr_by_configuration": "count(*) FILTER (under AND whole)",
}
_LED = ("under_min_isr", "at_min_isr", "under_replicated", "under_min_rack_isr", "at_min_rack_isr", "unknown")
_SUMS = ", ".join(f"coalesce(sum({name}), 0)::BIGINT AS {name}" for name in _COUNTED)
# All replicas of an offline partition are missing: they are out of sync, or in the ISR and down.
COUNTERS = f"""
WITH of_topics AS (
  SELECT tid, {", ".join(f"({count})::BIGINT AS {name}" for name, count in _COUNTED.items())},
    ordered(flatten(list(CASE WHEN offline THEN replicas ELSE out_of_sync END ORDER BY partition))) AS out_of_sync
  FROM unhealthy GROUP BY tid
), of_clusters AS (
  SELECT cluster, any_value(captured_at) AS captured_at, any_value(snapshot_id) AS snapshot_id,
    sum(partitions)::BIGINT AS partitions, {_SUMS},
    coalesce(list_sort(list_distinct(flatten(list(out_of_sync)))), []) AS out_of_sync
  FROM topic_facts JOIN measured USING (tid) LEFT JOIN of_topics USING (tid) GROUP BY cluster
), led AS (
  SELECT cluster, leader AS broker, {", ".join(f"({_COUNTED[name]})::BIGINT AS {name}" for name in _LED)}
  FROM unhealthy JOIN topic_facts USING (tid) WHERE NOT offline GROUP BY cluster, leader
), leaders AS (
  SELECT cluster, list({{{", ".join(f"{n}: {n}" for n in ("broker", "rack", "live", *_LED))}}} ORDER BY broker) AS brokers
  FROM led JOIN broker_facts USING (cluster, broker) GROUP BY cluster
), lost AS (
  SELECT cluster, list({{rack: rack, brokers: brokers}} ORDER BY rack) AS lost_racks
  FROM (SELECT cluster, rack, list(broker ORDER BY broker) AS brokers FROM broker_facts WHERE lost GROUP BY cluster, rack)
  GROUP BY cluster
)
SELECT cluster, captured_at, snapshot_id, topic, partitions::BIGINT AS partitions, o.* EXCLUDE tid
FROM of_topics o JOIN topic_facts USING (tid) JOIN measured USING (tid)
UNION ALL BY NAME SELECT * FROM of_clusters LEFT JOIN leaders USING (cluster) LEFT JOIN lost USING (cluster)
"""
