"""The evidence of a period, from rows written by hand. The expected numbers are counted by hand in the comments."""

from __future__ import annotations

import hashlib
import json
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from durability.cli.app import app
from durability.errors import Refused
from durability.evidence import period as evidence
from durability.evidence import principals
from durability.evidence.nights import Period
from durability.lake import tables
from durability.lake.drill_table import REHEARSAL
from durability.plan.inventory import Inventory
from durability.policy import shipped_frameworks
from durability.policy.frameworks import named
from durability.report.data.drill import Comparison
from durability.report.html import period as period_page
from durability.steps import drill
from tests.support.html import parse
from tests.support.nights import HOSTILE, NOW, OCTOBER, Nights, at, of, waiver
from tests.support.schemas import unnamed


@pytest.fixture
def october(lake):
    """eu and us. eu has all kinds of gaps. us has its first snapshot on the 2nd and vanishes after the 4th."""
    made = Nights(lake)
    fixed = {"change": "resolved", "outcome": "PASS", "severity": None, "previous_severity": "critical", "why": "fixed"}
    old = {"id": "a", "change": "persisting", "since": at(-9)}  # of 21 September
    risk = {"id": "w", "outcome": "EXEMPT", "waiver": 0, "change": "persisting", "resource": "audit"}
    accepted = waiver(expires="2026-10-05", approved_by="cro", approved_count=3)
    unused = waiver(resource="nothing", expires="2027-01-01")

    made.run(-1, [made.snapshot("eu", -1)], [{**old, "change": "new"}])  # 29 September: eu was there before
    made.run(1, [made.snapshot("eu", 1)], [old, {"id": "b", "severity": "warning"}], waivers=[accepted])
    both = [made.snapshot("eu", 2), made.snapshot("us", 2)]
    blind = {"id": "u", "cluster": "us", "outcome": "UNKNOWN", "severity": None, "control": "write-headroom"}
    made.run(2, both, [old, {"id": "b", **fixed, "previous_severity": "warning"}, blind, risk], waivers=[accepted])
    # 3rd: no run at all.
    rejected = made.snapshot("eu", 4, "rejected", "contradicts itself")
    made.run(4, [rejected, made.snapshot("us", 4)], [{**blind, "change": "persisting"}], "incomplete", waivers=[unused])
    made.run(5, [made.snapshot("eu", 5)], [old], "unverified", False, policy="p2", waivers=[unused])
    lost = [made.snapshot("eu", day, "failed", f"no answer {HOSTILE}") for day in (6, 7)]
    for part, day in zip(lost, (6, 7), strict=True):
        made.run(day, [part], (), "incomplete", policy="p2", waivers=[unused])
    made.snapshot("eu", 8)  # accepted, but its run died
    made.run(9, [made.snapshot("eu", 9)], [{"id": "a", **fixed}, {"id": "c"}], policy="p2", waivers=[unused])
    opened = {"id": "d", "control": "write-headroom", "severity": "warning"}
    made.run(10, [made.snapshot("eu", 10)], [{"id": "c", "change": "persisting", "since": at(9)}, opened], policy="p2")
    return made.write()


def test_expected_nights_done_nights_and_each_gap_with_its_reason(october):
    found = evidence.document(october, OCTOBER, None, NOW)
    eu, us = of(found, "eu"), of(found, "us")
    assert (eu["expected_from"], eu["expected"], eu["done"], eu["evaluated"]) == ("2026-10-01", 10, 4, 4)  # 1, 2, 9, 10
    assert [(g["first"][-2:], g["last"][-2:], g["nights"], g["reason"]) for g in eu["gaps"]] == [
        ("03", "03", 1, "no run that night"),
        ("04", "04", 1, "rejected: contradicts itself"),
        ("05", "05", 1, "run unverified: the second check did not confirm its verdicts"),
        ("06", "07", 2, f"failed: no answer {HOSTILE}"),
        ("08", "08", 1, "accepted, but no run has evaluated the snapshot"),
    ]
    # us is expected until the end, although its last snapshot is of the 4th.
    assert (us["expected_from"], us["expected"], us["done"], us["evaluated"]) == ("2026-10-02", 9, 1, 2)
    assert [(g["first"][-2:], g["last"][-2:], g["nights"], g["reason"]) for g in us["gaps"]] == [
        ("03", "03", 1, "no run that night"),
        ("04", "04", 1, "run incomplete: it did not evaluate eu"),
        ("05", "10", 6, "no snapshot"),
    ]
    assert found["nights"] == {"expected": 19, "done": 5, "evaluated": 6}
    assert any(said.startswith("us: no snapshot at the end") for said in found["unknown"])


