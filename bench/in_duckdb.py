"""The same partition health, posture and findings of topics in DuckDB: what `evaluate` is held against.

`python -m bench.in_duckdb inputs.json folder`; see `bench.beside`. It knows what it may of a made-up fleet: everything could be
read, nothing is being reassigned, broker ids count from 0, and a setting that no topic has is that of the brokers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

BROKERS = """
CREATE TEMP TABLE b AS
WITH known AS (
  SELECT cluster, broker, rack, live, coalesce(offline_log_dirs, 0) > 0 AS disk,
    CAST(coalesce(configs['min.insync.replicas'], '1') AS INT) AS min_isr,
    CAST(split_part(kafka_version, '.', 1) AS INT) * 1000 + CAST(split_part(kafka_version, '.',
      2) AS INT) >= 3007 AS caps,
    coalesce(bool_or(live) OVER mates, true) AND count(*) OVER mates > 1 AS mates_live,
    count(*) OVER mates AS mates, CASE WHEN rack IS NULL THEN 0 ELSE dense_rank()
      OVER (PARTITION BY cluster ORDER BY rack) END AS number
  FROM read_parquet($brokers) WINDOW mates AS (PARTITION BY cluster, rack)
)
SELECT cluster, count(DISTINCT rack) AS racks, count(*) FILTER (rack IS NULL) AS unracked,
  list(CASE WHEN rack IS NULL THEN 0 ELSE 1::BIGINT << number END ORDER BY broker) AS bit,
  list(number ORDER BY broker) AS rack_no, list(live ORDER BY broker) AS live,
    list(min_isr ORDER BY broker) AS min_isr,
  list(caps ORDER BY broker) AS caps,
  list(CASE WHEN NOT live THEN CASE WHEN rack IS NOT NULL AND mates > 1 AND NOT mates_live
    THEN 'rack:' || rack || ' down'
    ELSE 'broker:' || broker || ' down' END END ORDER BY broker) AS down,
  list('broker:' || broker || CASE WHEN disk THEN ' log dir offline' ELSE ' lagging' END ORDER BY broker) AS lag
FROM known GROUP BY cluster
"""
TOPICS = """
CREATE TEMP TABLE t AS
SELECT cluster, topic, internal, tier, CAST(configs['min.insync.replicas'] AS INT) AS own_min_isr,
  CAST(coalesce(configs['unclean.leader.election.enable'], 'false') AS BOOLEAN) AS unclean, r.* EXCLUDE tier
FROM read_parquet($topics)
LEFT JOIN (SELECT cluster, resource AS topic, tier
  FROM read_parquet($resolved) WHERE resource_type = 'topic') USING (cluster, topic)
LEFT JOIN tiers r USING (tier)
"""
PARTITIONS = """
CREATE TEMP VIEW p AS
WITH counted AS (
  SELECT cluster, topic, partition, leader, replicas, isr, elr, len(replicas) AS rf, len(isr) AS isr_count,
    NOT coalesce(b.live[leader + 1], false) AS offline,
    coalesce(own_min_isr, b.min_isr[leader + 1], list_min(list_transform(replicas,
      lambda x: b.min_isr[x + 1]))) AS min_isr,
    coalesce(b.caps[leader + 1], list_bool_or(list_transform(replicas, lambda x: b.caps[x + 1]))) AS caps,
    list_bit_or(list_transform(replicas, lambda x: bit[x + 1])) AS replica_bits,
    coalesce(list_bit_or(list_transform(isr, lambda x: bit[x + 1])), 0) AS isr_bits,
    b.unracked > 0 AND list_bool_or(list_transform(isr, lambda x: bit[x + 1] = 0)) AS isr_unracked,
    b.unracked > 0 AND list_bool_or(list_transform(replicas, lambda x: bit[x + 1] = 0)) AS unracked,
    min_insync_racks AS min_racks, CASE WHEN min_insync_racks > 1 THEN min_insync_racks END AS wanted,
    replication_factor, min_insync_replicas, write_headroom, replica_racks, acked_copies, acked_racks,
    CASE WHEN acked_racks IS NOT NULL THEN list_transform(replicas, lambda x: rack_no[x + 1]) END AS in_racks,
      down, lag
  FROM read_parquet($partitions) JOIN t USING (cluster, topic) JOIN b USING (cluster)
), spans AS (
  SELECT *, CASE WHEN min_isr <= rf OR NOT caps THEN min_isr ELSE rf END AS effective,
    CASE WHEN min_isr <= rf THEN min_isr WHEN caps THEN rf ELSE 0 END AS copies,
    bit_count(replica_bits) AS span, bit_count(replica_bits) + unracked::INT AS kip_span,
    bit_count(isr_bits) + coalesce(isr_unracked, false)::INT AS isr_racks
  FROM counted
), judged AS (
  SELECT *, NOT offline AND isr_count < effective AS under, NOT offline AND isr_count = effective AS at_min,
    NOT offline AND isr_count < rf AS under_replicated, isr_count >= rf AS whole,
    CASE WHEN isr_racks < wanted THEN 'under-min-rack-isr' WHEN isr_racks = wanted THEN 'at-min-rack-isr'
      ELSE 'none' END AS racked,
    CASE WHEN acked_racks IS NOT NULL THEN list_reverse_sort(list_transform(list_distinct(list_filter(in_racks,
      lambda r: r > 0)),
      lambda r: len(list_filter(in_racks, lambda x: x = r)))) END AS held,
    copies - CASE WHEN acked_racks IS NOT NULL THEN len(list_filter(in_racks, lambda r: r = 0)) END AS members
  FROM spans
)
SELECT *, racked = 'at-min-rack-isr' AND NOT whole AND kip_span > min_racks AS at_racks,
  CASE WHEN offline THEN 'none' ELSE racked END AS rack_category,
  CASE WHEN acked_racks IS NULL THEN NULL WHEN members <= 0 THEN 0
    ELSE coalesce(list_position(list_transform(range(1, len(held) + 1), lambda k: list_sum(held[1:k]) >= members),
      true),
      len(held) + members - list_sum(held)) END AS racks_worst
