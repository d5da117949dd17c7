"""The teams' pages: whose findings they list, their files, and what an earlier run left."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import pytest

from durability.plan.plan import policy_part
from durability.policy import load_policy
from durability.report.data.teams import file_name
from tests.support.html import SCRIPT, parse
from tests.support.report_cases import finding, plan, report, snapshot

EVIL = "../../etc/passwd\x00"
SNAPSHOTS = [
    snapshot("eu", team="platform"),
    snapshot("us"),
    snapshot("dead", "failed", team="web", reason="no answer"),
]


def line_of(team, **match):
    return {"team": team, "cluster": None, "topic": None, "group": None, **match}


def owners(*lines):
    return replace(plan().policy, owners=list(lines))


def rows():
    return [
        finding("pay.orders", "write-headroom", cluster="eu"),
        finding("pay.orders", "write-headroom", cluster="us"),
        finding("web.clicks", "write-headroom", "UNKNOWN", cluster="us"),
        finding("pay.1", "log-dirs", cluster="eu", resource_type="broker"),
        finding("pay.app", "standby-spread", cluster="us", resource_type="application", severity="warning"),
        finding("old", "log-dirs", "PASS", cluster="eu", change="resolved", why="fixed"),
    ]


def pages(out):
    """The words of each file in `teams`."""
    return {path.name: parse(path.read_text(encoding="utf-8"))[0] for path in (out / "teams").glob("*")}


def teams_in_csv(out):
    with (out / "findings.csv").open(newline="", encoding="utf-8") as file:
        return {(row["cluster"], row["resource"]): row["team"] for row in csv.DictReader(file)}


def test_the_first_owner_that_matches_decides_then_the_cluster(tmp_path):
    lines = [
        line_of("pay", topic=r"pay\..*"),
        line_of("apps", group=r"pay\..*"),
        line_of("late", topic=".*", cluster="us"),
    ]
    report(rows(), tmp_path, snapshots=SNAPSHOTS, policy=owners(*lines))
    assert teams_in_csv(tmp_path) == {
        ("eu", "pay.orders"): "pay",
        ("us", "pay.orders"): "pay",
        ("us", "web.clicks"): "late",
        ("eu", "pay.1"): "platform",
        ("us", "pay.app"): "apps",
        ("eu", "old"): "platform",
    }
    found = pages(tmp_path)
    assert set(found) == {"index.html", *(f"{team}.html" for team in ("pay", "apps", "late", "platform", "web"))}
    assert "pay.orders" in found["pay.html"] and "web.clicks" not in found["pay.html"]
    assert "pay.1" in found["platform.html"] and "pay.orders" not in found["platform.html"]
    assert "1 resolved" in found["platform.html"]
    assert "pay 2 0 0 0 0 platform 1 0 0 0 0 apps 0 1 0 0 0 late 0 0 0 1 0 web 0 0 0 0 0" in found["index.html"]


def test_a_team_whose_cluster_was_not_evaluated_is_not_told_that_all_is_well(tmp_path):
    report(rows(), tmp_path, snapshots=SNAPSHOTS)
    words = pages(tmp_path)["web.html"]
    assert "Not evaluated: dead (no answer)." in words and "Nothing was evaluated" in words
    assert "Nothing failed" not in words
    assert "Not evaluated" not in pages(tmp_path)["platform.html"]


def test_links_lead_to_pages_and_back(tmp_path):
    report(rows(), tmp_path, snapshots=SNAPSHOTS)
    for path in (tmp_path / "report.html", *(tmp_path / "teams").glob("*.html")):
        html = path.read_text(encoding="utf-8")
        for href in {value for _, name, value in parse(html)[1].attributes if name == "href"}:
            file, _, anchor = href.partition("#")
            target = path.parent / file if file else path
            assert target.is_file(), f"{path.name}: {href}"
            ids = parse(target.read_text(encoding="utf-8"))[1].ids
            assert not anchor or anchor in ids or anchor.startswith("find&"), f"{path.name}: {href}"


def test_hostile_names_of_teams_make_safe_files_and_text(tmp_path):
    names = [SCRIPT, EVIL, "index", "CON", "Pay", "pay", "..", "pay-0123456789abcdef", "é" * 300, "\u202egnp"]
    clusters = [snapshot(f"c{n}", team=name) for n, name in enumerate(names)]
    report([finding(f"t{n}", "log-dirs", cluster=f"c{n}") for n in range(len(names))], tmp_path, snapshots=clusters)
    files = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html"))
    assert len(files) == len(names) + 2 and not [file for file in files if len(file) > 100]
    assert all(re.fullmatch(r"report\.html|teams/[a-z0-9-]+\.html", file) for file in files)
    for n, name in enumerate(names):
        words, reader = parse((tmp_path / "teams" / file_name(name)).read_text(encoding="utf-8"))
        assert f"t{n}" in words and not reader.tags & {"script", "img"}
        assert not [attribute for _, attribute, _ in reader.attributes if attribute.startswith("on")]


def test_pages_of_teams_that_are_gone_are_removed_and_other_files_stay(tmp_path):
    report(rows(), tmp_path, snapshots=SNAPSHOTS)
    folder = tmp_path / "teams"
    (folder / "notes.html").write_text("ours", encoding="utf-8")
    report(rows(), tmp_path, snapshots=[snapshot("eu", team="platform")])
    assert {path.name for path in folder.iterdir()} == {"index.html", "platform.html", "notes.html"}
    (folder / "notes.html").unlink()
    report(rows(), tmp_path, snapshots=[snapshot("eu")])
    assert not folder.exists()
    assert 'id="teams"' not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_page_says_how_many_it_leaves_out(tmp_path):
    many = [finding(f"t{n}", "log-dirs", cluster="eu", severity="info") for n in range(400)]
    report(many, tmp_path, snapshots=SNAPSHOTS)
    words = pages(tmp_path)["platform.html"]
    assert "400" in words and "50 more failures in findings.csv." in words


@pytest.fixture
def stated(tmp_path):
    def load(owners):
        path = tmp_path / "policy.yaml"
        path.write_text(
            "format: durability-policy/1\ntiers: {all: {replication_factor: 3}}\ntopics: [{tier: all}]\n" + owners
        )
        return load_policy(path)

    return load


def test_owners_of_a_policy_change_no_verdict(stated):
    with_owners = stated("owners:\n  - {match: {topic: 'pay.*'}, team: pay}\n  - {team: rest}\n")
    parts = policy_part(with_owners, []), policy_part(stated(""), [])
    assert parts[0].owners == [line_of("pay", topic="pay.*"), line_of("rest")]
    assert parts[0].sha256 == parts[1].sha256 and parts[1].owners == []