def test_a_document_makes_no_night_of_a_cluster_done_that_the_audit_reads_itself(lake):
    made = Nights(lake)
    for day in range(1, 11):
        # eu: documents before the first reading, on the 3rd; the 5th and 6th were missed, and written later.
        paper = day < 3 or day in (5, 6)
        eu = made.snapshot("eu", day, **({"source": "eu.json"} if paper else {}))
        made.run(day, [eu, made.snapshot("us", day, source="us.json")])
    seven = made.snapshot("eu", 7, source="eu.json", attempt_id="again", snapshot_id="again")
    made.run(7, [seven], run_id="documents", result_id="documents:1", captured_at=at(7, 3))  # beside that of the night
    lost = made.snapshot("gone", 1)
    made.run(1, [lost], run_id="late", result_id="late:1", finished_at=at(13))  # two days after the period
    found = evidence.document(made.write(), OCTOBER, None, NOW)
    eu, us, gone = of(found, "eu"), of(found, "us"), of(found, "gone")
    assert (eu["done"], eu["done_from_documents"], eu["evaluated"]) == (8, 2, 8)
    assert [(g["first"][-2:], g["last"][-2:], g["reason"]) for g in eu["gaps"]] == [
        ("05", "06", "evaluated from a document")
    ]
    assert (us["done"], us["done_from_documents"], us["gaps"]) == (10, 10, [])
    said = "eu and us: 12 cluster-nights done from documents. The audit did not read these clusters itself."
    assert said in found["unknown"] and unnamed("period", found) == []
    assert gone["done"] == 0 and gone["gaps"][0]["reason"] == "accepted, but no run has evaluated the snapshot"


def test_a_cluster_whose_last_snapshot_is_before_the_period_is_a_gap_of_the_whole_period(october):
    made = Nights(october)
    made.run(-20, [made.snapshot("gone", -20)], [{"id": "g", "cluster": "gone"}])
    found = evidence.document(made.write(), OCTOBER, None, NOW)
    gone = of(found, "gone")
    assert found["exceptions"]["open_at_end"] == 2  # of eu
    assert any(said.startswith("gone: not evaluated in the period") for said in found["unknown"])
    assert (gone["expected"], gone["done"], gone["last_accepted"]) == (10, 0, None)
    assert sum(gap["nights"] for gap in gone["gaps"]) == 10
    assert {gap["reason"] for gap in gone["gaps"]} == {"no snapshot", "no run that night"}


def test_a_clock_that_jumped_back_opens_and_closes_no_finding_twice(lake):
    """The night of the 4th is audited last: it is compared with the 2nd, like the 6th before it."""
    made = Nights(lake)
    gone = {"change": "resolved", "outcome": "PASS", "severity": None, "previous_severity": "critical", "why": "fixed"}
    waived = {"change": "resolved", "outcome": "EXEMPT", "severity": "critical", "why": "waived", "waiver": 0}
    blind = {"id": "u", "outcome": "UNKNOWN", "severity": None}
    made.run(1, [made.snapshot("eu", 1)], [{"id": "a"}, {"id": "w"}, blind])
    made.run(2, [made.snapshot("eu", 2)], [{"id": "a", "change": "persisting"}, {"id": "w", **waived}])  # u passes
    late = [{"id": "a", **gone}, {"id": "b"}, {"id": "w", "change": "persisting"}, blind]
    made.run(6, [made.snapshot("eu", 6)], late)
    made.run(4, [made.snapshot("eu", 4)], [{"id": "a", **gone}, {"id": "b"}, {"id": "w", "change": "persisting"}])
    made.run(8, [made.snapshot("eu", 8)], [{"id": "a"}, {"id": "b", "change": "persisting"}, {"id": "w", **gone}])
    found = evidence.document(made.write(), OCTOBER, None, NOW)["exceptions"]
    # Opened: a, w, b, and a again. Closed: a once. w was waived, then failed again, then was fixed.
    assert (found["opened"], found["closed"], found["open_at_end"]) == (4, {"fixed": 2, "waived": 1}, 2)
    assert [(row["opened"], row["open_at_end"]) for row in found["unknown"]] == [(2, 0)]


