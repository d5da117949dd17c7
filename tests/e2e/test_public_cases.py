"""Clusters from public bug reports: each gets the verdict, the cause and the remedy that is right there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.public_cases import CASES, FOLDER, differences


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """The findings of one audit of all cases, and the folder with its reports."""
    folder = tmp_path_factory.mktemp("public-cases")
    documents = folder / "documents"
    documents.mkdir()
    for case in CASES:
        for file in case.glob("topology*.json"):
            shutil.copy(file, documents / f"{case.name}-{file.name}")
    given = {"TOPOLOGY": str(documents), "POLICY": str(FOLDER / "policy.yaml"), "BOOTSTRAP": ""}
    given |= {"OUT": str(folder / "out"), "LAKE": str(folder / "lake")}
    command = [sys.executable, "-m", "durability.cli", "audit"]
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, cwd=folder, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "out" / "findings.json").read_text())["findings"], folder / "out"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_public_case(audited, case):
    findings, out = audited
    assert differences(case, findings, out) == []


def test_a_finding_that_is_missing_or_unwanted_is_a_difference():
    """The comparison itself can fail."""
    expecting = [case for case in CASES if json.loads((case / "expected.json").read_text())["findings"]]
    assert len(expecting) >= 40
    assert all(differences(case, [], FOLDER) for case in expecting)
