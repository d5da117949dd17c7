"""The rack outage in the report: what is lost, since when, the step, and commands that a shell could run as they stand."""

import csv
import json
import shlex
from datetime import timedelta

import pyarrow as pa
import pytest

from durability.lake.tables import TOPIC_POSTURE
from durability.report.data import outages
from durability.report.data.health import Health
from durability.report.data.lost_racks import Lost
from durability.report.html import page
from durability.report.text.console import summary_text
from tests.support.html import without_script
from tests.support.report_cases import NIGHT, finding, health_counters, partition_health, plan, report

CLUSTER = "eu-payments"
ENTRY = {
    "setting": "min.insync.replicas",
    "step": "lower",
    "value": 2,
    "source": "topic",
    "configured": 2,
    "now": 2,
    "now_source": "topic",
    "lower_to": 1,
    "since": NIGHT - timedelta(hours=5),
    "racks": ["az2"],
    "partitions": 3,
}
LOST = [{"topic": None, "lost_racks": [{"rack": "az2", "brokers": [2, 5]}]}]
PREFIX = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter --entity-type topics --entity-name '


PASSED = finding("x", "write-headroom", "PASS")


def written(tmp_path, entries, counters=LOST, since=NIGHT, perhaps=None, leaderless=(), found=(PASSED,)):
    """findings.json's rack_outages, and the page; entries: (topic, what differs from ENTRY); found: findings."""
    posture = pa.Table.from_pylist(
        [
            {"cluster": CLUSTER, "topic": t, "tier": e.get("tier"), "rack_outage": [{**ENTRY, **e, "tier": None}]}
            for t, e in sorted(entries, key=lambda entry: entry[0])
        ],
        schema=pa.schema([TOPIC_POSTURE.arrow.field(n) for n in outages.TOPIC]),
    )
    lost = Health(partition_health([]), health_counters(list(counters))).lost_racks()
    of = outages.Outages(
        posture, lost, {(CLUSTER, "az2"): Lost(since, perhaps or since)}, plan().policy.tiers, leaderless
    )
    report(list(found), tmp_path, counters=counters, outages=of)
    document = json.loads((tmp_path / "findings.json").read_text())
    return document["rack_outages"], (tmp_path / "report.html").read_text()


def test_nothing_lost_is_nothing_said(tmp_path):
    (tmp_path / outages.FILE).write_text("of an earlier run")
    told, html = written(tmp_path, [], counters=[{"topic": None}])
    assert told == [] and 'id="outages"' not in html
    assert not (tmp_path / outages.FILE).exists()


def test_a_lost_rack_that_refuses_nothing_is_to_be_assessed(tmp_path):
    ((cluster),), html = written(tmp_path, [], since=NIGHT - timedelta(days=3))
    (rack,) = cluster["lost_racks"]
    assert rack == {"rack": "az2", "brokers": [2, 5], "since": "2026-11-18T02:00:00Z", "perhaps_since": None}
    assert cluster["steps"] == [] and "assess how long" in cluster["assess"]
    section = html.split('id="outages"')[1].split("</section>")[0]
    assert (
        "No setting has to be changed in 1 cluster" in section and "eu-payments</strong>: rack az2 is down" in section
    )
    assert (
        "first counted 2026-11-18 02:00 UTC" in html
        and "kafka-configs" not in html.split('id="outages"')[1].split("</section>")[0]
    )


def test_clusters_without_a_setting_to_change_come_after_the_others_in_one_list():
    """A lost zone takes a rack of every cluster."""
    racks = [{"rack": "az2", "brokers": [2], "since": None, "perhaps_since": None}]
    spared = [{"cluster": f"c{n:02}", "lost_racks": racks, "steps": []} for n in range(25)]
    acts = {"cluster": "late", "lost_racks": racks, "steps": [{"setting": "min.insync.replicas"}]}
    found = page.outage_rows([*spared, acts])
    assert found["shown"] == [acts] and found["left"] == 0
    assert (len(found["spared"]["shown"]), found["spared"]["left"]) == (20, 5)


def test_no_command_is_offered_while_no_controller_leads(tmp_path):
    """Each would wait for its timeout and fail, topic by topic."""
    ((cluster),), html = written(tmp_path, [("orders", {})], leaderless={CLUSTER})
    (step,) = cluster["steps"]
    assert (step["lower"], step["restore"], step["words"]) == (None, None, outages.HALTED)
    assert "rack az2 is down (brokers 2, 5)" in html
    assert "kafka-configs" not in html.split('id="outages"')[1].split("</section>")[0]
    assert "kafka-configs" not in (tmp_path / outages.FILE).read_text()


def test_a_lost_quorum_comes_before_everything_else(tmp_path):
    """Nothing of a rack outage's procedure can be done without a quorum."""
    offline = [
        finding(
            f"t{n}", "partition-health", severity="critical", category="offline", cause="rack:az2 down", partitions=[0]
        )
        for n in range(9)
    ]
    quorum = finding(
        CLUSTER, "controller-quorum", severity="critical", category="majority-lost", cause="controller quorum"
    )
    quorum |= {"resource_type": "cluster", "remediation": "Start voters 2, 3"}
    _, html = written(tmp_path, [("orders", {})], leaderless={CLUSTER}, found=[*offline, quorum])
    places = [
        html.index(text) for text in ("<h1>No controller leads", "Fix first", "Start voters 2, 3", 'id="outages"')
    ]
    assert places == sorted(places)
    assert html.index('href="#causes"') < html.index('href="#outages"')
    text = summary_text(json.loads((tmp_path / "findings.json").read_text()), [])
    assert text.splitlines()[2].startswith("No controller leads eu-payments")
    first = text[text.index("Fix first") :].splitlines()[1:3]
    assert "ontroller quorum" in first[0] and "Start voters 2, 3" in first[1]
    _, html = written(tmp_path, [("orders", {})], found=offline)
    assert html.index('id="outages"') < html.index("Fix first")