def test_policies_in_force_and_their_change(october):
    policies = evidence.document(october, OCTOBER, None, NOW)["policies"]
    assert [(p["sha256"], p["first_night"][-2:], p["last_night"][-2:], p["runs"]) for p in policies["in_force"]] == [
        ("p1", "01", "04", 3),
        ("p2", "05", "10", 5),
    ]
    assert policies["changes"] == 1


def test_exceptions_opened_closed_and_open_at_the_end_and_unknown_apart(october):
    found = evidence.document(october, OCTOBER, None, NOW)["exceptions"]
    # Open on 29 September: a. Opened: b, c, d. Fixed: b, a. Open on the 10th: c of the 9th, and d.
    assert {name: found[name] for name in ("open_at_start", "opened", "closed", "other", "open_at_end")} == {
        "open_at_start": None,  # us wasn't evaluated before the period
        "opened": 3,
        "closed": {"fixed": 2},
        "other": None,
        "open_at_end": 2,
    }
    rows = {(row["cluster"], row["control"], row["severity"]): row for row in found["rows"]}
    of_eu = rows["eu", "replication-factor", "critical"]
    assert (of_eu["open_at_start"], of_eu["opened"], of_eu["closed"], of_eu["open_at_end"]) == (1, 1, {"fixed": 1}, 1)
    assert (of_eu["oldest_since"], of_eu["oldest_days"]) == ("2026-10-09T02:00:00Z", 1)
    assert [(row["severity"], row["opened"], row["open_at_end"]) for row in found["by_severity"]] == [
        ("critical", 1, 1),
        ("warning", 2, 1),
        ("info", 0, 0),
    ]
    assert [(row["cluster"], row["as_of"][:10]) for row in found["by_cluster"]] == [
        ("eu", "2026-10-10"),
        ("us", "2026-10-04"),
    ]
    (unknown,) = found["unknown"]
    assert (unknown["cluster"], unknown["opened"], unknown["open_at_end"]) == ("us", 1, 1)


def test_findings_that_retention_removed_make_numbers_unknown_and_not_zero(lake, tmp_path):
    made = Nights(lake)
    made.run(1, [made.snapshot("eu", 1)], [{"id": "a"}])
    made.findings.clear()
    made.run(2, [made.snapshot("eu", 2)], [{"id": "b"}, {"id": "c", "outcome": "UNKNOWN", "severity": None}])
    made.run(3, [made.snapshot("eu", 3)], [{"id": "b", "change": "persisting"}])
    made.findings.pop()
    folder, found = evidence.write(made.write(), OCTOBER, tmp_path, None, NOW)
    (row,) = found["exceptions"]["rows"]
    assert (row["opened"], row["closed"], row["open_at_end"]) == (None, None, None)
    assert (folder / "period.html").is_file()
    assert [found["exceptions"][name] for name in ("opened", "closed", "open_at_end")] == [None, None, None]
    assert sum("no longer has all findings" in said for said in found["unknown"]) == 2


def test_a_run_that_was_repeated_counts_once_with_its_last_result(lake):
    made = Nights(lake)
    part = made.snapshot("eu", 1)
    made.run(1, [part], [{"id": "a"}], "unverified", False)
    made.run(1, [part], [{"id": "a"}], result_id="run-1:2", finished_at=at(1, 5))
    found = evidence.document(made.write(), OCTOBER, None, NOW)
    assert (of(found, "eu")["done"], found["exceptions"]["opened"], found["exceptions"]["open_at_end"]) == (1, 1, 1)