FROM judged
"""
HEALTH = """
SELECT cluster, topic, partition,
  list_filter([CASE WHEN offline THEN 'offline' END, CASE WHEN under THEN 'under-min-isr' END, CASE
    WHEN at_min THEN 'at-min-isr' END,
    CASE WHEN under_replicated THEN 'under-replicated' END], lambda c: c IS NOT NULL) AS categories,
  at_min AND whole AS by_configuration, leader, replicas, isr, elr, min_isr AS min_insync_replicas,
  effective AS effective_min_insync_replicas, rf AS replication_factor,
  list_filter(replicas, lambda x: NOT list_contains(isr, x)) AS out_of_sync,
  CASE
    WHEN whole AND NOT offline THEN ''
    WHEN len(list_filter(replicas, lambda x: (offline OR NOT list_contains(isr, x)) AND down[x + 1] IS NOT NULL)) > 0
    THEN array_to_string(ordered(list_transform(
      list_filter(replicas, lambda x: (offline OR NOT list_contains(isr, x)) AND down[x + 1] IS NOT NULL),
        lambda x: down[x + 1])), ', ')
    WHEN len(isr) < len(replicas)
    THEN array_to_string(list_transform(list_filter(replicas, lambda x: NOT list_contains(isr, x)),
      lambda x: lag[x + 1]), ', ')
    WHEN offline THEN 'no leader elected' ELSE '' END AS cause,
  isr_racks, min_racks AS min_insync_racks, rack_category, rack_category = 'at-min-rack-isr'
    AND NOT at_racks AS rack_by_placement,
  CASE WHEN offline THEN 'LEADER_NOT_AVAILABLE' WHEN under THEN 'NOT_ENOUGH_REPLICAS'
    ELSE 'NONE' END AS acks_all_error,
  CASE WHEN offline THEN 'LEADER_NOT_AVAILABLE' WHEN under THEN 'NOT_ENOUGH_REPLICAS'
    WHEN rack_category = 'under-min-rack-isr' THEN 'NOT_ENOUGH_RACKS' ELSE 'NONE' END AS acks_all_kip_1290_error
