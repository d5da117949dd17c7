"""The DuckDB program's acked-durability: what each acks value means on a topic's worst partition."""

from __future__ import annotations

from bench.duckdb_remedies import SET_RACKS, text
from bench.duckdb_words import BY_MIN_ISR, BY_PLACEMENT, INFEASIBLE, Finding, as_json, partitions

# `badness` unpacked. `beside`: in-sync replicas in the leader's rack; `rest`: the others by rack, most first.
ACKED = """
CREATE TEMP TABLE a AS
WITH unpacked AS (
  SELECT tid, base, min_isr, caps, worst, (badness >> 52 & 255)::INT AS copies_worst, (badness >> 44 & 255)::INT AS racks_worst,
    (badness >> 43) & 1 = 1 AS led, (badness >> 42) & 1 = 1 AS accepted, (badness >> 33 & 255)::INT AS in_sync,
    (badness >> 25 & 255)::INT AS in_sync_racks, (badness & 33554431)::INT AS partition, len(worst.replicas)::INT AS size
  FROM o
), looked_up AS (
  SELECT *, getvariable('bit')[base + worst.leader] AS leader_bit, rack_bits(worst.replicas, base) AS bits,
    list_transform(worst.isr, lambda x: getvariable('bit')[base + x]) AS isr_bits,
    CASE WHEN min_isr <= size OR NOT caps THEN min_isr ELSE size END AS enforced
  FROM unpacked
), beside AS (
  SELECT *, leader_bit > 1 AS leader_racked,
    len(list_filter(isr_bits, lambda r: r > 1 AND r = leader_bit))::INT AS beside,
    len(list_filter(isr_bits, lambda r: r = 1))::INT AS isr_unracked,
    list_reverse_sort(map_values(list_aggregate(
      list_filter(isr_bits, lambda r: r > 1 AND r <> leader_bit), 'histogram')))::INT[] AS rest
  FROM looked_up
)
SELECT tid, copies_worst, racks_worst, led, accepted, in_sync, in_sync_racks, partition, size, enforced, leader_racked,
  bit_count(bits)::INT AS kip_span, bits & 1 = 1 AS unracked_there,
  in_sync_racks - (isr_unracked > 0)::INT AS racks_now,
  (beside > 0)::INT + fewest_racks(coalesce(rest, []), enforced - beside - isr_unracked) AS racks_fastest
FROM beside
"""
_LEADERLESS = "CASE WHEN NOT led THEN 'LEADER_NOT_AVAILABLE' END"
_ERROR = "CASE WHEN NOT led THEN 'LEADER_NOT_AVAILABLE' WHEN NOT accepted THEN 'NOT_ENOUGH_REPLICAS' END"
_FEW_RACKS_NOW = "coalesce(in_sync_racks < wanted, false)"
_PROPOSED = (
    f"CASE WHEN NOT led THEN 'LEADER_NOT_AVAILABLE' WHEN min_isr > size THEN 'INCONSISTENT_REPLICATION_FACTOR'"
    f" WHEN NOT accepted THEN 'NOT_ENOUGH_REPLICAS' WHEN {_FEW_RACKS_NOW} THEN 'NOT_ENOUGH_RACKS' END"
)
# A replica may come back; more replicas than there are never will. Of the proposed error only where today's is none or no
# retry helps.
_RETRIABLE = (
    "CASE WHEN NOT led THEN true WHEN NOT accepted THEN min_isr <= size OR caps WHEN min_isr > size THEN false"
    f" WHEN {_FEW_RACKS_NOW} THEN kip_span >= min_insync_racks END"
)
_VISIBLE = "led AND (accepted OR NOT caps)"


def _entry(**cells: str) -> str:
    return "{" + ", ".join(f"'{name}': {value}" for name, value in cells.items()) + "}"


def _held(value: str) -> str:
    return f"CASE WHEN accepted THEN {value} ELSE 0 END"


