"""Causes, the sentence on the headline, and the terminal's summary."""

from __future__ import annotations

import json

import pytest

from durability.report import files
from durability.report.data.causes import HIGHEST, Causes
from durability.report.data.headline import overview
from durability.report.text import console
from tests.support.report_cases import finding, findings_json, snapshot


def headline(*rows, **more):
    return overview(findings_json(list(rows), **more))[0].sentence


def test_findings_of_one_cause_are_one_group_whose_first_remediation_fixes_most():
    rows = [
        finding(
            "a",
            "partition-health",
            category="under-min-isr",
            cause="broker:3 down",
            partitions=[0, 1],
            remediation="start 3",
        ),
        finding("a", "isr-rack-spread", cause="broker:3 down", partitions=[1, 2], remediation="start 3"),
        finding("b", "partition-health", severity="warning", cause="broker:3 down", partitions=[0], remediation="look"),
        finding("b", "replication-factor", cause="configuration:topic", remediation="add replicas"),
        finding("c", "replication-factor", cause="broker:3 down", cluster="us", remediation="start 3"),
    ]
    ranked = Causes(findings_json(rows)["findings"]).ranked("FAIL")
    assert [(c.cause, c.cluster) for c in ranked] == [
        ("broker:3 down", "eu-payments"),
        ("configuration:topic", "eu-payments"),
        ("broker:3 down", "us"),
    ]
    worst = ranked[0]
    assert worst.extent == "3 findings on 2 topics, 4 partitions"  # a: 0, 1, 2; b: 0
    assert worst.severity_counts == "2 critical, 1 warning"
    assert worst.first_remediations(1) == [("start 3", 2)]
    assert dict(worst.controls) == {"partition-health": 2, "isr-rack-spread": 1}


def test_one_critical_finding_outranks_many_warnings():
    rows = [finding(f"w{i}", "write-headroom", severity="warning", cause="many") for i in range(5)]
    rows.append(finding("c", "replication-factor", cause="few"))
    assert [c.cause for c in Causes(findings_json(rows)["findings"]).ranked("FAIL")] == ["few", "many"]


QUORUM_LOST = finding(
    "eu-payments",
    "controller-quorum",
    category="majority-lost",
    cause="controller quorum",
    resource_type="cluster",
    remediation="Start voters 1 and 4",
)


def test_a_lost_controller_quorum_comes_before_all_else():
    """One finding among dozens of offline partitions: nothing can be fixed before it."""
    offline = [finding(f"t{n}", "partition-health", category="offline", cause="rack:az1 down") for n in range(9)]
    document = findings_json([*offline, QUORUM_LOST])
    first, causes = overview(document)
    assert causes.ranked("FAIL")[0].cause == "controller quorum"
    assert first.sentence == "No controller leads eu-payments: no leader can be elected, and no topic can be changed."
    assert first.details[0] == "Down in eu-payments: rack az1."
    assert first.details[1].startswith("9 of 9 topics have critical findings: 9 with offline partitions now")
    summary = console.summary_text(document, [])
    assert summary.index("Start voters 1 and 4") < summary.index("Rack az1 down")
    hint = console.plan_hint()
    assert summary.endswith(f"{hint}\n") and hint not in console.summary_text(findings_json([]), [])


def test_what_is_down_is_named_right_after_what_it_does():
    causes = ["broker:10 down, broker:2 down", "broker:3 log dir offline, rack:az 1 down", "configuration:topic"]
    rows = [finding(f"t{n}", "partition-health", category="offline", cause=cause) for n, cause in enumerate(causes)]
    gone = finding("t9", "partition-health", cause="broker:9 down", outcome="PASS", change="resolved", why="fixed")
    first = overview(findings_json([*rows, gone]))[0]
    assert first.sentence.startswith("3 of 3 topics have critical findings")
    assert first.details == ["Down in eu-payments: broker 2, broker 10 and rack az 1."]
    many = [finding("t", "partition-health", cause="broker:1 down", cluster=f"c{n}") for n in range(5)]
    assert overview(findings_json(many))[0].details[0] == (
        "Down in c0: broker 1; in c1: broker 1; in c2: broker 1; in 2 more clusters."
    )


