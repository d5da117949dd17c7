"""A plan's folder: whole or not there, never changed by a later plan, and refused once it was edited."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from durability.errors import Refused
from durability.remedies.change import draft, proof
from durability.remedies.change.describe import before, notes, numbers
from durability.remedies.change.proof import Proof
from durability.report import change as report
from tests.support.schemas import problems
from tests.support.topology import document
from tests.unit.remedies.test_change import FACTS, finding, inputs

HASH = "0" * 64
NAMES = {
    "cluster": "eu payments",
    "kafka_cluster_id": None,
    "snapshot_id": "s",
    "captured_at": "2026-11-21T12:00:00Z",
}


TOPIC_ID = "7EDMB3eWTgGMDLGJLZvuCQ"


def made(id="p1", proven=None, targets=("x",), copies=3, found=()) -> report.Made:
    doc = document("topic replicas min bytes\nt 1 2 10\nu 1,2 - 5", brokers="1:a 2:b 3:c 4:")
    doc["topics"][0]["id"] = TOPIC_ID
    drafted = draft.draft(inputs(doc, {"t": (copies, 2), "u": (copies, None)}))
    head = {
        "id": id,
        "made_at": "2026-11-27T12:00:00Z",
        **NAMES,
        "policy": {"name": "default", "sha256": HASH},
        "undoes": None,
        "targets": list(targets),
        **numbers(drafted),
        "notes": notes(drafted),
        "waves": {"before": 1, "after": 2},
    }
    stated = {"format": report.BEFORE, **NAMES, **before(drafted.change)}
    proof = proven or Proof(mends=("x",), offered=True)
    return report.Made(head, drafted.change, proof, stated, drafted.left_out, tuple(found))


def files(place):
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_a_folder_has_every_file_and_fits_its_schemas(tmp_path):
    place = report.write(made(), FACTS, tmp_path)
    content = report.read(place)
    assert problems("plan-of-change", content) == []
    assert problems("plan-before", json.loads((place / "before.json").read_text())) == []
    assert problems("topology", json.loads((place / "planned.json").read_text())) == []
    for step in content["steps"]:
        assert (place / "steps" / f"{step['id']}.sh").is_file() and (place / step["undo"]).is_file()
    assert place.parent == tmp_path / "plan" and " " not in place.name
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan"]
    assert 8 <= len((place / "README.txt").read_text().splitlines()) <= 12
    said = report.summary(content, place)
    old = "This snapshot is 6 days old. Make a plan from the cluster as it is now before you change it."
    assert old in said and old in (place / "README.txt").read_text()
    assert any("Proven" in line for line in said) and any("not cross-checked" in line for line in said)
    assert content["proof"]["cross_checked"] is False and content["load"]["above_limit"] == []


def test_a_plan_of_a_fresh_snapshot_warns_of_no_age(tmp_path):
    fresh = made()
    place = report.write(replace(fresh, head={**fresh.head, "made_at": "2026-11-22T11:00:00Z"}), FACTS, tmp_path)
    assert "This snapshot" not in (place / "README.txt").read_text()


def test_free_bytes_that_brokers_cannot_state_are_said_before_a_plan_is_run(tmp_path):
    old = report.write(made(), replace(FACTS, release=(3, 2), newest=(3, 2)), tmp_path / "old")
    assert report.FREE_BYTES_UNKNOWN in (old / "README.txt").read_text()
    new = report.write(made(), FACTS, tmp_path / "new")
    assert report.FREE_BYTES_UNKNOWN not in (new / "README.txt").read_text()


def test_a_later_plan_changes_no_earlier_one(tmp_path):
    first = report.write(made("p1"), FACTS, tmp_path)
    was = files(first)
    second = report.write(made("p2"), FACTS, tmp_path)
    assert second == first and report.read(second)["id"] == "p2"
    report.write(made("p2"), FACTS, tmp_path)
    earlier = {path.name: path for path in (second.parent / report.EARLIER / first.name).iterdir()}
    assert files(earlier["p1"]) == was and report.read(earlier["p1"])["id"] == "p1"
    assert len(earlier) == 2


def test_a_plan_that_cannot_be_written_leaves_the_earlier_one(tmp_path, monkeypatch):
    place = report.write(made("p1"), FACTS, tmp_path)
    was = files(place)
    monkeypatch.setattr(report, "_json", lambda content: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.write(made("p2"), FACTS, tmp_path)
    assert files(place) == was and [entry.name for entry in tmp_path.iterdir()] == ["plan"]


def test_a_refuted_plan_is_kept_without_scripts_and_names_what_refutes_it(tmp_path):
    new = {
        **{"id": "n", "control": "rack-loss", "resource_type": "topic", "resource": "t\x1b[2J"},
        **{"outcome": "FAIL", "severity": "critical", "partitions": [0]},
    }
    refuted = proof.compare({"x": {**new, "id": "x"}}, {"n": new}, {"x"}, ["x"], str)
    place = report.write(made(proven=refuted), FACTS, tmp_path)
    content = report.read(place)
    assert content["proof"]["offered"] is False and not list(place.rglob("*.sh"))
    assert content["proof"]["new"][0]["id"] == "n" and problems("plan-of-change", content) == []
    said = (place / "README.txt").read_text() + "\n".join(report.summary(content, place))
    assert said.count("rack-loss of t?[2J would be new or worse (finding n)") == 2 and "\x1b" not in said


@pytest.mark.parametrize("edit", ["script", "moves", "plan", "rehashed", "added", "removed"])
def test_an_edited_folder_is_refused_and_the_file_is_named(tmp_path, edit):
    place = report.write(made(), FACTS, tmp_path)
    script, moves = next(place.glob("steps/*.sh")), next(place.glob("steps/*-reassign.json"))
    named = {"script": script, "moves": moves, "added": place / "steps" / "more.sh", "removed": script}.get(edit)
    if edit in ("script", "added"):
        named.write_text("kafka-topics --delete\n")
    elif edit == "moves":
        named.write_text(moves.read_text().replace("3", "4"))
    elif edit == "removed":
        named.unlink()
    else:
        content = json.loads((place / "plan.json").read_text())
        content["steps" if edit == "plan" else "files"] = [] if edit == "plan" else {}
        (place / "plan.json").write_text(json.dumps(content))
    with pytest.raises(Refused) as refused:
        report.read(place)
    assert str(named or place / "plan.json") in str(refused.value)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"format": "durability-plans/1"}', "{}"])
def test_a_folder_without_a_plan_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / "plan.json").write_text(text)
    with pytest.raises(Refused, match="plan"):
        report.read(tmp_path)


def test_a_topic_that_needs_more_brokers_says_what_helps():
    doc = document("topic replicas\nt 1", brokers="1 2")
    drafted = draft.draft(inputs(doc, {"t": (3, 2)}))
    [(topic, why)] = drafted.left_out
    assert topic == "t" and "add brokers" in why and "tier" in why
    assert drafted.why(finding("t", None), None) == why
    other = finding("other", None)
    assert drafted.why(other, "Add a rack.") == "Add a rack."
    assert "remediation" in drafted.why(other, "# Set it.\nkafka-configs --alter")


@pytest.mark.parametrize("topic, refusal", [("t", "topic t is left out: add brokers"), (None, "add brokers")])
def test_a_plan_without_steps_says_once_what_it_waits_for(tmp_path, topic, refusal):
    whole = made(proven=Proof(remains=(("x", "add brokers"),)))
    without = replace(whole, change=replace(whole.change, steps=()), left_out=((topic, "add brokers"),))
    place = report.write(without, FACTS, tmp_path)
    said = report.summary(report.read(place), place)
    assert f"Not offered: {refusal}." in said and ("Left out:" in said) == (topic is not None)
    lines = [*said, *(place / "README.txt").read_text().splitlines()]
    assert f"It is not offered, so it has no scripts: {refusal}." in lines
    assert not any("It copies" in line for line in lines)
    assert "  It fixes 0 of 1 finding. 1 remains: plan.json says why." in lines


def test_a_topic_that_moves_to_a_part_of_its_target_is_named(tmp_path):
    whole = made()
    noted = [{"topic": f"t{n}", "why": "add a rack"} for n in range(report.SHOWN + 2)]
    place = report.write(replace(whole, head={**whole.head, "notes": noted}), FACTS, tmp_path)
    content = report.read(place)
    assert content["notes"] == noted and problems("plan-of-change", content) == []
    said = report.summary(content, place)
    assert "  t0: add a rack" in said and "  and 2 more in plan.json" in said


def test_the_page_has_the_findings_and_the_brokers_before_and_after(tmp_path):
    hostile = "<script>alert(1)</script>"
    found = [
        {**finding("replication-factor", "t"), "id": "x", "message": "replication factor 1, 3 required"},
        {**finding("replication-factor", hostile), "id": "y", "message": hostile},
    ]
    proven = Proof(mends=("x",), remains=(("y", hostile),), offered=True)
    place = report.write(made(proven=proven, targets=("x", "y"), found=found), FACTS, tmp_path)
    page = (place / "plan.html").read_text()
    assert "Fixes 1 of 2 findings of eu payments" in page and hostile not in page
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    [fixed] = [row for row in rows if "replication factor 1, 3 required" in row]
    [remains] = [row for row in rows if "It remains." in row]
    assert "fixed" in fixed and "&lt;script&gt;" in remains
    content = report.read(place)
    for broker, replicas in content["load"]["after"].items():
        [row] = [row for row in rows if f'<th scope="row" data-label="Broker">{broker}</th>' in row]
        numbers = re.sub(r"<[^>]+>", " ", row).split()
        assert numbers[:3] == [broker, str(content["load"]["before"][broker]), str(replicas)]
    # On a phone, the rows are cards: without the table's head, each number needs its own label.
    assert page.count("<table") == page.count('<table class="stack">')
    assert not re.findall(r'<td class="num[^">]*"(?! data-label=)', page)


def test_the_page_of_a_refuted_plan_says_why(tmp_path):
    harmed = Proof(remains=(("x", "no"),), harms=("Step 02-reassign would leave t-0 offline",), offered=False)
    page = (report.write(made(proven=harmed), FACTS, tmp_path) / "plan.html").read_text()
    assert "What refutes it" in page and "Step 02-reassign would leave t-0 offline." in page and "t-critical" in page
