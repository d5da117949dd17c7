"""The report's pictures: drawn by the real converter, harmless whatever names contain, and never at the cost of the report."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from durability.report.data import timeline
from durability.report.data.placements import placement
from durability.report.html.pictures import costs, draw, over_time, page, replicas, tasks, time_chart
from durability.report.html.pictures.over_time import Column, OverTime
from tests.support.html import SCRIPT

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
CELLS = [{"number": n, "shade": 4 if n else 0, "title": f"{n} of {SCRIPT}"} for n in (1_200, 0, None, 0, 0, 0, 0, 0)]
LOSSES = {
    "cluster": SCRIPT,
    "unknown": 0,
    "worst": {"racks": {"name": SCRIPT, "said": {}}, "brokers": None},
    "heat": [{"kind": "racks", "name": SCRIPT, "quorum": "lost", "unknown": 0, "cells": CELLS}] * 2,
}
ROW = {
    "replicas": [1, 2, 3, 4],
    "leader": 1,
    "isr": [1, 2],
    "elr": [3],
    "adding": [2],
    "removing": [4],
    "unreadable": [],
}
PARTITIONS = [{**ROW, "partition": 0}, {**ROW, "partition": 7, "leader": None, "isr": [], "elr": None, "removing": []}]
BROKERS = {n: {"rack": SCRIPT if n < 3 else None, "live": n != 3} for n in (1, 2, 3, 4)}
TOPIC = {"cluster": SCRIPT, "topic": SCRIPT, **placement(PARTITIONS, BROKERS)}
APPLICATION = {
    "cluster": "eu",
    "group": SCRIPT,
    "losses": [{"tag": SCRIPT, "value": SCRIPT, "count": 2, "active": 5, "standby": 1, "tasks": []}],
}
COLUMNS = [Column(NOW, NOW + timedelta(minutes=5), f"3 offline in {SCRIPT}", {"offline": 3, "at": 1})]
GAPS = [(NOW + timedelta(minutes=5), NOW + timedelta(minutes=9), SCRIPT)]
TIMELINE = OverTime(SCRIPT, "flapping", NOW, NOW + timedelta(minutes=9), COLUMNS, [], GAPS)


@pytest.fixture(scope="module")
def drawn():
    old = {**APPLICATION, "losses": [{"tag": "zone", "value": "az1", "count": 0, "tasks": []}]}
    return page.drawn([LOSSES], [TOPIC], [old, APPLICATION], [TIMELINE], {})


def texts(svg, tag="text"):
    return [node.text for node in ElementTree.fromstring(svg).iter(tag)]


def test_each_picture_shows_its_numbers(drawn):
    assert list(drawn) == ["costs-1", "replicas-1", "tasks-2", "timeline-1"], "an older result has no active tasks"
    cells = texts(drawn["costs-1"])
    assert cells.count("1,200") == 2 and cells.count("?") == 2 and cells.count("lost") == 2
    letters = texts(drawn["replicas-1"])
    assert sorted(t for t in letters if re.fullmatch("[LSEO?][+\N{MINUS SIGN}]?", t)) == sorted(
        ["L", "S+", "E", "O\N{MINUS SIGN}", "O", "O+", "O", "O"]
    )
    assert "none" in letters and "no rack known / 3 down" in letters
    assert {"5 active", "1 standby", "2 lost with it"} <= set(texts(drawn["tasks-2"]))
    assert {"0", "4"} <= set(texts(drawn["timeline-1"]))


def test_names_that_are_equal_when_clipped_have_rows_of_their_own():
    long = "eu-central-1-production-zone-"
    losses = [{"tag": "zone", "value": f"{long}{n}", "count": n, "active": 10 * n, "standby": n} for n in (1, 2)]
    heat = [{**LOSSES["heat"][0], "name": f"{long}{n}"} for n in (1, 2)]
    columns = [{"broker": n, "down": False} for n in (1, 2)]
    racks = [(f"{long}{n}", 1) for n in (1, 2)]
    topic = {
        **TOPIC,
        "racks": racks,
        "columns": columns,
        "rows": [{"partition": 0, "leader": "yes", "cells": ["", ""]}],
    }
    clusters = [{**LOSSES, "cluster": "c" * 200 + end, "heat": heat} for end in "ab"]
    svgs = page.drawn(clusters, [topic], [{"group": "g", "losses": losses}], [], {})
    assert list(svgs) == ["costs-1", "costs-2", "replicas-1", "tasks-1"]
    for name in ("costs-1", "tasks-1"):
        assert sum(f"{long[:20]}" in text for text in texts(svgs[name])) == 2, name
        assert all(f"{long}{n}" in svgs[name] for n in (1, 2)), "a title has the whole name"
    bars = [node.get("d") for node in ElementTree.fromstring(svgs["tasks-1"]).iter("path") if node.get("fill")]
    assert all(bar.startswith("M0,") for bar in bars) and len(bars) == 6, "no bar is stacked on another one"
    assert sum(" / " in (text or "") for text in texts(svgs["replicas-1"])) == 2


def test_what_could_not_be_judged_is_never_drawn_as_nothing():
    cells = [{"number": n, "shade": int(n > 0), "title": "3 partitions of 1 topic" if n else ""} for n in (3, *[0] * 7)]
    row = {"kind": "brokers", "name": "1", "quorum": "unknown", "unknown": 500, "cells": cells}
    cluster = {**LOSSES, "worst": {}, "unknown": 500, "heat": [row, {**row, "name": "2", "unknown": None}]}
    svg = page.drawn([cluster, {**LOSSES, "heat": []}], [], [], [], {})["costs-1"]
    assert texts(svg).count("\N{GREATER-THAN OR EQUAL TO}3") == 2 and texts(svg).count("?") == 16
    assert "0" not in texts(svg) and {"broker 1 ?", "broker 2 ?"} <= set(texts(svg))
    titles = texts(svg, "title")
    assert "broker 1, data: at least 3 partitions of 1 topic, 500 not judged" in titles
    assert "broker 2, offline: unknown, an unknown number not judged" in titles and "nothing breaks" not in svg
    (said,) = texts(svg, "desc")
    assert said.startswith("Partitions not judged for some loss: at least 500. ")


def test_a_timeline_that_could_not_be_read_says_so(drawn):
    unread = [timeline.Point(NOW, NOW, 0, 0, 0, unread=True)] * 2
    shown = over_time.timeline_chart(timeline.Timeline("eu", unread, timedelta(minutes=15), "unknown"))
    assert shown.said == "unknown; nothing could be counted"
    assert texts(page.drawn([], [], [], [shown], {})["timeline-1"], "desc") == ["Nothing could be counted."]
    assert texts(drawn["timeline-1"], "desc")[0].startswith("The worst, 3 offline")


def test_hostile_names_stay_text_and_nothing_is_loaded(drawn):
    text = "".join(drawn.values())
    assert "<script" not in text and "<img" not in text and text.count("&lt;script&gt;") > 10
    nodes = [node for svg in drawn.values() for node in ElementTree.fromstring(svg).iter()]
    assert {node.tag for node in nodes} <= draw.TAGS | {"title", "desc"}
    added = {"id", "class", "role", "aria-labelledby"}
    assert {name for node in nodes for name in node.attrib} <= draw.ATTRIBUTES | added
    ids = [node.get("id") for node in nodes if node.get("id")]
    assert len(ids) == len(set(ids)) == 2 * len(drawn)
    values = [value for node in nodes for name, value in node.items() if name in draw.ATTRIBUTES]
    assert not [value for value in values if "url(" in value or "http" in value]


def test_characters_that_xml_forbids_are_shown_as_escapes():
    reason = "rolling \x0b\x00\ufffe\ud800 upgrade"
    shown = TIMELINE._replace(
        name=reason, columns=[COLUMNS[0]._replace(title=reason)], windows=[(*GAPS[0][:2], reason)]
    )
    (svg,) = draw.draw({"a": draw.Picture(time_chart.chart(shown), reason, reason)}).values()
    escaped = r"rolling \x0b\x00\ufffe\ud800 upgrade"
    assert texts(svg, "title").count(escaped) == 4 and texts(svg, "desc") == [escaped]


def test_a_picture_that_is_no_chart_costs_only_itself(tmp_path, monkeypatch):
    good = '<svg xmlns="http://www.w3.org/2000/svg"/>'
    answers = {name: {"svg": svg} for name, svg in (("a", good), ("b", "<svg>\x0b</svg>"), ("c", "<script/>"))}
    (tmp_path / "convert.py").write_text(f"import json; print(json.dumps({answers!r}))")
    monkeypatch.setattr(draw, "PROGRAM", tmp_path / "convert.py")
    said = draw.draw(dict.fromkeys(answers, draw.Picture(time_chart.chart(TIMELINE), "T", "D")))
    assert said["a"].startswith("<svg ")
    assert "could not be drawn: not well-formed" in said["b"] and "drawn: a chart has the element script" in said["c"]


def test_charts_are_valid_vega_lite():
    charts = (costs.chart(LOSSES), replicas.chart(TOPIC), tasks.chart(APPLICATION), time_chart.chart(TIMELINE))
    for chart in charts:
        assert chart.to_dict(validate=True)["$schema"].startswith("https://vega.github.io/schema/vega-lite/v6")


@pytest.mark.parametrize(
    ("program", "seconds", "why"),
    [
        ("import missing_<b>", 60, "SyntaxError: invalid syntax"),
        ("import os; os.kill(os.getpid(), 9)", 60, "the converter ended with status -9"),
        ("import time; time.sleep(60)", 1, "the converter took longer than 1 s"),
        ("print('a warning')", 60, "the converter failed: Expecting value"),
    ],
)
def test_a_converter_that_fails_costs_no_report(tmp_path, monkeypatch, program, seconds, why):
    (tmp_path / "convert.py").write_text(program)
    monkeypatch.setattr(draw, "PROGRAM", tmp_path / "convert.py")
    monkeypatch.setattr(draw, "SECONDS", seconds)
    (said,) = draw.draw({"a": draw.Picture(time_chart.chart(TIMELINE), "T", "D")}).values()
    assert said.startswith(f'<p class="empty">The picture could not be drawn: {why}')


def test_a_converter_that_can_not_be_started_costs_no_report(monkeypatch):
    monkeypatch.setattr(draw.sys, "executable", "/missing/python")
    (said,) = draw.draw({"a": draw.Picture(time_chart.chart(TIMELINE), "T", "D")}).values()
    assert "could not be drawn: the converter failed: [Errno 2] No such file or directory" in said
