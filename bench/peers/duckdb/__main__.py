"""`python -m bench.peers.duckdb inputs.json folder`; see `bench.peers.compare`.

The program relies on what is true of every made-up fleet: everything was read, nothing is being reassigned, broker ids count
from 0, a cluster's brokers have one release and one configuration, and a setting that no topic has comes from the brokers.
There is no earlier run to compare with, and no waiver is in force.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from bench.peers.duckdb import acks, counters, partitions, topics
from bench.peers.verdicts import ACKED_DURABILITY, CATEGORIES, HEALTHY, RACKS, SCALARS, Verdict, columns, health

MACROS = (
    "outcome(wanted, failing) AS CASE WHEN wanted IS NULL THEN 'NOT_APPLICABLE'"
    " WHEN len(failing) > 0 THEN 'FAIL' ELSE 'PASS' END",
    # Distinct elements, each at its first place.
    "ordered(l) AS list_filter(l, lambda x, i: list_position(l, x) = i)",
    "rack_bits(ids, base) AS coalesce(list_bit_or(list_transform(ids, lambda x: getvariable('bit')[base + x])), 0)",
    "dominant(causes, down) AS"
    " nullif(array_to_string(list_sort(list_distinct(CASE WHEN len(down) > 0 THEN down ELSE causes END)), ', '), '')",
    "named(causes) AS dominant(causes, list_filter(causes, lambda d: d LIKE '% down'))",
    # The fewest racks that `members` replicas can be in; held: replicas by rack, most first.
    "fewest_racks(held, members) AS"
    " len(list_filter(range(1, len(held) + 1), lambda n: coalesce(list_sum(held[1:n - 1]), 0) < members))"
    " + greatest(members - coalesce(list_sum(held), 0), 0)",
    # Replicas that some `racks` racks have together if `n` are placed as evenly as brokers allow: racks are filled to one
    # below `level` as far as possible, and as many of the larger ones as replicas are left get one more.
    "filled(sizes, level) AS coalesce(list_sum(list_transform(sizes, lambda s: least(s, level))), 0)",
    "held_at(sizes, n, racks, level) AS filled(sizes[:racks], level - 1) + least(racks, n - filled(sizes, level - 1))",
    "most_held(sizes, n, racks) AS"
    " held_at(sizes, n, racks, list_filter(range(1, n + 1), lambda l: filled(sizes, l) >= n)[1])",
)
STATEMENTS = (
    *(partitions.CLUSTERS, partitions.TOPICS, partitions.PARTITIONS, partitions.CROWDED),
    *(partitions.TROUBLED, partitions.MEASURED),
    *(topics.UNHEALTHY, topics.OUTCOMES, topics.TARGETS, topics.JOINED, acks.WORST),
)


def run(inputs: dict[str, list[str]], folder: Path) -> None:
    """inputs: files by table; writes health, posture, verdicts and counters.parquet."""
    db = duckdb.connect()
    db.execute(
        f"SET memory_limit = '2500MB'; SET preserve_insertion_order = false; SET temp_directory = '{folder}/spill'"
    )
    for macro in MACROS:
        db.execute(f"CREATE TEMP MACRO {macro}")

    def run_one(statement: str) -> None:
        for name, paths in inputs.items():
            files = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
            statement = statement.replace(f"${name}", f"[{files}]")
        db.execute(statement)

    run_one(partitions.BROKERS)
    for name in partitions.LISTS:
        db.execute(f"SET VARIABLE {name} = (SELECT list({name} ORDER BY place) FROM k)")
    for statement in STATEMENTS:
        run_one(statement)
    for name, query in {
        "health": partitions.HEALTH,
        "posture": topics.POSTURE,
        "verdicts": _verdicts(),
        "counters": counters.COUNTERS,
    }.items():
        db.execute(f"COPY ({query}) TO '{folder}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)")


def _verdicts() -> str:
    """The verdicts of all controls; a first run has no reasons, no waivers and no earlier severities."""
    selects = [_select(verdict, "r") for verdict in (*SCALARS, *RACKS)]
    selects.append(_select(ACKED_DURABILITY, "r JOIN a USING (tid)"))
    selects += [_select(health(category), f"({topics.of_category(flag)})") for flag, category in CATEGORIES.items()]
    selects.append(_select(HEALTHY, "(FROM r WHERE healthy)"))
    return f"""SELECT * EXCLUDE key, substr(sha256(key), 1, 20) AS id, NULL::VARCHAR AS why, NULL::VARCHAR AS was,
      NULL::INT AS waiver, NULL::VARCHAR AS previous_severity FROM ({" UNION ALL BY NAME ".join(selects)})"""


def _select(verdict: Verdict, source: str) -> str:
    return f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in columns(verdict).items())} FROM {source}"


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
