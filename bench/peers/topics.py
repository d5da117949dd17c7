"""Derives a topic's rows from its measured partitions: its problems by category, outcomes, target and posture."""

from __future__ import annotations

from bench.peers.verdicts import checks

NEVER = 1_000_000
"""Used as a min.insync.replicas that no partition can have."""
MEASURES = ("unhealthy", "measured", "acks")
"""The tables that an engine makes. `tid` is a topic's number in `topic_facts`.

- unhealthy: partitions with a category of KIP-427 or KIP-1290.
  `causes`: brokers that are down or failed, else those that lag. `missing`: bits of lost racks with replicas.
  `few_racks`: its ISR spans fewer racks than wanted, led or not. `misplaced`: so do its replicas.
  `at_risk`: a changed min.insync.replicas may cost it eligible leaders.
- measured: a row per topic.
  The lowest rf, effective min ISR, span, isr_racks and headroom (headroom_rf: replicas of the first partition with it).
  `smallest`: the min.insync.replicas that guarantees the acked racks, else NEVER. `would_do`: the replicas suffice for
  KIP-1290's pair.
  Lists of partitions that fall short, NULL if none does: in replicas (few_replicas), effective min ISR (few_in_sync), replicas
  for min.insync.replicas (above), headroom (no_headroom), racks (few_racks), what acks=all guarantees (short), and replicas or
  racks for min.insync.racks (above_rf, above_span).
- acks: what acks=all means on each topic's worst partition, in columns w_...; see `bench.peers.verdicts`.
"""

