"""The timeline of a cluster: what is drawn, where nothing is, and that it stays small and harmless."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pyarrow as pa

from durability.lake.tables import FINDINGS, HEALTH_COUNTERS, RUNS
from durability.plan.plan import LookBack, PolicyPart
from durability.report.data import moments, timeline
from durability.report.html import page
from durability.report.html.pictures.over_time import timeline_chart
from durability.report.html.pictures.page import drawn as pictures_of
from durability.report.html.pictures.time_chart import chart
from tests.support.report_cases import health_counters, plan, snapshot

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOSTILE = "eu<script>alert(1)</script>"


def drawn(counts_at: dict[int, dict], *, results=None, cluster="eu-payments", maintenance=(), gap=900, finished=None):
    """The timeline of counters by minutes before now; results: another result_id than the pulse's, by minutes."""
    rows = [
        {"cluster": cluster, "captured_at": NOW - m * MINUTE, "result_id": (results or {}).get(m, "pulse"), **counts}
        for m, counts in counts_at.items()
    ]
    finished = {"pulse": NOW} | (finished or {})
    runs = [{"result_id": r, "finished_at": at} for r, at in finished.items()]
    told = {"cluster": cluster, "outcome": "FAIL", "category": "prolonged"}
    told["observed"] = json.dumps({"reading": "prolonged", "gap_after_seconds": gap})
    readings = {"look_back": 30 * 3600}
    made = plan(
        snapshots=[snapshot(cluster)],
        policy=PolicyPart("p", "0" * 64, {}, None, readings=readings, maintenance=list(maintenance)),
        look_back=LookBack("2026-11-19T20:00:00Z", {}),
    )
    counted = moments.concluded(health_counters(rows), pa.Table.from_pylist(runs, RUNS.arrow), made)
    return timeline.timelines(counted, pa.Table.from_pylist([told], FINDINGS.arrow), made)


def test_kinds_without_what_is_by_configuration():
    counts = {"offline": 1, "under_min_isr": 5, "under_min_isr_by_configuration": 2, "at_min_isr": 7}
    (line,) = drawn({5: {}, 0: counts | {"at_min_isr_by_configuration": 4}})
    assert [(p.offline, p.under, p.at) for p in line.points] == [(0, 0, 0), (1, 3, 3)]
    assert (line.peak, line.reading) == (7, "prolonged")


def test_a_result_counts_once_its_run_does_and_the_last_one_of_a_moment():
    at = {"offline": 0}
    (line,) = drawn({10: at, 5: {"offline": 9}, 0: at}, results={5: "broken off"})
    assert [p.offline for p in line.points] == [0, 0]
    both = {10: at, 5: {"offline": 1}, 0: at}
    (line,) = drawn(both, results={5: "again"}, finished={"again": NOW + MINUTE})
    assert [p.offline for p in line.points] == [0, 1, 0]
    (line,) = drawn({10: at, 0: {"offline": 2}}, results={0: "result-1"})
    assert [p.offline for p in line.points] == [0, 2], "this run's own"


def test_a_gap_is_drawn_as_one():
    (line,) = drawn({60: {"offline": 1}, 55: {"offline": 1}, 10: {"offline": 1}, 5: {}, 0: {}})
    shown = timeline_chart(line)
    ((begin, until, title),) = shown.gaps
    assert title == "nothing counted from 2026-11-21 01:05 UTC to 2026-11-21 01:50 UTC"
    assert all(column.until <= begin or column.begin >= until for column in shown.columns)


def test_what_could_not_be_read_is_drawn_as_no_zero():
    counts = {20: {}, 15: {"unknown": 2}, 10: {}, 5: {"unknown": 2, "offline": 1}, 0: {"unknown": 1}}
    (line,) = drawn(counts)
    assert [p.unread for p in line.points] == [False, True, False, False, True]
    shown = timeline_chart(line)
    assert [title[21:37] for _, _, title in shown.gaps] == ["2026-11-21 01:45", "2026-11-21 02:00"]
    assert len(shown.known) == 3 and shown.worst == ["2026-11-21 01:55 UTC: 1 offline"]


def test_maintenance_is_shaded_once():
    windows = [
        {"cluster": "eu-.*", "from": "2026-11-21T01:10:00Z", "to": "2026-11-21T01:20:00Z", "reason": "a"},
        {"cluster": "eu-.*", "from": "2026-11-21T01:15:00Z", "to": "2026-11-21T01:30:00Z", "reason": "b"},
        {"cluster": "us", "from": "2026-11-21T01:40:00Z", "to": "2026-11-21T01:50:00Z", "reason": "c"},
    ]
    (line,) = drawn({m: {} for m in range(60, -1, -5)}, maintenance=windows)
    shaded = (NOW - 50 * MINUTE, NOW - 30 * MINUTE, "maintenance: a; b")
    assert timeline_chart(line).windows == [shaded]


def test_many_moments_are_drawn_as_few_and_the_worst_is_kept():
    counts = {m: {"at_min_isr": 1} for m in range(1799, -1, -1)}
    counts[777] = {"offline": 50}
    (line,) = drawn(counts)
    assert len(line.points) <= timeline.POINTS and line.peak == 50
    assert sum(p.offline == 50 for p in line.points) == 1
    assert not timeline_chart(line).gaps
    columns = chart(timeline_chart(line)).to_dict()["layer"][-1]["data"]["values"]
    assert [column["high"] - column["low"] for column in columns] == [50 * 2 / 84, 50, 50 * 2 / 84], (
        "equal ones are one"
    )


def test_the_picture_is_one_and_a_hostile_name_stays_text():
    window = {"cluster": ".*", "from": "2026-11-21T01:40:00Z", "to": "2026-11-21T01:50:00Z", "reason": '"><script>'}
    lines = drawn({30: {"offline": 3}, 25: {"at_min_isr": 2}, 0: {}}, cluster=HOSTILE, maintenance=[window])
    timelines = page.first(lines, 24, timeline_chart)
    pictures = pictures_of([], [], [], timelines["shown"], {})
    text = page.environment().get_template("readings.html.j2").render(timelines=timelines, pictures=pictures)
    assert "<script" not in text and "style=" not in text and "http" not in text
    (svg,) = re.findall(r'<svg [^>]*class="picture".*?</svg>', text, re.S)
    fills = [node.get("fill") for node in ElementTree.fromstring(svg).iter("path")]
    assert {"var(--critical)", "var(--f-warning)", "var(--pass)", "var(--f-info)"} <= set(fills)
    assert fills.count("var(--f-info)") == 1 and svg.count("stroke-dasharray") == 1
    assert "eu&lt;script&gt;alert(1)&lt;/script&gt;" in svg and 'maintenance: "&gt;&lt;script&gt;' in svg


def test_the_lake_is_asked_for_whole_clusters_alone():
    asked = {}

    class Lake:
        def scan(self, table, where, columns=None):
            asked[table.name] = str(where)
            return table.arrow.empty_table()

    policy = PolicyPart("p", "0" * 64, {}, None, readings={"look_back": 3600})
    made = plan(policy=policy, look_back=LookBack("2026-11-19T20:00:00Z", {}))
    assert timeline.read(Lake(), made, FINDINGS.arrow.empty_table()) == []
    assert "IsNull" in asked[HEALTH_COUNTERS.name] and "2026-11-19" in asked[HEALTH_COUNTERS.name]