def test_waivers_used_and_expired(october):
    used, unused = evidence.document(october, OCTOBER, None, NOW)["waivers"]
    assert (used["state"], used["expires"], used["approved_by"]) == ("expired in the period", "2026-10-05", "cro")
    assert (used["first_night"], used["last_night"]) == ("2026-10-01", "2026-10-02")
    # It exempted one finding, on the 2nd. It was approved for three resources and covered one.
    assert [used[n] for n in ("nights_used", "findings_at_most", "approved_count", "covers_at_last")] == [1, 1, 3, 1]
    assert (unused["state"], unused["nights_used"], unused["covers_at_last"]) == (
        "removed or changed",  # the last run has no waivers
        0,
        0,
    )


def test_a_waiver_that_a_run_no_longer_has_is_not_valid_at_the_end(lake, tmp_path):
    made, fleet = Nights(lake), {"inventory": json.dumps(Inventory(fleet="a").to_dict())}
    kept, withdrawn, late = (waiver(expires="2027-01-01", resource=name) for name in ("kept", "withdrawn", "late"))
    made.run(1, [made.snapshot("eu", 1)], waivers=[kept, withdrawn], **fleet)
    made.run(2, [made.snapshot("eu", 2)], waivers=[kept, late], **fleet)
    made.run(3, [made.snapshot("eu", 3)], run_id="of-documents", result_id="of-documents:1")  # with waivers of its own
    folder, found = evidence.write(made.write(), OCTOBER, tmp_path, None, NOW)
    states = {row["resource"]: row["state"] for row in found["waivers"]}
    assert states == {"kept": "valid", "late": "valid", "withdrawn": "removed or changed"}
    assert "last run with it 2026-10-01" in parse((folder / "period.html").read_text())[0]


def test_pulses_and_their_longest_gap(october):
    made = Nights(october)
    for day, hour in ((1, 6), (1, 12), (8, 12)):
        part = made.snapshot("eu", day, captured_at=at(day, hour), kind="pulse")
        moments = dict.fromkeys(("captured_at", "started_at", "finished_at"), at(day, hour))
        made.run(
            day, [part], kind="pulse", verified=None, run_id=f"pulse-{day}-{hour}", result_id=f"{day}-{hour}", **moments
        )
    # From the 1st 12:00 to the 8th 12:00 are seven days. The pulse's snapshot makes no night done.
    found = evidence.document(made.write(), OCTOBER, None, NOW)
    assert found["pulses"] == [{"cluster": "eu", "pulses": 3, "longest_gap_seconds": 7 * 86400}]
    assert of(found, "eu")["done"] == 4


