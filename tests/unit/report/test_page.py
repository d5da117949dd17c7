"""report.html: balanced, escaped, self-contained, small at any size, and saying what the findings say."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import timedelta

from durability.plan.plan import StaleSnapshot
from durability.policy import CONTROLS
from durability.report.words import CAVEATS
from tests.support.html import OWN_SCRIPT, SCRIPT, parse
from tests.support.report_cases import (
    NIGHT,
    SHA,
    WAIVERS,
    facts,
    finding,
    flagged,
    snapshot,
    written,
)


def render(rows, out, **more) -> str:
    written(rows, out, **more)
    return (out / "report.html").read_text(encoding="utf-8")


def test_a_quiet_fleet_says_so(tmp_path):
    words, _ = parse(render([finding("a", "replication-factor", "PASS")], tmp_path, waivers=[]))
    assert "The one topic meets the policy's requirements." in words
    assert "Nothing failed: there is nothing to fix." in words
    assert "Every fact that the controls need could be read." in words
    assert "There is no waiver: no risk is accepted." in words


def test_a_finding_says_where_what_since_when_and_what_fixes_it(tmp_path):
    row = finding(
        "orders",
        "replication-factor",
        message="2 replicas, 3 required",
        remediation='kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP"',
        cause="configuration:topic",
        partitions=[0, 1, 2, 7],
        tier="critical",
        change="new",
    )
    words, reader = parse(render([row], tmp_path))
    for text in (
        "orders",
        "2 replicas, 3 required",
        'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP"',
        "partitions 0-2, 7",
        "Topics' own configuration",
        "2026-11-18 02:00 UTC",
        "1 finding on 1 topic, 4 partitions",
    ):
        assert text in words
    assert f"f-{row['id']}" in reader.ids
    assert len(reader.ids) == len(set(reader.ids))


def acks_observed():
    """As acked-durability tells of a partition under its min ISR on a cluster whose racks are unknown."""
    open_ = {"accepted": True, "error": None, "proposed_error": None, "retriable": None, "waits_for": 0}
    open_ |= {"copies_now": 1, "racks_now": None, "copies_worst": 1, "racks_worst": None}
    open_ |= {"visible_now": False, "survives_leader_loss": False}
    refused = {**open_, "accepted": False, "error": "NOT_ENOUGH_REPLICAS", "proposed_error": "NOT_ENOUGH_REPLICAS"}
    refused |= {"retriable": True, "copies_worst": 2, "survives_leader_loss": True}
    table = {"0": open_, "1": open_, "all": refused, "min.insync.replicas": {**refused, "fewer_than_all": 1}}
    pair = {"min.insync.replicas": 2, "min.insync.racks": 2}
    return {
        "acks": table,
        "smallest_min_insync_replicas": 3,
        "with_min_insync_racks": pair,
        "partition": 7,
        "readings": None,
        "partitions_by_answer": {"today": {"NONE": 1200, "NOT_ENOUGH_REPLICAS": 1, "UNKNOWN": 0}, "proposed": None},
    }


def test_every_acks_value_of_a_finding_is_told(tmp_path):
    words, _ = parse(render([finding("orders", "acked-durability", observed=acks_observed())], tmp_path))
    for text in (
        "every acks value, of partition 7",
        "1 accepted accepted 1, ? 1, ? 0 no no",
        "all NOT_ENOUGH_REPLICAS retry may help NOT_ENOUGH_REPLICAS 1, ? 2, ? 0 no yes",
        "min.insync.replicas=3 is the smallest that guarantees the racks required.",
        "With KIP-1290 min.insync.replicas=2 and min.insync.racks=2 would be enough.",
        "Partitions by the answer to acks=all: today accepted 1,200, NOT_ENOUGH_REPLICAS 1.",
    ):
        assert text in words


def test_an_answer_that_isnt_known_is_none_that_accepts(tmp_path):
    observed = acks_observed()
    for value in ("all", "min.insync.replicas"):
        observed["acks"][value] |= {"error": None, "proposed_error": None, "retriable": None}
    words, _ = parse(render([finding("orders", "acked-durability", observed=observed)], tmp_path))
    assert "all ? ? 1, ?" in words and "min.insync.replicas ? ? 1, ?" in words


def test_commands_stand_in_a_box_and_advice_is_text(tmp_path):
    script = "# Start broker 3; then:\nkafka-topics --list"
    rows = [finding("a", "log-dirs", remediation=script), finding("b", "broker-rack", remediation="Set broker.rack")]
    html = render(rows, tmp_path)
    assert html.count(f'<pre class="command"><code>{script}</code></pre>') == 1
    assert html.count(f'<pre class="fix"><code>{script}</code></pre>') == 1
    assert html.count('<p class="advice">Set broker.rack</p>') == 1
    assert "<code>Set broker.rack" not in html
    words, _ = parse(html)
    assert "the tools end in .sh ." in words and "--command-config /path/to/client.properties" in words


def test_one_remedy_of_several_findings_is_shown_once(tmp_path):
    script = "# Target for orders\nkafka-configs --alter"
    rows = [finding("orders", c, remediation=script) for c in ("min-insync-replicas", "replication-factor")]
    rows += [finding("orders", "write-headroom", cluster="us", remediation=script)]
    html = render(rows, tmp_path)
    assert html.count(f'<pre class="fix"><code>{script}</code></pre>') == 2
    assert f'Same as <a href="#f-{rows[0]["id"]}">orders, min-insync-replicas</a>' in html


def test_the_example_of_a_cause_is_its_most_urgent_finding(tmp_path):
    one = {"cause": "broker:5 down"}
    rows = [
        finding(t, "partition-health", severity="info", category="under-replicated", message="1 missing", **one)
        for t in ("a", "b")
    ]
    rows.append(finding("z", "partition-health", category="offline", message="nobody leads", **one))
    words, _ = parse(render(rows, tmp_path))
    assert "For example: nobody leads" in words.replace(" :", ":")


def test_one_fact_in_two_categories_of_health_is_one_row(tmp_path):
    one = {"cause": "broker:5 down", "partitions": [0]}
    rows = [
        finding("_schemas", "partition-health", severity="warning", category="at-min-isr", **one),
        finding("_schemas", "partition-health", severity="info", category="under-replicated", **one),
        finding("other", "partition-health", severity="info", category="under-replicated", **one),
    ]
    words, reader = parse(render(rows, tmp_path))
    table = words[
        words.index("Observed and required") : words.index("Partition health", words.index("Observed and required"))
    ]
    assert table.count("_schemas") == 1
    assert "and under-replicated (info)" in table
    assert {f"f-{row['id']}" for row in rows} <= set(reader.ids)
    assert "more failures" not in words


def test_a_waiver_without_anything_to_exempt_says_so(tmp_path):
    waivers = [{**WAIVERS[0], "index": 0}, {**WAIVERS[0], "index": 1, "resource": "gone"}]
    words, _ = parse(render([finding("cache-a", "replication-factor", "EXEMPT", waiver=0)], tmp_path, waivers=waivers))
    assert words.count("matches nothing in this run") == 1
    assert words.index("in force no. 1") < words.index("matches nothing in this run")


def test_links_within_the_page_lead_somewhere(tmp_path):
    rows = [finding(f"t{i}", control, change="new") for i, control in enumerate(CONTROLS)]
    _, reader = parse(render(rows, tmp_path))
    inner = {value[1:] for _, name, value in reader.attributes if name == "href"}
    assert inner <= set(reader.ids)


def test_every_control_of_the_catalogue_is_explained(tmp_path):
    words, reader = parse(render([finding("a", "home-made")], tmp_path))
    for control in CONTROLS.values():
        assert re.sub(r"\s+", " ", control.title) in words
        assert re.sub(r"\s+", " ", control.source) in words
        assert f"control-{control.id}" in reader.ids
    assert "control-home-made" in reader.ids


def test_the_page_loads_nothing_and_runs_its_own_script_only(tmp_path):
    html = render([finding("a", "replication-factor")], tmp_path)
    _, reader = parse(html)
    assert not reader.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    assert not [name for _, name, _ in reader.attributes if name.startswith("on") or name in ("src", "style")]
    assert not re.search(r"url\(|@import|https?:", html)
    css = re.search(r"<style>(.*?)</style>", html, re.S)[1]
    assert reader.scripts == [OWN_SCRIPT] and html.count("<script") == 1
    style, script = (base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in (css, OWN_SCRIPT))
    assert not re.search(r"@media \(max-width", css)  # of screens alone: paper is narrow too, and can't be scrolled
    policy = next(v for _, name, v in reader.attributes if name == "content" and "default-src" in v)
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts == {
        "default-src": "'none'",
        "style-src": f"'sha256-{style}'",
        "script-src": f"'sha256-{script}'",
        "require-trusted-types-for": "'script'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def hostile_fleet():
    """Somebody else's words wherever the page shows some."""
    texts = {name: SCRIPT for name in ("resource", "cause", "message", "remediation", "why", "tier", "category", "id")}
    states = [("FAIL", "new"), ("UNKNOWN", "new"), ("EXEMPT", "persisting"), ("PASS", "resolved")]
    rows = [finding("x", SCRIPT, o, change=c, waiver=0 if o == "EXEMPT" else None) for o, c in states]
    rows = [{**row, **texts, "cluster": SCRIPT, "resource_type": SCRIPT} for row in rows]
    waivers = [{**WAIVERS[0], **dict.fromkeys(("owner", "approved_by", "reason", "ticket", "control"), SCRIPT)}]
    dead = snapshot(
        SCRIPT, "failed", reason=SCRIPT, sha256=SCRIPT, stale_snapshot=StaleSnapshot(SCRIPT, "2026-11-20T02:00:00Z")
    )
    health = [{"cluster": SCRIPT, "topic": SCRIPT, "partitions": [0], "categories": ["offline"], "cause": SCRIPT}]
    health[0]["cli_differs"] = SCRIPT
    counters = [{"cluster": SCRIPT, "topic": SCRIPT, "partitions": 1, "offline": 1}]
    read = facts([{"cluster": SCRIPT, "unreadable": [{"path": SCRIPT, "reason": SCRIPT}], "hidden_partitions": 1}])
    checked = flagged(verified=False, problems=[SCRIPT], checked={SCRIPT: 1}, not_cross_checked=[SCRIPT])
    return rows, {
        **{"waivers": waivers, "snapshots": [snapshot(), dead], "health": health, "counters": counters},
        **{"unread": read, "checked": checked},
    }