def test_what_happens_now_comes_first_and_what_no_broker_enforces_last():
    health = {"cause": "broker:3 down", "category": "offline"}
    rows = [
        *(finding(f"t{i}", "min-insync-racks-valid", cause="configuration:broker.rack") for i in range(9)),
        finding("6", "broker-rack", severity="warning", cause="configuration:broker.rack", resource_type="broker"),
        *(finding(f"c{i}", "replication-factor", cause="configuration:topic") for i in range(3)),
        finding("w", "write-headroom", severity="warning", cause="configuration:headroom"),
        finding("w", "write-headroom", severity="warning", cause="configuration:headroom", resource_type="broker"),
        finding("dead", "partition-health", **health),
    ]
    ranked = Causes(findings_json(rows)["findings"]).ranked("FAIL")
    assert [c.cause for c in ranked] == [
        "broker:3 down",
        "configuration:topic",
        "configuration:headroom",
        "configuration:broker.rack",
    ]


def test_the_first_remediation_fixes_the_most_urgent_finding():
    rows = [finding(f"i{i}", "partition-health", severity="info", cause="x", remediation="many") for i in range(5)]
    rows += [finding(f"w{i}", "write-headroom", severity="warning", cause="x", remediation="some") for i in range(3)]
    rows.append(finding("c", "replication-factor", cause="x", remediation="one"))
    (cause,) = Causes(findings_json(rows)["findings"]).ranked("FAIL")
    assert cause.first_remediations(3) == [("one", 1), ("some", 3), ("many", 5)]


def test_causes_are_apart_by_outcome_and_by_waiver():
    rows = [
        finding("a", "log-dirs", "UNKNOWN", cause="unreadable"),
        finding("b", "write-headroom", "EXEMPT", waiver=0, cause="configuration:topic"),
        finding("c", "write-headroom", "EXEMPT", waiver=1, cause="configuration:topic"),
        finding("d", "write-headroom", severity="info", cause="configuration:topic"),
        finding("e", "write-headroom", "PASS", change="resolved", why="fixed", cause="configuration:topic"),
    ]
    causes = Causes(findings_json(rows)["findings"])
    assert [c.cause for c in causes.ranked("FAIL")] == ["configuration:topic"]
    assert [c.cause for c in causes.ranked("UNKNOWN")] == ["unreadable"]
    assert {c.waiver["owner"] for c in causes.ranked("EXEMPT")} == {"payments", "audit"}


def test_a_partition_id_that_nobody_has_costs_no_memory():
    ids = [0, HIGHEST - 1, HIGHEST, 2_000_000_000]
    rows = [finding("a", control, partitions=ids) for control in ("log-dirs", "write-headroom")]
    (cause,) = Causes(findings_json([row | {"cause": "x"} for row in rows])["findings"]).ranked("FAIL")
    assert cause.partitions == 4


PASSED = finding("fine", "replication-factor", "PASS")
OFFLINE = finding("a", "partition-health", category="offline")
UNDER = finding("b", "partition-health", category="under-min-isr")
ONE_COPY = finding("c", "min-insync-replicas", observed={"effective_min_insync_replicas": 1})


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([PASSED], "The one topic meets the policy's requirements."),
        ([PASSED, {**PASSED, "resource": "x"}], "All 2 topics meet the policy's requirements."),
        ([PASSED, OFFLINE], "1 of 2 topics has critical findings: 1 with offline partitions now."),
        (
            [PASSED, OFFLINE, UNDER, {**UNDER, "resource": "x"}, ONE_COPY],
            "4 of 5 topics have critical findings: 1 with offline partitions now, 2 accepting no acks=all writes now and "
            "1 with acknowledged writes that may be on one broker only.",
        ),
        (
            [PASSED, finding("a", "write-headroom", severity="warning")],
            "Nothing is critical; 1 of 2 topics has warnings.",
        ),
        (
            [PASSED, finding("3", "log-dirs", resource_type="broker")],
            "No topic has a critical finding, but 1 critical finding concerns brokers or whole clusters.",
        ),
        (
            [PASSED, finding("a", "log-dirs", "UNKNOWN")],
            "No failures in the data that could be read, but some data is missing: compliance is not established.",
        ),
        (
            [PASSED, finding("a", "log-dirs", "EXEMPT", waiver=0)],
            "All 2 topics meet the policy, or are exempt by a waiver.",
        ),
    ],
)
def test_the_fleets_state_in_a_sentence(rows, sentence):
    assert headline(*rows) == sentence


def test_a_fleet_of_which_nothing_was_judged_is_not_called_good():
    stated, _ = overview(findings_json([], [snapshot("a", "failed"), snapshot("b", "rejected")]))
    assert stated.sentence == "2 of 2 clusters could not be evaluated: a and b."
    assert stated.tone == "unknown"