# `named` returns brokers that are down or failed, else those that lag, as one text, so that topics share a cause.
CATEGORIES = """
CREATE TEMP TABLE categories AS
SELECT tid, category, list_sort(list(partition)) AS ids, bool_and(whole) AS whole,
  bool_or(NOT whole AND NOT (category = 'under-min-isr' AND effective > rf)) AS shrunk,
  named(flatten(list(causes) FILTER (len(causes) > 0))) AS causes, min({isr: isr_count, rf: rf}) AS least
FROM (SELECT *, unnest(categories) AS category FROM unhealthy) GROUP BY tid, category
"""
TROUBLES = """
CREATE TEMP TABLE troubles AS
SELECT tid,
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
FROM unhealthy GROUP BY tid
"""
_COUNTED = ", ".join(
    f"coalesce(troubles.{n}, 0) AS {n}" for n in ("n_offline", "n_under", "n_inconsistent", "n_few", "n_few_racks")
)
OUTCOMES = f"""
CREATE TEMP TABLE outcomes AS
WITH joined AS (
  SELECT topic_facts.*, measured.* EXCLUDE tid, troubles.* EXCLUDE tid REPLACE ({_COUNTED}),
    brokers, racks, rack_count, sizes, unnamed, elr_on,
    greatest(1, min_insync_replicas, acked_copies, acked_racks, CASE WHEN survives THEN 2 END) AS least_copies,
    greatest(0, write_headroom, CASE WHEN survives THEN 1 END) AS least_headroom,
    greatest(1, replica_racks, min_insync_racks, acked_racks, CASE WHEN survives_rack THEN 2 END) AS target_racks
  FROM topic_facts JOIN measured USING (tid) JOIN cluster_facts USING (cluster) LEFT JOIN troubles USING (tid)
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
  CASE WHEN len(problems) > 0 THEN 'FAIL' ELSE outcome(min_insync_racks, NULL) END AS o_valid
FROM judged
"""
# The replicas needed. If acked racks are required, either the min.insync.replicas that guarantees them with the present replicas
# (`kept`), or the first number of replicas that does so with headroom, spread evenly over the racks (`spread_rf`).
TARGETS = f"""
CREATE TEMP TABLE targets AS
WITH needed AS (
  SELECT *, greatest(rf, replication_factor, least(target_racks, rack_count), least_copies + least_headroom,
    CASE WHEN min_isr <= rf AND min_isr + least_headroom <= brokers THEN min_isr + least_headroom END) AS needed
  FROM outcomes
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
RESULT = """
CREATE TEMP VIEW result AS
SELECT outcomes.* EXCLUDE (smallest, would_do), targets.* EXCLUDE tid FROM outcomes JOIN targets USING (tid)
"""


def _outage(setting: str, hurt: str, value: str, source: str, now: str, now_source: str, least: str) -> str:
    """A threshold in a rack outage. There is no earlier run, so nothing counts as lowered."""
    return f"""CASE WHEN {hurt} > 0 THEN {{setting: '{setting}', step: CASE WHEN unsafe THEN 'guarded' ELSE 'lower' END,
    value: {value}, source: {source}, configured: {now}, now: {now}, now_source: {now_source},
    lower_to: CASE WHEN NOT unsafe THEN greatest({least}, 1)::INT END, since: captured_at,
    racks: list_filter(racks, lambda r, n: (missing >> n) & 1 = 1), partitions: {hurt}}} END"""


POSTURE = f"""
SELECT cluster, captured_at, snapshot_id, topic, internal, tier, partitions, {checks()} AS checks,
  min_isr AS configured_min_insync_replicas, min_isr_source AS configured_min_insync_replicas_source,
  NULL::INT AS configured_min_insync_racks, NULL::VARCHAR AS configured_min_insync_racks_source,
  CASE WHEN hurt_replicas > 0 OR hurt_racks > 0 THEN CASE WHEN unsafe THEN 'guarded' ELSE 'lower' END END
    AS rack_outage_step,
  CASE WHEN hurt_replicas > 0 OR hurt_racks > 0 THEN list_filter([
    {_outage("min.insync.replicas", "hurt_replicas", "min_isr", "min_isr_source", "min_isr", "min_isr_source", "hurt_isr")},
    {_outage("min.insync.racks", "hurt_racks", "min_insync_racks", "'policy'", "NULL::INT", "NULL::VARCHAR", "hurt_isr_racks")}
  ], lambda e: e IS NOT NULL) END AS rack_outage,
  target_rf AS target_replication_factor, target_min_isr AS target_min_insync_replicas, target_racks, target_acked_racks,
  reassign, NULL::BOOLEAN AS target_own_racks, NULL::BOOLEAN AS target_rack_balance
FROM result
"""
# `cli_differs`: kafka-topics compares with min.insync.replicas as configured, and counts leaderless partitions.
HEALTH = """
SELECT cluster, captured_at, snapshot_id, topic, partition, categories,
  at_min AND whole AS by_configuration, u.min_isr AS min_insync_replicas,
  effective AS effective_min_insync_replicas, rf::INT AS replication_factor, out_of_sync,
  array_to_string(causes, ', ') AS cause,
  nullif(concat_ws(';', CASE WHEN offline THEN 'leaderless' END,
    CASE WHEN NOT offline AND isr_count >= effective AND isr_count < u.min_isr
      THEN concat_ws(':', 'under', u.min_isr, effective) END,
    CASE WHEN NOT offline AND u.min_isr <> effective AND isr_count = effective THEN 'not-at' END), '') AS cli_differs,
  true AS categories_known, isr_racks, min_insync_racks, rack_category,
  rack_category = 'at-min-rack-isr' AND NOT at_racks AS rack_by_placement,
  CASE WHEN offline THEN 'LEADER_NOT_AVAILABLE' WHEN under THEN 'NOT_ENOUGH_REPLICAS' ELSE 'NONE' END AS acks_all_error,
  CASE WHEN acks_all_error = 'NONE' AND rack_category = 'under-min-rack-isr' THEN 'NOT_ENOUGH_RACKS'
    ELSE acks_all_error END AS acks_all_kip_1290_error
FROM unhealthy u JOIN topic_facts USING (tid)
"""
