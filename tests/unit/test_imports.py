"""Cheap rooms stay cheap to import; which room may import which is for `make lint` to check."""

from __future__ import annotations

import subprocess
import sys

from tests import ROOT


def test_naming_the_rooms_loads_nothing_heavy():
    source = (
        "import sys, durability.errors, durability.lake, durability.policy, durability.collect, durability.report, "
        "durability.topology, durability.plan, durability.cli.app, durability.cli.audit, durability.steps.audit, expectations\n"
        "heavy = {'airflow', 'pyspark', 'pandas', 'pyiceberg', 'great_expectations', 'kafka', 'boto3'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
