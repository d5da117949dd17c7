"""A run's plan: what it judges, what it compares with, and the policy resolved for every resource."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from durability import resources
from durability.errors import AuditError, BadInput, Refused
from durability.lake import partition_groups
from durability.lake.tables import PARTITION_GROUPS, RESOLVED_POLICY, TOPICS
from durability.plan import Plan, build_plan
from durability.policy import Cluster, fingerprint
from durability.policy.inventory import Entry, InventorySource, Listing
from durability.steps.conclude import run_row
from durability.steps.evaluate import plan_evaluation
from durability.steps.settings import Settings
from durability.topology import validate
from tests.support.lake import publish, rejected
from tests.support.policy import policy, waivers
from tests.support.topology import document

POLICY = policy("""
tiers: {critical: {replication_factor: 3, unclean_leader_election: false}, scratch: {replication_factor: 1}}
topics:
  - {match: {team: 'sandbox'}, tier: scratch}
  - {match: {topic: 'tmp-.*'}, tier: scratch}
  - {match: {cluster: 'eu.*'}, tier: critical}
applications: [{match: {group: 'pay-.*'}, tier: critical, rack_aware_tags: [zone], standby_replicas: 1}]
""")
WAIVERS = waivers("""
waivers:
  - {control: '.*', cluster: 'eu', resource: 'or.*', owner: a, reason: r, expires: 2027-01-31}
  - {control: broker-rack, cluster: '.*', resource: '1', owner: a, reason: r, expires: 2020-01-31}
  - {control: replication-factor, cluster: '.*', resource: orders, owner: a, reason: r, expires: 2027-01-31}
""")
TABLE = "topic replicas\n orders 1,2\n tmp-1 1"


@pytest.fixture
def plan_of(lake):
    """Plans a run over rows of `snapshots`."""

    def build(snapshots, run="run-1", result="result-1", kind="nightly", **more):
        return build_plan(
            lake,
            run_id=run,
            result_id=result,
            kind=kind,
            policy=POLICY,
            waivers=WAIVERS,
            snapshots=snapshots,
            **more,
        )

    return build


def conclude(lake, plan: Plan) -> None:
    """Writes the row of `runs` that makes a plan's results count."""
    judged = [{**s, "captured_at": datetime.fromisoformat(s["captured_at"])} for s in asdict(plan)["snapshots"]]
    names = ("cluster", "snapshot_id", "attempt_id", "captured_at", "status", "reason", "sha256")
    now = datetime.now(UTC)
    lake.commit_run(
        {
            "run_id": plan.run_id,
            "result_id": plan.result_id,
            "kind": plan.kind,
            "captured_at": now,
            "started_at": now,
            "finished_at": now,
            "status": "complete",
            "verified": True,
            "policy_name": plan.policy.name,
            "policy_sha256": plan.policy.sha256,
            "snapshots": [{n: s[n] for n in names} for s in judged],
            "inventory": run_row(plan, "complete", True, {})["inventory"],
        }
    )


def resolved(lake, result: str) -> dict[tuple, tuple]:
    rows = [r for r in lake.scan(RESOLVED_POLICY).to_pylist() if r["result_id"] == result]
    return {(r["cluster"], r["resource_type"], r["resource"]): (r["tier"], r["waivers"]) for r in rows}


def test_every_resource_has_its_tier_and_its_waivers(lake, plan_of):
    group = {"type": "classic", "state": "Stable", "in_transition": False, "stateful_tasks": [], "clients": []}
    streams = [{"group": name, **group} for name in ("pay-1", "other")]
    rows = publish(lake, document(TABLE, cluster="eu", streams=streams), document(TABLE, cluster="us"))
    plan = plan_of(rows)
    assert resolved(lake, "result-1") == {
        ("eu", "topic", "orders"): ("critical", [0, 2]),
        ("eu", "topic", "tmp-1"): ("scratch", []),
        ("eu", "broker", "1"): (None, [1]),
        ("eu", "broker", "2"): (None, []),
        ("eu", "cluster", "eu"): (None, []),
        ("eu", "tier", "critical"): ("critical", []),
        ("eu", "tier", "scratch"): ("scratch", []),
        ("eu", "application", "pay-1"): ("critical", []),
        ("eu", "application", "other"): (None, []),
        ("us", "topic", "orders"): (None, [2]),
        ("us", "topic", "tmp-1"): ("scratch", []),
        ("us", "broker", "1"): (None, [1]),
        ("us", "broker", "2"): (None, []),
        ("us", "cluster", "us"): (None, []),
        ("us", "tier", "critical"): ("critical", []),
        ("us", "tier", "scratch"): ("scratch", []),
    }
    assert plan.partitions == 4
    assert [w["index"] for w in plan.waivers] == [0, 1, 2]