def test_hostile_text_stays_text_everywhere(tmp_path):
    rows, more = hostile_fleet()
    html = render(rows, tmp_path, **more)
    words, reader = parse(html)
    assert "<script>alert(1)</script>" in words
    assert not reader.tags & {"script", "img"}
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]


def test_partition_health_shows_ids_causes_and_where_kafka_topics_differs(tmp_path):
    health = [
        {
            "topic": "orders",
            "partitions": [p],
            "categories": ["under-min-isr", "under-replicated"],
            "cause": "broker:3 down",
        }
        for p in (1, 2, 3, 9)
    ]
    health.append(
        {"topic": "ledger", "partitions": [0], "categories": ["offline"], "cli_differs": "counted twice there"}
    )
    counters = [
        {"topic": None, "partitions": 40, "offline": 1, "under_min_isr": 4},
        {"topic": "orders", "partitions": 12, "under_min_isr": 4, "under_replicated": 4},
        {"topic": "ledger", "partitions": 3, "offline": 1},
        {"topic": "fine", "partitions": 3},
    ]
    words, _ = parse(render([finding("x", "write-headroom", "PASS")], tmp_path, health=health, counters=counters))
    section = words[words.index("Topics with unhealthy partitions") : words.index("One snapshot has no history")]
    assert section.index("ledger") < section.index("orders")
    assert "1-3, 9" in section
    assert "Broker 3 down" in section
    assert "kafka-topics differs on 0: counted twice there" in section
    assert "fine" not in section