_UNACKNOWLEDGED = {
    "accepted": "led",
    "error": _LEADERLESS,
    "proposed_error": _LEADERLESS,
    "retriable": "CASE WHEN NOT led THEN true END",
}
_ACKS = {
    "0": _entry(
        **_UNACKNOWLEDGED,
        copies_now="0",
        racks_now="0",
        copies_worst="0",
        racks_worst="0",
        waits_for="0",
        visible_now=_VISIBLE,
        survives_leader_loss="false",
    ),
    "1": _entry(
        **_UNACKNOWLEDGED,
        copies_now="led::INT",
        racks_now="CASE WHEN led THEN leader_racked::INT ELSE 0 END",
        copies_worst="1",
        racks_worst="CASE WHEN unracked_there THEN 0 ELSE 1 END",
        waits_for="0",
        visible_now=_VISIBLE,
        survives_leader_loss="false",
    ),
    "all": _entry(
        accepted="accepted",
        error=_ERROR,
        proposed_error=_PROPOSED,
        retriable=_RETRIABLE,
        copies_now=_held("in_sync"),
        racks_now=_held("racks_now"),
        copies_worst="copies_worst",
        racks_worst="racks_worst",
        waits_for=_held("in_sync - 1"),
        visible_now="accepted",
        survives_leader_loss="copies_worst >= 2 AND NOT unclean",
    ),
    "min.insync.replicas": _entry(
        accepted="false",
        error="CASE WHEN led THEN 'INVALID_REQUIRED_ACKS' ELSE 'LEADER_NOT_AVAILABLE' END",
        proposed_error=_ERROR,
        retriable="NOT led",
        copies_now=_held("enforced"),
        racks_now=_held("racks_fastest"),
        copies_worst="copies_worst",
        racks_worst="racks_worst",
        waits_for=_held("enforced - 1"),
        fewer_than_all=_held("in_sync - enforced"),
        visible_now="accepted",
        survives_leader_loss="false",
    ),
}
_BY_ANSWER = _entry(
    today=_entry(
        NONE="partitions - n_offline - n_under",
        LEADER_NOT_AVAILABLE="n_offline",
        NOT_ENOUGH_REPLICAS="n_under",
        UNKNOWN="0",
    ),
    proposed=_entry(
        NONE="partitions - n_offline - n_above - n_few - n_few_racks",
        LEADER_NOT_AVAILABLE="n_offline",
        NOT_ENOUGH_REPLICAS="n_few",
        INCONSISTENT_REPLICATION_FACTOR="n_above",
        NOT_ENOUGH_RACKS="n_few_racks",
        UNKNOWN="0",
    ),
)


def _amount(copies: str, racks: str) -> str:
    """Such as "2 copies in 1 rack"; either may be NULL."""
    return (
        f"concat_ws(' in ', CASE WHEN {copies} = 1 THEN '1 copy' ELSE {copies} || ' copies' END,"
        f" CASE WHEN {racks} = 1 THEN '1 rack' ELSE {racks} || ' racks' END)"
    )


_FEW_RACKS = "coalesce(racks_worst < acked_racks AND smallest IS NULL, false)"
_INFEASIBLE = (
    "coalesce(acked_racks > rack_count, false) OR too_few_brokers OR coalesce(acked_racks > 1"
    " AND least_headroom + 1 > coalesce(list_sum(sizes[acked_racks:]), 0) AND racks_worst < acked_racks, false)"
)
_SPREADS = "(reassign AND target_acked_racks IS NOT NULL AND NOT grows)"
_COPIES, _RACKS = (f"CASE WHEN acked_{what} IS NOT NULL THEN {what}_worst END" for what in ("copies", "racks"))
ACKED_DURABILITY = Finding(
    "acked-durability",
    "o_acked",
    as_json(
        acks=_entry(**_ACKS),
        smallest_min_insync_replicas="smallest",
        with_min_insync_racks="pair",
        partition="partition",
        effective_min_insync_replicas="enforced",
        readings="NULL",
        partitions_by_answer=_BY_ANSWER,
    ),
    as_json(acked_copies="acked_copies", acked_racks="acked_racks"),
    f"CASE WHEN {_INFEASIBLE} THEN {INFEASIBLE} WHEN {_FEW_RACKS} OR {_SPREADS} THEN {BY_PLACEMENT}"
    f" WHEN min_isr < acked_copies OR copies_worst = 0 THEN {BY_MIN_ISR} ELSE 'configuration:topic' END",
    f"{partitions('short')} || ': acks=all guarantees at worst '"
    f" || {_amount(_COPIES, _RACKS)}"
    f" || ', ' || {_amount('acked_copies', 'acked_racks')} || ' required (min.insync.replicas ' || min_isr || ', replicas '"
    " || size || ')' || CASE WHEN copies_worst = 0 THEN ': no acks=all write is ever accepted' ELSE '' END",
    f"CASE WHEN {_FEW_RACKS} AND rack_count = 0 THEN {SET_RACKS}"
    f" WHEN {_INFEASIBLE} THEN {text('Add brokers or racks, or give these topics a tier that the cluster can meet')}"
    " WHEN differs THEN remedy"
    f" ELSE {text('Give every broker its broker.rack, then audit again: without it no placement guarantees racks')} END",
    "short",
)
