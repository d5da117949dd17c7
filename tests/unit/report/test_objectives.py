"""Time one failure away from harm: against a count minute by minute, and unknown time that is never good."""

from __future__ import annotations

import html
import random
import re
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from durability.lake import tables
from durability.plan.plan import PolicyPart
from durability.report.data import objectives
from durability.report.html.objectives import objective_rows
from durability.report.text import digest
from durability.report.text.console import summary_text
from tests.support.html import without_script
from tests.support.report_cases import SHA, finding, health_counters, plan, snapshot, written
from tests.support.schemas import problems

END = datetime(2026, 11, 21, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
GAP = 15 * MINUTE
NIGHT = "night"
TIERS = ("gold", "lead")
NUMBERS = tables.ONE_FAILURE


def tier(name, partitions, refusing=0, losing=0, rack_refusing=0, rack_losing=0, unknown=0) -> dict:
    counts = (partitions, refusing, losing, rack_refusing, rack_losing, unknown)
    return {"tier": name, **dict(zip(tables.TIER_COUNTS, counts, strict=True))}


def moment(ago: int, tiers, cluster="eu", result="p", **more) -> dict:
    """A row of a cluster, so many minutes before END. tiers: None if nothing was counted."""
    return {"cluster": cluster, "captured_at": END - ago * MINUTE, "result_id": result, "tiers": tiers, **more}


def planned(objective=None, survive=(), clusters=("eu",), failed=(), tiers=TIERS):
    required = {name: {"survive": list(survive)} for name in tiers}
    policy = PolicyPart("p", SHA, required, None, objectives={"gold": objective} if objective else {})
    parts = [snapshot(c, captured_at=END.isoformat()) for c in clusters]
    parts += [snapshot(c, status="failed", captured_at=None) for c in failed]
    return plan(policy=policy, snapshots=parts, result_id=NIGHT)


class Lake:
    """These rows. The run `p` is concluded, others only if `finished` has them."""

    def __init__(self, rows, unread=(), finished=None):
        finished = {"p": END - timedelta(days=1)} | (finished or {})
        runs = [{"result_id": r, "captured_at": at, "finished_at": at} for r, at in finished.items()]
        pulses = [{"cluster": c, "captured_at": END - ago * MINUTE, "status": "failed"} for c, ago in unread]
        self.tables = {
            tables.HEALTH_COUNTERS: health_counters(rows),
            tables.RUNS: pa.Table.from_pylist(runs, tables.RUNS.arrow),
            tables.SNAPSHOTS: pa.Table.from_pylist(pulses, tables.SNAPSHOTS.arrow),
        }

    def scan(self, table, where, columns):
        """All rows: this lake fits into one chunk."""
        return self.tables[table].select(columns)


def read(rows, of=None, unread=(), finished=None, gap=GAP) -> dict:
    of = of or planned()
    found = objectives.read(Lake(rows, unread, finished), of, {part.cluster: gap for part in of.snapshots})
    return {(e.tier, e.harm, e.loss): e for e in found.entries}


def by_minute(rows, unread, clusters, ends, gap=15) -> dict:
    """(tier, harm, period) -> [near, unknown, all], one minute after the other."""
    found = {}
    for cluster in clusters:
        mine = {r["at"]: r["tiers"] for r in rows if r["cluster"] == cluster}
        mine = {at: None for c, at in unread if c == cluster} | mine
        times = sorted(mine)
        known = [at for at in times if mine[at] is not None]
        if not known:
            continue
        for period, length in objectives.PERIODS.items():
            for minute in range(ends[cluster] - int(length / MINUTE), ends[cluster]):
                place, sized = bisect_right(times, minute), bisect_right(known, minute)
                sizes = mine[known[max(sized - 1, 0)]]
                followed = 0 < place < len(times) and times[place] - times[place - 1] <= gap
                here = mine[times[place - 1]] if followed else None
                for name, counts in sizes.items():
                    for h, (harm, loss) in enumerate(objectives.HARMS):
                        near, unknown = 0, counts[0]
                        if here is not None:
                            size, *numbers, open_ = here.get(name, (0,) * 6)
                            near = numbers[h] or 0
                            nothing = numbers[h] is None or open_ is None
                            unknown = size - near if nothing else min(open_, size - near)
                        sums = found.setdefault((name, harm, loss, period), [0, 0, 0])
                        for n, value in enumerate((near, unknown, counts[0])):
                            sums[n] += value
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("chunk", [7, 10_000])
def test_it_is_what_counting_minute_by_minute_gives(seed, chunk, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setitem(objectives.PERIODS, "30d", timedelta(hours=20))
    clusters, failed = ("eu", "us", "young"), "gone"
    rows, unread = [], []
    for cluster in (*clusters, failed):
        at = rng.choice((-1500, -300)) if cluster != "young" else -40
        while at < 0:
            listed = {}
            for name in TIERS:
                if rng.random() < 0.9:
                    size = rng.randint(0, 9)
                    counts = [size, *(rng.randint(0, size) for _ in NUMBERS)]
                    if rng.random() < 0.1:
                        counts[rng.randint(1, 5)] = None
                    listed[name] = tuple(counts)
            rows.append({"cluster": cluster, "at": at, "tiers": listed if rng.random() < 0.9 else None})
            if rng.random() < 0.1:
                unread.append((cluster, at + rng.choice((0, 1, 3))))
            at += rng.choice((4, 5, 6, 15, 16, 90))
        if cluster != failed:
            rows.append({"cluster": cluster, "at": 0, "tiers": {"gold": (3, 1, 1, 1, 1, 0)}})
    made = planned(clusters=clusters, failed=(failed,))
    totals = objectives.Totals(made, dict.fromkeys((*clusters, failed), GAP), END)
    drawn = [moment(-r["at"], _listed(r["tiers"]), r["cluster"]) for r in sorted(rows, key=lambda r: r["at"])]
    pulses = Lake([], [(c, -at) for c, at in unread]).tables[tables.SNAPSHOTS]
    since = END - timedelta(days=3)
    for until in (END - timedelta(minutes=m) for m in range(1500, -chunk, -chunk)):
        some = [r for r in drawn if since <= r["captured_at"] < until]
        edges = (since, until)
        few = [p for p in pulses.to_pylist() if edges[0] <= p["captured_at"] < edges[1]]
        totals.add(health_counters(some).drop_columns(["result_id"]), pa.Table.from_pylist(few, tables.SNAPSHOTS.arrow))
        since = until
    rest = [r for r in drawn if r["captured_at"] >= since]
    totals.add(health_counters(rest).drop_columns(["result_id"]), tables.SNAPSHOTS.arrow.empty_table())
    found = {
        (e.tier, e.harm, e.loss, period): pytest.approx(list(minutes))
        for e in totals.finish().entries
        for period, minutes in e.minutes.items()
    }
    expected = by_minute(rows, unread, (*clusters, failed), dict.fromkeys((*clusters, failed), 0))
    assert found == expected and any(near for near, _, _ in expected.values())
    assert all(near + unknown <= total for near, unknown, total in expected.values())


def _listed(tiers) -> list | None:
    return None if tiers is None else [tier(name, *counts) for name, counts in tiers.items()]


def test_time_before_the_first_moment_and_across_a_gap_is_unknown():
    gold = [tier("gold", 10, refusing=2)]
    rows = [moment(60, gold), moment(50, gold), moment(30, gold), moment(20, gold), moment(10, gold), moment(0, gold)]
    found = read(rows)["gold", "writes", "broker"]
    assert found.minutes["1h"] == (80, 200, 600)  # 40 minutes are known
    assert found.minutes["6h"] == (80, 3200, 3600)
    assert found.minutes["30d"].all == 10 * 30 * 1440
    assert found.worst == "eu" and found.percent is None and found.state is None


def test_a_row_of_an_earlier_version_is_unknown_and_so_is_what_it_doesnt_count():
    rows = [moment(20, [tier("gold", 4)]), moment(15, None), moment(10, [tier("gold", 4, None, 0)]), moment(5, None)]
    found = read([*rows, moment(0, [tier("gold", 4)])])
    assert found["gold", "writes", "broker"].minutes["1h"] == (0, 240 - 20, 240)
    assert found["gold", "data", "broker"].minutes["1h"] == (0, 240 - 40, 240)


def test_a_snapshot_that_could_not_be_read_ends_what_is_known():
    gold = [tier("gold", 1)]
    rows = [moment(10, gold), moment(0, gold)]
    assert read(rows)["gold", "data", "broker"].minutes["1h"].unknown == 50
    assert read(rows, unread=[("eu", 4)])["gold", "data", "broker"].minutes["1h"].unknown == 54
    assert read(rows, unread=[("eu", 10), ("us", 4)])["gold", "data", "broker"].minutes["1h"].unknown == 50


def test_a_result_that_no_run_concluded_counts_nothing():
    gold, killed = [tier("gold", 1)], moment(5, [tier("gold", 1, 1, 1, 1, 1)], result="killed")
    rows = [moment(10, gold), killed, moment(0, gold, result=NIGHT)]
    assert read(rows)["gold", "data", "broker"].minutes["1h"] == (0, 50, 60)
    finished = {"killed": END - timedelta(hours=1)}
    assert read(rows, finished=finished)["gold", "data", "broker"].minutes["1h"] == (5, 50, 60)


def whole(near: int, unknown=0):
    """A day of one partition in a hundred, of a lake that counts every 15 minutes for 30 days."""
    gold = [tier("gold", 100, refusing=near, unknown=unknown)]
    return [moment(ago, gold) for ago in range(0, 30 * 1440 + 1, 15)]


@pytest.mark.parametrize(
    ("near", "unknown", "state", "used"),
    [(1, 0, "met", 1), (2, 0, "missed", 2), (1, 1, "unknown", 1), (2, 9, "missed", 2)],
)
def test_an_objective_is_met_or_missed_whatever_happened_in_unknown_time(near, unknown, state, used):
    found = read(whole(near, unknown), planned({"writes": 99}))
    entry = found["gold", "writes", "broker"]
    assert (entry.state, entry.used("30d"), entry.used("1h")) == (state, pytest.approx(used), pytest.approx(used))
    assert {key for key, e in found.items() if e.state} == {("gold", "writes", "broker")}


def test_an_objective_is_about_racks_only_if_the_tier_must_survive_them():
    rows = whole(0)
    objective = {"writes": 99.9, "data": 99.99}
    stated = {key for key, e in read(rows, planned(objective, ["broker"])).items() if e.percent}
    assert stated == {("gold", "writes", "broker"), ("gold", "data", "broker")}
    both = {key: e.percent for key, e in read(rows, planned(objective, ["broker", "rack"])).items()}
    assert both == {("gold", harm, loss): objective[harm] for harm, loss in objectives.HARMS}


def test_the_parts_of_findings_json_say_what_was_counted():
    entry = read(whole(2), planned({"writes": 99}))["gold", "writes", "broker"].to_dict()
    minutes = {"one_failure_away": 120.0, "unknown": 0.0, "all": 6000.0}
    assert entry["partition_minutes"]["1h"] == minutes
    assert {k: entry[k] for k in ("tier", "harm", "loss", "objective", "state", "worst_cluster")} == {
        **{"tier": "gold", "harm": "writes", "loss": "broker", "objective": 99, "state": "missed"},
        "worst_cluster": "eu",
    }
    assert entry["budget_used"] == {period: pytest.approx(2) for period in objectives.PERIODS}


def test_a_cluster_of_which_nothing_was_counted_is_named():
    found = objectives.read(Lake(whole(0)), planned(clusters=("eu", "us")), {"eu": GAP, "us": GAP})
    assert found.uncounted == ["us"] and found.counted
    nothing = objectives.read(Lake([moment(5, None), moment(0, None)]), planned(), {"eu": GAP})
    assert nothing.uncounted == ["eu"] and not nothing.counted and nothing.entries == []


class Never:
    def scan(self, *arguments, **named):
        raise AssertionError("nothing is read for a run without a history")


def test_a_run_without_history_reads_nothing():
    made = planned()
    first = replace(made, snapshots=[snapshot(previous_result_id=None)])
    assert objectives.read(Never(), first, {}) == objectives.Objectives()


def test_a_lake_in_chunks_is_what_it_is_at_once(lake, monkeypatch):
    """Pulses of two clusters, read from a lake's files."""
    rows, runs = [], []
    for n in range(60):
        ago, result = 5 * (59 - n), f"p{n}"
        for cluster, shift in (("eu", 0), ("us", 1)):
            if (n + shift) % 7:
                counts = tier("gold", 5 + n % 3, n % 5, unknown=n % 2)
                rows.append(moment(ago, [counts], cluster, result))
        at = END - ago * MINUTE
        runs.append({"result_id": result, "kind": "pulse", "captured_at": at, "finished_at": at})
    lake.append(tables.HEALTH_COUNTERS, health_counters(rows))
    lake.append(tables.RUNS, pa.Table.from_pylist(runs, tables.RUNS.arrow))
    failures = [("eu", END - 7 * MINUTE, "no answer")]
    lake.record_failures(failures, "pulse")
    made = planned(clusters=("eu", "us"))
    gaps = {"eu": GAP, "us": GAP}
    at_once = objectives.read(lake, made, gaps)
    assert at_once.counted and len(at_once.entries) == 4
    monkeypatch.setattr(objectives, "AT_ONCE", 7)
    assert objectives.read(lake, made, gaps) == at_once


HOSTILE = "eu<script>alert(1)</script>"


def reported(tmp_path, rows, of, cluster="eu"):
    """findings.json and the page of a run with the objectives of these rows."""
    found = objectives.read(Lake([{**row, "cluster": cluster} for row in rows]), of, {cluster: GAP})
    parts = {"objectives": found, "policy": of.policy, "snapshots": of.snapshots}
    document = written([finding("x", "write-headroom", "PASS")], tmp_path, **parts)
    return document, (tmp_path / "report.html").read_text()


def test_a_missed_objective_is_in_every_report(tmp_path):
    document, page = reported(tmp_path, whole(2), planned({"writes": 99}, clusters=(HOSTILE,)), HOSTILE)
    row = page.partition('<table class="objectives">')[2].partition("<tbody>")[2].partition("</tr>")[0]
    texts = [text for text in re.sub("<[^>]*>", "|", row).split("|") if text.strip()]
    assert texts[:6] == ["gold", "acks=all writes stop", "broker", "2 %", "0 %", "99 %"]
    assert [text.strip() for text in texts[6:]] == ["missed", "200 %", "200 %", "200 %", html.escape(HOSTILE)]
    assert "<script" not in without_script(page)
    assert [e["state"] for e in document["objectives"]] == ["missed", None, None, None]
    line = "Objective missed over 30 days: gold (writes, loss of a broker)."
    assert (
        line in summary_text(document, [])
        and line in digest.payload(digest.read(document))["blocks"][1]["text"]["text"]
    )
    assert problems("findings", document) == []


def test_a_met_or_unknown_objective_is_in_the_page_alone(tmp_path):
    document, page = reported(tmp_path, whole(0)[:100], planned({"writes": 99}))
    assert (
        'k-UNKNOWN"' in page.partition('<table class="objectives">')[2]
        and document["objectives"][0]["state"] == "unknown"
    )
    assert (
        "Objective"
        not in summary_text(document, []) + digest.payload(digest.read(document))["blocks"][1]["text"]["text"]
    )


def test_used_budgets_are_lower_bounds_while_time_is_unknown():
    shown = objective_rows(objectives.read(Lake(whole(1)[:50]), planned({"writes": 99}), {"eu": GAP}), True)["shown"]
    assert shown[0]["used"] == ["100 %", "100 %", "≥ 1.7 %"] and shown[1]["used"] == [None] * 3


@pytest.mark.parametrize(("objective", "said"), [({"writes": 99}, True), (None, False)])
def test_nothing_counted_is_said_only_if_there_is_an_objective(tmp_path, objective, said):
    document, page = reported(tmp_path, [moment(5, None), moment(0, None)], planned(objective))
    assert ('id="objectives"' in page, "Nothing was counted yet" in page) == (said, said)
    assert document["objectives"] == []
