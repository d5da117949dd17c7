"""What a manifest states, and that evidence is only ever added."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from durability.evidence import keys, statement, verify
from durability.evidence.write import Audited, write
from durability.plan.inventory import compare
from durability.plan.plan import to_text
from durability.policy import Cluster
from durability.policy.inventory import Entry, InventorySource, Listing
from durability.topology import validate
from tests import ROOT
from tests.support.evidence import CLUSTER, POLICY, attest, evaluated_policy, lake_of, new_key, signed_chain
from tests.support.evidence import statement as stated
from tests.support.html import parse
from tests.support.lake import accepted
from tests.support.report_cases import SHA, plan, snapshot
from tests.support.schemas import unnamed

GONE = {"status": "failed", "reason": "no broker answers", "attempt_id": "attempt-3", "sha256": None, "partitions": 0}
SNAPSHOTS = [
    snapshot(),
    snapshot("document", source="document.json", attempt_id="attempt-2"),
    snapshot("us", **GONE),
]
DOCUMENT = {**CLUSTER, "cluster": "document", "attempt_id": "attempt-2", "kafka_cluster_id": None, "collection": None}


def predicate(folder: Path) -> dict:
    return stated(folder)["predicate"]


def unexplained(found: object, reasons: dict, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The members that are null without a reason in the nearest `unknown`."""
    if isinstance(found, dict):
        own = found.get("unknown")
        for name, value in found.items():
            inner = (reasons, (*path, name)) if own is None else (own, (name,))
            yield from unexplained(value, *inner)
    elif isinstance(found, list):
        for value in found:
            yield from unexplained(value, {}, path)
    elif found is None and ".".join(path) not in reasons:
        yield ".".join(path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("signing", "signed"), "yes"),
        (("signing", "key"), 5),
        (("previous",), "000001"),
        (("previous",), {"folder": "000001"}),
        (("snapshots", 0, "principal"), "User:audit"),
        (("snapshots", 0, "apis"), [{"api": "Metadata"}]),
        (("snapshots", 0, "clock_offset_ms"), "3"),
        (("snapshots", 0, "counts", "kept"), 7),
        (("snapshots", 0, "counts", "declared"), {"brokers": "3", "topics": 1, "partitions": 1}),
        (("snapshots", 0, "reperform"), ["kafka-topics"]),
    ],
)
def test_a_manifest_with_members_of_another_kind_is_refused(tmp_path, place, value):
    found = predicate(attest(tmp_path, None, clusters=(CLUSTER, DOCUMENT), snapshots=SNAPSHOTS).folder)
    *path, last = place
    inner = found
    for key in path:
        inner = inner[key]
    assert inner[last] != value
    inner[last] = value
    assert unnamed("evidence", found)


def test_the_manifest_states_what_is_known_and_why_the_rest_is_not(tmp_path):
    made = attest(tmp_path, None, clusters=(CLUSTER, DOCUMENT), snapshots=SNAPSHOTS)
    found = predicate(made.folder)
    assert unnamed("evidence", found) == [] and unnamed("evidence", {**found, "policy": {"name": "p", "sha256": "x"}})
    live, document, gone = found["snapshots"]
    assert (live["kafka_cluster_id"], live["kafka_version"], live["sha256"]) == (
        CLUSTER["kafka_cluster_id"],
        "4.3.1",
        SHA,
    )
    assert live["counts"]["declared"] == {"brokers": 3, "topics": 2, "partitions": 12}
    assert live["counts"]["kept"] == {"brokers": 0, "topics": 0, "partitions": 12}
    assert (live["counts"]["hidden_partitions"], live["clock_offset_ms"]) == (0, -7)
    assert live["counts"]["log_dirs"] == {"brokers": 3, "topics": 2, "partitions": 12}
    assert live["principal"]["name"] == "User:ANONYMOUS" and live["apis"][0]["version"] == 13
    assert document["counts"]["declared"] is None and document["counts"]["kept"]["partitions"] == 12
    assert (gone["reason"], gone["counts"]["kept"], gone["kafka_cluster_id"]) == ("no broker answers", None, None)
    for entry in found["snapshots"]:
        assert {name for name in unexplained(entry, {}) if not name.endswith("reason")} <= {"principal.sasl_mechanism"}
    assert found["run"] | {"attested_at": None} == {
        "id": "run-1",
        "result_id": "result-1",
        "kind": "nightly",
        "started_at": "2026-11-21T02:00:05Z",
        "attested_at": None,
        "status": "complete",
        "verified": True,
    }
    assert found["signing"]["signed"] is False and (found["number"], found["previous"]) == (1, None)