def test_drills_of_the_period_each_once_and_lakes_that_keep_none(october, tmp_path, monkeypatch):
    stated = {"snapshot_id": "before", "captured_at": "2026-10-03T02:00:00Z"}
    stated["lose"] = {"asked": [f"rack:{HOSTILE}"], "brokers": [1], "controllers": []}
    for run, attempt, day, agreed in (
        ("a", 1, 3, 7),
        ("a", 2, 3, 8),
        ("b", 1, 4, 8),
        ("b", 2, 12, 8),  # repeated after the period, so that its last result isn't of it
        ("c", 1, 12, 9),
    ):
        seen = {"cluster": "eu", "captured_at": at(day), "snapshot_id": f"after-{day}"}
        found = Comparison(compared=8, agreed=agreed)
        drill.record(october, stated, seen, (run, f"{run}:{attempt}"), found, None)
    folder, found = evidence.write(october, OCTOBER, tmp_path, None, NOW)
    (one,) = found["drills"]["found"]
    assert unnamed("period", found) == []
    assert (one["agreed"], one["compared"], one["seen_in"], one["started_by"]) == (8, 8, "after-3", None)
    assert not any("rill" in said for said in found["unknown"])
    page = (folder / "period.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page[page.index('id="drills"') :] and "\u202e" not in page
    monkeypatch.setattr(type(october), "has", lambda lake, table: table.name != "drills")
    without = evidence.document(october, OCTOBER, None, NOW)
    assert without["drills"]["found"] is None and any(
        said.startswith("Drills: no drill was") for said in without["unknown"]
    )


def test_a_drill_that_compared_nothing_is_listed_and_shows_nothing(october, tmp_path):
    stated = {"snapshot_id": "before", "captured_at": "2026-10-03T02:00:00Z"}
    stated["lose"] = {"asked": ["broker:1"], "brokers": [1], "controllers": []}
    seen = {"cluster": "eu", "captured_at": at(3), "snapshot_id": "after"}
    drill.record(october, stated, seen | {"snapshot_id": None}, ("a", "a:1"), Comparison(), None, REHEARSAL)
    folder, found = evidence.write(october, OCTOBER, tmp_path, None, NOW)
    assert unnamed("period", found) == [] and any("rehearsals on an embedded" in said for said in found["unknown"])
    assert "rehearsal on an embedded cluster</span>" in (folder / "period.html").read_text()
    assert [one["compared"] for one in found["drills"]["found"]] == [0]
    assert "Drill of eu at 2026-10-03T02:00:00Z: nothing was compared." in found["unknown"]


def test_waivers_say_where_a_tier_ended_them(lake, tmp_path):
    made = Nights(lake)
    limits = {
        "gold": {"days": 2, "until": "2026-10-05"},  # of an earlier version
        "none": {"days": 2, "since": None, "until": None},
        "open": {"days": 90, "since": "2026-10-03", "until": "2026-12-31"},
    }
    stated = waiver(expires="2026-12-31", approved_at="2026-10-03")
    for day, more in ((1, {}), (2, {"limits": limits})):
        made.run(day, [made.snapshot("eu", day)], waivers=[stated | more])
    folder, found = evidence.write(made.write(), OCTOBER, tmp_path, None, NOW)
    (one,) = found["waivers"]
    assert unnamed("period", found) == [] and one["state"] == "valid"
    states = [
        "ended in tier gold on 2026-10-05",
        "counts on no day in tier none",
        "counts in tier open until 2026-12-31",
    ]
    assert [limit["state"] for limit in one["limits"]] == states
    assert [limit["since"] for limit in one["limits"]] == [None, None, "2026-10-03"]
    assert all(state in (folder / "period.html").read_text() for state in states)


def test_a_framework_cuts_exceptions_and_waivers_and_no_nights(october):
    framework = named(shipped_frameworks(), "soc2")
    cut = evidence.document(october, OCTOBER, framework, NOW)
    assert cut["nights"]["expected"] == 19 and unnamed("period", cut) == []
    assert {row["control"] for row in cut["exceptions"]["rows"]} <= framework.controls
    assert cut["framework"]["requirements"][0]["not_shown"]


class Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = set(), ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def test_the_page_shows_the_hash_of_the_file_and_escapes_hostile_text(october, tmp_path):
    folder, found = evidence.write(october, OCTOBER, tmp_path / "out", None, NOW)
    content = (folder / "period.json").read_bytes()
    assert folder.name == "2026-10-01_2026-10-11" and json.loads(content) == found
    assert unnamed("period", found) == [] and unnamed("period", {**found, "exceptions": {}})
    page = (folder / "period.html").read_text()
    seen = Seen()
    seen.feed(page)
    assert hashlib.sha256(content).hexdigest() in seen.text
    assert "script" not in seen.tags and "<script>alert(1)</script>" in seen.text
    assert "\u202e" not in page and "\x07" not in page
    assert "default-src 'none'" in page and "Reviewed by" in seen.text
    assert seen.text.index("Unknown") < seen.text.index("Policies in force")
    assert "more than approved" not in page
    found["waivers"][0].update(approved_count=1, covers_at_last=2)
    assert "more than approved" in "".join(period_page.render(found, "0" * 64))


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ("2026-11-01", "2026-10-01", "--from 2026-11-01 must be before --to 2026-10-01"),
        ("2026-11-01", "2026-11-01", "must be before"),
        ("1.10.2026", "2026-11-01", "--from 1.10.2026: expected a day as YYYY-MM-DD"),
        ("2026-11-01", "2026-12-01", "the period isn't over"),
    ],
)
def test_what_is_no_period_is_refused(start, end, said):
    with pytest.raises(Refused, match=said):
        Period.of(start, end, NOW.date())


def test_a_refusal_says_which_runs_there_are(lake):
    made = Nights(lake)
    with pytest.raises(Refused, match=r"that counts\. It has no nightly run at all$"):
        evidence.document(made.write(), OCTOBER, None, NOW)
    for day in (3, 4):
        made.run(day, [made.snapshot("eu", day)], finished_at=at(13))  # two days after the period
    said = "2 runs of the period ended more than 2 days after it. Its nightly runs are from 2026-10-03 to 2026-10-04$"
    with pytest.raises(Refused, match=said):
        evidence.document(made.write(), OCTOBER, None, NOW)


