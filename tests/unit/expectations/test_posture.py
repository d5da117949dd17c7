"""The cross-check: Great Expectations judges the posture again; where Spark says otherwise, it is found out."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from durability.catalogue import CONTROLS, SCALAR_CONTROLS
from durability.lake.tables import DISAGREEMENTS, TOPIC_POSTURE, TOPICS, VERDICTS
from durability.plan import Plan, PolicyPart, SnapshotPart
from expectations import posture

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEYS = {"captured_at": NOON, "snapshot_id": "s", "run_id": "run", "result_id": "result"}
# What passes each control; a row overrides it.
FINE = {control.replace("-", "_"): (1, 1) for control in SCALAR_CONTROLS} | {
    "replication_factor": (3, 3),
    "min_insync_replicas": (2, 2),
    "min_isr_within_replication_factor": (2, 3),
    "unclean_leader_election": (0, 0),
    "replica_rack_spread": (3, 2),
}


def plan(*clusters: str) -> Plan:
    snapshots = [
        SnapshotPart(
            cluster=c, status="accepted", captured_at="2026-11-21T12:00:00Z", snapshot_id="s", attempt_id=f"attempt-{c}"
        )
        for c in clusters
    ]
    snapshots.append(SnapshotPart(cluster="down", status="failed", reason="timed out"))
    return Plan(
        run_id="run",
        kind="nightly",
        result_id="result",
        started_at="2026-11-21T12:05:00Z",
        policy=PolicyPart("p", "0" * 64, {}, None),
        waivers=[],
        snapshots=snapshots,
        partitions=1,
    )


def topic(name: str, cluster: str = "eu", **controls) -> dict:
    """A row of `topic_posture`; a control is (observed, required), or None where it isn't known."""
    values = {name.replace("_", "-"): numbers for name, numbers in (FINE | controls).items()}
    return {"cluster": cluster, "topic": name, **KEYS, "checks": [check(c, v) for c, v in values.items()]}


def check(control: str, values: tuple[int | None, int] | None) -> dict:
    observed, required = values or (0, 0)
    return {"control": control, "observed": observed, "required": required, "known": values is not None}


def found(name: str, control: str, outcome: str = "FAIL", category: str | None = None, cluster: str = "eu") -> dict:
    about = {"resource_type": "topic", "resource": name, "control": control, "outcome": outcome, "category": category}
    return {"cluster": cluster, **KEYS, **about}


def fill(lake, rows: list[dict], verdicts: list[dict] = (), facts: list[tuple[str, str]] | None = None) -> None:
    """Writes the posture, Spark's verdicts and the topics that were read (those of the posture unless said)."""
    facts = [(r["cluster"], r["topic"]) for r in rows] if facts is None else facts
    read = [
        {"cluster": c, "captured_at": NOON, "snapshot_id": "s", "attempt_id": f"attempt-{c}", "topic": t}
        for c, t in facts
    ]
    for table, content in ((TOPICS, read), (TOPIC_POSTURE, rows), (VERDICTS, verdicts)):
        if content:
            lake.append(table, pa.Table.from_pylist(list(content), schema=table.arrow))


def differences(lake) -> list[tuple]:
    rows = lake.scan(DISAGREEMENTS).to_pylist()
    return sorted((r["cluster"], r["control"], r["resource"], r["spark"], r["expectations"]) for r in rows)


def test_agreement_is_verified(lake, tmp_path):
    fill(
        lake,
        [
            topic("good"),
            topic("thin", replication_factor=(1, 3)),
            topic("waived", write_headroom=(0, 1)),
            topic("wide", min_isr_within_replication_factor=(3, 2)),
            topic("unclean", unclean_leader_election=(1, 0)),
            topic("unknown", replica_rack_spread=None, isr_rack_spread=None),
            topic("one-rack", isr_rack_spread=(1, 2)),
            topic("at-minimum"),
        ],
        [
            found("thin", "replication-factor"),
            found("waived", "write-headroom", "EXEMPT"),
            found("wide", "min-isr-within-replication-factor"),
            found("unclean", "unclean-leader-election"),
            found("unknown", "replica-rack-spread", "UNKNOWN"),
            found("one-rack", "isr-rack-spread", category="under-min-rack-isr"),
            found("at-minimum", "isr-rack-spread", category="at-min-rack-isr"),
            found("good", "partition-health", category="offline"),
        ],
    )
    flagged = posture.flag(lake, plan("eu"), tmp_path)
    assert (flagged.verified, flagged.disagreements, flagged.problems) == (True, 0, [])
    assert flagged.checked == {c: 7 if "rack" in c else 8 for c in SCALAR_CONTROLS}
    judged = {name for name, control in CONTROLS.items() if not control.planned}
    assert set(flagged.not_cross_checked) == judged - set(SCALAR_CONTROLS)
    assert differences(lake) == []


