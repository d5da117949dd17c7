"""The DAGs as a scheduler loads them."""

from __future__ import annotations

import json

import pytest

from tests.support.airflow import run_in_airflow

LOAD = """
import json, os, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
def seconds(value):
    return value.total_seconds() if value is not None else None
def task(t):
    kwargs = getattr(t, "partial_kwargs", None)
    read = kwargs.get if kwargs is not None else lambda name: getattr(t, name)
    return {
        "owner": t.owner, "retries": read("retries"), "retry_delay": seconds(read("retry_delay")),
        "timeout": seconds(read("execution_timeout")), "pool": t.pool, "rule": getattr(t.trigger_rule, "value", t.trigger_rule),
        "upstream": sorted(t.upstream_task_ids), "outlets": [a.name for a in (read("outlets") or [])],
        "mapped": kwargs is not None, "at_once": read("max_active_tis_per_dagrun"),
    }
print("DAGS", json.dumps({
    "errors": {str(k): v for k, v in bag.import_errors.items()},
    "heavy": [name for name in ("great_expectations", "kafka", "pandas", "pyiceberg", "pyspark") if name in sys.modules],
    "dags": {d.dag_id: {
        "doc": d.doc_md, "runs": d.max_active_runs, "timeout": seconds(d.dagrun_timeout), "catchup": d.catchup,
        "on_failure": d.on_failure_callback.__name__,
        "schedule": str(d.schedule), "params": sorted(d.params), "tasks": {t.task_id: task(t) for t in d.tasks},
    } for d in bag.dags.values()},
}))
"""


DAGS = ["failure_drill", "health_pulse", "lake_upkeep", "nightly_audit", "rack_outage", "remediate"]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory) -> dict:
    output = run_in_airflow(tmp_path_factory.mktemp("dags"), LOAD)
    (line,) = [x for x in output.splitlines() if x.startswith("DAGS ")]
    return json.loads(line.removeprefix("DAGS "))


def test_exactly_these_dags_load_without_an_error(loaded):
    assert loaded["errors"] == {}
    assert sorted(loaded["dags"]) == DAGS


def test_dags_load_without_the_libraries_of_their_tasks(loaded):
    """Each task and the DAG processor load them again, in a process of its own and with a time limit."""
    assert loaded["heavy"] == []


def test_the_nightly_audit_has_the_steps_of_the_architecture_in_their_order(loaded):
    tasks = loaded["dags"]["nightly_audit"]["tasks"]
    assert list(tasks) == [
        "plan",
        "collect",
        "gate",
        "publish",
        "evaluate",
        "cross_check",
        "findings",
        "report",
        "notify",
        "conclude",
    ]
    order = {name: set(task["upstream"]) for name, task in tasks.items()}
    assert order == {
        "plan": set(),
        "collect": {"plan"},
        "gate": {"plan", "collect"},
        "publish": {"gate"},
        "evaluate": {"publish"},
        "cross_check": {"evaluate"},
        "findings": {"evaluate", "cross_check"},
        "report": {"evaluate", "cross_check", "findings"},
        "notify": {"report"},
        "conclude": {"evaluate", "cross_check", "report"},
    }
    # A run's state is that of its last tasks, without teardowns: a killed `notify` doesn't fail the audit.
    rules = {name: task["rule"] for name, task in tasks.items()}
    assert [name for name, rule in rules.items() if rule == "all_done_setup_success"] == ["notify"]


def test_the_pulse_ends_with_the_verdicts(loaded):
    tasks = loaded["dags"]["health_pulse"]["tasks"]
    assert list(tasks) == ["plan", "collect", "gate", "publish", "evaluate", "conclude", "alert", "discard", "restore"]
    assert set(tasks["discard"]["upstream"]) == {"collect", "conclude", "alert"}, "alert reads what discard removes"


def test_a_drill_compares_after_the_loss_with_what_was_predicted_before_it(loaded):
    tasks = loaded["dags"]["failure_drill"]["tasks"]
    order = {name: set(task["upstream"]) for name, task in tasks.items()}
    assert order == {"predict": set(), "wait": {"predict"}, "compare": {"predict", "wait"}}


def test_a_plan_is_applied_after_its_approval_alone_and_what_it_left_is_taken_back_in_any_case(loaded):
    tasks = loaded["dags"]["remediate"]["tasks"]
    assert {name: set(task["upstream"]) for name, task in tasks.items()} == {
        "plan": set(),
        "report": {"plan"},
        "allowed": {"plan", "report"},
        "approve": {"report", "allowed"},
        "apply": {"plan", "approve"},
        "restore": {"plan", "approve", "apply"},
        "verify": {"plan", "approve", "apply", "restore"},
    }
    rules = {name: task["rule"] for name, task in tasks.items()}
    assert rules.pop("restore") == "all_done_setup_success" and set(rules.values()) == {"all_success"}


