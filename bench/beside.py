"""DuckDB and Polars beside `evaluate`: the same rows from the same files, compared row by row.

What is compared: every column, but the run's and the result's ids, of `partition_health`, `health_counters`,
`topic_posture` and of the topics' rows of `findings`. What is found of clusters, brokers, tiers and applications is made
by `evaluate` alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb

from durability.run.plan import PolicyPart

OPPONENTS = ("duckdb", "polars")
TABLES = {
    "health": "partition_health",
    "posture": "topic_posture",
    "findings": "findings",
    "counters": "health_counters",
}
"""By the file in which an opponent has its rows."""


def inputs(warehouse: Path, attempts: list, policy: PolicyPart, folder: Path) -> Path:
    """Writes which files hold the facts of `attempts`, and what `policy` asks; warehouse: the folder of a lake that one run
    has planned."""
    found = {
        name: [p.removeprefix("file://") for a in attempts for p in a.files[name]]
        for name in ("clusters", "brokers", "topics", "partitions")
    }
    found["resolved"] = _files(warehouse, "resolved_policy")
    path = folder / "inputs.json"
    path.write_text(json.dumps(found | {"tiers": policy.tiers, "last_tier": policy.last_tier}))
    return path


def run(name: str, inputs_file: Path, folder: Path) -> None:
    """Runs an opponent in a process of its own; raises CalledProcessError."""
    (folder / name).mkdir()
    subprocess.run([sys.executable, "-m", f"bench.in_{name}", str(inputs_file), str(folder / name)], check=True)


def differences(warehouse: Path, result_id: str, theirs: Path) -> list[str]:
    """Rows that only the lake's result has, or only the opponent whose files are in `theirs`; some of each, and how many."""
    told = []
    with duckdb.connect() as db:
        db.execute(f"SET memory_limit = '4GB'; SET temp_directory = '{theirs}/spill'")
        for name, table in TABLES.items():
            file = f"'{theirs}/{name}.parquet'"
            columns = [row[0] for row in db.execute(f"DESCRIBE FROM {file}").fetchall()]
            topics = "AND resource_type = 'topic'" if name == "findings" else ""
            files = _files(warehouse, table)
            db.execute(
                f"CREATE OR REPLACE TEMP TABLE d AS SELECT {', '.join(columns)}, sum(side) AS more FROM ("
                f" SELECT *, 1 AS side FROM read_parquet({files}) WHERE result_id = '{result_id}' {topics}"
                f" UNION ALL BY NAME SELECT *, -1 AS side FROM {file}) GROUP BY ALL HAVING more <> 0"
            )
            for whose, sign in (("evaluate", 1), (theirs.name, -1)):
                count = db.execute(f"SELECT sum(abs(more))::INT FROM d WHERE sign(more) = {sign}").fetchone()[0]
                shown = db.execute(f"SELECT * EXCLUDE more FROM d WHERE sign(more) = {sign} ORDER BY ALL LIMIT 3")
                told += [
                    f"{name}: {count} rows of {whose} alone, such as {dict(zip(columns, row, strict=True))}"
                    for row in shown.fetchall()
                ]
    return told


def _files(warehouse: Path, table: str) -> list[str]:
    return sorted(map(str, (warehouse / "audit" / table / "data").rglob("*.parquet")))
