"""What the DuckDB program knows of a topic: its unhealthy partitions by category, its outcomes, its target, its posture."""

from __future__ import annotations

from bench.peers.duckdb.partitions import MARKS, NEVER
from bench.peers.verdicts import CATEGORIES, checks


def _measures(flag: str) -> str:
    return f"""
  list_sort(list(partition) FILTER ({flag})) AS {flag}_ids,
  min((isr_count::BIGINT << 32) + rf) FILTER ({flag}) AS {flag}_least,
  bool_or(NOT whole) FILTER ({flag}) AS {flag}_shrunk, bool_and(whole) FILTER ({flag}) AS {flag}_whole,
  named(flatten(list(causes) FILTER ({flag} AND len(causes) > 0))) AS {flag}_causes,"""


def of_category(flag: str) -> str:
    """Topics with unhealthy partitions of a category, and what `bench.peers.verdicts.health` needs of them."""
    return f"""SELECT *, {flag}_ids AS ids, {flag}_shrunk AS shrunk, {flag}_whole AS whole, {flag}_causes AS causes,
      ({flag}_least >> 32)::INT AS h_isr, ({flag}_least & 4294967295)::INT AS h_rf FROM r WHERE {flag}_ids IS NOT NULL"""


# `named` gives what is down, else what lags, as one text: topics with the same trouble share a cause.
UNHEALTHY = f"""
CREATE TEMP TABLE s AS
SELECT tid, {"".join(map(_measures, CATEGORIES))}
  list_sort(list(partition) FILTER (few_racks)) AS under_racks, list_sort(list(partition) FILTER (at_racks)) AS at_racks,
  coalesce(bool_or(misplaced) AND NOT bool_or(few_racks AND NOT misplaced AND len(causes) > 0), false) AS isr_misplaced,
  named(flatten(list(causes) FILTER ((at_racks OR (few_racks AND NOT misplaced)) AND len(causes) > 0))) AS rack_causes,
  bool_or(at_risk) AS at_risk,
  count(*) FILTER (offline) AS n_offline, count(*) FILTER (under) AS n_under,
  count(*) FILTER (NOT offline AND min_isr > rf) AS n_inconsistent, count(*) FILTER (under AND min_isr <= rf) AS n_few,
  count(*) FILTER (few_racks AND NOT offline AND NOT under AND min_isr <= rf) AS n_few_racks,
  bit_or(missing) AS missing,
  count(*) FILTER (missing <> 0 AND under)::INT AS hurt_replicas, min(isr_count) FILTER (missing <> 0 AND under) AS hurt_isr,
  count(*) FILTER (missing <> 0 AND few_racks AND NOT offline)::INT AS hurt_racks,
  min(isr_racks) FILTER (missing <> 0 AND few_racks AND NOT offline) AS hurt_isr_racks
FROM u GROUP BY tid
"""
_FLAGGED = ", ".join(
    f"CASE WHEN mark & {1 << n} <> 0 THEN list_transform(list_filter(marks, lambda k: k & {1 << n} <> 0),"
    f" lambda k: (k >> {len(MARKS)})::INT) END AS {name}"
    for n, name in enumerate(MARKS)
)
_COUNTED = ", ".join(
    f"coalesce(s.{n}, 0) AS {n}" for n in ("n_offline", "n_under", "n_inconsistent", "n_few", "n_few_racks")
)
OUTCOMES = f"""
CREATE TEMP TABLE o AS
WITH joined AS (
  SELECT t.*, m.* EXCLUDE (tid, marks, mark, headroom), s.* EXCLUDE tid REPLACE ({_COUNTED}),
    (m.headroom >> 40) - 1024 AS headroom, m.headroom & 255 AS headroom_rf, {_FLAGGED},
    brokers, racks, rack_count, sizes, unnamed, elr_on,
    greatest(1, min_insync_replicas, acked_copies, acked_racks, CASE WHEN survives THEN 2 END) AS least_copies,
    greatest(0, write_headroom, CASE WHEN survives THEN 1 END) AS least_headroom,
    greatest(1, replica_racks, min_insync_racks, acked_racks, CASE WHEN survives_rack THEN 2 END) AS target_racks
  FROM t JOIN m USING (tid) JOIN b USING (cluster) LEFT JOIN s USING (tid)
), judged AS (
  SELECT *, list_filter([
      CASE WHEN min_insync_racks > rack_count + unnamed THEN 'above-known-racks' END,
      CASE WHEN above_rf IS NOT NULL THEN 'above-replication-factor' END,
      CASE WHEN above_span IS NOT NULL THEN 'above-replica-racks' END,
      CASE WHEN min_insync_racks > 1 AND unnamed > 0 THEN 'broker-without-rack' END
    ], lambda p: p IS NOT NULL) AS problems,
    outcome(wanted, under_racks) AS o_under_racks
  FROM joined
)
SELECT *, outcome(replication_factor, few_replicas) AS o_rf, outcome(min_insync_replicas, few_in_sync) AS o_min_isr,
  CASE WHEN above IS NOT NULL THEN 'FAIL' ELSE 'PASS' END AS o_above, outcome(write_headroom, no_headroom) AS o_headroom,
  CASE WHEN coalesce(NOT forbids_unclean, true) THEN 'NOT_APPLICABLE' WHEN unclean THEN 'FAIL' ELSE 'PASS' END AS o_unclean,
  outcome(replica_racks, few_racks) AS o_racks,
  CASE WHEN o_under_racks = 'PASS' AND at_racks IS NOT NULL THEN 'FAIL' ELSE o_under_racks END AS o_isr_racks,
  outcome(coalesce(acked_copies, acked_racks), short) AS o_acked,
  CASE WHEN len(problems) > 0 THEN 'FAIL' ELSE outcome(min_insync_racks, NULL) END AS o_valid,
  coalesce(offline_ids, under_ids, at_min_ids, under_replicated_ids) IS NULL AS healthy
FROM judged
"""
# The replicas needed. If acked racks are required: the min.insync.replicas that guarantees them with the replicas where they
# are (`kept`), or the first number of replicas that does with headroom, spread evenly over the racks (`spread_rf`).
TARGETS = f"""
CREATE TEMP TABLE g AS
WITH needed AS (
  SELECT *, greatest(rf, replication_factor, least(target_racks, rack_count), least_copies + least_headroom) AS needed
  FROM o
), kept AS (
  SELECT *, CASE WHEN smallest IS NOT NULL AND needed = rf AND greatest(least_copies, smallest) + least_headroom <= needed
    THEN greatest(least_copies, smallest) END AS kept,
    CASE WHEN acked_racks > 1 THEN list_filter(range(needed, needed + 9),
      lambda n: greatest(least_copies, most_held(sizes, n, acked_racks - 1) + 1) + least_headroom <= n
        AND n <= list_sum(sizes))[1] END AS spread_rf
  FROM needed
), spread AS (
  SELECT *, CASE WHEN acked_racks > 1 AND kept IS NULL AND rack_count >= acked_racks AND spread_rf IS NOT NULL
    THEN acked_racks END::INT AS target_acked_racks
  FROM kept
), replicated AS (
  SELECT *, CASE WHEN target_acked_racks IS NULL THEN needed ELSE spread_rf END::INT AS target_rf FROM spread
), aimed AS (
  SELECT *, greatest(least_copies, CASE WHEN acked_racks > 1 THEN kept END,
      CASE WHEN target_acked_racks IS NOT NULL THEN most_held(sizes, target_rf, acked_racks - 1) + 1 END,
      least(min_isr, target_rf - least_headroom))::INT AS target_min_isr,
    target_rf > rf AS grows, target_rf > brokers AS too_few_brokers, target_racks > rack_count AS too_few_racks
  FROM replicated
), placed AS (
  SELECT *, (o_racks = 'FAIL' OR (o_isr_racks = 'FAIL' AND coalesce(isr_misplaced, false))
      OR (target_acked_racks IS NOT NULL AND (o_acked = 'FAIL' OR target_min_isr < smallest)))
      AND NOT too_few_racks AND rack_count > 0 AS misplaced
  FROM aimed
)
SELECT tid, target_rf, target_min_isr, target_acked_racks, grows, too_few_brokers,
  (grows OR misplaced) AND NOT too_few_brokers AS reassign,
  CASE WHEN acked_racks > 1 THEN coalesce(list_sum(sizes[acked_racks:]), 0) END AS brokers_elsewhere,
  CASE WHEN acked_racks IS NOT NULL AND smallest < {NEVER} THEN smallest END AS smallest_min_isr,
  would_do AS racks_would_do, elr_on AND coalesce(at_risk, false) AS unsafe
FROM placed
"""
JOINED = "CREATE TEMP VIEW r AS SELECT o.* EXCLUDE (smallest, would_do), g.* EXCLUDE tid FROM o JOIN g USING (tid)"
_ENTRIES = (", ".join(f"{field}: {sql}" for field, sql in entry.items()) for entry in checks())
_CHECKS = ", ".join(f"{{{entry}}}" for entry in _ENTRIES)