def test_the_command_writes_the_files_and_refuses_what_it_cannot_do(october, tmp_path):
    def run(*arguments: str):
        return CliRunner().invoke(app, ["evidence", "--out", str(tmp_path / "out"), *arguments], env={"LAKE": ""})

    lake = ("--lake", october.location)
    done = run("--from", "2026-10-01", "--to", "2026-10-11", *lake)
    assert done.exit_code == 0 and "5 of 19 cluster-nights done" in done.output
    whole, cut = (tmp_path / "out" / "period" / f"2026-10-01_2026-10-11{end}" for end in ("", "_soc2"))
    written = (whole / "period.html").read_bytes()
    assert run("--from", "2026-10-01", "--to", "2026-10-11", "--framework", "soc2", *lake).exit_code == 0
    assert (cut / "period.html").is_file() and (whole / "period.html").read_bytes() == written
    for arguments, said in (
        (("--from", "2026-01-01", "--to", "2026-02-01", *lake), "has no nightly run from 2026-01-01 to 2026-02-01"),
        (
            ("--from", "2026-10-01", "--to", "2026-10-11", "--framework", "sox", *lake),
            "--framework sox: there is no framework",
        ),
        (("--from", "2026-10-01", "--to", "2026-10-11", "--lake", str(tmp_path / "none")), "no lake there"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 2 and said in refused.output
    assert not (tmp_path / "none").exists()


def test_without_an_inventory_the_period_says_that_the_population_is_not_known(october):
    unknown = evidence.document(october, OCTOBER, None, NOW)["unknown"]
    assert "No inventory was compared. Clusters that no one audits aren't counted." in unknown


def test_the_principal_and_its_acls_are_told_for_each_change(lake, tmp_path):
    made = Nights(lake)
    listed = [{"principal": "User:*", "permission": "ALLOW", "operation": "ALL", "resource_type": "TOPIC"}]
    listed[0] |= {"resource": HOSTILE, "pattern": "PREFIXED", "host": "10.0.0.1"}
    named = {"principal": {"name": "User:auditor", "reason": None}, "acls": {"count": 1, "listed": listed}}
    token = {"principal": {"name": None, "reason": "a token"}, "acls": None, "acls_reason": "no name"}
    by_day = {1: named, 2: named, 3: token, 4: {"principal": {"name": "User:auditor"}}}
    rows = []
    for day, record in by_day.items():
        part = made.snapshot("eu", day)
        made.run(day, [part])
        rows.append({**part, "collection": json.dumps(record)})
    made.run(6, [made.snapshot("us", 6)])  # retention has removed its facts
    rows += [{**rows[0], "attempt_id": "pulse", "captured_at": at(1, 5)}]
    made.write()
    names = tables.CLUSTERS.arrow.names
    rows = [{name: value for name, value in row.items() if name in names} for row in rows]
    lake.append(tables.CLUSTERS, pa.Table.from_pylist(rows, tables.CLUSTERS.arrow))
    folder, found = evidence.write(lake, OCTOBER, tmp_path, None, NOW)
    told = [(p["principal"], p["principal_reason"], p["acls"], p["acls_reason"]) for p in found["principals"]]
    assert told == [
        ("User:auditor", None, named["acls"], None),
        (None, "a token", None, "no name"),
        ("User:auditor", None, None, principals.EARLIER),
    ]
    assert [(p["first_night"][-2:], p["last_night"][-2:], p["snapshots"]) for p in found["principals"]] == [
        ("01", "02", 2),
        ("03", "03", 1),
        ("04", "04", 1),
    ]
    assert "us: the lake no longer has the record of the principal that read it." in found["unknown"]
    assert "eu: the ACLs of the principal aren't known (no name)." in found["unknown"]
    assert unnamed("period", json.loads((folder / "period.json").read_text())) == []
    page = (folder / "period.html").read_text()
    assert "ALLOW ALL on TOPIC &lt;script&gt;" in page and "<script" not in page and "for User:* from 10.0.0.1" in page