LED = dict.fromkeys(("under_min_isr", "at_min_isr", "under_replicated", "under_min_rack_isr", "at_min_rack_isr"), 0)


def led(broker, **counts):
    return {"broker": broker, "rack": "az1", "live": True, "unknown": 0, **LED, **counts}


def test_brokers_are_shown_with_what_their_own_metrics_count_worst_first(tmp_path):
    brokers = [led(1, under_replicated=7), led(2, under_min_rack_isr=3), led(3, under_min_isr=2, at_min_isr=1)]
    counters = [{"topic": None, "partitions": 40, "under_min_isr": 2, "brokers": brokers}]
    words, _ = parse(render([finding("x", "write-headroom", "PASS")], tmp_path, counters=counters))
    section = words[words.index("By broker, for the partitions") : words.index("Over time Partitions at min ISR")]
    metrics = (
        "UnderMinIsrPartitionCount UnderMinRackIsrPartitionCount AtMinIsrPartitionCount AtMinRackIsrPartitionCount "
        "UnderReplicatedPartitions Unknown "
    )
    body = section.split(metrics)[1].strip().replace("eu-payments ", "")
    assert body == "3 az1 2 0 1 0 0 0 2 az1 0 3 0 0 0 0 1 az1 0 0 0 0 7 0"
    document = json.loads((tmp_path / "findings.json").read_text())
    assert [b["broker"] for b in document["brokers"]] == [3, 2, 1]
    assert document["brokers"][0] == {
        **{"cluster": "eu-payments", "broker": 3, "rack": "az1", "live": True, "unknown": 0},
        **{"UnderMinIsrPartitionCount": 2, "AtMinIsrPartitionCount": 1, "UnderReplicatedPartitions": 0},
        **{"UnderMinRackIsrPartitionCount": 0, "AtMinRackIsrPartitionCount": 0},
    }