FROM p WHERE offline OR under OR at_min OR under_replicated OR rack_category <> 'none'
"""
MEASURED = """
CREATE TEMP TABLE m AS
SELECT cluster, topic, count(*)::INT AS partitions, min(rf) AS rf, min(effective) AS effective,
  min(rf - effective) AS headroom,
  min(span) AS span, min(isr_racks) AS isr_racks, max(min_isr - rf) AS gap, arg_max(min_isr, min_isr - rf) AS gap_isr,
  arg_max(rf, min_isr - rf) AS gap_rf, arg_max(caps, min_isr - rf) AS gap_caps,
  list(partition ORDER BY partition) FILTER (rf < replication_factor) AS few_replicas,
  list(partition ORDER BY partition) FILTER (effective < min_insync_replicas) AS few_in_sync,
  list(partition ORDER BY partition) FILTER (min_isr > rf) AS above,
  list(partition ORDER BY partition) FILTER (rf - effective < write_headroom) AS no_room,
  list(partition ORDER BY partition) FILTER (span < replica_racks) AS few_racks,
  list(partition ORDER BY partition) FILTER (isr_racks < wanted) AS under_racks,
  list(partition ORDER BY partition) FILTER (at_racks) AS at_racks,
  list(partition ORDER BY partition) FILTER (copies < acked_copies OR racks_worst < acked_racks) AS short,
  list(partition ORDER BY partition) FILTER (rf < min_racks) AS above_rf,
  list(partition ORDER BY partition) FILTER (kip_span < min_racks) AS above_span,
  list(partition ORDER BY partition) FILTER (offline) AS offline,
    list(partition ORDER BY partition) FILTER (under) AS under,
  list(partition ORDER BY partition) FILTER (at_min) AS at_min,
    list(partition ORDER BY partition) FILTER (under_replicated) AS under_replicated
FROM p GROUP BY cluster, topic
"""
OUTCOMES = """
CREATE TEMP TABLE o AS
SELECT t.*, m.* EXCLUDE (cluster, topic),
  outcome(t.replication_factor, few_replicas) AS o_rf, outcome(t.min_insync_replicas, few_in_sync) AS o_min_isr,
  CASE WHEN gap > 0 THEN 'FAIL' ELSE 'PASS' END AS o_gap, outcome(t.write_headroom, no_room) AS o_room,
  CASE WHEN unclean_leader_election IS DISTINCT FROM false THEN 'NOT_APPLICABLE' WHEN unclean THEN 'FAIL'
    ELSE 'PASS' END AS o_unclean,
  outcome(t.replica_racks, few_racks) AS o_racks,
  outcome(CASE WHEN min_insync_racks > 1 THEN min_insync_racks END, under_racks) AS o_isr_racks,
  CASE WHEN acked_copies IS NULL AND acked_racks IS NULL THEN 'NOT_APPLICABLE' WHEN len(short) > 0 THEN 'FAIL'
    ELSE 'PASS' END AS o_acked,
  CASE WHEN min_insync_racks IS NULL THEN 'NOT_APPLICABLE'
    WHEN min_insync_racks > b.racks + least(b.unracked, 1) OR len(above_rf) > 0 OR len(above_span) > 0
      OR (min_insync_racks > 1 AND b.unracked > 0) THEN 'FAIL' ELSE 'PASS' END AS o_valid,
  CASE WHEN min_insync_racks > b.racks + least(b.unracked, 1) THEN NULL WHEN len(above_rf) > 0 THEN above_rf
    WHEN len(above_span) > 0 THEN above_span END AS invalid