@pytest.mark.parametrize("control", SCALAR_CONTROLS)
def test_a_failure_that_spark_missed_is_found(lake, tmp_path, control):
    worse = (5, 1) if SCALAR_CONTROLS[control] == "<=" else (0, 1)
    fill(lake, [topic("a"), topic("b", **{control.replace("-", "_"): worse})])
    flagged = posture.flag(lake, plan("eu"), tmp_path)
    assert (flagged.verified, flagged.disagreements) == (False, 1)
    assert differences(lake) == [("eu", control, "b", "no failure", "FAIL")]


@pytest.mark.parametrize("outcome", ["FAIL", "EXEMPT"])
def test_a_failure_that_only_spark_sees_is_found(lake, tmp_path, outcome):
    fill(
        lake,
        [topic("a"), topic("b", replication_factor=None)],
        [found("a", "replication-factor", outcome), found("b", "replication-factor", outcome)],
    )
    assert not posture.flag(lake, plan("eu"), tmp_path).verified
    assert differences(lake) == [
        ("eu", "replication-factor", "a", outcome, "PASS"),
        ("eu", "replication-factor", "b", outcome, "not judged"),
    ]


def test_topics_of_one_name_on_two_clusters_are_two_topics(lake, tmp_path):
    fill(
        lake,
        [topic("a", "eu", replication_factor=(1, 3)), topic("a", "us")],
        [found("a", "replication-factor", cluster="us")],
    )
    posture.flag(lake, plan("eu", "us"), tmp_path)
    assert differences(lake) == [
        ("eu", "replication-factor", "a", "no failure", "FAIL"),
        ("us", "replication-factor", "a", "FAIL", "PASS"),
    ]


def test_results_of_other_runs_dont_count(lake, tmp_path):
    stale = topic("a", replication_factor=(1, 3)) | {"result_id": "an earlier try"}
    fill(lake, [topic("a")])
    lake.append(TOPIC_POSTURE, pa.Table.from_pylist([stale], schema=TOPIC_POSTURE.arrow))
    assert posture.flag(lake, plan("eu"), tmp_path).verified


def test_an_empty_posture_of_a_cluster_with_topics_is_no_pass(lake, tmp_path):
    fill(lake, [], facts=[("eu", "a"), ("eu", "b")])
    flagged = posture.flag(lake, plan("eu"), tmp_path)
    assert not flagged.verified
    assert flagged.problems == ["cluster eu: 2 topics were read, 0 of them judged"]
    assert set(flagged.checked.values()) == {0}


def test_a_topic_left_out_or_made_up_is_found(lake, tmp_path):
    fill(lake, [topic("a"), topic("ghost")], facts=[("eu", "a"), ("eu", "b")])
    problems = posture.flag(lake, plan("eu"), tmp_path).problems
    assert problems == ["cluster eu: 2 topics were read, 1 of them judged, and 1 judged that were not read"]


def test_a_cluster_without_topics_is_verified(lake, tmp_path):
    assert posture.flag(lake, plan("eu"), tmp_path).verified
    assert posture.flag(lake, plan(), tmp_path).verified


def test_known_without_a_value_is_no_pass(lake, tmp_path):
    hollow = topic("a", write_headroom=(None, 1))
    fill(lake, [hollow, topic("b")])
    flagged = posture.flag(lake, plan("eu"), tmp_path)
    assert not flagged.verified
    assert flagged.checked["write-headroom"] == 1
    assert differences(lake) == [("eu", "write-headroom", "a", "known, without a value", "not judged")]


def test_all_null_columns_are_no_pass(lake, tmp_path):
    row = topic("a")
    (mine,) = (c for c in row["checks"] if c["control"] == "replication-factor")
    mine |= {"observed": None, "required": None, "known": None}
    fill(lake, [row], [found("a", "replication-factor")])
    assert not posture.flag(lake, plan("eu"), tmp_path).verified
    assert differences(lake) == [("eu", "replication-factor", "a", "FAIL", "not judged")]


