"""The last year: a year of pulses against a brute-force count, gaps that are no zeros, and nothing where there is no history."""

from __future__ import annotations

import pickle
import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise, tee
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from bench import year
from durability.lake import tables
from durability.report.data import trends
from durability.report.html import page
from durability.report.html.pictures.over_time import trend_charts
from durability.report.html.pictures.page import drawn as pictures_of
from tests.support.report_cases import health_counters, plan, snapshot

START = datetime(2026, 11, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOSTILE = "eu<script>alert(1)</script>"


def by_hand(rows: list[dict], gap: timedelta) -> dict:
    """(cluster, day) -> minutes by level, a minute's moment after the other."""
    found = defaultdict(lambda: [0.0] * 4)
    by_cluster = defaultdict(list)
    for row in rows:
        by_cluster[row["cluster"]].append(row)
    for cluster, mine in by_cluster.items():
        for row, after in pairwise(sorted(mine, key=lambda r: r["captured_at"])):
            at, to = row["captured_at"], after["captured_at"]
            if row["offline"]:
                level = 3
            elif row["under_min_isr"]:
                level = 2
            elif row["at_min_isr"] > row["at_min_isr_by_configuration"]:
                level = 1
            elif row["unknown"]:
                continue
            else:
                level = 0
            while to - row["captured_at"] <= gap and at < to:
                midnight = at.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
                until = min(to, midnight)
                found[cluster, at.date()][level] += (until - at) / MINUTE
                at = until
    return found


def test_the_row_of_this_run_is_no_day_of_its_own(lake):
    """The run's row is written before its report: with or without it, the year is the same."""
    made = year.plan(1)
    days = [day for _, day in zip(range(3), year.made_up(1), strict=False)]
    year.write(lake, iter(days))

    def read():
        return trends.read(lake, made, {"critical": 1}, {})

    before = read()
    moment = max(part.moment for part in made.judged)
    row = {"run_id": made.run_id, "result_id": made.result_id, "kind": "nightly", "captured_at": moment}
    lake.commit_run(row | {"finished_at": moment, "status": "complete", "summary": "{}"})
    assert before and pickle.dumps(read()) == pickle.dumps(before)


def test_a_year_of_pulses_is_what_counting_its_rows_gives(lake):
    days, again = tee(year.made_up(3))
    year.write(lake, days)
    lake.append(tables.HEALTH_COUNTERS, _never_concluded())
    found = trends.read(lake, year.plan(3), {"critical": 1, "warning": 2}, {})
    rows = [row for counters, _ in again for row in counters.to_pylist()]
    assert len(rows) > 300_000
    expected = by_hand(rows, 30 * MINUTE)
    assert found.days == trends.YEAR and len(found.clusters) == 3
    for cluster, minutes in found.clusters:
        for number in range(found.days):
            levels = expected.get((cluster, found.first + timedelta(days=number)), [0.0] * 4)
            mine = [getattr(minutes, name)[number] for name in ("at", "under", "offline")]
            assert np.allclose(mine, levels[1:]) and np.isclose(minutes.seen[number], sum(levels))
    worst = [sum(expected[c, d][3] for k, d in expected if k == c) for c, _ in found.clusters]
    assert worst == sorted(worst, reverse=True) and worst[-1] > 0
    assert [n.severities for n in found.nights[:-1]] == [year.SEVERITIES] * 365
    assert (found.nights[-1].status, found.nights[-1].severities) == ("this run", {"critical": 1, "warning": 2})


def _never_concluded():
    row = {"cluster": "cluster-000", "captured_at": START, "result_id": "killed", "offline": 9}
    return health_counters([row])


def counted(moments: dict[float, dict], *, gap=15 * MINUTE, cluster="eu", finished=None, results=None) -> trends.Days:
    """The days of one cluster of which these counters are known, by minutes after START."""
    rows = [
        {"cluster": cluster, "captured_at": START + m * MINUTE, "result_id": (results or {}).get(m, "p"), **counts}
        for m, counts in moments.items()
    ]
    known = {"p": START, **(finished or {})}
    return measured(rows, known, {cluster: gap}).get(cluster)


def measured(rows, finished, tolerated):
    runs = pa.Table.from_pylist([{"result_id": r, "finished_at": at} for r, at in finished.items()], tables.RUNS.arrow)
    return trends.minutes([health_counters(rows)], runs, plan(), tolerated, START)


def test_nothing_is_known_across_a_gap_nor_of_a_moment_that_could_not_be_read():
    days = counted(
        {0: {"offline": 1}, 10: {}, 20: {"unknown": 4}, 30: {"at_min_isr": 2}, 60: {"under_min_isr": 1}, 65: {}}
    )
    assert [float(getattr(days, n)[0]) for n in ("seen", "offline", "under", "at")] == [25, 10, 5, 0]


def test_what_lasts_over_midnight_is_of_both_days():
    days = counted({1430: {"under_min_isr": 3}, 1445: {}})
    assert days.under[:2].tolist() == [10, 5]


def test_the_configuration_alone_is_not_counted_and_missing_counts_are_none():
    only = {"under_min_isr": 2, "under_min_isr_by_configuration": 2, "at_min_isr": 1, "at_min_isr_by_configuration": 1}
    days = counted({0: only, 5: {"under_min_isr": 2, "under_min_isr_by_configuration": None}, 10: {}})
    assert (days.under[0], days.at[0], days.seen[0]) == (5, 0, 10)


def test_of_a_moment_counted_twice_the_last_result_counts():
    rows = [
        {"cluster": "eu", "captured_at": START + m * MINUTE, "result_id": r, "offline": offline}
        for m, r, offline in ((0, "late", 0), (0, "early", 9), (5, "early", 0), (0, "killed", 7))
    ]
    days = measured(rows, {"early": START, "late": START + MINUTE}, {"eu": 15 * MINUTE})["eu"]
    assert (days.offline[0], days.seen[0]) == (0, 5)


class Never:
    def scan(self, *arguments, **named):
        raise AssertionError("nothing is read for a run without a history")


def test_a_run_without_history_reads_nothing_and_shows_nothing():
    made = plan(snapshots=[snapshot(previous_result_id=None)])
    assert trends.read(Never(), made, {}, {}) is None and trend_charts(None, 5) == {}


def test_two_days_are_no_trend(lake):
    year.write(lake, list(year.made_up(1, days=1)))
    assert trends.read(lake, year.plan(1), {}, {}) is None
    year.write(lake, list(year.made_up(1, days=3))[:2])
    assert trends.read(lake, year.plan(1), {}, {}).days == 4


def test_counters_older_than_the_first_run_are_read(lake):
    """The first run counts the older documents of a folder: 48 hourly moments before it, then two more nights."""
    hour, night = timedelta(hours=1), timedelta(days=1)
    moments = [(START - n * hour, "first") for n in range(49)] + [(START + night, "second")]
    rows = [{"cluster": "eu", "captured_at": at, "result_id": result} for at, result in moments]
    lake.append(tables.HEALTH_COUNTERS, health_counters(rows))
    runs = [
        {"result_id": result, "kind": "pulse", "captured_at": at, "finished_at": at + MINUTE, "summary": "{}"}
        for result, at in (("first", START), ("second", START + night))
    ]
    lake.append(tables.RUNS, pa.Table.from_pylist(runs, tables.RUNS.arrow))
    tonight = plan(snapshots=[snapshot("eu", captured_at=(START + 2 * night).isoformat())])
    found = trends.read(lake, tonight, {"critical": 0}, {"eu": hour})
    assert found.first == (START - 2 * night).date()
    ((_, days),) = found.clusters
    assert days.seen.sum() == 2880


@pytest.fixture
def drawn():
    found = {}
    for cluster in (HOSTILE, "us"):
        days = [np.zeros(6) for _ in range(4)]
        days[0][[0, 1, 4, 5]] = 1440
        days[3][1] = 61 if cluster == "us" else 90
        found[cluster] = trends.Days(*days)
    nights = [trends.Night(n, s, {"critical": n, "warning": 4}) for n, s in ((0, "complete"), (4, "incomplete"))]
    ordered = sorted(found.items(), key=lambda c: c[1].order, reverse=True)
    return trends.Trends(START.date(), 6, nights, ordered)


def test_gaps_are_drawn_as_gaps_and_columns_say_what_they_are(drawn):
    shown = trend_charts(drawn, 5)
    assert [c.name for c in shown["clusters"]] == [HOSTILE, "us"]
    assert shown["fleet"].said == "2 h 31 min offline"
    ((_, _, gap),) = shown["clusters"][1].gaps
    assert gap == "nothing counted on 03 Nov 2026 to 04 Nov 2026"
    assert shown["clusters"][1].worst == ["02 Nov 2026: 1 h 1 min offline, of 1 day counted"]
    assert shown["nights"].worst == [
        "05 Nov 2026: 4 critical, 4 warning (incomplete)",
        "01 Nov 2026: 0 critical, 4 warning",
    ]
    assert [title for _, _, title in shown["nights"].gaps] == [
        "no run on 02 Nov 2026 to 04 Nov 2026",
        "no run on 06 Nov 2026",
    ]


def test_the_section_is_well_formed_and_harmless(drawn):
    template, shown = page.environment().get_template("trends.html.j2"), trend_charts(drawn, 5)
    text = template.render(trends=shown, pictures=pictures_of([], [], [], [], shown))
    assert "<script" not in text and "eu&lt;script" in text
    drawings = [ElementTree.fromstring(svg) for svg in re.findall(r'<svg [^>]*class="picture".*?</svg>', text, re.S)]
    titles = [drawing.findtext("title") for drawing in drawings]
    assert titles[0] == "Failures per night: failed findings, at most 8 a night"
    assert titles[3] == "Time at min ISR or worse per day: us, 1 h 1 min offline" and len(titles) == 4
    labels = [node.text for node in drawings[3].iter("text")]
    assert {"0 h", "1 h"} <= set(labels)
