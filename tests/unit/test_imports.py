"""Cheap rooms stay cheap to import; which room may import which is for `make lint` to check."""

from __future__ import annotations

import json
import subprocess
import sys

from tests import ROOT

HEAVY = ["airflow", "pyspark", "pandas", "numpy", "pyarrow", "pyiceberg", "great_expectations", "kafka", "boto3"]
ROOMS = """
import durability.errors, durability.lake, durability.policy, durability.collect, durability.report, durability.topology
import durability.plan, durability.cli.app, durability.cli.audit, durability.steps.audit, expectations
"""
HELP = """
from typer.testing import CliRunner
from durability.cli.app import app
assert CliRunner().invoke(app, ["audit", "--help"]).exit_code == 0
"""


def loaded_by(source: str) -> set[str]:
    """The heavy packages that a program has loaded at its end."""
    told = f"{source}\nimport json, sys\nprint(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_naming_the_rooms_loads_nothing_heavy():
    assert loaded_by(ROOMS) <= {"numpy", "pyarrow"}


def test_help_starts_quickly_because_nothing_heavy_is_imported():
    assert loaded_by(HELP) == set()
