"""metrics.prom, as Prometheus's parser reads it."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from durability.plan.plan import StaleSnapshot
from durability.report.data.objectives import Minutes, Objective, Objectives
from tests.support.report_cases import NIGHT, WAIVERS, finding, report, snapshot
from tests.unit.report.formats.test_junit import ROWS

LABELS = ("waiver", "owner", "cluster", "control", "category", "outcome", "severity")
FIRST = NIGHT.timestamp()


def metrics(folder, rows=ROWS, **more) -> dict[str, dict[tuple[str, ...], float]]:
    """By metric, its values by the labels' values."""
    report(rows, folder, **more)
    families = list(text_string_to_metric_families((folder / "metrics.prom").read_text()))
    assert all(family.documentation and family.type == "gauge" for family in families)
    return {
        f.name: {tuple(s.labels[name] for name in LABELS if name in s.labels): s.value for s in f.samples}
        for f in families
    }


def test_findings_are_counted_by_control_and_severity(tmp_path):
    found = metrics(tmp_path)["kafka_durability_findings"]
    assert found == {
        ("eu-payments", "replication-factor", "FAIL", "critical"): 1,
        ("eu-payments", "partition-health", "FAIL", "warning"): 1,
        ("eu-payments", "replication-factor", "UNKNOWN", ""): 1,
        ("eu-payments", "replication-factor", "EXEMPT", ""): 1,
        ("eu-payments", "replication-factor", "PASS", ""): 2,
        ("eu-payments", "replication-factor", "NOT_APPLICABLE", ""): 1,
    }


def test_partitions_are_counted_by_category(tmp_path):
    counters = [
        {"partitions": 12, "offline": 1, "under_min_isr": 2, "at_min_isr": 3, "under_replicated": 4},
        {"topic": "orders", "partitions": 3, "offline": 1},
    ]
    found = metrics(tmp_path, counters=counters)["kafka_durability_partitions"]
    assert found == {
        ("eu-payments", "all"): 12,
        ("eu-payments", "offline"): 1,
        ("eu-payments", "under_min_isr"): 2,
        ("eu-payments", "at_min_isr"): 3,
        ("eu-payments", "under_replicated"): 4,
        ("eu-payments", "unknown"): 0,
    }


def test_the_age_of_what_is_known_grows_while_a_cluster_cannot_be_read(tmp_path):
    gone = {"captured_at": None, "snapshot_id": None, "reason": "no broker answers"}
    stale = {"snapshot_id": "us@1", "captured_at": "2026-11-20T02:00:00Z"}
    clusters = [
        snapshot(),
        snapshot("us", "unreachable", stale_snapshot=StaleSnapshot(**stale), **gone),
        snapshot("new", "unreachable", **gone),
    ]
    found = metrics(tmp_path, snapshots=clusters)
    assert found["kafka_durability_last_success_timestamp_seconds"] == {
        ("eu-payments",): FIRST,
        ("us",): FIRST - 86_400,
    }
    assert found["kafka_durability_snapshot_accepted"] == {("eu-payments",): 1, ("us",): 0, ("new",): 0}
    assert found["kafka_durability_run_timestamp_seconds"] == {(): FIRST + 5}


def test_a_waiver_ends_where_a_tier_ends_it(tmp_path):
    """In the first tier of what it exempts, even if its own last day is later."""
    limits = {"critical": {"days": 30, "since": "2026-11-20", "until": "2026-12-20"}}
    waivers = [waiver | {"limits": limits} for waiver in WAIVERS]
    rows = [finding("eu-payments", "replication-factor", "EXEMPT", waiver=0, tier=tier) for tier in ("critical", "low")]
    found = metrics(tmp_path, rows, waivers=waivers)["kafka_durability_waiver_expires_timestamp_seconds"]
    assert found["1", "payments"] == datetime(2026, 12, 21, tzinfo=UTC).timestamp()
    assert found["2", "audit"] == datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    assert '2026-12-20<span class="dim">stated: 2027-01-31' in (tmp_path / "report.html").read_text()


def test_a_waiver_ends_with_its_last_day(tmp_path):
    found = metrics(tmp_path)["kafka_durability_waiver_expires_timestamp_seconds"]
    assert found == {
        ("1", "payments"): datetime(2027, 2, 1, tzinfo=UTC).timestamp(),
        ("2", "audit"): datetime(2026, 11, 1, tzinfo=UTC).timestamp(),
    }


def test_text_of_strangers_stays_a_label(tmp_path):
    hostile = 'eu"} 1\nforged_metric{x="\\'
    row = finding("orders", "replication-factor", cluster=hostile)
    found = metrics(tmp_path, [row], snapshots=[snapshot(hostile)])
    assert found["kafka_durability_snapshot_accepted"] == {(hostile,): 1}
    assert all(name.startswith("kafka_durability_") for name in found)


def test_the_time_one_failure_away_from_harm_and_the_budget_that_it_uses(tmp_path):
    minutes = {"1h": Minutes(0, 60, 60), "6h": Minutes(3, 0, 600), "30d": Minutes(40, 5, 1000)}
    entries = [Objective("gold", "writes", "broker", 99.0, minutes), Objective("silver", "data", "rack", None, minutes)]
    report(ROWS, tmp_path, objectives=Objectives(entries))
    order = ("tier", "harm", "loss", "period", "state")
    samples = [
        (
            sample.name.removeprefix("kafka_durability_objective_"),
            tuple(sample.labels[name] for name in order if name in sample.labels),
            sample.value,
        )
        for family in text_string_to_metric_families((tmp_path / "metrics.prom").read_text())
        for sample in family.samples
        if "objective" in sample.name
    ]
    used = {labels: value for name, labels, value in samples if name == "budget_used_ratio"}
    assert used == {
        ("gold", "writes", "broker", "1h"): 0,  # unknown time isn't used, and isn't good either
        ("gold", "writes", "broker", "6h"): 0.5,
        ("gold", "writes", "broker", "30d"): 4,
    }
    minutes_of = {labels[3:]: value for name, labels, value in samples if "minutes" in name and labels[0] == "silver"}
    assert minutes_of["1h", "unknown"] == 60 and minutes_of["30d", "one_failure_away"] == 40
    assert len(minutes_of) == 9


def test_without_anything_counted_there_are_no_objectives(tmp_path):
    assert not [name for name in metrics(tmp_path) if "objective" in name]
