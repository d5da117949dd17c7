"""What readers do with report.html in a real browser: search, filter, sort, link and copy."""

from __future__ import annotations

import csv
import json
from datetime import timedelta

import pytest
import yaml

from durability.report.html import facets
from durability.report.html.rows import QUOTAS
from tests import ROOT
from tests.support.html import SCRIPT
from tests.support.report_cases import NIGHT, finding, report, snapshot

REVERSED = "orders\u202egnp.exe"
COMMAND = "# Target for orders\nkafka-topics --describe --topic 'orders' &&\nkafka-topics --list"
VISIBLE = """
return [...document.querySelectorAll("table.findings > tbody > tr")].filter((r) => r.checkVisibility()).map((r) => r.id)
"""


def rows():
    """More failures than the page lists: some of `ledger` are left out."""
    eu, us = {"cluster": "eu", "tier": "critical"}, {"cluster": "us", "tier": "scratch"}
    named = [
        finding("orders-10", "write-headroom", id="w10", since=NIGHT - timedelta(days=1), **eu),
        finding("orders-9", "write-headroom", id="w9", since=NIGHT - timedelta(days=9), remediation=COMMAND, **us),
        finding("orders-9", "log-dirs", severity="warning", id="l9", since=None, **us),
        finding(SCRIPT, "log-dirs", id="hostile", message=SCRIPT, **{**us, "tier": SCRIPT}),
        finding(REVERSED, "log-dirs", id="reversed", **us),
        finding("x" * 249, "log-dirs", id="long", **us),
        finding("orders-1", "log-dirs", "UNKNOWN", id="u1", **eu),
        finding("orders-1", "replication-factor", "EXEMPT", id="e1", waiver=0, **eu),
        finding("both", "partition-health", category="offline", partitions=[0], id="b1", **eu),
        finding(
            "both", "partition-health", severity="info", category="under-replicated", partitions=[0], id="b2", **eu
        ),
        finding("gone", "log-dirs", "PASS", change="resolved", why="fixed", id="r1", **eu),
    ]
    return named + [finding(f"ledger-{n}", "broker-rack", severity="info", id=f"i{n}", **us) for n in range(60)]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("find")
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(QUOTAS, "FAIL", (40, 1.0))
        report(rows(), out, snapshots=[snapshot("eu", team="payments"), snapshot("us")])
    return out / "report.html"


@pytest.fixture
def opened(chromium, page):
    chromium.open(page)
    yield chromium
    assert chromium.thrown == []


def in_csv(page, **wanted):
    """The ids in findings.csv, of findings that aren't resolved, with these cells."""
    with (page.parent / "findings.csv").open(newline="", encoding="utf-8") as file:
        listed = [row for row in csv.DictReader(file) if row["change"] != "resolved"]
    return [row["id"] for row in listed if all(row[name] == value for name, value in wanted.items())]


def choose(chromium, **fields):
    for name, value in fields.items():
        chromium.run(
            f"const field = document.querySelector('#find [data-{name}], #find [data-facet={name}]');"
            f"field.value = {json.dumps(value)};"
            "field.dispatchEvent(new Event('input', {bubbles: true}));"
        )


def shown(chromium):
    return [row.removeprefix("f-") for row in chromium.run(VISIBLE)]


def said(chromium):
    return chromium.run("return document.querySelector('#found[aria-live=polite]').textContent")


@pytest.mark.parametrize(
    "wanted",
    [
        {"cluster": "eu"},
        {"team": "payments", "outcome": "FAIL"},
        {"tier": "scratch", "control": "write-headroom"},
        {"severity": "critical"},
        {"outcome": "UNKNOWN"},
        {"outcome": "EXEMPT", "severity": "critical"},
        {"severity": "info"},
        {"cluster": "us", "control": "broker-rack"},
        {"cluster": "eu", "control": "broker-rack"},
    ],
)
def test_a_filter_shows_what_matches_and_says_what_is_left_out(opened, page, wanted):
    choose(opened, **wanted)
    matching, listed = in_csv(page, **wanted), set(shown(opened))
    of_rows = listed | ({"b2"} if "b1" in listed else set())  # one row stands for both findings of `both`
    number = len(of_rows & set(matching))
    assert listed <= set(matching) | {"b1"}
    left = len(matching) - number
    noun = "finding" if len(matching) == 1 else "findings"
    rest = f" The other {left} are in findings.csv." if left else ""
    assert said(opened) == f"{number} of {len(matching)} {noun} shown.{rest}"


def test_a_framework_stands_for_the_controls_that_its_file_names(opened, page):
    stated = yaml.safe_load((ROOT / "policies" / "frameworks.yaml").read_text(encoding="utf-8"))["frameworks"]
    (soc2,) = (framework for framework in stated if framework["id"] == "soc2")
    controls = {control for requirement in soc2["requirements"] for control in requirement["controls"]}
    wanted = {name for control in controls for name in in_csv(page, control=control)}
    opened.open(page, "#find&framework=soc2")
    listed = {name for name in shown(opened)} | {"b2"}  # one row stands for both findings of `both`
    assert listed == wanted, "of broker-rack, which SOC 2's mapping doesn't have, nothing is shown"
    assert said(opened) == f"{len(wanted)} of {len(wanted)} findings shown."
    choose(opened, control="broker-rack")
    assert shown(opened) == [] and said(opened) == "0 of 0 findings shown."
    opened.press("Escape")
    assert opened.run("return document.querySelector('[data-framework]').value") == "" and len(shown(opened)) == 42


def test_every_finding_of_a_short_list_is_found(opened, page):
    choose(opened, cluster="us", severity="critical")
    assert sorted(shown(opened)) == sorted(in_csv(page, cluster="us", severity="critical"))
    choose(opened, outcome="UNKNOWN", severity="", cluster="")
    assert shown(opened) == ["u1"]