def test_what_lies_before_a_gap_is_perhaps(tmp_path):
    ((cluster),), html = written(tmp_path, [], perhaps=NIGHT - timedelta(days=3))
    (rack,) = cluster["lost_racks"]
    assert (rack["since"], rack["perhaps_since"]) == ("2026-11-21T02:00:00Z", "2026-11-18T02:00:00Z")
    assert "counted without a gap since 2026-11-21 02:00 UTC, perhaps since 2026-11-18 02:00 UTC" in html


def test_topics_with_one_step_are_one_loop_that_lowers_and_one_that_restores(tmp_path):
    ((cluster),), html = written(tmp_path, [("b", {}), ("a", {"since": NIGHT - timedelta(days=1)})])
    (step,) = cluster["steps"]
    assert step["lower"] == f'for topic in a b; do {PREFIX}"$topic" --add-config min.insync.replicas=1; done'
    assert step["restore"] == f'for topic in a b; do {PREFIX}"$topic" --add-config min.insync.replicas=2; done'
    assert (step["partitions"], step["since"]) == (6, "2026-11-20T02:00:00Z")
    assert (
        f'<pre class="command"><code>for topic in a b; do {PREFIX}'.replace('"$', "&#34;$").split(" --boot")[0] in html
    )
    assert "Lower to 1:" in html and "Restore 2, when the rack is back:" in html


@pytest.mark.parametrize(
    "change, lower, restore",
    [
        ({}, "--add-config min.insync.replicas=1", "--add-config min.insync.replicas=2"),
        ({"source": "broker"}, "--add-config min.insync.replicas=1", "--delete-config min.insync.replicas"),
        ({"source": "cluster-default"}, "--add-config min.insync.replicas=1", "--delete-config min.insync.replicas"),
        ({"step": "guarded", "lower_to": None}, None, None),
        ({"step": "restore", "now": 1, "lower_to": None}, None, "--add-config min.insync.replicas=2"),
        ({"step": "hold", "now": 1, "source": "broker"}, None, "--delete-config min.insync.replicas"),
        ({"step": "restore", "now": 1, "now_source": "cluster-default", "source": "cluster-default"}, None, None),
        (
            {"setting": "min.insync.racks", "source": "policy", "now": None},
            "--add-config min.insync.racks=1",
            "--delete-config min.insync.racks",
        ),
    ],
)
def test_commands_give_back_what_was_there(tmp_path, change, lower, restore):
    ((cluster),), _ = written(tmp_path, [("orders", change)])
    (step,) = cluster["steps"]
    refused = "# with KIP-1290; brokers of today reject it\n" if step["setting"] == "min.insync.racks" else ""
    wanted = {"lower": lower and PREFIX + "orders " + lower, "restore": restore and PREFIX + "orders " + restore}
    (row,) = csv.DictReader((tmp_path / outages.FILE).open())
    for name, command in wanted.items():
        assert step[name] == (command and refused + command) and row[name] == (step[name] or "")
        assert command is None or shlex.split(step[name], comments=True)[0] == "kafka-configs"
    assert ("don't enforce min.insync.racks yet" in step["words"]) == (step["setting"] == "min.insync.racks")
    assert ("clear the ELR" in step["words"]) == (change.get("step") == "guarded")
    assert ("where topics inherit it" in step["words"]) == (change.get("now_source") == "cluster-default")


def test_what_stops_writes_and_the_strictest_tier_come_first(tmp_path):
    wanted = [
        ("orders", {"tier": "critical", "value": 3}),
        ("tmp", {"tier": "scratch"}),
        ("tmp2", {"tier": "scratch"}),
        ("racks", {"tier": "critical", "setting": "min.insync.racks"}),
        ("held", {"tier": "critical", "step": "hold"}),
    ]
    ((cluster),), _ = written(tmp_path, wanted[::-1])
    assert [s["topics"] for s in cluster["steps"]] == [["orders"], ["tmp", "tmp2"], ["racks"], ["held"]]


def test_many_topics_stay_short_on_the_page_and_are_whole_in_the_file(tmp_path):
    ((cluster),), html = written(tmp_path, [(f"t{n:05d}", {"value": 2 + n % 40}) for n in range(8000)])
    assert len(cluster["steps"]) == 40 and all(len(s["topics"]) == 20 and s["more"] == 180 for s in cluster["steps"])
    assert len(html) < 400_000 and "28 more groups" in html
    rows = list(csv.DictReader((tmp_path / outages.FILE).open()))
    assert len(rows) == 8000
    assert rows[1]["lower"] == PREFIX + "t00001 --add-config min.insync.replicas=1"
    assert rows[1]["restore"] == PREFIX + "t00001 --add-config min.insync.replicas=3"


def test_a_hostile_rack_is_text(tmp_path):
    rack = "<script>alert(1)</script>"
    told, html = written(
        tmp_path, [("a", {"racks": [rack]})], [{"topic": None, "lost_racks": [{"rack": rack, "brokers": [1]}]}]
    )
    assert told[0]["lost_racks"][0]["rack"] == rack and "<script>" not in without_script(html)
