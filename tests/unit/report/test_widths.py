"""report.html at the widths of a laptop and a phone, in a real browser: what is cut off or broken."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from durability.evidence import period
from durability.plan import lose
from durability.policy import shipped_frameworks
from durability.policy.frameworks import named
from durability.report import whatif
from durability.report.data.teams import file_name
from tests.support.failure_costs import Cluster, Partition
from tests.support.nights import NOW, OCTOBER, Nights, at
from tests.support.report_cases import WAIVERS, finding, snapshot, written
from tests.unit.report.test_failures_page import entry_of

RACKS = {1: "north", 2: "south", 3: "west"}
LONE, PAIR = Partition("lone", (3,), (3,), 1), Partition("pair", (1, 2), (1, 2), 2)
NAMES = ("c46-laptop", "c19-appliance")
LONG = "x" * 80
BROKEN = """
const range = document.createRange(), found = new Set();
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
    const text = texts.currentNode;
    for (const word of text.textContent.matchAll(/[A-Za-z]{2,14}/g)) {
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) found.add(word[0]);
    }
}
return [...found];
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("widths")
    clusters = [Cluster(name, RACKS, [LONE, PAIR]) for name in NAMES]
    counters = [
        {"cluster": NAMES[0], "topic": "orders", "partitions": 6, "at_min_isr": 4, "at_min_isr_by_configuration": 4},
        {"cluster": NAMES[0], "partitions": 6, "at_min_isr": 4},
    ]
    kinds = ("partition-health", "rack-loss", "broker-loss", "min-insync-replicas")
    written(
        [finding("orders", kind, cluster=name, message="m") for name in NAMES for kind in kinds],
        out,
        losses=[entry_of(cluster) for cluster in clusters],
        snapshots=[snapshot(cluster.name, snapshot_id="0123456789abcdef" * 4, team="t") for cluster in clusters],
        counters=counters,
    )
    return out / "report.html"


def opened(chromium, page, width: int):
    chromium.devtools(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 700
    )
    chromium.open(page)
    return chromium


def test_words_of_tables_are_not_broken_on_a_laptop(chromium, page):
    words = set(opened(chromium, page, 1280).run(BROKEN))
    assert not words & {"north", "south", "west", "configuration", "placement", "accepted", "unknown"}


@pytest.mark.parametrize("width", [1280, 420])
def test_no_word_of_the_list_of_controls_is_broken(chromium, page, width):
    of_controls = BROKEN.replace("document.body", "document.querySelector('.controls tbody')").replace(",14", ",40")
    assert opened(chromium, page, width).run(of_controls) == []


@pytest.mark.parametrize("width", [1280, 420])
def test_names_of_errors_break_between_words_and_the_table_of_acks_has_its_heads(chromium, tmp_path, width):
    error = "INCONSISTENT_REPLICATION_FACTOR"
    answer = {"error": error, "proposed_error": error, "retriable": False}
    observed = {"partition": 0, "acks": {"all": answer}, "partitions_by_answer": {"today": {error: 1}}}
    written([finding("orders", "acked-durability", observed=observed, message=f"rejected ({error})")], tmp_path)
    shown = opened(chromium, tmp_path / "report.html", width)
    shown.run("document.querySelector('.acks').open = true")
    assert shown.run(BROKEN.replace("document.body", "document.querySelector('.findings')")) == []
    assert shown.run("return document.querySelector('.acks thead').offsetHeight") > 0
    assert shown.run("return document.querySelector('.findings').textContent").count(error) == 4


@pytest.mark.parametrize("width", [1280, 420])
def test_no_word_of_a_waiver_is_broken_or_out_of_sight(chromium, tmp_path, width):
    tier = {"gold": {"since": None, "until": None, "days": 90}}
    waiver = WAIVERS[0] | {"control": "partition-health", "cluster": ".*", "approved_count": 1, "limits": tier}
    rows = [finding(f"t{n}", "partition-health", "EXEMPT", waiver=0, message="m") for n in range(2)]
    written(rows, tmp_path, waivers=[waiver])
    shown = opened(chromium, tmp_path / "report.html", width)
    assert shown.run(BROKEN.replace("document.body", "document.querySelector('.waivers tbody')")) == []
    assert (
        shown.run("const t = document.querySelector('.waivers').parentElement; return t.scrollWidth - t.clientWidth")
        == 0
    )