def test_a_cluster_that_could_not_be_judged_keeps_the_rest_from_being_called_good():
    stated, _ = overview(findings_json([PASSED], [snapshot(), snapshot("b", "failed")]))
    assert stated.tone == "unknown"
    assert "1 of 2 clusters could not be evaluated: b." in stated.details


def test_the_terminal_says_what_matters_and_where_the_reports_are():
    rows = [
        finding(f"t{i}", "replication-factor", cause=f"broker:{i} down", remediation=f"start {i}", change="new")
        for i in range(7)
    ]
    rows.append(finding("u", "log-dirs", "UNKNOWN", cause="unreadable"))
    document = findings_json(rows, [snapshot(), snapshot("dead", "failed", reason="nobody answered")])
    text = console.summary_text(document, ["out/report.html", "out/findings.json"])
    assert "7 of 8 topics have critical findings." in text
    assert "1. Broker 0 down in eu-payments: 1 finding on 1 topic (1 critical)\n     start 0\n" in text
    assert "and 3 more causes, in the report" in text
    assert "7 new, 1 persisting, 0 resolved" in text
    assert "dead could not be evaluated (failed): nobody answered" in text
    assert "Not readable by the auditor in eu-payments: 1 finding on 1 topic: log-dirs of u\n" in text
    document["run"]["snapshots"] = [{**s, "compared": False} for s in document["run"]["snapshots"]]
    assert "First run: no earlier run to compare with" in console.summary_text(document, [])
    plan = "To plan the changes that fix findings, run kafka-durability plan (make plan) with the same options.\n"
    assert text.endswith(f"  out/report.html\n  out/findings.json\n\n{plan}")
    assert 15 <= text.count("\n") <= 30
    assert "\x1b" not in text


def test_the_terminal_says_how_much_a_remedy_fixes():
    same = [finding(f"t{n}", "replication-factor", cause="c", remediation="add replicas") for n in range(2)]
    assert "The report has the other fixes" not in console.summary_text(findings_json(same), [])
    other = finding("t9", "write-headroom", cause="c", remediation="add a broker")
    text = console.summary_text(findings_json([*same, other]), [])
    assert "     This is the fix for 2 of 3 findings. The report has the other fixes.\n" in text
    without = console.summary_text(
        findings_json([*same, finding("t9", "write-headroom", cause="c", remediation=None)]), []
    )
    assert "This is the fix for 2 of 3 findings.\n" in without


def test_commands_can_be_copied_from_the_terminal():
    command = (
        'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP" --execute ' + "--reassignment-json-file " + "x" * 99
    )
    row = finding("x", "replication-factor", cause="c", remediation=f"# {'Words. ' * 30}\n{command}\n{command}")
    lines = console.summary_text(findings_json([row]), []).splitlines()
    assert lines.count("     " + command) == 2
    assert all(line.startswith("     # ") for line in lines if "Words." in line) and max(map(len, lines[:8])) <= 120


def test_an_installed_wheel_has_no_make(monkeypatch):
    assert "kafka-durability plan (make plan) with" in console.plan_hint()
    monkeypatch.setattr(console.resources, "checkout", lambda: None)
    assert "kafka-durability plan with" in console.plan_hint()


@pytest.mark.parametrize(("columns", "widest"), [(60, 60), (200, console.WIDTH), (None, console.WIDTH)])
def test_prose_fits_the_terminal_and_commands_stay_whole(columns, widest):
    command = "kafka-configs --alter " + "x" * 99
    row = finding("x", "replication-factor", cause="c", remediation=f"# {'Words. ' * 30}\n{command}")
    lines = console.summary_text(findings_json([row]), [], width=columns).splitlines()
    assert f"     {command}" in lines
    prose = [line for line in lines if "Words." in line or line in console.plan_hint()]
    assert widest - 10 < max(map(len, prose)) <= widest


def test_colour_is_added_only_when_asked_for_and_strangers_bring_none(tmp_path):
    row = finding("x", "standby-spread", cause="\x1b[2J\u202egnp", remediation="rm\n\x1b]0;title\x07")
    path = tmp_path / "findings.json"
    path.write_text(json.dumps({"format": "durability-findings/1", **findings_json([row])}))
    plain = console.summary_text(files.load(path), [])
    assert "\x1b" not in plain and "\u202e" not in plain and "\x07" not in plain
    coloured = console.summary_text(files.load(path), [], colour=True)
    assert "\x1b[31;1m" in coloured
    assert "\x1b[2J" not in coloured
