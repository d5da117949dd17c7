"""DuckDB and Polars beside `evaluate`: the same rows from the same files, compared row by row.

What is compared: every row of `partition_health` (but for kafka-topics' view of it), what `topic_posture` observed and
required, and of `findings` each topic's controls with outcome, category and partitions. Their words, evidence and remedies, the
controls of clusters, brokers and applications, and the counters are made by `evaluate` alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb

from bench.in_duckdb import FINDINGS

OPPONENTS = ("duckdb", "polars")
_TABLES = {"health": "partition_health", "posture": "topic_posture", "findings": "findings"}


def inputs(warehouse: Path, attempts: list, tiers: dict, folder: Path) -> Path:
    """Writes which files hold the facts of `attempts`; warehouse: the folder of a lake that one run has planned."""
    found = {
        name: [p.removeprefix("file://") for a in attempts for p in a.files[name]]
        for name in ("brokers", "topics", "partitions")
    }
    found["resolved"] = _files(warehouse, "resolved_policy")
    path = folder / "inputs.json"
    path.write_text(json.dumps(found | {"tiers": tiers}))
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
        for name, table in _TABLES.items():
            columns = [row[0] for row in db.execute(f"DESCRIBE FROM '{theirs}/{name}.parquet'").fetchall()]
            listed = ", ".join(columns)
            db.execute(f"CREATE OR REPLACE TEMP VIEW b AS SELECT {listed} FROM '{theirs}/{name}.parquet'")
            files, controls = _files(warehouse, table), sorted({f[0] for f in FINDINGS})
            topics = f"AND resource_type = 'topic' AND control IN {tuple(controls)}" if name == "findings" else ""
            ours = f"SELECT {listed} FROM read_parquet({files}) WHERE result_id = '{result_id}' {topics}"
            db.execute(f"CREATE OR REPLACE TEMP VIEW a AS {ours}")
            for whose, one, other in (("evaluate", "a", "b"), (theirs.name, "b", "a")):
                db.execute(f"CREATE OR REPLACE TEMP TABLE d AS FROM {one} EXCEPT ALL FROM {other}")
                count = db.execute("SELECT count(*) FROM d").fetchone()[0]
                shown = db.execute("FROM d ORDER BY ALL LIMIT 3").fetchall()
                told += [
                    f"{name}: {count} rows of {whose} alone, such as {dict(zip(columns, row, strict=True))}"
                    for row in shown
                ]
    return told


def _files(warehouse: Path, table: str) -> list[str]:
    return sorted(map(str, (warehouse / "audit" / table / "data").rglob("*.parquet")))
