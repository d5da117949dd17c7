"""`python -m bench.peers.duckdb inputs.json folder`: measures partitions with DuckDB; see `bench.peers.program`.

Facts about brokers are in lists over the whole fleet's brokers: `getvariable('bit')[base + id]`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from bench.peers.program import Files, run, set_lists
from bench.peers.topics import NEVER

LISTS = ("bit", "live", "fault", "lag")
MACROS = (
    "rack_bits(ids, base) AS coalesce(list_bit_or(list_transform(ids, lambda x: getvariable('bit')[base + x])), 0)",
    # The fewest racks that `members` replicas can be in. held: replicas by rack, the most first.
    "fewest_racks(held, members) AS"
    " len(list_filter(range(1, len(held) + 1), lambda n: coalesce(list_sum(held[1:n - 1]), 0) < members))"
    " + greatest(members - coalesce(list_sum(held), 0), 0)",
)
PARTITIONS = """
CREATE TEMP TABLE read AS
SELECT tid, base, partition, leader, replicas, isr, elr, len(replicas)::UTINYINT AS rf, len(isr)::UTINYINT AS isr_count,
  NOT coalesce(getvariable('live')[base + leader], false) AS offline, rack_bits(replicas, base) AS bits
FROM partitions JOIN topic_facts USING (cluster, topic)
"""
# Partitions with several replicas in a rack: how many replicas the one, two, ... fullest racks have together. There are few
# distinct lists of racks, so each is counted once.
CROWDED = """
CREATE TEMP TABLE crowded AS
WITH racked AS (
  SELECT tid, partition, list_transform(replicas, lambda x: getvariable('bit')[base + x]) AS racks
  FROM read WHERE bit_count(bits) < rf
), counted AS (
  SELECT racks, len(list_filter(racks, lambda r: r = 1))::INT AS unracked,
    list_reverse_sort(map_values(list_aggregate(list_filter(racks, lambda r: r > 1), 'histogram'))) AS held
  FROM (SELECT DISTINCT racks FROM racked)
)
SELECT tid, partition, unracked,
  coalesce(list_transform(range(1, len(held) + 1), lambda n: list_sum(held[1:n])), [])::INT[] AS held_by
FROM racked JOIN counted USING (racks)
"""
# Unhealthy partitions, and those with no more racks than wanted. `racked`: KIP-1290's category, led or not.
UNHEALTHY = """
CREATE TEMP TABLE unhealthy AS
WITH facts AS (
  SELECT read.*, min_isr, caps, wanted, min_insync_racks, lost,
    CASE WHEN min_isr <= rf OR NOT caps THEN min_isr ELSE rf END AS effective
  FROM read JOIN topic_facts USING (tid)
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
    CASE WHEN len(absent) > 0 THEN list_filter(list_transform(absent, lambda x: getvariable('fault')[base + x]),
      lambda d: d IS NOT NULL) ELSE [] END AS faults,
    offline AND leader IS NULL AND len(list_filter(list_concat(isr, elr),
      lambda x: getvariable('fault')[base + x] IS NULL)) > 0 AS electable
  FROM racked
)
SELECT tid, base, partition, leader, replicas, rf, isr_count, min_isr, effective, offline, under, at_min,
  under_replicated, whole, out_of_sync, isr_racks, racked = 'under-min-rack-isr' AS few_racks, rack_category,
  categories(offline, under, at_min, under_replicated) AS categories,
  racked = 'under-min-rack-isr' AND kip_span < wanted AS misplaced,
  racked = 'at-min-rack-isr' AND NOT whole AND kip_span > min_insync_racks AS at_racks,
  CASE WHEN electable THEN ['no-leader'] WHEN len(faults) > 0 THEN ordered(faults)
    WHEN NOT offline AND len(out_of_sync) > 0 THEN list_transform(out_of_sync, lambda x: getvariable('lag')[base + x])
    WHEN offline THEN ['no-leader'] ELSE [] END AS causes,
  CASE WHEN lost <> 0 AND len(absent) > 0 THEN rack_bits(absent, base) & lost ELSE 0 END AS missing,
  offline OR isr_count = 0 OR len(elr) > 0 AS at_risk
