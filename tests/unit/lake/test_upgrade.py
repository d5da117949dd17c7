"""A lake that version 0.1 wrote: upgraded where it is, its history read, compared with, kept and removed as any other.

Since then `topic_posture` has one column `checks` instead of three for each control, `findings` are worded in Python from the
new table `verdicts`, and `partition_health` has codes where it had sentences.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyiceberg.types import StringType

from durability import findings
from durability.errors import Refused
from durability.lake import Lake, catalog, restore, tables
from durability.lake.retention import RetentionPlan
from durability.plan import Plan, build_plan, inputs
from durability.policy import Retention, load_policy, load_waivers
from durability.report.build import build
from durability.report.data import moments, timeline, trends
from durability.topology import validate
from expectations import gate, posture
from spark_jobs import evaluate, lake_tables
from spark_jobs.retention import compaction
from spark_jobs.upkeep import Upkeep
from tests import ROOT
from tests.support import old_lake
from tests.support.judge import expressions
from tests.support.lake import attach, publish
from tests.support.make_old_lake import POLICY, WAIVERS
from tests.support.topology import document, healthy

FIRST, LAST = "nightly-2026-11-20", "nightly-2026-11-21"
DAY = timedelta(days=1)
# Of SECOND in `make_old_lake` this is left: rack az3 is back, `low` is mended, `dropped` deleted.
THIRD = """
    topic     leader  replicas  isr    min
    thin      1       1         1      1
    accepted  1       1         1      2
    lowered   1       1,2,3     1,2,3  2
    low       1       1,2,3     1,2,3  2
    wide      1       1,2       1,2    3
    gone      3       3         3      1
    good      1       1,2,3     1,2,3  2
    good      2       2,3,1     2,3,1  2
"""
RETIRED = [f"write_headroom_{part}" for part in ("observed", "required", "known")]


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """As 0.1 left it."""
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    return Lake.open(old_lake.unpack(tmp_path))


@dataclass(frozen=True)
class Night:
    lake: Lake
    session: object
    plan: Plan
    report: dict[str, Path]

    def findings(self, result: str | None = None) -> dict[tuple, dict]:
        """By control, resource and category."""
        wanted = f"result_id = '{result or self.plan.result_id}'"
        rows = self.lake.scan(tables.FINDINGS, wanted).to_pylist()
        return {(f["control"], f["resource"], f["category"]): f for f in rows}


def night(lake: Lake, session, folder: Path, moment: str) -> Night:
    """What a nightly run of today does, over the next document."""
    plan = judged(lake, session, folder, moment)
    flagged = posture.flag(lake, plan, folder)
    assert flagged.problems == [] and all(flagged.checked.values())
    findings.write(lake, plan)
    made = build(lake, plan, flagged, folder)
    lake.commit_run(_row(plan))
    return Night(lake, session, plan, made)


def judged(lake: Lake, session, folder: Path, moment: str) -> Plan:
    """The plan of a run over the next document, of which Spark has written what it writes."""
    lake.ensure()
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "waivers.yaml").write_text(WAIVERS)
    attempt = lake.stage(validate(document(THIRD, cluster="eu", captured_at=moment), "eu.json"))
    plan = build_plan(
        lake,
        run_id=moment,
        result_id="now",
        kind="nightly",
        policy=load_policy(folder / "policy.yaml"),
        waivers=load_waivers(folder / "waivers.yaml"),
        snapshots=lake.publish([attempt], gate.check(lake, [attempt])),
        started_at=datetime.fromisoformat(moment),
    )
    inputs.check(lake, plan)
    evaluate.run(session, plan, lake_tables.reader(session, plan), lake_tables.append, expressions(plan.pulse))
    return plan


def _row(plan: Plan) -> dict:
    columns = ("cluster", "snapshot_id", "attempt_id", "status", "reason", "sha256")
    started = datetime.fromisoformat(plan.started_at)
    return {
        "run_id": plan.run_id,
        "result_id": plan.result_id,
        "kind": plan.kind,
        "captured_at": started,
        "started_at": started,
        "finished_at": started + timedelta(minutes=5),
        "status": "complete",
        "verified": True,
        "policy_sha256": plan.policy.sha256,
        "snapshots": [{c: getattr(s, c) for c in columns} | {"captured_at": s.moment} for s in plan.snapshots],
        "summary": json.dumps({}),
    }


@pytest.fixture(scope="module")
def upgraded(spark, tmp_path_factory):
    """The lake after its first night with today's version; nobody changes it."""
    folder = tmp_path_factory.mktemp("upgraded")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DURABILITY_CATALOG", raising=False)
        lake = Lake.open(old_lake.unpack(folder))
        session = spark.newSession()
        attach(session, lake)
        yield night(lake, session, folder, "2026-11-22T12:00:00Z")


