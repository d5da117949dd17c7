"""Clusters from public bug reports: each gets the verdict, the cause and the remedy that is right there.

They are audited in one process, without Airflow, with a document among them that can't be used.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import unusable
from tests.support.public_cases import CASES, FOLDER, differences


@pytest.fixture(scope="module")
def ended(tmp_path_factory, warm_spark_home) -> tuple[subprocess.CompletedProcess, Path]:
    """The process that audited all cases and an unusable document, and the folder that it was given."""
    folder = tmp_path_factory.mktemp("public-cases")
    documents = unusable.write(folder / "documents")
    for case in CASES:
        for file in case.glob("topology*.json"):
            shutil.copy(file, documents / f"{case.name}-{file.name}")
    given = {"TOPOLOGY": str(documents), "POLICY": str(FOLDER / "policy.yaml"), "BOOTSTRAP": "", "FAIL_ON": "critical"}
    given |= {"OUT": str(folder / "out"), "LAKE": str(folder / "lake")}
    given["SPARK_HOME"] = warm_spark_home
    command = [sys.executable, "-m", "durability.cli", "audit"]
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, cwd=folder, timeout=500)
    return done, folder


@pytest.fixture(scope="module")
def audited(ended) -> tuple[list[dict], Path]:
    """The findings of the audit, and the folder with its reports."""
    done, folder = ended
    assert (folder / "out" / "findings.json").exists(), done.stderr
    return json.loads((folder / "out" / "findings.json").read_text())["findings"], folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_public_case(audited, case):
    findings, out = audited
    assert differences(case, findings, out) == []


@pytest.mark.slow
def test_one_document_that_cannot_be_used_costs_the_others_nothing(ended):
    done, folder = ended
    others = unusable.check_others(done, folder)
    names = {json.loads(file.read_text())["cluster"]["id"] for case in CASES for file in case.glob("topology*.json")}
    assert set(others) == {*names, "good"}


def test_a_finding_that_is_missing_or_unwanted_is_a_difference():
    """The comparison itself can fail."""
    expecting = [case for case in CASES if json.loads((case / "expected.json").read_text())["findings"]]
    assert len(expecting) >= 40
    assert all(differences(case, [], FOLDER) for case in expecting)