def test_thousands_of_brokers_stay_a_short_table(tmp_path):
    counters = [{"topic": None, "brokers": [led(n, at_min_isr=n) for n in range(1, 3001)]}]
    html = render([finding("x", "write-headroom", "PASS")], tmp_path, counters=counters)
    assert "2,940 more brokers" in html and len(html) < 300_000
    assert len(json.loads((tmp_path / "findings.json").read_text())["brokers"]) == 1000


def test_a_topic_that_is_short_of_racks_alone_is_shown(tmp_path):
    health = [{"topic": "orders", "partitions": [p], "categories": [], "rack_category": c, "cause": "rack:az2 down"}
              for p, c in ((0, "under-min-rack-isr"), (1, "at-min-rack-isr"), (2, None))]  # fmt: skip
    counters = [
        {"topic": None, "partitions": 9, "under_min_rack_isr": 1, "at_min_rack_isr": 4},
        {"topic": "orders", "partitions": 3, "under_min_rack_isr": 1, "at_min_rack_isr": 1, "rack_unknown": 1},
        {"topic": "placed", "partitions": 3, "at_min_rack_isr": 3, "at_min_rack_isr_by_placement": 3},
    ]
    words, _ = parse(render([finding("x", "write-headroom", "PASS")], tmp_path, health=health, counters=counters))
    section = words[words.index("Topics with unhealthy partitions") : words.index("One snapshot has no history")]
    assert "orders eu-payments 3 0 0 0 0 1 0 1 1 0 Rack az2 down" in section
    assert "placed eu-payments 3 0 0 0 0 0 3 3 by placement 0" in section


def test_gaps_are_named_with_their_reasons(tmp_path):
    stale = StaleSnapshot("dead@yesterday", "2026-11-20T02:00:00Z")
    snapshots = [snapshot(), snapshot("dead", "failed", reason="nobody answered", stale_snapshot=stale)]
    read = facts([{"cluster": "eu-payments", "unreadable": [{"path": "/cluster/controllers", "reason": "DENIED"}]}])
    words, _ = parse(render([finding("a", "log-dirs", "PASS")], tmp_path, snapshots=snapshots, unread=read))
    assert "1 of 2 clusters could not be evaluated: dead." in words
    assert "nobody answered" in words
    assert "dead@yesterday 2026-11-20 02:00 UTC" in words
    assert "/cluster/controllers DENIED" in words


def test_the_evidence_stands_on_the_page(tmp_path):
    row = finding("cache-a", "replication-factor", "EXEMPT", waiver=0)
    words, _ = parse(render([row], tmp_path))
    assert words.count(SHA) >= 2  # the policy's and the snapshot's
    assert "critical (all others)" in words
    assert "survive broker, rack not required" in words
    for text in CAVEATS:
        assert words.count(text) == 1
    assert "in force" in words and "RISK-7" in words and "accepted by A. Reviewer until 2027-01-31" in words
    assert words.index("expired no. 2") < words.index("in force no. 1")


