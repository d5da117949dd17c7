"""Where the replicas of the worst topics are, from a real lake to the page."""

from __future__ import annotations

import re

import pyarrow as pa

from durability.lake import tables
from durability.report.build import build
from durability.report.data import placements
from tests.support.html import SCRIPT, parse
from tests.support.report_cases import NIGHT, finding, findings, flagged, health_counters, plan

FACTS = {"cluster": "eu-payments", "captured_at": NIGHT, "attempt_id": "attempt-1"}
RESULT = {"captured_at": NIGHT, "run_id": "run-1", "result_id": "result-1"}
RACKS = {1: "az1", 2: "az1", 3: "az2", 4: None}


def partition(topic, number, leader, replicas, isr, **more):
    row = {"topic": topic, "partition": number, "leader": leader, "replicas": replicas, "isr": isr}
    return {**FACTS, "elr": [], "adding": [], "removing": [], **row, **more}


def page(lake, tmp_path, rows, topics):
    """The section of the page, and its HTML. topics: names with their number of offline partitions."""
    brokers = [{**FACTS, "broker": b, "rack": rack, "live": b != 3} for b, rack in RACKS.items()]
    lake.append(tables.PARTITIONS, pa.Table.from_pylist(rows, tables.PARTITIONS.arrow))
    lake.append(tables.BROKERS, pa.Table.from_pylist(brokers, tables.BROKERS.arrow))
    lake.append(tables.FINDINGS, findings([finding("orders", "partition-health")]))
    counters = [{**RESULT, "topic": topic, "partitions": 9, "offline": offline} for topic, offline in topics.items()]
    lake.append(tables.HEALTH_COUNTERS, health_counters(counters))
    build(lake, plan(), flagged(), tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    words, reader = parse(html)
    assert not reader.tags & {"script", "img"}
    return words, html


def rows_of(html):
    """The cells of each row of each picture."""
    pictures = re.findall(r'<div class="table placement">(.*?)</table>', html, re.S)
    lines = [re.findall(r"<tr>(.*?)</tr>", picture.partition("<tbody>")[2], re.S) for picture in pictures]
    return [
        [[re.sub("<[^>]*>", " ", c).split() for c in re.findall(r"<t[hd].*?</t[hd]>", line, re.S)] for line in of_one]
        for of_one in lines
    ]


def test_each_replica_is_what_the_facts_say(lake, tmp_path):
    rows = [
        partition("orders", 0, 1, [1, 3, 4], [1, 4]),
        partition("orders", 1, None, [1, 3], [], elr=[3]),
        partition("orders", 2, 2, [2, 3, 4], [2], adding=[4], removing=[3], elr=[3]),
        partition("orders", 3, None, None, None, unreadable=["replicas", "isr", "leader"]),
        partition("orders", 4, 1, [1, 2], None, unreadable=["isr"]),
        partition("fine", 0, 1, [1, 2], [1, 2]),
        {**partition("orders", 0, 2, [2, 4], [2]), "attempt_id": "attempt-0"},
    ]
    words, html = page(lake, tmp_path, rows, {"orders": 1, "fine": 0})
    assert "orders eu-payments, 5 partitions" in words
    assert "Partition rack az1 rack az2 no rack known 1 2 3 down 4" in words
    assert rows_of(html) == [
        [
            [["1", "no", "leader"], ["out", "of", "sync"], [], ["ELR"], []],
            [["3", "leader", "unknown"], ["replicas", "could", "not", "be", "read"]],
            [["2"], [], ["leader"], ["ELR,", "removing"], ["out", "of", "sync,", "adding"]],
            [["0"], ["leader"], [], ["out", "of", "sync"], ["in", "sync"]],
            [["4"], ["leader,", "ISR", "unknown"], ["ISR", "unknown"], [], []],
        ]
    ]


def test_the_worst_topics_and_partitions_are_shown_and_the_rest_is_counted(lake, tmp_path, monkeypatch):
    monkeypatch.setattr(placements, "TOPICS", 2)
    monkeypatch.setattr(placements, "COLUMNS", 3)
    rows = [partition("a", n, 1, [1, n % 3 + 2], [1]) for n in range(12)]
    rows += [partition(SCRIPT, n, 1, [1, 2], [1, 2] if n else [1]) for n in range(12)]
    rows += [partition("c", 0, 1, [1, 2, 3], [1])]
    words, html = page(lake, tmp_path, rows, {"c": 1, SCRIPT: 3, "a": 2})
    assert words.index(f"{SCRIPT} eu-payments, the worst 10 of 12 partitions") < words.index(
        "a eu-payments, the worst 2 of 12"
    )
    assert "These are the 2 topics that come first above." in words
    assert len(rows_of(html)) == 2


def test_a_partition_on_more_brokers_than_fit_says_so():
    row = partition("t", 0, 0, list(range(20)), [0])
    made = placements.placement([row], {})
    assert made["left"] == 20 - placements.COLUMNS and made["racks"] == [(None, placements.COLUMNS)]
    assert placements.fitting([row, partition("t", 1, 30, [30], [30])]) == [row]


def test_nothing_is_read_for_a_healthy_fleet():
    class Never:
        def scan(self, *arguments, **named):
            raise AssertionError("no topic needs a picture")

    assert placements.read(Never(), plan(), []) == []
