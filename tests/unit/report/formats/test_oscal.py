"""oscal/, as OSCAL's own classes and an assessor read it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from hashlib import sha256
from pathlib import Path

import pytest

from durability import resources
from durability.policy import shipped_frameworks
from durability.report.formats import oscal
from tests import ROOT
from tests.support.report_cases import WAIVERS, finding, report, snapshot

LOCK = ROOT / "tests" / "data" / "trestle.lock"
MESSAGE = {"message": "partition 0: replication factor 1, 3 required", "cause": "configuration:topic"}
HOSTILE = "# x\n</code><script>a</script> [a](javascript:b) *b* | `t` \u202e\x1b[2J é \U0001f600 \u2028 "
ROWS = [
    finding("orders", "replication-factor", remediation="kafka-topics --list\n# then more", **MESSAGE),
    finding("logs", "log-dirs", "UNKNOWN", message="not readable"),
    finding("cache-1", "replication-factor", "EXEMPT", waiver=0, **MESSAGE),
    finding("fine", "write-headroom", "PASS"),
    finding("gone", "rack-loss", "PASS", change="resolved", why="fixed"),
]
CHECK = """
import json, sys
from pathlib import Path
from trestle.core.duplicates_validator import DuplicatesValidator
from trestle.core.links_validator import LinksValidator
from trestle.core.refs_validator import RefsValidator
from trestle.oscal.assessment_plan import AssessmentPlan
from trestle.oscal.assessment_results import AssessmentResults
from trestle.oscal.component import ComponentDefinition
from trestle.oscal.poam import PlanOfActionAndMilestones
KINDS = {"assessment-plan": AssessmentPlan, "assessment-results": AssessmentResults,
         "component-definition": ComponentDefinition, "poam": PlanOfActionAndMilestones}
said = {}
for name in sys.argv[1:]:
    path = Path(name)
    try:
        model = KINDS[path.stem].oscal_read(path)
        checks = (DuplicatesValidator, RefsValidator, LinksValidator)
        said[name] = "sound" if all(check().model_is_valid(model, True) for check in checks) else "unsound"
    except Exception as error:
        said[name] = f"refused: {type(error).__name__}"