def test_an_unverified_run_says_so_first(tmp_path):
    words, _ = parse(render([], tmp_path, checked=flagged(verified=False, problems=["3 verdicts differ"])))
    assert words.index("This run is not verified. 3 verdicts differ.") < words.index("Fix first")


def test_the_page_stays_under_five_megabytes(tmp_path):
    text = "<&'\"é€" * 4_000  # what takes most bytes, escaped and encoded
    rows = [
        finding(
            f"{text[:240]}{i}",
            "replication-factor",
            outcome,
            message=said,
            remediation=f"{i}{said}",
            cause=f"{i}{said}",
        )
        for outcome in ("FAIL", "UNKNOWN", "EXEMPT")
        for i in range(1_200)
        # One in forty is so long that few of them fill the page.
        for said in [text if i % 40 == 0 else text[:2_400]]
    ]
    counters = [{"topic": f"{text[:240]}{i}", "partitions": 9, "offline": 1} for i in range(400)]
    html = render(rows, tmp_path, counters=counters, paper=False)
    assert len(html.encode()) < 5_000_000
    words, _ = parse(html)
    assert "in findings.csv" in words


def test_a_first_run_is_compared_with_nothing(tmp_path):
    rows = [finding("orders", "write-headroom", change="new")]
    words, _ = parse(render(rows, tmp_path, snapshots=[snapshot(previous_result_id=None)]))
    assert "first run: no earlier run to compare with" in words and "1 new" not in words[: words.index("Fix first")]


def test_what_was_waived_is_not_resolved(tmp_path):
    rows = [
        finding("gone", "log-dirs", "PASS", change="resolved", why="fixed"),
        finding("cache-a", "replication-factor", "EXEMPT", waiver=0, change="resolved", why="waived"),
    ]
    words, _ = parse(render(rows, tmp_path))
    assert "0 new, 0 persisting, 1 resolved, 1 waived" in words
    assert "1 resolved 1 fixed 1 waived: see accepted risks" in words


def test_since_and_changes(tmp_path):
    rows = [
        finding("new-one", "write-headroom", change="new", since=NIGHT),
        finding("gone", "log-dirs", "PASS", change="resolved", why="cause-cleared", since=NIGHT - timedelta(days=9)),
    ]
    words, _ = parse(render(rows, tmp_path))
    section = words[words.index("What changed") : words.index("Observed and required")]
    assert "1 new" in section and "new-one" in section
    assert "1 cause-cleared" in section and "2026-11-12 02:00 UTC" in section


def test_what_is_not_seen_is_shown(tmp_path):
    hidden = "orders\u202egnp\u200b\x1b[2J"
    rows = [finding(hidden, "standby-spread", cause=hidden, message=f"{hidden}\u00fc")]
    html = render(rows, tmp_path)
    words, _ = parse(html)
    assert not {c for c in html if not c.isprintable() and c != "\n"}
    assert "orders\\u202egnp\\u200b\\x1b[2J" in words and "\u00fc" in words


def test_a_waiver_that_covers_more_than_was_approved_says_so(tmp_path):
    stated = {"requested_by": "A. Engineer", "approved_at": "2026-11-01", "risk": "one copy", "approved_count": 1}
    waivers = [{**WAIVERS[0], **stated, "compensating_control": "a nightly copy"}]
    rows = [finding(f"cache-{n}", "replication-factor", "EXEMPT", waiver=0) for n in range(2)]
    words, _ = parse(render(rows, tmp_path, waivers=waivers))
    for text in (
        "no. 1 in the waivers file",  # as metrics.prom counts them
        "approved for 1 resource, covers 2",
        "approved by A. Reviewer, 2026-11-01",
        "requested by A. Engineer",
        "risk: one copy",
        "meanwhile: a nightly copy",
    ):
        assert text in words
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<span class="note">approved for' in page
    written([rows[0]], tmp_path, waivers=waivers)
    assert '<span class="dim">approved for' in (tmp_path / "report.html").read_text(encoding="utf-8")
