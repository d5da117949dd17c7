"""The report's pictures: drawn by the real converter, harmless whatever names contain, and never at the cost of the report."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from durability.report.data.placements import placement
from durability.report.html.pictures import costs, draw, page, replicas, tasks, time_chart
from durability.report.html.pictures.over_time import Column, OverTime
from tests.support.html import SCRIPT

NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
CELLS = [{"number": n, "shade": 4 if n else 0, "title": f"{n} of {SCRIPT}"} for n in (1_200, 0, None, 0, 0, 0, 0, 0)]
LOSSES = {
    "cluster": SCRIPT,
    "worst": {"racks": {"name": SCRIPT, "said": {}}, "brokers": None},
    "heat": [{"kind": "racks", "name": SCRIPT, "quorum": "lost", "cells": CELLS}] * 2,
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


def texts(svg):
    return [node.text for node in ElementTree.fromstring(svg).iter("text")]


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
    ],
)
def test_a_converter_that_fails_costs_no_report(tmp_path, monkeypatch, program, seconds, why):
    (tmp_path / "convert.py").write_text(program)
    monkeypatch.setattr(draw, "PROGRAM", tmp_path / "convert.py")
    monkeypatch.setattr(draw, "SECONDS", seconds)
    (said,) = draw.draw({"a": draw.Picture(time_chart.chart(TIMELINE), "T", "D")}).values()
    assert said.startswith(f'<p class="empty">The picture could not be drawn: {why}')