def test_a_selector_asks_for_the_replication_factor_of_topics(lake):
    by_factor = policy("""
tiers: {wide: {}, one: {}, rest: {}}
topics:
  - {match: {replication_factor: {min: 3}}, tier: wide}
  - {match: {replication_factor: 1}, tier: one}
  - {tier: rest}
""")
    table = "topic replicas\n a 1,2,3\n b 1\n c 1,2\n d 1,2,3\n d 1"
    unread = {"/topics/c/partitions": "DENIED"}
    rows = publish(lake, document(table, cluster="eu"), document(table, cluster="us", unreadable=unread))
    build_plan(lake, run_id="run-1", result_id="r", kind="nightly", policy=by_factor, waivers=WAIVERS, snapshots=rows)
    found = {
        (r["cluster"], r["resource"]): (r["tier"], r["undecided"], r["waivers"])
        for r in lake.scan(RESOLVED_POLICY).to_pylist()
        if r["resource_type"] == "topic"
    }
    known = {"a": ("wide", None, []), "b": ("one", None, []), "d": ("one", None, [])}
    assert found == {
        **{(cluster, topic): tier for cluster in ("eu", "us") for topic, tier in known.items()},
        ("eu", "c"): ("rest", None, []),
        ("us", "c"): (None, ["wide", "one", "rest"], []),
    }


def test_a_clusters_team_decides_as_it_was_staged(lake, plan_of):
    from durability.topology import validate
    from tests.support.lake import accepted

    attempt = lake.stage(validate(document(TABLE, cluster="eu"), "x.json"), provider="msk", team="sandbox")
    plan = plan_of(lake.publish([attempt], accepted(attempt)))
    assert (plan.snapshots[0].provider, plan.snapshots[0].team) == ("msk", "sandbox")
    assert resolved(lake, "result-1")["eu", "topic", "orders"] == ("scratch", [0, 2])


def test_a_plan_survives_json(lake, plan_of, tmp_path):
    plan = plan_of(publish(lake, document(TABLE, cluster="eu")), started_at=datetime(2026, 11, 21, 2, tzinfo=UTC))
    again = Plan.read(plan.write(tmp_path / "plan.json"))
    assert again == plan
    assert again.started_at == "2026-11-21T02:00:00Z"
    assert again.policy.sha256 == fingerprint(POLICY, WAIVERS)
    assert again.policy.tier("critical") == POLICY.tiers["critical"]
    assert again.policy.last_tier == "critical"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "durability-plan/1"}', '{"format": "durability-plan/2"}'])
