"""Runs DuckDB and Polars over the same files as `evaluate`, and compares their rows with the lake's.

It compares every column of `partition_health` (in the lake, equal partitions share a row), `health_counters`, `topic_posture` and
the topics' verdicts, except UNCOMPARED, ids of the run, and `evidence`, which only texts need. Only `evaluate` computes verdicts
on clusters, brokers, tiers and applications.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peers.verdicts import CONTROLS
from durability.lake.attempt import Attempt
from durability.lake.tables import COUNTED, ONE_FAILURE
from durability.plan.plan import PolicyPart

PEERS = ("duckdb", "polars")
VERDICTS = "verdicts"
TABLES = {
    "health": "partition_health",
    "posture": "topic_posture",
    "verdicts": VERDICTS,
    "counters": "health_counters",
}
"""The lake's table, by the file in which a peer writes its rows."""
UNCOMPARED = {"health_counters": (*ONE_FAILURE, "tiers")}
"""Columns that the peers don't compute, by table."""
FACTS = ("clusters", "brokers", "controllers", "topics", "partitions")
NUMBERS = (
    *("replication_factor", "min_insync_replicas", "write_headroom", "replica_racks", "min_insync_racks"),
    *("acked_copies", "acked_racks"),
)
"""The possible requirements on a topic, by their names in the policy."""
EVALUATED = (*NUMBERS, "survive", "unclean_leader_election")
TIERS = pa.schema(
    [
        ("tier", pa.string()),
        *((name, pa.int32()) for name in NUMBERS),
        *((name, pa.bool_()) for name in ("forbids_unclean", "survives", "survives_rack")),
    ]
)


def inputs(warehouse: Path, attempts: list[Attempt], policy: PolicyPart, folder: Path) -> Path:
    """Write a peer's inputs; returns a file that lists the files by table. warehouse: folder of a lake with one planned run."""
    found = {name: [p.removeprefix("file://") for a in attempts for p in a.files[name]] for name in FACTS}
    found["resolved"] = _files(warehouse, "resolved_policy")
    found["tiers"] = [str(write_tiers(policy.tiers, folder))]
    path = folder / "inputs.json"
    path.write_text(json.dumps(found))
    return path


def write_tiers(tiers: Mapping[str, Mapping[str, Any]], folder: Path) -> Path:
    """Write one row per tier with its requirements. A number that it doesn't require is NULL.

    Raises ValueError for a requirement that the peers don't evaluate.
    """
    rows = []
    for tier, required in tiers.items():
        if others := [key for key, value in required.items() if key not in EVALUATED or isinstance(value, str | dict)]:
            raise ValueError(f"tier {tier}: the peers don't evaluate {', '.join(others)} as it is stated")
    for tier, required in tiers.items():
        survive = required.get("survive") or ()
        flags = {"survives": len(survive) > 0, "survives_rack": "rack" in survive}
        flags["forbids_unclean"] = required.get("unclean_leader_election") is False
        rows.append({"tier": tier, **{name: required.get(name) for name in NUMBERS}, **flags})
    pq.write_table(pa.Table.from_pylist(rows, TIERS), folder / "tiers.parquet")
    return folder / "tiers.parquet"


def run(peer: str, inputs_file: Path, folder: Path) -> None:
    """Run a peer in a separate process, which writes below `folder`. Raises CalledProcessError."""
    (folder / peer).mkdir()
    subprocess.run([sys.executable, "-m", f"bench.peers.{peer}", str(inputs_file), str(folder / peer)], check=True)


def differences(
    warehouse: Path, result_id: str, theirs: Path, tables: Mapping[str, str] = MappingProxyType(TABLES)
) -> list[str]:
    """Rows that only one side has, the lake's result or the peer's files in `theirs`: some of each, and how many.

    tables: the lake's table, by the file in `theirs`.
    """
    lines = []
    with duckdb.connect() as db:
        db.execute(f"SET memory_limit = '4GB'; SET temp_directory = '{theirs}/spill'")
        for name, table in tables.items():
            file = f"'{theirs}/{name}.parquet'"
            columns = [row[0] for row in db.execute(f"DESCRIBE FROM {file}").fetchall()]
            topics = f"AND resource_type = 'topic' AND control IN {CONTROLS}" if table == VERDICTS else ""
            known = "*"
            if "checks" in columns:
                known = f"* REPLACE (list_filter(checks, lambda c: c.control IN {CONTROLS}) AS checks)"
            if "offline" in columns:  # rows of counters. Topics may have one only because they are one failure away
                topics = f"AND (topic IS NULL OR {' + '.join(n for n in COUNTED if n != 'partitions')} > 0)"
            if name == "health":  # in the lake, equal partitions share a row
                known = "* EXCLUDE (partitions), unnest(partitions) AS partition"
            files = _files(warehouse, table)
            db.execute(
                f"CREATE OR REPLACE TEMP TABLE d AS SELECT {', '.join(columns)}, sum(side) AS more FROM ("
                f" SELECT {known}, 1 AS side FROM read_parquet({files}) WHERE result_id = '{result_id}' {topics}"
                f" UNION ALL BY NAME SELECT *, -1 AS side FROM {file}) GROUP BY ALL HAVING more <> 0"
            )
            for whose, sign in (("evaluate", 1), (theirs.name, -1)):
                ((count,),) = db.execute(f"SELECT sum(abs(more))::INT FROM d WHERE sign(more) = {sign}").fetchall()
                shown = db.execute(f"SELECT * EXCLUDE more FROM d WHERE sign(more) = {sign} ORDER BY ALL LIMIT 3")
                lines += [
                    f"{name}: {count} rows of {whose} alone, such as {dict(zip(columns, row, strict=True))}"
                    for row in shown.fetchall()
                ]
    return lines


def _files(warehouse: Path, table: str) -> list[str]:
    return sorted(map(str, (warehouse / "audit" / table / "data").rglob("*.parquet")))
