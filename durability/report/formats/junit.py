"""findings.junit.xml: the findings as tests, for CI servers.

A suite is a cluster. A case is a finding on a resource: FAIL is a failure, UNKNOWN an error, EXEMPT skipped. One case per control
counts what passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import pyarrow as pa
from junitparser import Error, Failure, JUnitXml, Properties, Property, Skipped, TestCase, TestSuite

from durability.plain import plural
from durability.report.data import results
from durability.report.words import is_resolved, visible, waived

FILE = "findings.junit.xml"
CASES = 10_000
"""The most findings that are cases of their own. CI servers keep the whole file in memory."""
LEFT = {"FAIL": Failure, "UNKNOWN": Error, "EXEMPT": Skipped}
"""The result of a case by its finding's outcome."""


class JUnit:
    """Collects findings, the worst first, and writes them at the end. run: as in findings.json."""

    def __init__(self, run: Mapping[str, Any]):
        self.run, self.room = run, CASES
        self.cases: dict[str, list[TestCase]] = {snapshot["cluster"]: [] for snapshot in run["snapshots"]}
        self.left: Counter[tuple[str, str]] = Counter()

    def add(self, finding: Mapping[str, Any]) -> None:
        if is_resolved(finding) or finding["outcome"] not in LEFT:
            return
        cases = self.cases.setdefault(finding["cluster"], [])
        if self.room:
            self.room -= 1
            cases.append(_case(finding))
        else:
            self.left[finding["cluster"], finding["outcome"]] += 1

    def write(self, file: TextIO, counted: pa.Table) -> None:
        """Write the file. counted: every finding (columns `results.COUNTED`)."""
        for cluster, control, number in results.passed(counted):
            self.cases.setdefault(cluster, []).append(TestCase(f"{number:,} passed", control))
        for (cluster, outcome), number in sorted(self.left.items()):
            case = TestCase(plural(number, "more finding"), outcome)
            case.result = [
                LEFT[outcome](f"{plural(number, 'more finding')} with outcome {outcome} in findings.json", outcome)
            ]
            self.cases[cluster].append(case)
        snapshots = {snapshot["cluster"]: snapshot for snapshot in self.run["snapshots"]}
        found = JUnitXml("Kafka durability audit")
        for cluster, cases in sorted(self.cases.items()):
            found.append(_suite(cluster, snapshots.get(cluster, {}), self.run, cases))
        found.update_statistics()
        file.write(found.tostring().decode())


def _suite(cluster: str, snapshot: Mapping[str, Any], run: Mapping[str, Any], cases: Sequence[TestCase]) -> TestSuite:
    suite = TestSuite(_text(cluster))
    if snapshot.get("captured_at"):
        suite.timestamp = snapshot["captured_at"].removesuffix("Z")
    stated = {
        "run": run["id"],
        "policy": f"{run['policy']['name']} {run['policy']['sha256']}",
        "framework": run["framework"] and run["framework"]["title"],
        "snapshot": snapshot.get("snapshot_id"),
        "snapshot_sha256": snapshot.get("sha256"),
    }
    properties = Properties()
    for name, value in stated.items():
        if value:
            properties.add_property(Property(name, _text(value)))
    suite.append(properties)
    if snapshot.get("status") not in (None, "accepted"):
        case = TestCase("snapshot", "collection")
        case.result = [
            Error(_text(f"{snapshot['status']}: {snapshot['reason'] or 'no reason given'}"), snapshot["status"])
        ]
        suite.add_testcase(case)
    suite.add_testcases(list(cases))
    return suite


def _case(finding: Mapping[str, Any]) -> TestCase:
    category = f" ({finding['category']})" if finding["category"] else ""
    name = f"{finding['resource_type']} {finding['resource'] or finding['cluster']}{category}"
    case = TestCase(_text(name), finding["control"])
    outcome = finding["outcome"]
    said = finding["message"]
    if outcome == "EXEMPT" and finding["waiver"]:
        said = f"{waived(finding['waiver'])} ({said})"
    result = LEFT[outcome](_text(said), finding["severity"] if outcome == "FAIL" else outcome)
    if finding["remediation"]:
        result.text = _text(finding["remediation"])
    case.result = [result]
    return case


def _text(value: object) -> str:
    """Text that XML can hold: control characters are escapes."""
    return str(visible("" if value is None else str(value)))