def test_the_programs_hash_is_what_the_command_prints(tmp_path):
    code = predicate(attest(tmp_path, None).folder)["code"]
    printed = subprocess.check_output(code["reperform"], shell=True, cwd=ROOT, text=True)
    assert printed.split()[0] == code["sha256"]


def test_inputs_are_those_of_the_run_or_it_is_said(tmp_path):
    made = attest(tmp_path, None)
    assert predicate(made.folder)["inputs"]["as_evaluated"] is False and "were changed after" in made.problems[0]
    planned = replace(plan(), policy=replace(plan().policy, sha256=evaluated_policy()))
    run = Audited(planned, "complete", True, {}, POLICY | {"clusters": None})
    made = write(lake_of(CLUSTER), run, tmp_path, None, "no key")
    found = predicate(made.folder)
    assert found["inputs"]["as_evaluated"] is True and made.problems == []
    assert found["inputs"]["clusters"] is None and found["inputs"]["unknown"]["clusters"] == "this run doesn't use it"
    assert (made.folder / "inputs" / "policy.yaml").read_bytes() == POLICY["policy"].read_bytes()
    run = replace(run, inputs={"policy": tmp_path / "none", "waivers": POLICY["waivers"]})
    found = predicate(write(lake_of(CLUSTER), run, tmp_path, None, "no key").folder)
    assert found["inputs"]["as_evaluated"] is None and "can't be read" in found["inputs"]["unknown"]["policy"]


def test_what_inventories_listed_is_attested(tmp_path):
    listing = Listing(
        InventorySource("k8s", "strimzi"), [Entry(("a", "ns/a", "k8s:ns/a"), "id-1"), Entry(("b", "ns/b"))]
    )
    compared = compare([listing], [Cluster("a", "a"), Cluster("c", "c")], {}, ["before"], "prod")
    run = Audited(replace(plan(), inventory=compared), "complete", True, {}, POLICY)
    folder = write(lake_of(CLUSTER), run, tmp_path, None, "no key").folder
    kept = json.loads((folder / "inputs" / "inventory.json").read_text())
    assert [(c["id"], c["cluster"], c["certain"], c["other_names"]) for c in kept["clusters"]] == [
        ("a", "a", True, ["ns/a", "k8s:ns/a", "id-1"]),
        ("b", None, True, ["ns/b"]),
    ]
    assert (kept["unlisted"], kept["fleet"], kept["sources"][0]["name"]) == (["c"], "prod", "k8s")
    assert unnamed("evidence", predicate(folder)) == [] and verify.verify(folder)[1] == 0
    told = subprocess.check_output(["sha256sum", folder / "inputs" / "inventory.json"], text=True).split()[0]
    assert predicate(folder)["inputs"]["inventory"] == {"sha256": told}
    assert "inputs/inventory.json" in {subject["name"] for subject in stated(folder)["subject"]}
    without = predicate(attest(tmp_path, None).folder)["inputs"]
    assert without["inventory"] is None and without["unknown"]["inventory"] == "this run compares no inventory"


def test_a_rerun_adds_and_changes_nothing(tmp_path):
    key = keys.from_file(new_key(tmp_path / "key.pem"))
    out = tmp_path / "out"
    (first,) = signed_chain(out, key, runs=1)
    before = {path: path.read_bytes() for path in first.rglob("*") if path.is_file()}
    again = attest(out, key).folder
    assert again.name != first.name and again.name[6:] == first.name[6:], "the same result, the next number"
    with (out / "findings.json").open("a") as file:  # an editor that writes in place
        file.write("changed")
    assert {path: path.read_bytes() for path in first.rglob("*") if path.is_file()} == before
    assert verify.verify(out, None)[1] == 0
    assert not any(os.access(path, os.W_OK) for path in before) or os.geteuid() == 0
    assert {path.stat().st_mode & 0o222 for path in before} == {0}