FROM t JOIN m USING (cluster, topic) JOIN b USING (cluster)
"""
# Control, outcome, observed, required.
SCALARS = (
    ("replication_factor", "o_rf", "rf", "replication_factor"),
    ("min_insync_replicas", "o_min_isr", "effective", "min_insync_replicas"),
    ("min_isr_within_replication_factor", "o_gap", "gap_isr", "gap_rf"),
    ("write_headroom", "o_room", "headroom", "write_headroom"),
    ("unclean_leader_election", "o_unclean", "unclean::INT", "0"),
    ("replica_rack_spread", "o_racks", "span", "replica_racks"),
    ("isr_rack_spread", "o_isr_racks", "isr_racks", "min_insync_racks"),
)
# Control, category, outcome, partitions.
FINDINGS = (
    ("replication-factor", "NULL", "o_rf", "few_replicas"),
    ("min-insync-replicas", "NULL", "o_min_isr", "few_in_sync"),
    (
        "min-isr-within-replication-factor",
        "CASE WHEN gap_caps THEN 'silent-downgrade' ELSE 'outage' END",
        "o_gap",
        "above",
    ),
    ("write-headroom", "NULL", "o_room", "no_room"),
    ("unclean-leader-election", "NULL", "o_unclean", "NULL::INT[]"),
    ("replica-rack-spread", "NULL", "o_racks", "few_racks"),
    (
        "isr-rack-spread",
        "CASE WHEN o_isr_racks = 'FAIL' THEN 'under-min-rack-isr' ELSE 'at-min-rack-isr' END",
        "CASE WHEN o_isr_racks = 'PASS' AND len(at_racks) > 0 THEN 'FAIL' ELSE o_isr_racks END",
        "CASE WHEN o_isr_racks = 'FAIL' THEN under_racks ELSE at_racks END",
    ),
    ("acked-durability", "NULL", "o_acked", "short"),
    ("min-insync-racks-valid", "NULL", "o_valid", "invalid"),
    (
        "partition-health",
        "NULL",
        "CASE WHEN offline IS NULL AND under IS NULL AND at_min IS NULL AND under_replicated IS NULL THEN 'PASS' END",
        "NULL",
    ),
    ("partition-health", "'offline'", "CASE WHEN offline IS NOT NULL THEN 'FAIL' END", "offline"),
    ("partition-health", "'under-min-isr'", "CASE WHEN under IS NOT NULL THEN 'FAIL' END", "under"),
    ("partition-health", "'at-min-isr'", "CASE WHEN at_min IS NOT NULL THEN 'FAIL' END", "at_min"),
    (
        "partition-health",
        "'under-replicated'",
        "CASE WHEN under_replicated IS NOT NULL THEN 'FAIL' END",
        "under_replicated",
    ),
)


def run(inputs: dict, folder: Path) -> None:
    """inputs: files by table, and the tiers; writes health.parquet, posture.parquet and findings.parquet."""
    db = duckdb.connect()
    db.execute(
        f"SET memory_limit = '2500MB'; SET preserve_insertion_order = false; SET temp_directory = '{folder}/spill'"
    )
    tiers = [{"tier": name, **{key: stated.get(key) for key in KEYS}} for name, stated in inputs["tiers"].items()]
    (folder / "tiers.json").write_text(json.dumps(tiers))
    kinds = ", ".join(f"{k}: '{'BOOLEAN' if k == 'unclean_leader_election' else 'INT'}'" for k in KEYS)
    db.execute(
        f"CREATE TEMP TABLE tiers AS FROM read_json('{folder}/tiers.json', columns = {{tier: 'VARCHAR', {kinds}}})"
    )
    db.execute(
        "CREATE TEMP MACRO outcome(wanted, failing) AS CASE WHEN wanted IS NULL THEN 'NOT_APPLICABLE'"
        " WHEN len(failing) > 0 THEN 'FAIL' ELSE 'PASS' END"
    )
    # Distinct, the first of each where it stands.
    db.execute("CREATE TEMP MACRO ordered(l) AS list_filter(l, lambda x, i: list_position(l, x) = i)")
    for statement in (BROKERS, TOPICS, PARTITIONS, MEASURED, OUTCOMES):
        for name in ("brokers", "topics", "resolved", "partitions"):
            files = ", ".join("'" + path.replace("'", "''") + "'" for path in inputs[name])
            statement = statement.replace(f"${name}", f"[{files}]")
        db.execute(statement)
    posture = ", ".join(
        f"CASE WHEN {outcome} IN ('PASS', 'FAIL') THEN {column} ELSE 0 END::INT AS {name}_{what}"
        for name, outcome, observed, required in SCALARS
        for what, column in (("observed", observed), ("required", required))
    )
    known = ", ".join(f"{outcome} IN ('PASS', 'FAIL') AS {name}_known" for name, outcome, *_ in SCALARS)
    findings = " UNION ALL ".join(
        f"SELECT cluster, topic AS resource, '{control}' AS control,"
        f" CASE WHEN {outcome} = 'FAIL' THEN {category} END AS category, {outcome} AS outcome,"
        f" CASE WHEN {outcome} = 'FAIL' THEN {ids} END AS partitions FROM o"
        for control, category, outcome, ids in FINDINGS
    )
    for name, query in {
        "health": HEALTH,
        "posture": f"SELECT cluster, topic, internal, tier, partitions, {posture}, {known} FROM o",
        "findings": f"SELECT * FROM ({findings}) WHERE outcome IS NOT NULL",
    }.items():
        db.execute(f"COPY ({query}) TO '{folder}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)")


KEYS = (
    *("replication_factor", "min_insync_replicas", "write_headroom", "replica_racks", "min_insync_racks"),
    *("acked_copies", "acked_racks", "unclean_leader_election"),
)

if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