def test_data_docs_show_few_rows_and_escape_names(lake, tmp_path):
    hostile = "<script>alert(1)</script>"
    rows = [topic(hostile, replication_factor=(1, 3))]
    rows += [topic(f"t-{n:03d}", replication_factor=(1, 3)) for n in range(60)]
    fill(lake, rows, [found(r["topic"], "replication-factor") for r in rows])
    site = tmp_path / "data_docs"
    earlier = site / "validations" / "topic_posture" / "audit-1" / "1" / "topic_posture.html"
    mine = site / "mine" / "thesis.html"
    for path in (earlier, mine):
        path.parent.mkdir(parents=True)
        path.write_text("do not lose")
    assert posture.flag(lake, plan("eu"), tmp_path).verified
    assert mine.exists() and not earlier.parent.exists(), "what this program wrote is removed, nothing else"
    mine.unlink()
    pages = {p.name: p.read_text(encoding="utf-8") for p in (tmp_path / "data_docs").rglob("*.html")}
    assert "index.html" in pages
    text = "".join(pages.values())
    assert hostile not in text
    assert "&lt;script&gt;alert" in text
    assert sum(f"t-{n:03d}" in text for n in range(60)) == 19
    assert all(json.dumps(control)[1:-1] in text for control in SCALAR_CONTROLS)


def loads(page: str) -> list[str]:
    """What a browser would fetch or run for a page: not the addresses of links."""
    tags = re.findall(r"<(?!a\b|meta\b)[a-z][^>]*>|url\([^)]*\)|@import[^;]*;", page, re.IGNORECASE)
    return [tag for tag in tags if "//" in tag or tag.lower().startswith("<script") or re.search(r"\son\w+=", tag)]


def test_data_docs_load_nothing_and_find_their_pages(lake, tmp_path):
    fill(lake, [topic("a", replication_factor=(1, 3))], [found("a", "replication-factor")])
    for _ in range(2):
        assert posture.flag(lake, plan("eu"), tmp_path).verified
    site = tmp_path / "data_docs"
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert {page.name: loads(page.read_text(encoding="utf-8")) for page in pages} == {page.name: [] for page in pages}
    linked = re.findall(r'href="([^"]+)"', (site / "index.html").read_text(encoding="utf-8"))
    assert len(linked) == 2 and all((site / target).is_file() for target in linked)
    assert {path.name for path in tmp_path.iterdir()} == {"data_docs", "lake"}


@pytest.mark.slow
def test_a_hundred_thousand_topics_half_of_them_failing(lake, tmp_path):
    count = 100_000
    bad = [n for n in range(count) if n % 2]
    columns = {"cluster": ["eu"] * count, "topic": [f"topic-{n}" for n in range(count)]}
    columns |= {k: [v] * count for k, v in KEYS.items()}
    fine = {name.replace("_", "-"): values for name, values in FINE.items()}
    worse = {c: observed + 9 if SCALAR_CONTROLS[c] == "<=" else -1 for c, (observed, _) in fine.items()}
    good = [check(c, values) for c, values in fine.items()]
    poor = [check(c, (worse[c], required)) for c, (_, required) in fine.items()]
    columns["checks"] = [poor if n % 2 else good for n in range(count)]
    schema = pa.schema([f for f in TOPIC_POSTURE.arrow if f.name in columns])
    lake.append(TOPIC_POSTURE, pa.table(columns, schema=schema))
    facts = {"cluster": columns["cluster"], "topic": columns["topic"], "attempt_id": ["attempt-eu"] * count}
    facts |= {"captured_at": [NOON] * count, "snapshot_id": ["s"] * count}
    lake.append(TOPICS, pa.table(facts, schema=pa.schema([f for f in TOPICS.arrow if f.name in facts])))
    for control in SCALAR_CONTROLS:
        category = CONTROLS[control].checked_category
        rows = [found(f"topic-{n}", control, category=category) for n in bad]
        lake.append(VERDICTS, pa.Table.from_pylist(rows, schema=VERDICTS.arrow))
    flagged = posture.flag(lake, plan("eu"), tmp_path)
    assert (flagged.verified, flagged.disagreements) == (True, 0)
    assert flagged.checked["replication-factor"] == count