def test_a_run_killed_while_it_writes_leaves_nothing_half(tmp_path, monkeypatch):
    def killed(*args):
        raise KeyboardInterrupt

    attest(tmp_path, None)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "rename", killed)
        attest(tmp_path, None)
    third = attest(tmp_path, None).folder
    assert sorted(os.listdir(tmp_path / "evidence")) == ["000001-20261121T020005Z-519e8f51", third.name]
    assert predicate(third)["number"] == 2 and verify.verify(tmp_path, None)[1] == 0


def test_a_damaged_run_before_is_told_and_stops_nothing(tmp_path):
    (attest(tmp_path, None).folder / verify.MANIFEST).unlink()
    made = attest(tmp_path, None)
    assert any("the evidence of this run can't name it" in problem for problem in made.problems)
    assert predicate(made.folder)["previous"]["manifest_sha256"] is None
    assert verify.verify(tmp_path, None)[1] == 1


def test_what_dsse_signs_is_as_its_specification_shows():
    encoded = verify.pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert encoded == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_commands_are_those_of_the_release():
    def shown(version: str | None, kraft: bool | None) -> str:
        return " ".join(c["command"] for c in statement.commands(version, kraft))

    assert "kafka-metadata-quorum" in shown("4.3.1", True) and "kafka-metadata-quorum" not in shown("3.6.2", False)
    assert "kafka-topics --zookeeper" in shown("2.1.0", False) and "--all " not in shown("2.1.0", False)


def test_the_document_of_a_snapshot_is_kept_until_it_is_attested(lake, tmp_path):
    example = json.loads((ROOT / "docs" / "examples" / "eu-payments.json").read_text())
    topology = validate(example, "eu-payments.json")
    attempt = lake.stage(topology)
    lake.documents.keep(attempt, topology)
    (row,) = lake.publish([attempt], accepted(attempt))
    part = snapshot(attempt_id=attempt.attempt_id, sha256=row["sha256"], captured_at=to_text(row["captured_at"]))
    missing = snapshot("us", attempt_id="none", captured_at=to_text(row["captured_at"]), source="us.json")
    run = Audited(plan(snapshots=[part, missing]), "complete", True, {}, POLICY)
    folder = write(lake, run, tmp_path / "out", None, "no key").folder
    kept, lost = predicate(folder)["snapshots"]
    command = f"gzip -dc {kept['document']} | sha256sum"
    assert subprocess.check_output(command, shell=True, cwd=folder, text=True).split()[0] == kept["sha256"]
    again = json.loads(subprocess.check_output(["gzip", "-dc", kept["document"]], cwd=folder))
    assert validate(again, "again").sha256 == topology.sha256
    assert kept["counts"]["kept"] == {"brokers": 3, "topics": 1, "partitions": part.partitions}
    assert lost["document"] is None and lost["unknown"]["document"] == statement.NOT_READ
    assert verify.verify(folder)[1] == 0
    assert lake.documents.discard() == 0 and lake.documents.discard(timedelta(seconds=-1)) == 1
    assert lake.documents.read(attempt.attempt_id) is None


def test_links_of_the_kept_pages_lead_to_attested_files(tmp_path):
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "mine.html").write_text("a page that no run wrote")
    clusters = [snapshot("eu-payments", team="pay"), snapshot("us", team="web")]
    folder = attest(tmp_path, None, snapshots=clusters).folder
    pages = sorted((folder / "report").rglob("*.html"))
    assert [page.relative_to(folder / "report").as_posix() for page in pages] == [
        *("report.html", "teams/index.html", "teams/pay.html", "teams/web.html")
    ]
    named = {subject["name"] for subject in stated(folder)["subject"]}
    for page in pages:
        links = {value for _, name, value in parse(page.read_text(encoding="utf-8"))[1].attributes if name == "href"}
        files = {(page.parent / link.partition("#")[0]).resolve() for link in links if not link.startswith("#")}
        assert {file.relative_to(folder).as_posix() for file in files} <= named