def shown(lake: Lake) -> dict[str, list]:
    return {name: sorted(lake.scan(table).to_pylist(), key=str) for name, table in tables.TABLES.items()}


def retired(lake: Lake, result: str) -> dict[str, tuple]:
    """By topic what Iceberg's own reader shows of the columns that are no longer written."""
    rows = lake._tables.load(tables.TOPIC_POSTURE).scan(f"result_id = '{result}'").to_arrow().to_pylist()
    return {row["topic"]: tuple(row[name] for name in RETIRED) for row in rows}


def test_what_was_found_is_read_once_it_has_todays_tables(lake):
    lake.ensure()
    lake.ensure()
    assert [run["result_id"] for run in lake.runs("nightly")] == [FIRST, LAST]
    last = lake.runs("nightly")[-1]
    found = lake.results(tables.FINDINGS, last).to_pylist()
    assert {f["outcome"] for f in found} >= {"FAIL", "EXEMPT", "PASS"}
    assert all(f["message"] for f in found if f["outcome"] == "FAIL")
    assert lake.results(tables.VERDICTS, last).num_rows == 0
    of_topics = lake.results(tables.TOPIC_POSTURE, last).to_pylist()
    assert {row["topic"] for row in of_topics} == set(retired(lake, LAST)) >= {"thin", "good"}
    assert {row["checks"] for row in of_topics} == {None}
    assert retired(lake, LAST)["good"] == (1, 1, True)
    publish(lake, healthy(cluster="us"))
    assert {s["cluster"] for s in lake.snapshots()} == {"eu", "us"}


@pytest.mark.slow
def test_the_next_night_compares_with_the_last_one_of_before(upgraded):
    before, now = upgraded.findings(LAST), upgraded.findings()
    assert {part.previous_result_id for part in upgraded.plan.snapshots} == {LAST}
    assert {run["policy_sha256"] for run in upgraded.lake.runs("nightly")} == {upgraded.plan.policy.sha256}
    listed = {key for key, f in before.items() if f["outcome"] in ("FAIL", "EXEMPT", "UNKNOWN")}
    stay = {key for key, f in now.items() if f["change"] == "persisting"}
    gone = {key: f for key, f in now.items() if f["change"] == "resolved"}
    assert stay | set(gone) == listed
    assert all(now[key]["required"] == before[key]["required"] for key in stay)
    for key in listed:
        assert (now[key]["id"], now[key]["since"]) == (before[key]["id"], before[key]["since"]), key
    assert now["replication-factor", "thin", None]["since"] == datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert now["replication-factor", "accepted", None]["outcome"] == "EXEMPT"
    assert {f["message"] for f in gone.values()} == {f"was: {before[key]['message']}" for key in gone}
    why = {key: f["why"] for key, f in gone.items()}
    assert why["min-insync-replicas", "low", None] == "fixed"
    assert why["replication-factor", "dropped", None] == "resource-deleted"
    assert why["partition-health", "gone", "offline"] == "cause-cleared"
    assert "policy-changed" not in why.values()


@pytest.mark.slow
def test_what_is_remembered_of_a_rack_outage_lasts(upgraded):
    rows = upgraded.lake.scan(tables.TOPIC_POSTURE, "topic = 'lowered'").to_pylist()
    steps = {row["result_id"]: row["rack_outage_step"] for row in rows}
    assert steps == {FIRST: None, LAST: "hold", "now": "restore"}
    (entry,) = next(row["rack_outage"] for row in rows if row["result_id"] == "now")
    assert (entry["setting"], entry["value"], entry["now"]) == ("min.insync.replicas", 3, 2)


@pytest.mark.slow
def test_retired_columns_keep_what_they_had_and_new_rows_are_null_there(upgraded):
    assert set(retired(upgraded.lake, "now").values()) == {(None, None, None)}
    assert retired(upgraded.lake, LAST)["good"] == (1, 1, True)
    posture = upgraded.session.table(f"durability.{tables.TOPIC_POSTURE.identifier}").where("topic = 'good'")
    seen = {row["result_id"]: row for row in posture.collect()}
    assert tuple(seen[LAST][name] for name in RETIRED) == (1, 1, True) and seen[LAST]["checks"] is None
    checks = {check["control"]: (check["observed"], check["required"]) for check in seen["now"]["checks"]}
    assert checks["write-headroom"] == (1, 1)
    (by_python,) = upgraded.lake.scan(tables.TOPIC_POSTURE, "topic = 'good' and result_id = 'now'").to_pylist()
    assert by_python["checks"] == [check.asDict() for check in seen["now"]["checks"]]