@pytest.mark.parametrize("width", [1280, 420])
def test_no_word_of_a_frameworks_requirements_is_broken(chromium, lake, tmp_path, width):
    made = Nights(lake)
    made.run(1, [made.snapshot("eu", 1)])
    folder, _ = period.write(made.write(), OCTOBER, tmp_path, named(shipped_frameworks(), "soc2"), NOW)
    of_requirements = BROKEN.replace("document.body", "document.querySelector('.requirements tbody')")
    assert opened(chromium, folder / "period.html", width).run(of_requirements) == []


@pytest.mark.parametrize("width", [1280, 420])
def test_no_word_of_a_periods_exceptions_is_broken(chromium, lake, tmp_path, width):
    made = Nights(lake)
    kinds = ("replication-factor", "unclean-leader-election", "acked-durability")
    failed = [{"id": kind, "cluster": "eu-payments", "control": kind, "since": at(1)} for kind in kinds]
    made.run(
        1,
        [made.snapshot("eu-payments", 1)],
        [*failed, {"id": "not known", "cluster": "eu-payments", "outcome": "UNKNOWN", "severity": None}],
    )
    gone = {"change": "resolved", "outcome": "PASS", "severity": None, "previous_severity": "critical"}
    closed = [{**each, **gone, "why": "resource-deleted"} for each in failed[1:]]
    made.run(2, [made.snapshot("eu-payments", 2)], [{**failed[0], "change": "persisting"}, *closed])
    folder, _ = period.write(made.write(), OCTOBER, tmp_path, None, NOW)
    opened(chromium, folder / "period.html", width)
    cells = "[...document.querySelectorAll('.exceptions td')]"
    assert set(chromium.run(f"return {cells}.map((cell) => getComputedStyle(cell).overflowWrap)")) == {"break-word"}
    assert chromium.run(BROKEN.replace("document.body", "document.querySelector('#exceptions')")) == []


def test_the_names_of_clusters_are_not_broken_on_a_phone(chromium, page):
    words = set(opened(chromium, page, 420).run(BROKEN))
    assert not words & {"laptop", "appliance"}


def test_the_bar_of_sections_covers_no_head_of_a_table(chromium, page):
    """The heads stop where the bar ends, also if the bar has no room for all sections."""
    bar, hidden, top = opened(chromium, page, 920).run(
        "const bar = document.querySelector('nav'), row = bar.firstElementChild;"
        "const head = document.querySelector('thead th');"
        "return [bar.offsetHeight, row.scrollWidth - row.clientWidth, parseFloat(getComputedStyle(head).top)];"
    )
    assert hidden > 0 and bar <= top


@pytest.fixture(scope="module")
def prediction(tmp_path_factory):
    """whatif.html of a cluster whose name is the list of its addresses, as without --cluster."""
    out = tmp_path_factory.mktemp("whatif")
    loss = lose.resolve(lose.parse("broker:1"), [{"broker": 1, "rack": "", "live": True}], [])
    name = ",".join(f"127.0.0.1:2{n}852" for n in range(6))
    judged = SimpleNamespace(cluster=name, snapshot_id="s", captured_at="2026-11-21T02:00:00Z")
    lake = SimpleNamespace(parts=lambda table, where: [])
    whatif.write(
        lake,
        SimpleNamespace(run_id="r", result_id="r:1", judged=[judged]),
        loss,
        {"topics": 0, "hidden_partitions": None},
        out,
    )
    return out / "whatif.html"


@pytest.mark.parametrize("width", [1280, 420])
def test_a_page_of_a_cluster_with_a_long_name_scrolls_down_only(chromium, prediction, width):
    of_page = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
    assert opened(chromium, prediction, width).run(of_page) == 0


@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_scrolls_down_only(chromium, page, width):
    of_page = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
    assert opened(chromium, page, width).run(of_page) == 0


@pytest.mark.parametrize("file", ["report.html", "teams/index.html", f"teams/{file_name(LONG)}"])
def test_pages_of_a_team_with_a_long_name_show_all_figures(chromium, tmp_path, file):
    written([finding("orders", "rack-loss", message="m")], tmp_path, snapshots=[snapshot(team=LONG)])
    of = "const page = document.{}; return page ? page.scrollWidth - page.clientWidth : 0"
    shown = opened(chromium, tmp_path / file, 420)
    assert shown.run(of.format("documentElement")) == 0
    assert shown.run(of.format("querySelector('.teams')?.parentElement")) == 0
