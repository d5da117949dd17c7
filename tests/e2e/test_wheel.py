"""The wheel is whole: unpacked anywhere, it audits without a checkout and without Airflow."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from durability import resources
from tests import ROOT
from tests.support.wheel import unpacked

STEPS = ["plan", "collect", "gate", "publish", "evaluate", "cross-check", "findings", "report", "notify", "conclude"]
PACKAGES, SHARED = ("durability", "expectations", "spark_jobs"), ("dags", "policies", "docs/examples")


def files(*folders: str) -> set[str]:
    found = (f for folder in folders for f in (ROOT / folder).rglob("*") if f.is_file())
    return {str(f.relative_to(ROOT)) for f in found if "__pycache__" not in f.parts}


def test_every_file_of_the_packages_and_of_what_lies_beside_them_is_in_it():
    packed = {str(f.relative_to(unpacked())) for f in unpacked().rglob("*") if f.is_file()}
    assert files(*PACKAGES) - packed == set()
    assert {name.removeprefix("plugins/") for name in files("plugins/kafka_durability")} - packed == set()
    assert {f"durability/share/{name}" for name in files(*SHARED)} - packed == set()
    assert not [name for name in packed if name.startswith(("tests", "bench", "setup"))]


def test_the_packed_yaml_files_name_their_schema_where_it_is():
    packed = sorted((unpacked() / "durability" / "share").rglob("*.yaml"))
    assert {path.name for path in packed} == {"policy.yaml", "waivers.yaml", "clusters.yaml", "frameworks.yaml"}
    for path in packed:
        stated = path.read_text().splitlines()[0].removeprefix("# yaml-language-server: $schema=")
        assert (path.parent / stated).resolve() == (
            unpacked() / "durability" / "schemas" / f"{path.stem}.json"
        ).resolve()
        assert (path.parent / stated).is_file()


def test_what_overwrites_pyspark_has_its_release():
    """The Spark provider asks for any pyspark-client. Version 4.2 over pyspark 4.1 makes `import pyspark` fail."""
    (metadata,) = unpacked().glob("kafka_durability_audit-*.dist-info/METADATA")
    stated = dict(re.findall(r"^Requires-Dist: (pyspark(?:-client)?)([<>=.,0-9]+)", metadata.read_text(), re.MULTILINE))
    assert stated["pyspark-client"] == stated["pyspark"]


@pytest.fixture
def environment(tmp_path) -> dict[str, str]:
    """Of a user with the wheel alone: importing Airflow fails, as where it isn't installed; jars were fetched before."""
    blocked = tmp_path / "blocked" / "airflow"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text('raise ImportError("no Airflow here")')
    ours = ("BOOTSTRAP", "TOPOLOGY", "POLICY", "WAIVERS", "OUT", "LAKE", "FAIL_ON", "CLUSTER", "XDG_STATE_HOME")
    return {
        **{name: value for name, value in os.environ.items() if name not in ours},
        "PYTHONPATH": os.pathsep.join([str(blocked.parent), str(unpacked())]),
        "HOME": str(tmp_path / "home"),
        "DURABILITY_CACHE": str(resources.cache_folder()),
        "NO_COLOR": "1",
    }


def audit(folder: Path, environment: dict[str, str], *flags: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "durability.cli", "audit", *flags]
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder, timeout=500)


@pytest.mark.slow
def test_the_example_is_audited_in_an_empty_folder_without_airflow(tmp_path, environment):
    folder = tmp_path / "empty"
    folder.mkdir()
    example = str(unpacked() / "durability" / "share" / "docs" / "examples" / "eu-payments.json")
    done = audit(folder, environment, "--topology", example)
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[1 : len(STEPS) + 1]] == STEPS
    assert f"  {folder / 'out' / 'report.html'}\n" in done.stdout and "\x1b" not in done.stdout
    first = json.loads((folder / "out" / "findings.json").read_text())
    assert first["run"]["verified"] is True
    assert {f["cluster"] for f in first["findings"]} == {"eu-payments"}
    log = (folder / "out" / "logs" / "audit.log").read_text()
    assert "Running Spark version" in log, "Spark's lines are in the audit's log"
    assert [path.name for path in folder.iterdir()] == ["out"] and not (tmp_path / "home").exists()

    # The same document again: what it finds isn't new.
    warnings = [f["id"] for f in first["findings"] if f["severity"] == "warning"]
    assert warnings and {f["change"] for f in first["findings"]} == {"new"}
    again = audit(folder, environment, "--topology", example, "--fail-on", "new-warning")
    assert again.returncode == 0, again.stdout + again.stderr
    second = json.loads((folder / "out" / "findings.json").read_text())
    assert [f["id"] for f in second["findings"] if f["severity"] == "warning"] == warnings
    assert {f["change"] for f in second["findings"]} == {"persisting"}
