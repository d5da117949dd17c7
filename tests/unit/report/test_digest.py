"""What a digest says, and that Slack's limits hold."""

from __future__ import annotations

import json

import pytest
from slack_sdk.models.blocks import Block

from durability.report.text import digest
from tests.support.report_cases import finding, findings_json, snapshot


def made(rows, *more, team=None, **options) -> tuple[dict, list[str]]:
    """The payload, and the text of each section. Slack's own library checks the blocks."""
    payload = digest.payload(digest.read(findings_json(rows, *more)), team, **options)
    for block in Block.parse_all(payload["blocks"]):
        block.validate_json()
    return payload, [block["text"]["text"] for block in payload["blocks"] if block["type"] == "section"]


def test_new_persisting_resolved_and_unknown_findings_each_have_a_part():
    rows = [
        finding("a", "replication-factor", cause="configuration:topic", severity="warning", remediation="add"),
        finding(
            "b", "partition-health", category="offline", cause="broker:3 down", remediation="start 3", change="new"
        ),
        finding("c", "log-dirs", "UNKNOWN", cause="unreadable"),
        finding("d", "log-dirs", "PASS", change="resolved", why="fixed"),
        finding("e", "log-dirs", "EXEMPT", change="resolved", why="waived", waiver=0),
    ]
    payload, sections = made(rows, [snapshot(), snapshot("dead", "failed")], paths=["out/report.html"])
    assert sections == [
        ":red_circle: *1 of 4 topics has critical findings: 1 with offline partitions now.*",
        "*New: 1 finding*\n• Broker 3 down in eu-payments (1 critical), 1 finding on 1 topic. Fix first: `start 3`",
        "*Persisting: 1 finding*, the oldest since 2026-11-18 02:00 UTC\n"
        "• Topics' own configuration in eu-payments (1 warning), 1 finding on 1 topic.",
        "*Resolved: 2 findings*: 1 fixed, 1 waived",
        "Not evaluated: dead.\n*Unknown: 1 verdict*: Not readable by the auditor in eu-payments (1)",
    ]
    assert "`out/report.html`" in payload["blocks"][-1]["elements"][0]["text"]


def test_a_waiver_that_ends_within_a_week_is_named():
    document = findings_json([finding("a", "log-dirs", "EXEMPT", waiver=0)])
    for last_day, named in (("2026-11-28", True), ("2026-11-29", False)):
        document["findings"][0]["waiver"]["expires"] = last_day
        found = digest.read(document)
        text = json.dumps(digest.payload(found))
        assert (f"{last_day}: rebuilt from the database every hour (payments)" in text) is named is found.has_news()


@pytest.mark.parametrize(
    ("rows", "snapshots", "news"),
    [
        ([finding("a", "log-dirs")], [snapshot()], False),
        ([finding("a", "log-dirs", change="new")], [snapshot()], True),
        ([finding("a", "log-dirs", "UNKNOWN", change="new")], [snapshot()], True),
        ([finding("a", "log-dirs", "PASS", change="resolved", why="fixed")], [snapshot()], True),
        ([finding("a", "log-dirs")], [snapshot(), snapshot("dead", "failed")], True),
        ([finding("a", "log-dirs")], [snapshot(previous_result_id=None)], True),
    ],
)
def test_what_is_news(rows, snapshots, news):
    assert digest.read(findings_json(rows, snapshots)).has_news() is news


def test_a_failure_that_was_unknown_less_severe_or_accepted_is_news():
    rows = [
        finding("a", "log-dirs", previous_outcome="UNKNOWN", cause="log dirs", remediation="replace the disk"),
        finding("b", "log-dirs", previous_outcome="FAIL", previous_severity="warning", cause="log dirs"),
        finding("c", "log-dirs", previous_outcome="EXEMPT", previous_severity="critical", cause="a waiver"),
        finding("d", "log-dirs", previous_outcome="FAIL", previous_severity="critical", cause="old"),
        finding("e", "log-dirs", "UNKNOWN", previous_outcome="FAIL", previous_severity="critical"),
    ]
    document = findings_json(rows)
    assert document["summary"]["changes"] == {"new": 0, "persisting": 5, "resolved": 0}
    assert document["summary"]["worsened_failures"] == {"critical": 3, "warning": 0, "info": 0}
    assert digest.read(document).has_news()
    _, sections = made(rows)
    assert sections[1:3] == [
        "*Worse: 3 findings* (before: 1 accepted, 1 unknown and 1 warning)\n"
        "• Log dirs in eu-payments (2 critical), 2 findings on 2 topics. Fix first: `replace the disk`\n"
        "• A waiver in eu-payments (1 critical), 1 finding on 1 topic.",
        "*Persisting: 1 finding*, the oldest since 2026-11-18 02:00 UTC\n"
        "• Old in eu-payments (1 critical), 1 finding on 1 topic.",
    ]


def test_a_teams_digest_has_its_findings_alone():
    document = findings_json([finding("a", "log-dirs", change="new"), finding("b", "log-dirs", change="new")])
    document["findings"][0]["team"] = "Pay & Co"
    found = digest.read(document)
    text = json.dumps(digest.payload(found, "Pay & Co", url="https://reports.example/"))
    assert "*Pay &amp; Co: 1 critical*" in text and "*New: 1 finding*" in text
    assert "<https://reports.example/teams/pay-co-" in text
    assert found.has_news("Pay & Co") and "*New: 2 findings*" in json.dumps(digest.payload(found))


def test_strangers_cannot_call_the_channel_or_break_out_of_code():
    hostile = "<!channel> <https://evil.example|x> & `*rm*`\n*new line*"
    row = finding("a", "standby-spread", cause=hostile, remediation=hostile, cluster=hostile, change="new")
    payload, sections = made([row], [snapshot(hostile, "failed", reason=hostile), snapshot()])
    assert "<" not in json.dumps(payload["blocks"][:-1])
    assert "`&lt;!channel&gt; &lt;https://evil.example|x&gt; &amp; '*rm*' *new line*`" in sections[1]
    assert len(sections[1].split("\n")) == 2


def test_slacks_limits_hold_for_the_longest_texts():
    long = "<&>" * 5_000
    rows = [
        finding(f"{i}{long}", "log-dirs", cause=f"{i}{long}", remediation=long, cluster=f"{i}{long}", change="new")
        for i in range(9)
    ]
    rows += [finding("w", "log-dirs", "EXEMPT", waiver=1), finding("u", "log-dirs", "UNKNOWN", cause=long)]
    snapshots = [snapshot(f"{i}{long}", "failed") for i in range(60)] + [snapshot()]
    payload, sections = made(rows, snapshots, paths=[long] * 9)
    assert len(payload["text"]) <= 3_000 and len(payload["blocks"]) <= 50
    assert all(len(text) <= 3_000 for text in sections)
    assert "… and 4 more causes, in the report" in sections[1]
