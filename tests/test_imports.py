"""Imports between rooms point one way, and cheap rooms stay cheap to import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {
    "durability",
    "expectations",
    "spark_jobs",
    "kafka_durability",
    "dags",
    "tests",
    "bench",
}

# Room -> top-level packages of this project and of its neighbours that it may import.
MAY_IMPORT = {
    "durability": {"durability"},
    "expectations": {"expectations", "durability"},
    "spark_jobs": {"spark_jobs", "durability", "pyspark"},
    "plugins": {"kafka_durability", "expectations", "durability", "airflow"},
    "dags": {"kafka_durability", "airflow"},
}
WATCHED = ROOMS | {"airflow", "pyspark"}
# The Spark job runs where only Spark and the domain are needed.
NEVER = {
    "spark_jobs": {"boto3", "airflow"},
    "durability": {"airflow", "pyspark"},
    "expectations": {"airflow", "pyspark"},
}


def imported(source: str) -> set[str]:
    """Top-level names of every import in a module, also of those inside functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_what_lies_below_it(room):
    modules = sorted((ROOT / room).rglob("*.py"))
    assert modules
    wrong = {}
    for module in modules:
        names = imported(module.read_text(encoding="utf-8"))
        above = ((names & WATCHED) - MAY_IMPORT[room]) | (names & NEVER.get(room, set()))
        if above:
            wrong[str(module.relative_to(ROOT))] = sorted(above)
    assert wrong == {}


def test_imports_inside_functions_count_too():
    assert imported("def f():\n    from airflow.sdk import DAG\n    import pyspark.sql as s\n") == {
        "airflow",
        "pyspark",
    }


def test_naming_the_rooms_loads_nothing_heavy():
    source = (
        "import sys, durability.errors, durability.lake, durability.policy, durability.collect, durability.report, "
        "durability.topology, durability.run, durability.launch.audit, expectations\n"
        "heavy = {'airflow', 'pyspark', 'pandas', 'pyiceberg', 'great_expectations', 'kafka', 'boto3'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
