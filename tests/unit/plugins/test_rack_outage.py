"""The tasks of rack_outage: what is read twice, what is skipped, and what waits deferred whatever the cluster answers."""

from __future__ import annotations

import json

from tests.support.airflow import result, run_in_airflow

SOURCE = """
import json, os
from datetime import UTC, datetime
from types import SimpleNamespace
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput, TaskDeferred
from airflow.providers.standard.operators import hitl
from durability.errors import Refused, Unreachable
from durability.steps import outage
from kafka_durability import outage as operators, settings
from kafka_durability.outage import *

paths = {name: os.environ["CLUSTERS"] for name in ("policy", "waivers", "clusters")}
params = {**paths, "out": "out", "lake": "lake", "topology": None, "cluster": "eu", "rack": None, "apply": False,
          "give_up_elr": False, "approve_within": 3, "throttle": None}
approved = {"of": "r:1", "chosen_options": ["Approve"], "params_input": {"comment": "go", "give_up_elr": True},
            "responded_by_user": {"id": "1", "name": "ann"}, "responded_at": "2026-11-27T00:00:00+00:00"}

operators.AGAIN_SECONDS = 0

def ran(task, answer=None, **changed):
    context = {"params": {**params, **changed}, "run_id": "r", "dag": SimpleNamespace(dag_id="d"),
               "ti": SimpleNamespace(try_number=1, xcom_pull=lambda task_ids: answer, xcom_push=lambda key, value: None)}
    context["task_instance"] = SimpleNamespace(id="i")
    try:
        return task.execute(context)
    except TaskDeferred as deferred:
        return [type(deferred.trigger).__name__, deferred.method_name]
    except TaskAwaitingInput as waits:
        return ["awaits", waits.timeout.total_seconds()]
    except (AirflowFailException, AirflowSkipException) as error:
        return f"{type(error).__name__}: {error}"

logged = []

def said(text, *arguments):
    logged.append(text % arguments)

LookingStep.log = SimpleNamespace(info=said, warning=said)

def detect(*readings, **changed):
    answers = iter(readings)
    outage.lost_now = lambda settings, params, connect: ("eu", next(answers))
    return ran(DetectOperator(task_id="detect"), **changed)

def watch(kind, is_open, ready, answer=None):
    def look(work, *rest):
        seen.append(work.approval and work.approval.by)
        rest[-1].text = "waiting for az1"
        if isinstance(ready, Exception):
            raise ready
        return ready
    outage.cluster_of = lambda settings, params: "eu"
    def opened(work):
        if isinstance(is_open, Exception):
            raise is_open
        return is_open
    outage.is_open, outage.is_ready, outage.restore = opened, look, look
    return ran(kind(task_id="look", approve="approve"), answer=answer)

def approve(acts, give_up=0, **changed):
    forms.clear()
    hitl.upsert_hitl_detail = lambda **asked: forms.append(asked["params"]["give_up_elr"]["value"])
    shown = {"subject": "s", "body": "b", "of": "r:1", "acts": acts, "give_up_elr": give_up, "given_up": [],
             "given_up_changes": [["remediate", "p", "1"]]}
    task = ApproveOutageOperator(task_id="approve", shown=shown, params=settings.approve_outage_params())
    return [ran(task, **changed), *forms]

def answered():
    pushed = {}
    ti = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}), xcom_pull=lambda task_ids, key: pushed[key])
    shown = {"subject": "s", "body": "b", "of": "x", "given_up_changes": [["remediate", "p", "1"]]}
    task, context = ApproveOperator(task_id="approve", shown=shown), {"params": params, "ti": ti}
    context["task_instance"] = SimpleNamespace(id="i")
    hitl.upsert_hitl_detail = lambda **asked: None
    try:
        task.execute(context)
    except TaskAwaitingInput:
        shown["given_up_changes"] = []  # the task `report` was cleared meanwhile
    answer = task.execute_complete(context, {**approved, "responded_at": datetime.now(UTC), "timedout": False})
    return [answer["of"], answer["given_up_changes"]]

def change(of):
    def changed(work, assessed, give_up_elr, *rest):
        return [work.cluster, work.approval.by, work.approval.comment, give_up_elr]
    outage.change = changed
    return ran(ChangeOperator(task_id="change", assessed={"cluster": "eu", "of": of}, approved=approved))

seen, forms = [], []
rejected = {**approved, "chosen_options": ["Reject"], "responded_by_user": None}
print("RESULT", json.dumps({
    "detect": [
        detect({}), detect({"az1": [1]}, {"az2": [2]}), detect({"az1": [1]}, rack="az1"),
        detect({"az1": [1]}, {"az1": [1], "az2": [2]}), detect(apply=True), detect(apply=True, cluster=None),
    ],
    "look": [
        watch(WatchOperator, False, True), watch(WatchOperator, True, False), watch(WatchOperator, True, True, approved),
        watch(RestoreOutageOperator, True, Unreachable("no answer"), rejected),
        watch(RestoreOutageOperator, True, Refused("not allowed")), watch(RestoreOutageOperator, True, True), seen,
        watch(WatchOperator, Unreachable("no lake"), True),
    ],
    "approve": [
        approve({"lower": 1}), approve({"hold": 3}, apply=True), approve({"lower": 1}, apply=True),
        approve({"hold": 1}, 1, apply=True, give_up_elr=True),
    ],
    "change": [change("r:1"), change("r:2")],
    "answered": answered(), "logged": logged,
}))
"""


def test_the_tasks_of_a_rack_outage(tmp_path):
    clusters = tmp_path / "clusters.yaml"
    listed = [{"id": "eu", "connection": "kafka_eu", "provider": "self"}]
    clusters.write_text(json.dumps({"format": "durability-clusters/1", "clusters": listed}))
    connection = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "a:1"}})
    found = result(run_in_airflow(tmp_path, SOURCE, CLUSTERS=str(clusters), AIRFLOW_CONN_KAFKA_EU=connection))
    timer = "TimeDeltaTrigger"
    none, other, given, both, forbidden, unnamed = found["detect"]
    assert none == "AirflowSkipException: eu: each rack has a live broker" == other
    assert given == both == {"cluster": "eu", "lost": {"az1": [1]}}
    assert "doesn't allow changes" in forbidden and forbidden.startswith("AirflowFailException")
    assert unnamed.startswith("AirflowFailException: cluster: name the cluster")
    nothing, waits, ready, silent, refused, back, approvals, no_lake = found["look"]
    assert nothing == "AirflowSkipException: nothing is left to put back" and ready is back is None
    assert waits == silent == no_lake == [timer, "again"]
    assert refused == "AirflowFailException: not allowed"
    assert "waiting for az1" in found["logged"]
    assert approvals == [None, "ann", None, None, None]
    off, hold, asked, ticked = found["approve"]
    assert off == ["AirflowSkipException: `apply` is false, so nothing is changed"]
    assert hold[0].startswith("AirflowSkipException: no topic needs a change")
    assert asked == [["awaits", 3 * 3600.0], False] and ticked == [["awaits", 3 * 3600.0], True]
    assert found["answered"] == ["x", [["remediate", "p", "1"]]]
    changed, of_an_earlier_one = found["change"]
    assert changed == ["eu", "ann", "go", True] and "made again since" in of_an_earlier_one