@pytest.mark.slow
def test_the_documented_query_reads_a_check_before_and_after(upgraded):
    page = (ROOT / "docs" / "keeping.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.S)
    rows = [tuple(row) for row in upgraded.session.sql(query).collect()]
    assert rows.count(("good", 1, 1)) == 3  # nights


@pytest.mark.slow
def test_the_report_has_timelines_and_trends_of_before_and_after(upgraded):
    (line,) = timeline.read(upgraded.lake, upgraded.plan, moments.readings(upgraded.lake, upgraded.plan))
    assert [(p.first.day, p.first.hour) for p in line.points] == [(21, 11), (21, 12), (22, 12)]
    year = trends.read(upgraded.lake, upgraded.plan, {}, {})
    assert (year.first, [n.day for n in year.nights]) == (date(2026, 11, 20), [0, 1, 2])
    page = upgraded.report["report.html"].read_text(encoding="utf-8")
    assert "The last year" in page
    stated = json.loads(upgraded.report["findings.json"].read_text(encoding="utf-8"))
    changes = {f["change"] for f in stated["findings"]}
    assert changes >= {"persisting", "resolved"}


@pytest.mark.slow
def test_upkeep_compacts_rows_of_before_with_new_ones_and_removes_what_is_old(lake, session, tmp_path):
    plan = judged(lake, session, tmp_path, "2026-11-21T18:00:00Z")  # the same day as the last of before
    findings.write(lake, plan)
    lake.commit_run(_row(plan))
    before, both = shown(lake), (tables.TOPIC_POSTURE, tables.FINDINGS)
    soon = decided(lake, datetime(2026, 11, 22, 4, 30, tzinfo=UTC), Retention())
    said = [line for table in both for line in compaction.maintain(session, table, soon)]
    assert "files=2->1" in said and shown(lake) == before
    assert retired(lake, LAST)["good"] == (1, 1, True)

    short = Retention(snapshots=10 * DAY, findings=10 * DAY, pulses=5 * DAY, counters=200 * DAY, evidence_for=10 * DAY)
    late = decided(lake, datetime(2027, 1, 22, 4, 30, tzinfo=UTC), short)
    rewritten = {removed.table for removed in Upkeep(session, late).remove() if removed.rewritten}
    assert rewritten == {table.name for table in both}
    left = shown(lake)
    for table in (*both, tables.VERDICTS, tables.PARTITION_HEALTH):
        assert left[table.name] == [r for r in before[table.name] if r["result_id"] == plan.result_id] != []
    assert set(retired(lake, "now").values()) == {(None, None, None)}


def decided(lake: Lake, now: datetime, retention: Retention) -> RetentionPlan:
    """As if everything had been committed when it says so."""
    real = datetime.now(UTC)
    decision = lake.plan_retention(retention, timedelta(hours=30), now)
    return replace(decision, committed_before=real + DAY, expire_before=real + DAY, orphans_before=real - 3 * DAY)


def test_hosts_that_upgrade_a_lake_at_once_all_succeed(lake):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: Lake(catalog.place(lake.location, {})).ensure(), range(4)))
    assert [name for name in _columns(lake) if name == "checks"] == ["checks"]


def _columns(lake) -> list[str]:
    return [field.name for field in lake._tables.load(tables.TOPIC_POSTURE).schema().fields]


@pytest.mark.parametrize("first", ["lost", "upgraded"])
def test_a_lost_catalog_is_restored_before_the_upgrade_or_after(lake, first):
    if first == "upgraded":
        lake.ensure()
        lake.backup(datetime(2026, 11, 22, tzinfo=UTC))
        publish(lake, healthy(cluster="us"))
    lake._tables.catalog.engine.dispose()
    Path(lake.location, "catalog.db").unlink()
    said = restore.restore(lake.location)
    assert ("audit.verdicts: had no files; the next run makes it" in said) == (first == "lost")
    again = Lake.open(lake.location)
    again.ensure()
    publish(again, healthy(cluster="asia"))
    assert [run["result_id"] for run in again.runs("nightly")] == [FIRST, LAST]
    assert retired(again, LAST)["good"] == (1, 1, True)
    assert again.scan(tables.TOPIC_POSTURE)["checks"].null_count == len(again.scan(tables.TOPIC_POSTURE))


@pytest.mark.parametrize(
    ("table", "path", "named"),
    [
        (tables.TOPIC_POSTURE, ("later",), "later"),
        (tables.TOPIC_POSTURE, ("checks", "later"), "checks.element.later"),
        (tables.HEALTH_COUNTERS, ("brokers", "later"), "brokers.element.later"),
    ],
)
def test_a_lake_of_a_newer_version_is_refused_by_name(lake, table, path, named):
    lake.ensure()
    with lake._tables.load(table).update_schema() as update:
        update.add_column(path, StringType())
    newer = re.escape(f"table {table.identifier} has columns unknown here ({named})")
    with pytest.raises(Refused, match=f"newer version of this program: its {newer}"):
        Lake.open(lake.location).ensure()
