"""Audits with additional controls, and runs their cases. tests/e2e/test_extending.py runs it in a copy of the tree.

`python -m tests.support.extended LAKE POLICY DOCUMENT OUT CONTROL...`
"""

from __future__ import annotations

import doctest
import json
import sys
from importlib import import_module
from pathlib import Path


def main(location: str, policy: str, document: str, out: str, *controls: str) -> None:
    from pyspark.sql import functions

    from durability.catalogue import page
    from durability.lake import Lake, partition_groups
    from durability.plan import Plan
    from tests.support import cases
    from tests.support.audited import audit
    from tests.support.judge import Judge
    from tests.support.lake import attach
    from tests.support.spark import start

    root = Path(__file__).parents[2]
    as_is = partition_groups.FROM, Plan.small
    page.write(root)
    folder = Path(out)
    spark = start(folder / "spark")
    drawn = cases.cases(controls)
    assert {case.control for case in drawn} == set(controls)
    # Small and large runs differ in their settings. A large one evaluates equal partitions and topics once.
    for large in (False, True):
        if large:
            partition_groups.FROM, Plan.small = 0, property(lambda plan: False)
        found = Judge(spark).run([case.document for case in drawn], cases.policy(drawn), cases.waivers(drawn))
        wrong = {str(case): mismatches for case in drawn if (mismatches := cases.mismatches(case, found))}
        assert not wrong, f"large: {large} {json.dumps(wrong, indent=1)}"
    partition_groups.FROM, Plan.small = as_is
    for control in controls:
        rule = import_module(f"spark_jobs.controls.{control.replace('-', '_')}")
        assert str(root) in str(rule.__file__), rule
        names = {"spark": spark, "F": functions}
        assert not doctest.testmod(rule, extraglobs=names, optionflags=doctest.NORMALIZE_WHITESPACE).failed, control
    lake = Lake.open(location)
    lake.ensure()
    session = spark.newSession()
    attach(session, lake)
    audit(session, lake, [json.loads(Path(document).read_text())], Path(policy), "after", folder)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