def test_what_is_no_plan_is_refused(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(BadInput, match=r"plan\.json"):
        Plan.read(tmp_path / "plan.json")
    with pytest.raises(BadInput, match="can't be read"):
        Plan.read(tmp_path / "none.json")


def test_the_first_run_has_nothing_to_compare_with(lake, plan_of):
    (part,) = plan_of(publish(lake, document(TABLE, cluster="eu"))).snapshots
    assert (part.previous_run_id, part.previous_result_id, part.previous_attempt_id) == (None, None, None)


def test_a_pulse_knows_the_nightly_run_that_resolved_the_tiers(lake, plan_of):
    """Runs count from their row on, and a pulse of an old document has the tiers of its time."""
    nights = {}
    for day in (20, 21):
        rows = publish(lake, document(TABLE, cluster="eu", captured_at=f"2026-11-{day}T02:00:00Z"))
        nights[day] = plan_of(rows, run=f"run-{day}", result=f"night-{day}")
    conclude(lake, nights[20])

    def resolved_for(captured_at: str) -> str | None:
        row = {**rows[0], "captured_at": captured_at, "status": "accepted", "attempt_id": "pulse"}
        attempt = lake.stage(validate(document(TABLE, cluster="eu", captured_at=captured_at), "x.json"))
        row["attempt_id"] = attempt.attempt_id
        (part,) = plan_of([row], run="p", result="p", kind="pulse", attempts=[attempt]).snapshots
        assert part.previous_result_id is None
        return part.resolved_result_id

    assert resolved_for("2026-11-21T03:00:00Z") == "night-20"
    conclude(lake, nights[21])
    assert [resolved_for(f"2026-11-{day}T03:00:00Z") for day in (19, 20, 21)] == [None, "night-20", "night-21"]
    assert nights[21].snapshots[0].resolved_result_id is None


def test_a_run_is_compared_with_the_one_before(lake, plan_of):
    old = publish(lake, document(TABLE, cluster="eu", captured_at="2026-11-20T12:00:00Z"))
    conclude(lake, plan_of(old))
    new = publish(lake, document(TABLE, cluster="eu", captured_at="2026-11-21T12:00:00Z"))
    (part,) = plan_of(new, "run-2", "result-2").snapshots
    assert (part.previous_run_id, part.previous_result_id) == ("run-1", "result-1")
    assert part.previous_attempt_id == old[0]["attempt_id"]
    assert len(part.previous_policy_sha256) == 64


def test_a_run_is_not_compared_with_its_own_earlier_try(lake, plan_of):
    rows = publish(lake, document(TABLE, cluster="eu"))
    conclude(lake, plan_of(rows, "run-1", "try-1"))
    (again,) = plan_of(rows, "run-1", "try-2").snapshots
    assert again.previous_run_id is None


def test_a_run_that_never_concluded_is_not_compared_with(lake, plan_of):
    rows = publish(lake, document(TABLE, cluster="eu"))
    plan_of(rows)
    assert plan_of(rows, "run-2", "result-2").snapshots[0].previous_run_id is None


def test_a_run_is_compared_with_the_newest_snapshot_although_an_older_one_was_audited_later(lake, plan_of):
    def night(day: int):
        rows = publish(lake, document(TABLE, cluster="eu", captured_at=f"2026-11-{day}T12:00:00Z"))
        return plan_of(rows, f"run-{day}", f"result-{day}")

    conclude(lake, night(20))
    conclude(lake, night(18))
    (part,) = night(21).snapshots
    assert part.previous_result_id == "result-20"


def test_history_is_not_compared_with_what_came_later(lake, plan_of):
    conclude(lake, plan_of(publish(lake, document(TABLE, cluster="eu", captured_at="2026-11-21T12:00:00Z"))))
    old = publish(lake, document(TABLE, cluster="eu", captured_at="2026-11-01T12:00:00Z"))
    (part,) = plan_of(old, "run-2", "result-2").snapshots
    assert (part.previous_run_id, part.previous_attempt_id) == (None, None)


def test_a_cluster_that_cant_be_judged_names_its_last_accepted_snapshot(lake, plan_of):
    from durability.topology import validate

    (old,) = publish(lake, document(TABLE, cluster="eu", captured_at="2026-11-20T12:00:00Z"))
    attempt = lake.stage(validate(document(TABLE, cluster="eu"), "x.json"))
    snapshots = lake.publish([attempt], rejected(attempt, reason="isr-within-replicas: 2"))
    snapshots += lake.record_failures([("us", datetime(2026, 11, 21, 12, tzinfo=UTC), "timed out")])
    eu, us = plan_of(snapshots, clusters=[Cluster("us", "us", provider="confluent", team="events")]).snapshots
    assert (eu.status, eu.reason, eu.judged) == ("rejected", "isr-within-replicas: 2", False)
    assert (eu.stale_snapshot.snapshot_id, eu.stale_snapshot.captured_at) == (
        old["snapshot_id"],
        "2026-11-20T12:00:00Z",
    )
    assert (us.status, us.provider, us.team, us.stale_snapshot) == ("failed", "confluent", "events", None)
    assert resolved(lake, "result-1") == {}


def test_nothing_to_judge_and_a_cluster_twice_are_errors(lake, plan_of):
    with pytest.raises(AuditError, match="nothing to judge"):
        plan_of([])
    (row,) = publish(lake, document(TABLE, cluster="eu"))
    with pytest.raises(AuditError, match="several of eu"):
        plan_of([row, row | {"snapshot_id": "another"}])


@pytest.mark.slow
def test_a_hundred_thousand_topics(lake, plan_of):
    (row,) = publish(lake, document("topic replicas\n first 1", cluster="eu"))
    count = 100_000
    columns = {"cluster": ["eu"] * count, "captured_at": [row["captured_at"]] * count}
    columns |= {"snapshot_id": [row["snapshot_id"]] * count, "attempt_id": [row["attempt_id"]] * count}
    columns |= {"topic": [f"orders-{n}" for n in range(count)], "internal": [False] * count}
    lake.append(TOPICS, pa.table(columns, schema=pa.schema([TOPICS.arrow.field(n) for n in columns])))
    plan_of([row])
    rows = lake.scan(RESOLVED_POLICY, columns=["resource_type", "tier", "waivers"]).to_pylist()
    waived = [r for r in rows if r["resource_type"] == "topic" and r["waivers"] == [0]]
    assert len(waived) == count


def test_groups_of_an_earlier_version_are_left_alone(lake, plan_of, monkeypatch):
    """Groups made by other settings than rules read now may join partitions that differ: each is evaluated by itself."""
    monkeypatch.setattr(partition_groups, "FROM", 1)
    now = publish(lake, document(TABLE, cluster="eu"))
    monkeypatch.setattr(partition_groups, "READS", "older")
    older = publish(lake, document(TABLE, cluster="us"))
    monkeypatch.undo()
    monkeypatch.setattr(partition_groups, "FROM", 1)
    assert plan_of([*now, *older]).grouped == [now[0]["attempt_id"]]
    monkeypatch.setattr(partition_groups, "FROM", 100)
    assert plan_of([*now, *older]).grouped == []


def test_a_lake_without_the_table_of_groups_has_none(lake, plan_of, monkeypatch):
    """A run that began before the upgrade: its lake has the tables of that version."""
    monkeypatch.setattr(partition_groups, "FROM", 1)
    rows = publish(lake, document(TABLE, cluster="eu"))
    Path(lake.location, "warehouse", "audit", "partition_groups", "metadata").rename(lake.location + "-away")
    with pytest.raises(Refused, match="file is missing"):
        plan_of(rows)
    lake._tables.catalog.drop_table(PARTITION_GROUPS.identifier)
    assert plan_of(rows).grouped == []


CMDB = [Listing(InventorySource("cmdb", "csv"), [Entry(("eu",)), Entry(("lab",))])]


def test_only_the_fleets_own_clusters_file_closes_findings_on_its_inventories(lake, plan_of):
    rows = publish(lake, document(TABLE, cluster="eu"))

    def run(number: int, listings, fleet):
        made = plan_of(rows, run=f"run-{number}", result=f"result-{number}", inventory=listings, fleet=fleet)
        conclude(lake, made)
        return made.inventory

    run(1, CMDB, "prod")
    assert run(2, None, None) is None  # documents
    assert run(3, [], "tests") is None  # another clusters file, without an inventory
    other = run(4, CMDB, "old")
    assert other is not None and other.previous_result_ids == []  # its findings are its own
    again = run(5, CMDB, "prod")
    assert again is not None and again.previous_result_ids == ["result-1"]
    dropped = run(6, [], "prod")
    assert dropped is not None and (dropped.sources, dropped.previous_result_ids) == ([], ["result-5"])
    assert run(7, [], "prod") is None  # closed once


def test_only_nightly_runs_of_a_fleet_read_its_inventories(lake, tmp_path):
    (tmp_path / "clusters.yaml").write_text(
        "format: durability-clusters/1\nclusters: [{id: eu}]\ninventory: [{csv: cmdb.csv}]\n"
    )
    (tmp_path / "cmdb.csv").write_text("id\nlab\n")
    rows = publish(lake, document(TABLE, cluster="eu"))
    shipped = [resources.shipped("policies", name) for name in ("policy.yaml", "waivers.yaml")]
    fleet = Settings(*shipped, tmp_path / "clusters.yaml", tmp_path / "out", lake.location, None)

    def planned(settings: Settings, **more) -> Plan:
        return plan_evaluation(settings, "nightly", "run-1", "result-1", rows, [], **more)

    nightly = planned(fleet, inventories=True)
    assert nightly.fleet == str(tmp_path / "clusters.yaml")
    assert [listed.id for listed in nightly.inventory.not_audited] == ["lab"]
    asked = [
        planned(fleet),  # whatif, plan, restart-plan, drill
        planned(replace(fleet, ad_hoc=True), inventories=True),  # --bootstrap, the demo
        planned(replace(fleet, topology=tmp_path), inventories=True),
    ]
    assert [(plan.inventory, plan.fleet) for plan in asked] == [(None, None)] * 3
    with (tmp_path / "clusters.yaml").open("a") as file:
        file.write("fleet: prod\n")
    assert planned(fleet, inventories=True).fleet == "prod"
