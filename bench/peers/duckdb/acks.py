"""What acks=all means on a topic's worst partition (`badness`, `worst`: see `bench.peers.duckdb.partitions.MEASURED`)."""

from __future__ import annotations

# `beside`: in-sync replicas in the leader's rack; `rest`: the others by rack, most first.
WORST = """
CREATE TEMP TABLE a AS
WITH unpacked AS (
  SELECT tid, base, min_isr, caps, wanted, worst, (badness >> 52 & 255)::INT AS w_copies, (badness >> 44 & 255)::INT AS w_racks,
    (badness >> 43) & 1 = 1 AS w_led, (badness >> 42) & 1 = 1 AS w_accepted, (badness >> 33 & 255)::INT AS w_isr_count,
    (badness >> 25 & 255)::INT AS isr_racks, (badness & 33554431)::INT AS w_partition, len(worst.replicas)::INT AS w_rf
  FROM o
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
