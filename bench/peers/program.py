"""The program of both peers. It reads facts, lets the engine measure partitions, and derives the results of `evaluate`.

It relies on properties of every generated fleet: everything was read, and nothing is being reassigned. Broker ids count from 0,
and a cluster's brokers have one release and one configuration. A setting that no topic has comes from the brokers. There is no
earlier run to compare with, and no valid waiver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb

from bench.peers import counters, facts, topics, verdicts

MACROS = (
    "outcome(wanted, failing) AS CASE WHEN wanted IS NULL THEN 'NOT_APPLICABLE'"
    " WHEN len(failing) > 0 THEN 'FAIL' ELSE 'PASS' END",
    # Distinct elements, each at its first place.
    "ordered(l) AS list_filter(l, lambda x, i: list_position(l, x) = i)",
    "categories(offline, under, at_min, under_replicated) AS list_filter([CASE WHEN offline THEN 'offline' END,"
    " CASE WHEN under THEN 'under-min-isr' END, CASE WHEN at_min THEN 'at-min-isr' END,"
    " CASE WHEN under_replicated THEN 'under-replicated' END], lambda c: c IS NOT NULL)",
    "dominant(causes, down) AS"
    " nullif(array_to_string(list_sort(list_distinct(CASE WHEN len(down) > 0 THEN down ELSE causes END)), ', '), '')",
    "named(causes) AS dominant(causes, list_filter(causes, lambda d: d LIKE '% down' OR d LIKE '% disk-offline'))",
    # Replicas that some `racks` racks have together if `n` are placed as evenly as brokers allow. Racks are filled to one below
    # `level` as far as possible. Then as many of the larger ones as replicas are left get one more.
    "filled(sizes, level) AS coalesce(list_sum(list_transform(sizes, lambda s: least(s, level))), 0)",
    "held_at(sizes, n, racks, level) AS filled(sizes[:racks], level - 1) + least(racks, n - filled(sizes, level - 1))",
    "most_held(sizes, n, racks) AS"
    " held_at(sizes, n, racks, list_filter(range(1, n + 1), lambda l: filled(sizes, l) >= n)[1])",
)
Files = dict[str, list[str]]
Measure = Callable[[duckdb.DuckDBPyConnection, Files], None]
"""Makes the tables `unhealthy`, `measured` and `acks` from the partitions' files; see `topics.MEASURES`."""


def run(measure: Measure, inputs: Files, folder: Path) -> None:
    """Write health, posture, verdicts and counters.parquet. inputs: Parquet files by table."""
    with opened(inputs, folder) as db:
        measure(db, inputs)
        for statement in (topics.CATEGORIES, topics.TROUBLES, topics.OUTCOMES, topics.TARGETS, topics.RESULT):
            db.execute(statement)
        queries = {
            "health": topics.HEALTH,
            "posture": topics.POSTURE,
            "verdicts": verdicts.query(),
            "counters": counters.COUNTERS,
        }
        write(db, queries, folder)


@contextmanager
def opened(inputs: Files, folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the inputs as views and the tables of `facts`. It spills below `folder`."""
    with duckdb.connect() as db:
        db.execute(f"SET memory_limit = '2500MB'; SET temp_directory = '{folder}/spill'")
        db.execute("SET preserve_insertion_order = false")
        for macro in MACROS:
            db.execute(f"CREATE TEMP MACRO {macro}")
        for name, paths in inputs.items():
            db.read_parquet(paths).create_view(name)
        for statement in (facts.BROKERS, facts.CLUSTERS, facts.TOPICS):
            db.execute(statement)
        yield db


def set_lists(db: duckdb.DuckDBPyConnection, names: Iterable[str]) -> None:
    """Set columns of `broker_facts` as variables: lists over the whole fleet's brokers, `getvariable('bit')[base + id]`."""
    for name in names:
        db.execute(f"SET VARIABLE {name} = (SELECT list({name} ORDER BY place) FROM broker_facts)")


def write(db: duckdb.DuckDBPyConnection, queries: Mapping[str, str], folder: Path) -> None:
    """Write the rows of each query to a file with its name."""
    for name, query in queries.items():
        db.execute(f"COPY ({query}) TO '{folder}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)")
