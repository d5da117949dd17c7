"""The same partition health and its counters, posture and findings of topics in DuckDB: what `evaluate` is held against.

`python -m bench.in_duckdb inputs.json folder`; see `bench.beside`. It knows what it may of a made-up fleet: everything could be
read, nothing is being reassigned, broker ids count from 0, a cluster's brokers have one release and one configuration, and a
setting that no topic has is theirs. It looks back on nothing, and no waiver is in force.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from bench import duckdb_acked, duckdb_counters, duckdb_facts, duckdb_remedies, duckdb_topics, duckdb_words

NUMBERS = (
    *("replication_factor", "min_insync_replicas", "write_headroom", "replica_racks", "min_insync_racks"),
    *("acked_copies", "acked_racks"),
)
TIERS = {"tier": "VARCHAR", **dict.fromkeys(NUMBERS, "INT"), "unclean_leader_election": "BOOLEAN"}
TIERS |= {"survives": "BOOLEAN", "survives_rack": "BOOLEAN"}
MACROS = (
    "outcome(wanted, failing) AS CASE WHEN wanted IS NULL THEN 'NOT_APPLICABLE'"
    " WHEN len(failing) > 0 THEN 'FAIL' ELSE 'PASS' END",
    # Distinct, the first of each where it stands.
    "ordered(l) AS list_filter(l, lambda x, i: list_position(l, x) = i)",
    "rack_bits(ids, base) AS coalesce(list_bit_or(list_transform(ids, lambda x: getvariable('bit')[base + x])), 0)",
    "dominant(causes, down) AS"
    " nullif(array_to_string(list_sort(list_distinct(CASE WHEN len(down) > 0 THEN down ELSE causes END)), ', '), '')",
    "named(causes) AS dominant(causes, list_filter(causes, lambda d: d LIKE '% down'))",
    # The fewest racks that `members` replicas stand in; held: replicas by rack, most first.
    "fewest_racks(held, members) AS"
    " len(list_filter(range(1, len(held) + 1), lambda n: coalesce(list_sum(held[1:n - 1]), 0) < members))"
    " + greatest(members - coalesce(list_sum(held), 0), 0)",
    # The first ids of a list, and how many more there are.
    "listed(ids) AS array_to_string(ids[1:10], ', ') || CASE WHEN len(ids) > 10 THEN ' (+' || (len(ids) - 10) || ' more)'"
    " ELSE '' END",
    # Replicas that some `racks` racks hold together when `n` stand as evenly as brokers allow: racks are filled to one below
    # `level` as far as they go, and one more is in as many of the larger ones as are left over.
    "filled(sizes, level) AS coalesce(list_sum(list_transform(sizes, lambda s: least(s, level))), 0)",
    "held_at(sizes, n, racks, level) AS filled(sizes[:racks], level - 1) + least(racks, n - filled(sizes, level - 1))",
    "most_held(sizes, n, racks) AS"
    " held_at(sizes, n, racks, list_filter(range(1, n + 1), lambda l: filled(sizes, l) >= n)[1])",
)


def run(inputs: dict, folder: Path) -> None:
    """inputs: files by table, the tiers and which is the last; writes health, posture, findings and counters.parquet."""
    db = duckdb.connect()
    db.execute(
        f"SET memory_limit = '2500MB'; SET preserve_insertion_order = false; SET temp_directory = '{folder}/spill'"
    )
    for macro in MACROS:
        db.execute(f"CREATE TEMP MACRO {macro}")
    (folder / "tiers.json").write_text(json.dumps([_tier(*t) for t in inputs["tiers"].items()]))
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in TIERS.items())
    db.execute(f"CREATE TEMP TABLE tiers AS FROM read_json('{folder}/tiers.json', columns = {{{columns}}})")
    default = _copies(inputs["tiers"].get(inputs["last_tier"] or "", {}))

    def run_one(statement: str) -> None:
        for name in ("clusters", "brokers", "topics", "resolved", "partitions"):
            files = ", ".join("'" + path.replace("'", "''") + "'" for path in inputs[name])
            statement = statement.replace(f"${name}", f"[{files}]")
        db.execute(statement.replace("$default", "NULL" if default is None else str(default)))

    run_one(duckdb_facts.BROKERS)
    for name in duckdb_facts.LISTS:
        db.execute(f"SET VARIABLE {name} = (SELECT list({name} ORDER BY place) FROM k)")
    for statement in (
        *(duckdb_facts.CLUSTERS, duckdb_facts.TOPICS, duckdb_facts.PARTITIONS, duckdb_facts.CROWDED),
        *(duckdb_facts.TROUBLED, duckdb_facts.MEASURED),
        *(duckdb_topics.SICK, duckdb_topics.OUTCOMES, duckdb_topics.TARGETS),
        *(duckdb_remedies.REMEDIES, duckdb_remedies.TOPICS, duckdb_acked.ACKED),
    ):
        run_one(statement)
    findings = [*map(duckdb_words.select, duckdb_words.FINDINGS)]
    findings.append(duckdb_words.select(duckdb_acked.ACKED_DURABILITY, "r JOIN a USING (tid)"))
    for name, query in {
        "health": duckdb_facts.HEALTH,
        "posture": duckdb_topics.POSTURE,
        "findings": " UNION ALL ".join(findings),
        "counters": duckdb_counters.COUNTERS,
    }.items():
        db.execute(f"COPY ({query}) TO '{folder}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)")


def _tier(name: str, required: dict) -> dict:
    survive = required.get("survive") or ()
    return {"tier": name, **required, "survives": len(survive) > 0, "survives_rack": "rack" in survive}


def _copies(required: dict) -> int | None:
    """What a policy's last tier wants as the clusters' default min.insync.replicas."""
    wanted = [required.get(key) for key in ("min_insync_replicas", "acked_copies", "acked_racks")]
    return max((n for n in [*wanted, 2 if required.get("survive") else None] if n), default=None)


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