print(json.dumps(said))
"""


def documents(folder: Path, rows=ROWS, **more) -> dict[str, dict]:
    """The content of each document by name."""
    report(rows, folder, **more)
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (folder / "oscal").glob("*.json")}
    return {name: next(iter(document.values())) for name, document in read.items()}


def result(folder: Path, rows=ROWS, **more) -> dict:
    (found,) = documents(folder, rows, **more)["assessment-results"]["results"]
    return found


def props(of: dict) -> dict[str, str]:
    return {prop["name"]: prop["value"] for prop in of["props"]}


def values(value: object, key: str) -> list:
    """All values of this key in a document."""
    if isinstance(value, list):
        return [found for each in value for found in values(each, key)]
    if not isinstance(value, dict):
        return []
    return [*([value[key]] if key in value else []), *(found for each in value.values() for found in values(each, key))]


@pytest.fixture(scope="module")
def trestle() -> Path:
    """A Python with compliance-trestle, in an environment of its own that later runs of the tests use again."""
    folder = resources.cache_folder() / f"trestle-{sha256(LOCK.read_bytes()).hexdigest()[:12]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder.parent, prefix="trestle-unfinished-"))
        subprocess.run([sys.executable, "-m", "venv", made], check=True)
        install = [made / "bin" / "python", "-m", "pip", "install", "--quiet", "--require-hashes", "-r", LOCK]
        subprocess.run(install, check=True)
        try:
            made.rename(folder)
        except OSError:  # another worker was faster
            shutil.rmtree(made)
    return folder / "bin" / "python"


@pytest.mark.slow
def test_oscals_own_classes_accept_the_documents(trestle, tmp_path):
    nowhere = snapshot("us", "failed", captured_at=None, snapshot_id=None, sha256=None, reason=HOSTILE)
    hostile = {"cluster": HOSTILE, "message": HOSTILE, "cause": HOSTILE, "remediation": HOSTILE, "tier": HOSTILE}
    runs = {
        "several": (ROWS, [snapshot(), nowhere]),
        "hostile": ([finding(HOSTILE, "log-dirs", **hostile)], [snapshot(HOSTILE)]),
        "passed": ([finding("fine", "replication-factor", "PASS")], [snapshot()]),
        "empty": ([], []),
    }
    for name, (rows, snapshots) in runs.items():
        report(rows, tmp_path / name, snapshots=snapshots)
    wrong = tmp_path / "wrong" / "poam.json"
    wrong.parent.mkdir()
    wrong.write_text((tmp_path / "several" / "oscal" / "poam.json").read_text().replace('"open"', '"not a token"'))
    paths = [*map(str, sorted(tmp_path.glob("*/oscal/*.json"))), str(wrong)]
    done = subprocess.run([trestle, "-c", CHECK, *paths], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said.pop(str(wrong)).startswith("refused")
    assert len(said) == 4 + 4 + 3 + 3
    assert set(said.values()) == {"sound"}


def test_what_speaks_against_a_requirement_is_a_finding_and_nothing_else_is(tmp_path):
    found = result(tmp_path)
    assert {f["target"]["status"]["state"] for f in found["findings"]} == {"not-satisfied"}
    by_id = {f["target"]["target-id"]: f for f in found["findings"]}
    assert by_id["a.8.14_smt"]["target"]["status"]["reason"] == "fail"
    assert by_id["sc-36.1_smt"]["target"]["status"]["reason"] == "other"  # of its controls, one is unknown
    assert "Not shown: " in by_id["a.8.14_smt"]["description"]
    failed = {"replication-factor", "log-dirs"}
    against = {
        oscal.token(framework, requirement) + "_smt"
        for framework in shipped_frameworks()
        for requirement in framework.requirements
        if failed & set(requirement.controls)
    }
    assert by_id.keys() == against
    assert "findings" not in result(tmp_path, [finding("fine", "replication-factor", "PASS")])


def test_observations_state_each_finding_and_count_what_passed(tmp_path):
    observations = {(props(o)["control"], props(o)["outcome"]): o for o in result(tmp_path)["observations"]}
    assert observations.keys() == {
        ("replication-factor", "FAIL"),
        ("log-dirs", "UNKNOWN"),
        ("replication-factor", "EXEMPT"),
        ("write-headroom", "PASS"),
    }
    failed = observations["replication-factor", "FAIL"]
    assert props(failed)["resource"] == "orders" and failed["description"] == MESSAGE["message"]
    assert failed["collected"] == "2026-11-21T02:00:00Z"
    assert "payments accepts this until 2027-01-31" in observations["replication-factor", "EXEMPT"]["description"]
    assert observations["write-headroom", "PASS"]["description"] == "1 verdict passed"


def test_references_lead_somewhere(tmp_path):
    found = documents(tmp_path)
    results = found["assessment-results"]
    assert (tmp_path / "oscal" / results["import-ap"]["href"]).is_file()
    uuids = values(results, "uuid")
    assert len(uuids) == len(set(uuids))
    assert set(values(results, "observation-uuid")) == {o["uuid"] for o in results["results"][0]["observations"]}
    assert set(values(results, "subject-uuid")) <= set(uuids) and set(values(results, "actor-uuid")) <= set(uuids)
    assert set(values(found["poam"], "risk-uuid")) == {risk["uuid"] for risk in found["poam"]["risks"]}
    sources = {f"#{resource['uuid']}" for resource in found["component-definition"]["back-matter"]["resources"]}
    assert set(values(found["component-definition"], "source")) == sources
    assert {uuid.UUID(each).version for document in found.values() for each in values(document, "uuid")} == {5}
    assert not {t for d in found.values() for t in values(d, "control-id") if not re.fullmatch(r"[a-z_][a-z0-9.-]*", t)}


def test_a_finding_keeps_its_uuids_from_run_to_run(tmp_path):
    first, second = (documents(tmp_path / name, run_id=name) for name in ("run-1", "run-2"))
    assert first["assessment-results"]["uuid"] != second["assessment-results"]["uuid"]
    for key in ("observations", "findings"):
        before, after = ([each["uuid"] for each in d["assessment-results"]["results"][0][key]] for d in (first, second))
        assert before == after
    assert values(first["poam"]["poam-items"], "uuid") == values(second["poam"]["poam-items"], "uuid")


def test_a_waived_risk_keeps_its_uuid_when_a_waiver_is_inserted_above(tmp_path):
    waived = finding("cache-1", "replication-factor", "EXEMPT", waiver=0, **MESSAGE)
    above = {**WAIVERS[1], "index": 0}
    moved = [above, {**WAIVERS[0], "index": 1}]
    first = documents(tmp_path / "first", [waived])["poam"]
    second = documents(tmp_path / "second", [waived | {"waiver": 1}], waivers=moved)["poam"]
    assert first["risks"] == second["risks"] and first["poam-items"] == second["poam-items"]


def test_risks_of_waivers_that_cover_the_same_have_their_own_uuids(tmp_path):
    rows = [finding(f"cache-{n}", "replication-factor", "EXEMPT", waiver=n, **MESSAGE) for n in (0, 1)]
    risks = documents(tmp_path, rows, waivers=[{**WAIVERS[0], "index": n} for n in (0, 1)])["poam"]["risks"]
    assert len({risk["uuid"] for risk in risks}) == 2


def test_the_plan_of_action_has_fixes_and_waivers(tmp_path):
    by_status = {risk["status"]: risk for risk in documents(tmp_path)["poam"]["risks"]}
    (fix,) = by_status["open"]["remediations"]
    assert "kafka-topics --list\n# then more" in fix["description"]
    assert by_status["deviation-approved"]["deadline"] == "2027-01-31T23:59:59Z"


def test_without_a_failure_there_is_no_plan_of_action(tmp_path):
    assert "poam" in documents(tmp_path)
    assert "poam" not in documents(tmp_path, [finding("hidden", "log-dirs", "UNKNOWN")])


def test_findings_beyond_the_most_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(oscal, "OBSERVATIONS", 1)
    told = [o["description"] for o in result(tmp_path)["observations"]]
    assert told == [
        MESSAGE["message"],
        "1 more finding with outcome UNKNOWN in findings.json",
        "1 more finding with outcome EXEMPT in findings.json",
        "1 verdict passed",
    ]


def test_a_cluster_that_only_an_inventory_has_is_an_inventory_item(tmp_path):
    ghost = finding("ghost", "inventory-coverage", cluster="ghost", resource_type="cluster", message="not audited")
    found = result(tmp_path, [*ROWS, ghost])
    items = {item["uuid"]: item["description"] for item in found["local-definitions"]["inventory-items"]}
    assert set(values(found["observations"], "subject-uuid")) <= set(items)
    assert "Kafka cluster ghost" in items.values()