def _outage(setting: str, hurt: str, value: str, source: str, now: str, now_source: str, least: str) -> str:
    """A threshold in a rack outage. There was no earlier run, so nothing counts as lowered."""
    return f"""CASE WHEN {hurt} > 0 THEN {{setting: '{setting}', step: CASE WHEN unsafe THEN 'guarded' ELSE 'lower' END,
    value: {value}, source: {source}, configured: {now}, now: {now}, now_source: {now_source},
    lower_to: CASE WHEN NOT unsafe THEN greatest({least}, 1)::INT END, since: captured_at,
    racks: list_filter(racks, lambda r, n: (missing >> n) & 1 = 1), partitions: {hurt}}} END"""


POSTURE = f"""
SELECT cluster, captured_at, snapshot_id, topic, internal, tier, partitions, [{_CHECKS}] AS checks,
  min_isr AS configured_min_insync_replicas, min_isr_source AS configured_min_insync_replicas_source,
  NULL::INT AS configured_min_insync_racks, NULL::VARCHAR AS configured_min_insync_racks_source,
  CASE WHEN hurt_replicas > 0 OR hurt_racks > 0 THEN CASE WHEN unsafe THEN 'guarded' ELSE 'lower' END END
    AS rack_outage_step,
  CASE WHEN hurt_replicas > 0 OR hurt_racks > 0 THEN list_filter([
    {_outage("min.insync.replicas", "hurt_replicas", "min_isr", "min_isr_source", "min_isr", "min_isr_source", "hurt_isr")},
    {_outage("min.insync.racks", "hurt_racks", "min_insync_racks", "'policy'", "NULL::INT", "NULL::VARCHAR", "hurt_isr_racks")}
  ], lambda e: e IS NOT NULL) END AS rack_outage,
  target_rf AS target_replication_factor, target_min_isr AS target_min_insync_replicas, target_racks, target_acked_racks,
  reassign
FROM r
"""