FROM judged WHERE offline OR under OR at_min OR under_replicated OR rack_category <> 'none'
"""
# How a topic's partitions fall short, one bit each. `marks` has 8 bits, below the partition's id.
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
# The worst case of acks=all is over every ISR of the effective size: first replicas without a rack, then those in the racks with
# most replicas (`held_by`, NULL if no rack has two). `badness` sorts partitions, worst first: those that fall short, then by
# copies, racks, rejected writes, ISR and id.
TOTALS = f"""
CREATE TEMP TABLE totals AS
WITH facts AS (
  SELECT read.*, topic_facts.* EXCLUDE (tid, base), CASE WHEN min_isr <= rf OR NOT caps THEN min_isr ELSE rf END AS effective,
    CASE WHEN min_isr <= rf THEN min_isr WHEN caps THEN rf ELSE 0 END AS copies,
    bit_count(bits)::INT AS kip_span, bit_count(bits >> 1)::INT AS span,
    CASE WHEN isr_count < rf THEN bit_count(rack_bits(isr, read.base)) ELSE bit_count(bits) END::INT AS isr_racks,
    coalesce(unracked, bits & 1)::INT AS unracked, held_by
  FROM read JOIN topic_facts USING (tid) LEFT JOIN crowded USING (tid, partition)
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
_FLAGGED = ", ".join(
    f"CASE WHEN mark & {1 << n} <> 0 THEN list_transform(list_filter(marks, lambda k: k & {1 << n} <> 0),"
    f" lambda k: (k >> {len(MARKS)})::INT) END AS {name}"
    for n, name in enumerate(MARKS)
)
MEASURED = f"""
CREATE TEMP VIEW measured AS
SELECT * EXCLUDE (marks, mark, headroom, badness, worst), (headroom >> 40) - 1024 AS headroom,
  headroom & 255 AS headroom_rf, {_FLAGGED}
FROM totals
"""
# `beside`: in-sync replicas in the leader's rack. `rest`: the others by rack, the most first.
ACKS = """
CREATE TEMP TABLE acks AS
WITH unpacked AS (
  SELECT tid, base, min_isr, caps, wanted, worst, (badness >> 52 & 255)::INT AS w_copies, (badness >> 44 & 255)::INT AS w_racks,
    (badness >> 43) & 1 = 1 AS w_led, (badness >> 42) & 1 = 1 AS w_accepted, (badness >> 33 & 255)::INT AS w_isr_count,
    (badness >> 25 & 255)::INT AS isr_racks, (badness & 33554431)::INT AS w_partition, len(worst.replicas)::INT AS w_rf
  FROM totals JOIN topic_facts USING (tid)
), looked_up AS (
  SELECT *, getvariable('bit')[base + worst.leader] AS leader_bit, rack_bits(worst.replicas, base) AS bits,
    list_transform(worst.isr, lambda x: getvariable('bit')[base + x]) AS isr_bits,
    CASE WHEN min_isr <= w_rf OR NOT caps THEN min_isr ELSE w_rf END AS w_effective
  FROM unpacked
), beside AS (
  SELECT *, len(list_filter(isr_bits, lambda r: r > 1 AND r = leader_bit))::INT AS beside,
    len(list_filter(isr_bits, lambda r: r = 1))::INT AS isr_unracked,
    list_reverse_sort(map_values(list_aggregate(
      list_filter(isr_bits, lambda r: r > 1 AND r <> leader_bit), 'histogram')))::INT[] AS rest
  FROM looked_up
)
SELECT tid, w_copies, w_racks, w_led, w_accepted, w_isr_count, w_partition, w_rf, w_effective,
  coalesce(isr_racks < wanted, false) AS w_few_racks, leader_bit > 1 AS w_leader_racked,
  bit_count(bits)::INT AS w_kip_span, bits & 1 = 1 AS w_unracked, isr_racks - (isr_unracked > 0)::INT AS w_racks_now,
  (beside > 0)::INT + fewest_racks(coalesce(rest, []), w_effective - beside - isr_unracked) AS w_fastest
FROM beside
"""


def measure(db: duckdb.DuckDBPyConnection, _: Files) -> None:
    """Make the tables of `topics.MEASURES`."""
    for macro in MACROS:
        db.execute(f"CREATE TEMP MACRO {macro}")
    set_lists(db, LISTS)
    for statement in (PARTITIONS, CROWDED, UNHEALTHY, TOTALS, MEASURED, ACKS):
        db.execute(statement)


if __name__ == "__main__":
    run(measure, json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