def test_what_a_rack_outage_changed_is_put_back_whatever_became_of_the_tasks_before(loaded):
    tasks = loaded["dags"]["rack_outage"]["tasks"]
    assert {name: set(task["upstream"]) for name, task in tasks.items()} == {
        "detect": set(),
        "assess": {"detect"},
        "approve": {"assess"},  # of the tasks after it, a rejection skips `change` alone
        "change": {"assess", "approve"},
        "watch": {"change"},
        "restore": {"watch"},
        "conclude": {"change", "restore"},
    }
    rules = {name: task["rule"] for name, task in tasks.items() if task["rule"] != "all_success"}
    assert rules == {"watch": "all_done", "conclude": "none_failed"}


def test_nothing_is_removed_before_the_catalog_is_backed_up(loaded):
    upkeep = loaded["dags"]["lake_upkeep"]
    order = {name: task["upstream"] for name, task in upkeep["tasks"].items()}
    assert order == {"backup": [], "upkeep": ["backup"], "evidence": [], "restore": []}
    assert upkeep["schedule"] != loaded["dags"]["nightly_audit"]["schedule"]


def test_a_lost_group_does_not_keep_the_others_from_being_judged_and_cannot_pass_as_success(loaded):
    for dag in (loaded["dags"]["nightly_audit"], loaded["dags"]["health_pulse"]):
        rules = {name: task["rule"] for name, task in dag["tasks"].items()}
        # Only the gathering task goes on after a failure, and it counts; the leaf doesn't, or the run would succeed.
        assert [name for name, rule in rules.items() if rule == "all_done"] == ["gate"]
        # Alerts that are open, or still to be sent, don't wait for a pulse that succeeds.
        assert rules.get("alert", "none_skipped") == "none_skipped"
        assert rules["conclude"] == "all_success"


def test_snapshots_and_findings_are_announced_by_the_tasks_that_make_them(loaded):
    tasks = loaded["dags"]["nightly_audit"]["tasks"]
    assert {n: t["outlets"] for n, t in tasks.items() if t["outlets"]} == {
        "publish": ["kafka_durability_snapshots"],
        "report": ["kafka_durability_findings"],
    }


@pytest.mark.parametrize("dag_id", DAGS)
def test_limits_are_set_on_purpose(loaded, dag_id):
    dag = loaded["dags"][dag_id]
    # Changes of several clusters may wait for their approvals.
    assert dag["runs"] == (16 if dag_id in ("rack_outage", "remediate") else 1)
    assert dag["catchup"] is False
    assert dag["on_failure"] == "tell_slack"
    assert dag["timeout"] > 0
    for name, task in dag["tasks"].items():
        assert task["owner"] == "kafka-platform", name
        assert task["timeout"] and task["timeout"] < dag["timeout"], name
        assert task["retries"] is not None and task["retry_delay"], name
        # An application takes days, and audits need the pool.
        assert task["pool"] == ("default_pool" if name == "apply" else "kafka_durability"), name
    if "collect" in dag["tasks"]:
        assert dag["tasks"]["collect"]["mapped"] and dag["tasks"]["collect"]["at_once"] == 4


@pytest.mark.parametrize("dag_id", DAGS)
def test_the_runbook_names_every_task(loaded, dag_id):
    dag = loaded["dags"][dag_id]
    for task in dag["tasks"]:
        assert f"`{task}`" in dag["doc"]


def test_a_run_can_be_told_what_to_read_and_where_to_write(loaded):
    wanted = ["clusters", "lake", "out", "policy", "topology", "waivers"]
    planned = "cluster plan undo findings control topic avoid batch batch_bytes margin_disk"
    more = {
        "failure_drill": ["cluster", "snapshot", "lose", "compare", "within"],
        "lake_upkeep": ["give_up"],
        "nightly_audit": ["framework"],
        "rack_outage": ["cluster", "rack", "apply", "give_up_elr", "throttle", "approve_within"],
        "remediate": [*planned.split(), "apply", "throttle", "batch_minutes", "approve_within"],
    }
    assert {name: dag["params"] for name, dag in loaded["dags"].items()} == {
        name: sorted([*wanted, *more.get(name, [])]) for name in loaded["dags"]
    }


def test_a_terminal_waits_for_no_retry(tmp_path):
    output = run_in_airflow(tmp_path, LOAD, DURABILITY_RETRIES="0")
    (line,) = [x for x in output.splitlines() if x.startswith("DAGS ")]
    tasks = json.loads(line.removeprefix("DAGS "))["dags"]["nightly_audit"]["tasks"]
    assert {task["retries"] for task in tasks.values()} == {0}