def test_what_is_not_counted_is_never_claimed_to_be_all(chromium, tmp_path, monkeypatch):
    monkeypatch.setattr(facets, "COMBINATIONS", 3)
    monkeypatch.setitem(QUOTAS, "FAIL", (4, 1.0))
    report(rows(), tmp_path, snapshots=[snapshot("eu"), snapshot("us", team="web")])
    chromium.open(tmp_path / "report.html")
    choose(chromium, team="web")
    assert shown(chromium) == ["hostile", "reversed"]
    assert said(chromium) == "2 findings on this page match. Others may be in findings.csv or in teams/web.html."


def test_the_keyboard_searches_and_clears(opened):
    everything = shown(opened)
    assert len(everything) == 42
    opened.press("/", "orders-9 HEADROOM")
    assert opened.run("return document.activeElement.type") == "search"
    assert shown(opened) == ["w9"]
    unlisted = 71 - 1 - len(everything) - 1  # neither the resolved one, nor the second finding of `both`
    rest = f"This page leaves out {unlisted} findings that may match: see findings.csv."
    assert said(opened) == f"1 finding on this page matches. {rest}"
    opened.press("Escape")
    assert shown(opened) == everything and said(opened) == ""
    assert opened.run("return document.activeElement.type") == "search"
    opened.press("no such thing")
    assert shown(opened) == [] and said(opened).startswith("0 findings on this page match.")
    opened.press("Tab", "Enter")  # the button Clear
    assert shown(opened) == everything


def test_hostile_names_are_found_as_text(opened):
    opened.press("/", "<script>alert(1)")
    assert shown(opened) == ["hostile"]
    opened.press("Escape", "orders\\u202e")
    assert shown(opened) == ["reversed"]
    opened.press("Escape")
    choose(opened, tier=SCRIPT)
    assert shown(opened) == ["hostile"]
    assert opened.run("return document.querySelectorAll('script, img').length") == 1


def test_the_list_is_sorted(opened):
    choose(opened, cluster="us", sort="resource")
    opened.press("/", "orders")
    assert shown(opened) == ["w9", "l9", "reversed"]
    choose(opened, cluster="", sort="resource")
    assert shown(opened) == ["u1", "e1", "w9", "l9", "w10", "reversed"]
    choose(opened, sort="oldest")
    assert shown(opened)[0] == "w9" and shown(opened)[-1] == "l9"  # found in this run, so last
    choose(opened, sort="")
    assert shown(opened) == ["w10", "reversed", "w9", "l9", "u1", "e1"]


def test_a_filtered_view_can_be_linked(opened, page):
    choose(opened, cluster="us", severity="critical", sort="resource")
    opened.press("/", "x&y=é")
    opened.press("Escape", "log-dirs")
    choose(opened, tier="scratch", cluster="us")
    address = opened.run("return new Promise((done) => setTimeout(() => done(location.hash), 500))")
    before = shown(opened)
    opened.open(page, address)
    assert address.startswith("#find&") and shown(opened) == before != []
    top = opened.run("return document.getElementById('findings').getBoundingClientRect().top")
    assert 0 <= top < 200
    opened.open(page, "#find&cluster=gone&control=log-dirs")
    assert "hostile" in shown(opened) and "w9" not in shown(opened)


@pytest.mark.parametrize("fragment", ["#f-u1", "#u1", "#f-b2"])
def test_a_finding_can_be_linked(opened, page, fragment):
    opened.open(page, fragment)
    target = f"document.getElementById('f-{fragment[1:].removeprefix('f-')}')"
    in_sight = f"const box = {target}.getBoundingClientRect(); return box.top > 0 && box.bottom < innerHeight"
    assert opened.run(in_sight)
    choose(opened, cluster="us")
    assert not opened.run(f"return {target}.checkVisibility()")
    opened.run(f"location.hash = '#controls'; location.hash = {fragment!r}")
    assert opened.run(f"return new Promise((done) => setTimeout(() => done({target}.checkVisibility()), 300))")


def test_each_row_links_to_itself(opened):
    links = opened.run(
        "return [...document.querySelectorAll('tr > td > a.anchor')].map((a) => [a.closest('tr').id, a.hash])"
    )
    assert len(links) == 42 and all(f"#{row}" == hash for row, hash in links)


def test_commands_are_copied_whole(opened):
    opened.devtools("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    opened.run("document.querySelector('#f-w9 button').focus()")
    opened.press("Enter")
    read = "return new Promise((done) => setTimeout(() => done(navigator.clipboard.readText()), 300))"
    assert opened.run(read) == COMMAND
    assert opened.run("return document.querySelector('#f-w9 button').textContent") == "Copied"


def test_even_an_escaping_mistake_runs_nothing(chromium, page, tmp_path):
    unescaped = "<script>window.injected = 1</script><img src=x onerror='window.injected = 2'>"
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text(encoding="utf-8").replace("<h2>", unescaped + "<h2>", 1), encoding="utf-8")
    chromium.open(broken)
    assert chromium.run("return window.injected ?? null") is None
    refused = [text.split(":")[0] for text in chromium.thrown]
    assert sorted(refused) == ["img-src file", "script-src-attr inline", "script-src-elem inline"]


def test_without_scripts_the_page_is_whole(chromium, page):
    chromium.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.open(page)
        seen = [node for node in chromium.devtools("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
    finally:
        chromium.devtools("Emulation.setScriptExecutionDisabled", value=False)
    assert not {node["role"]["value"] for node in seen} & {"searchbox", "button", "combobox"}
    names = {node["name"]["value"] for node in seen if "name" in node}
    assert {"Each unknown verdict", "Exempt findings", "ledger-1", "orders-1"} <= names
