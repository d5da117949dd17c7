"""Plans on their way to a cluster: what is refused before anything is read, what is applied, and what became of findings."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability.apply import kafka, plan_files, preflight, recorded, run
from durability.apply.permissions import Authorized, Operation
from durability.apply.record import THROTTLE, Approval, Changes
from durability.errors import Refused, Unreachable
from durability.lake.change_table import REMEDIATE
from durability.lake.tables import VERDICTS
from durability.plan.lose import Item
from durability.remedies.change.proof import Proof
from durability.report import applied, change
from durability.steps import evaluate, left, remediate, verified
from durability.steps.judged import Judged
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from tests.support.schemas import problems
from tests.unit.remedies.test_change import FACTS
from tests.unit.report.test_change import made

CLUSTER = "eu payments"
ANNA = Approval("anna", datetime(2026, 11, 27, 12, tzinfo=UTC), "at night")
PARAMS = {
    **dict.fromkeys(("cluster", "plan", "undo", "findings", "control", "topic", "avoid", "throttle")),
    **{
        "apply": False,
        "batch": 200,
        "batch_bytes": "500GB",
        "margin_disk": 20,
        "batch_minutes": 5,
        "approve_within": 12,
    },
}


@pytest.fixture
def settings(tmp_path) -> Settings:
    clusters = [{"id": name, "connection": f"kafka_{name[:2]}"} for name in (CLUSTER, "us", "asia")]
    path = tmp_path / "clusters.yaml"
    path.write_text(json.dumps({"format": "durability-clusters/1", "clusters": clusters}))
    return Settings(path, path, path, tmp_path / "out", str(tmp_path / "lake"), None)


def allowed(connection: str) -> bool:
    return connection != "kafka_us"


def test_what_may_not_be_applied_is_refused_before_anything_is_read(settings):
    def refusal(**params):
        with pytest.raises(Refused) as refused:
            remediate.check(settings, PARAMS | {"apply": True, "throttle": 1, "cluster": CLUSTER} | params, allowed)
        return str(refused.value)

    assert refusal(throttle=None).startswith("throttle: bytes per second are needed")
    assert refusal(cluster=None).startswith("cluster: name the cluster")
    assert "It lists: eu payments, us, asia" in refusal(cluster="eu")
    assert refusal(cluster="us").startswith("Connection kafka_us of us doesn't allow changes: set allow_changes")
    assert refusal(plan="p1", undo="p0").startswith("plan and undo were both given")
    remediate.check(settings, PARAMS, lambda connection: False)
    remediate.check(settings, PARAMS | {"apply": True, "throttle": 1, "cluster": CLUSTER}, allowed)


def test_nothing_counts_as_taken_back_by_a_lake_that_does_not_know_the_cluster(settings, connected):
    """The folder of a local lake may be missing while an application left throttles and moves."""
    application = remediate.Application(settings, {"cluster": CLUSTER, "plan": "p1"}, "run", ANNA)
    with pytest.raises(
        Refused, match="has no snapshot of eu payments, so it isn't the one that the plan was made from"
    ):
        remediate.restore(application, dict, allowed)
    assert connected == []


def test_a_plan_is_found_by_its_id_also_when_a_later_one_moved_it_aside(settings):
    out = settings.out
    place = change.write(made("p-1"), FACTS, out)
    change.write(made("p-2"), FACTS, out)
    assert applied.find(out, "p-2", CLUSTER) == place
    assert applied.find(out, "p-1").parent.parent.name == change.EARLIER
    with pytest.raises(Refused, match=r"has no plan p-3; the newest there: p-2, p-1; did you mean p-.\?$"):
        applied.find(out, "p-3")
    with pytest.raises(Refused, match="plan p-1 is for cluster eu payments, not for us"):
        applied.find(out, "p-1", "us")
    (applied.find(out, "p-1") / change.README).write_text("edited")
    with pytest.raises(Refused, match="edited"):
        applied.find(out, "p-1")


def test_a_plan_is_made_as_the_form_says_or_is_the_one_that_it_names(settings, monkeypatch, tmp_path):
    asked = []

    def plan_change(settings, snapshot, request, *others):
        asked.append((snapshot, request))
        return change.write(made("p-2"), FACTS, settings.out)

    monkeypatch.setattr(remediate, "plan_change", plan_change)
    monkeypatch.setattr(remediate.whatif, "newest", lambda settings, cluster: cluster)
    monkeypatch.setattr(remediate, "read_again", lambda settings, source, *others: f"{source['name']} now")
    first = change.write(made("p-1"), FACTS, settings.out)
    named = remediate.plan(settings, PARAMS | {"plan": "p-1"}, None, None, tmp_path)
    assert named == {
        **{"cluster": CLUSTER, "plan": "p-1", "sha256": change.read(first)["sha256"], "steps": named["steps"]},
        **{"replicas": 3, "bytes": 25, "brokers": [3, 4], "mends": 1, "offered": True},
    }
    assert not asked
    form = {"findings": "a, b", "avoid": "broker:3", "batch": 7, "batch_bytes": "2GB", "margin_disk": 0}
    assert remediate.plan(settings, PARAMS | form | {"cluster": "us"}, None, None, tmp_path)["plan"] == "p-2"
    remediate.plan(settings, PARAMS | {"undo": "p-1"}, None, None, tmp_path)
    (of, request), (of_undo, undo) = asked
    assert (of, request.chosen.findings, request.chosen.avoid) == ("us", ("a", "b"), (Item("broker", "3"),))
    assert (request.limits.partitions, request.limits.bytes, request.margin_disk) == (7, 2 * 10**9, 0.0)
    assert (of_undo, undo.undo.id) == (f"{CLUSTER} now", "p-1")
    with pytest.raises(Refused, match="findings nowhere: a plan that takes another one back"):
        remediate.plan(settings, PARAMS | {"undo": "p-1", "findings": "nowhere"}, None, None, tmp_path)


def planned(settings, *args, **kwargs) -> dict:
    place = change.write(made(*args, **kwargs), FACTS, settings.out)
    return applied.brief(change.read(place), place)


def test_the_run_ends_with_the_plan_unless_it_is_to_be_applied(settings):
    wanted = PARAMS | {"apply": True}
    plan = planned(settings)
    assert "`apply` is false" in remediate.ends_after_plan(settings, PARAMS, plan, allowed)
    assert remediate.ends_after_plan(settings, wanted, plan, allowed) is None
    with pytest.raises(Refused, match="doesn't allow changes"):
        remediate.ends_after_plan(settings, wanted, plan, lambda connection: False)
    nothing = planned(settings, "p2", Proof(), targets=())
    assert remediate.ends_after_plan(settings, wanted, nothing, allowed) == "there is no finding to fix"
    refuted = planned(settings, "p3", Proof())
    with pytest.raises(Refused, match=r"plan p3 isn't applied. It is not offered, so it has no scripts: no step"):
        remediate.ends_after_plan(settings, wanted, refuted, allowed)
    with pytest.raises(Refused, match="it isn't the plan that this run made"):
        remediate.ends_after_plan(settings, wanted, plan | {"sha256": "0"}, allowed)


@pytest.fixture
def connected(monkeypatch):
    """The clusters that were connected to, with their settings. answer: what stands for a cluster; None: its name."""

    class Clusters(list):
        answer = None

    clusters = Clusters()

    @contextmanager
    def connected(name, settings):
        clusters.append((name, settings))
        yield clusters.answer or name

    monkeypatch.setattr(kafka, "connected", connected)
    return clusters


def test_an_approver_sees_the_plan_and_the_acls_that_are_missing(settings, connected, monkeypatch):
    hostile = replace(made(), left_out=(("```\n# <b>x", "no room"),))
    place = change.write(hostile, FACTS, settings.out)
    plan = applied.brief(change.read(place), place)
    subject, body, _ = remediate.shown(settings, plan, PARAMS, dict, StepSummary())
    assert not connected and subject == "Apply plan p1 to Kafka cluster eu payments?"
    fence, first, *_ = body.splitlines()
    assert (fence, first.partition(",")[0]) == ("````text", "eu payments: plan p1")
    assert "| replicas on the most loaded broker | 2 | 2 |" in body
    assert "What is changed:" in body and "-reassign: t" in body
    assert "reassign: Alter on Cluster, AlterConfigs on Cluster, AlterConfigs on Topic" in body

    everything = frozenset(Operation)
    topics = {"t": frozenset({Operation.DESCRIBE}), "u": everything}
    answer = Authorized(everything, topics)
    monkeypatch.setattr(connected, "answer", SimpleNamespace(authorized=lambda topics: answer))
    obstacles, rows = ["others throttle broker 1"], {}
    loaded = SimpleNamespace(id="p1", cluster_id="new", steps=())
    monkeypatch.setattr(plan_files, "load", lambda *arguments: loaded)
    monkeypatch.setattr(preflight, "check", lambda *arguments: SimpleNamespace(problems=obstacles))
    record = SimpleNamespace(state=lambda: rows, check_unclaimed=lambda: None)
    monkeypatch.setattr(remediate.Application, "changes", lambda application: record)
    monkeypatch.setattr(recorded, "in_the_way", lambda *_: iter(()))
    wanted = PARAMS | {"apply": True, "throttle": 5_000_000}
    with pytest.raises(Refused, match="plan p1 can't be applied now: others throttle broker 1"):
        remediate.shown(settings, plan, wanted, lambda name: {}, StepSummary())
    rows["begin"] = None  # an earlier try of the plan has begun: what is there may be its own
    remediate.shown(settings, plan, wanted, lambda name: {}, StepSummary())
    rows.clear()
    obstacles.clear()
    gone = recorded.Unfinished(CLUSTER, REMEDIATE, "p-old", (SimpleNamespace(change="t"),), "old")
    monkeypatch.setattr(recorded, "of_other_clusters", lambda *_: [gone])
    _, body, given_up = remediate.shown(settings, plan, wanted, lambda name: {}, StepSummary())
    assert given_up == [[REMEDIATE, "p-old", "t"]] and "Given up: changes that plan" in body
    assert "Throttle: 5,000,000 bytes per second and broker" in body and "after 12 hours" in body
    assert "missing: AlterConfigs on Topic t\n" in body and "missing: Alter on" not in body
    topics["t"] = everything
    _, body, _ = remediate.shown(settings, plan, wanted, lambda name: {}, StepSummary())
    assert "missing" not in body and "The Connection has all of them." in body


def test_changes_of_another_run_are_no_reason_for_a_new_plan(settings, connected, monkeypatch):
    """What a plan that is being applied has changed looks like changes and throttles of others."""
    place = change.write(made(), FACTS, settings.out)
    plan = applied.brief(change.read(place), place)
    monkeypatch.setattr(plan_files, "load", lambda *_: SimpleNamespace(id="p1", cluster_id="new", steps=()))
    monkeypatch.setattr(preflight, "check", lambda *_: SimpleNamespace(problems=["stale: make a new plan"]))
    lake = settings.open_lake()
    lake.ensure()
    other = Changes(lake, CLUSTER, REMEDIATE, "p-other", "remediate:other", ANNA)
    wanted = PARAMS | {"apply": True, "throttle": 5_000_000}

    def shown():
        remediate.shown(settings, plan, wanted, lambda name: {}, StepSummary())

    with other.claimed():
        other.intend("1", "t", THROTTLE, [], [], [])
        with pytest.raises(Unreachable, match="run remediate:other changes it now, by plan p-other"):
            shown()
    with pytest.raises(
        Refused, match=r"p1 can't be applied now: plan p-other isn't taken back yet: clear the task[^;]*$"
    ):
        shown()


def answering(kafka_id: str, denied: frozenset[Operation] = frozenset()) -> SimpleNamespace:
    """A cluster with this id. denied: what its principal may not do with topic t."""
    everything = frozenset(Operation)
    return SimpleNamespace(
        read=lambda topics: SimpleNamespace(cluster_id=kafka_id),
        authorized=lambda topics: Authorized(everything, {"t": everything - denied}),
    )


def test_nothing_is_begun_without_the_acls_that_a_later_step_needs(settings, connected, monkeypatch):
    calls = []
    monkeypatch.setattr(run, "apply", lambda *arguments: calls.append(arguments) or run.Outcome())
    one = made()
    one.head["kafka_cluster_id"] = "k"
    place = change.write(one, FACTS, settings.out)
    application = remediate.Application(settings, applied.brief(change.read(place), place), "run", ANNA)
    connected.answer = answering("k", frozenset({Operation.ALTER_CONFIGS}))

    def apply():
        remediate.apply(application, PARAMS | {"throttle": 10**6}, lambda name: {}, allowed, print)

    with pytest.raises(
        Refused, match=r"p1 isn't applied: .* lacks AlterConfigs on Topic t. Nothing was changed. Grant"
    ):
        apply()
    assert not calls and not recorded.unfinished(settings.open_lake())
    changes = application.changes()
    with changes.claimed():
        changes.begin("k", [])
    apply()  # an earlier try has begun: it goes on, or takes back
    assert len(calls) == 1


def test_the_approved_plan_is_applied_to_its_cluster_with_the_throttle_of_the_form(settings, connected, monkeypatch):
    calls = []

    def apply(plan, cluster, changes, options, report):
        calls.append((plan.id, cluster, changes, options))
        return run.Outcome(["01-reassign"])

    monkeypatch.setattr(run, "apply", apply)
    one = made()
    one.head["kafka_cluster_id"] = "k"
    place = change.write(one, FACTS, settings.out)
    plan = applied.brief(change.read(place), place)
    application = remediate.Application(settings, plan, "run", ANNA)
    params = PARAMS | {"throttle": 10**6}
    connected.answer = answering("k")
    # Rows of a cluster that had the name before, and of this one.
    for name, kafka_id in (("p-old", "old"), ("p-own", "k"), ("p-unread", "old")):
        changes = remediate.Application(settings, {"cluster": CLUSTER, "plan": name}, "killed", None).changes()
        with changes.claimed():
            changes.begin(kafka_id, [])
            changes.intend("01", "t", THROTTLE, [], [], [])
    application = replace(application, given_up=[[REMEDIATE, "p-old", "t"], [REMEDIATE, "p-own", "t"]])
    outcome = remediate.apply(application, params, lambda name: {"of": name}, allowed, print)
    assert remediate.counts(outcome) == "1 step complete, 1 left"
    assert outcome.left == [
        "Given up: changes that plan p-old made to the Kafka cluster with id old and didn't take back (1 in the table changes)."
        " If that cluster still runs, they stay there"
    ]
    assert [other.plan for other in recorded.unfinished(settings.open_lake())] == ["p-own", "p-unread"]
    [(id, cluster, changes, options)] = calls
    assert connected == [(CLUSTER, {"of": "kafka_eu"})] and cluster is connected.answer
    assert (id, changes.plan, changes.run_id, changes.purpose) == ("p1", "p1", "run", REMEDIATE)
    assert (options.throttle, options.batch_seconds) == (10**6, 300)

    with pytest.raises(Refused, match="doesn't allow changes"):
        remediate.apply(application, params, dict, lambda connection: False, print)
    refuted = remediate.Application(settings, planned(settings, "p3", Proof()), "run", ANNA)
    with pytest.raises(Refused, match="isn't offered"):
        remediate.apply(refuted, params, dict, allowed, print)
    assert len(connected) == len(calls) == 1


def test_what_killed_runs_left_is_taken_back_where_connections_allow_it(settings, lake, connected, monkeypatch):
    for cluster, purpose in ((CLUSTER, REMEDIATE), ("us", REMEDIATE), ("asia", REMEDIATE)):
        changes = Changes(lake, cluster, purpose, f"plan-{purpose}", "killed", ANNA)
        with changes.claimed():
            changes.intend("01", "t", THROTTLE, [], [], [])
    restored, summary = [], StepSummary()
    errors = [Unreachable("asia doesn't answer"), KeyError("was")]

    def restore(cluster, changes):
        restored.append((cluster, changes.purpose, changes._approval))
        if cluster == "asia":
            raise errors.pop(0)
        return ["broker 3 has another throttle"]

    monkeypatch.setattr(run, "restore", restore)
    own = Settings(**{**vars(settings), "lake": lake.location})
    # Airflow may try the task again.
    assert left.restore(own, "pulse", lambda name: {}, allowed, summary) == 0 and not restored
    monkeypatch.setattr(left, "IDLE", timedelta())
    with pytest.raises(Unreachable, match="asia doesn't answer"):
        left.restore(own, "pulse", lambda name: {}, allowed, summary)
    assert restored == [("asia", REMEDIATE, ANNA), (CLUSTER, REMEDIATE, ANNA)]
    assert summary.problems == [
        "eu payments, plan plan-remediate: broker 3 has another throttle",
        "plan plan-remediate was not finished, and can't be taken back: Connection kafka_us of us doesn't allow changes:"
        " set allow_changes to true in its extra",
    ]
    assert summary.text == "1 application waiting"
    with pytest.raises(ExceptionGroup, match="asia, plan plan-remediate: KeyError: 'was'"):
        left.restore(own, "pulse", lambda name: {}, allowed, StepSummary())
    assert [cluster for cluster, *_ in restored[2:]] == ["asia", CLUSTER]


def test_each_targeted_finding_is_looked_up_in_a_new_snapshot(settings, lake, monkeypatch):
    ids = ("fixed", "healed", "open", "unread", "deleted")
    plan = planned(settings, "p1", Proof(mends=("fixed", "open"), offered=True), targets=ids)
    own = Settings(**{**vars(settings), "lake": lake.location})
    row = {"cluster": CLUSTER, "captured_at": datetime(2026, 11, 21, 12, tzinfo=UTC), "resource_type": "topic"}
    controls = {id: "partition-health" if id == "healed" else "replication-factor" for id in ids}
    rows = [{**row, "id": id, "control": controls[id], "resource": f"t-{id}"} for id in ids]
    lake.append(VERDICTS, pa.Table.from_pylist(rows, VERDICTS.arrow))
    still = {id: {"id": id, "outcome": outcome} for id, outcome in (("open", "FAIL"), ("unread", "UNKNOWN"))}
    after = Judged(None, FACTS, still, frozenset({"fixed"}), frozenset({("partition-health", "topic", "t-healed")}))
    snapshot = {"snapshot_id": "s2", "captured_at": datetime(2026, 11, 27, 13, tzinfo=UTC)}
    monkeypatch.setattr(verified, "read_again", lambda *arguments: snapshot)
    monkeypatch.setattr(evaluate, "plan_evaluation", lambda *arguments: arguments[2:5])
    monkeypatch.setattr(verified, "results_of", lambda lake, plan: after)
    monkeypatch.setattr("durability.findings.words.message", lambda finding: f"says {finding['outcome']}")
    evaluated, summary = [], StepSummary()
    signed = remediate.signed(ANNA) | {"done": ["01-reassign"], "left": []}
    found = verified.verify(
        *(own, plan, signed, dict, ("seen", "seen:1")), lambda lake, plan: evaluated.append(plan), summary
    )
    assert evaluated == [("seen", "seen:1", [snapshot])]
    assert {t["id"]: (t["state"], t["promised"], t["why"]) for t in found["targets"]} == {
        "fixed": ("gone", True, None),
        "healed": ("gone", False, None),
        "open": ("remains", True, "says FAIL"),
        "unread": ("unknown", False, "says UNKNOWN"),
        "deleted": ("unknown", False, verified.NO_VERDICT),
    }
    assert verified.broken_promises(found) == ["open"]
    assert summary.text == "1 of 2 promised findings is gone; 2 others remain, as the plan says"
    assert summary.problems == ["replication-factor of t-open (open): remains: says FAIL"]
    assert problems("plan-applied", found) == []
    [file] = (settings.out / "plan" / applied.APPLIED).rglob("*.json")
    assert json.loads(file.read_text()) == found
    assert change.read(applied.find(settings.out, "p1"))["id"] == "p1"
