"""What the operators of remediate take from Airflow: Connections that allow changes, an approval, and Spark on this host."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, ParamValidationError
from kafka_durability import hook, left
from kafka_durability.remediate import ApproveOperator, RestoreOperator, approval
from kafka_durability.settings import approve_outage_params

from durability.apply.record import Approval
from durability.collect.settings import client_config
from durability.errors import Refused
from tests.support.airflow import result, run_in_airflow

AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
APPROVED = {
    "of": "x",
    "chosen_options": ["Approve"],
    "responded_at": AT,
    "responded_by_user": {"id": "7", "name": "anna"},
}


@pytest.mark.parametrize(
    ("extra", "allows"),
    [
        ({"allow_changes": True}, True),
        ({"allow_changes": "true"}, True),
        ({"allow_changes": False}, False),
        ({}, False),
    ],
)
def test_a_connection_allows_changes_only_if_it_says_so(monkeypatch, extra, allows):
    stated = {"conn_type": "kafka", "extra": {"bootstrap.servers": "a:1"} | extra}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_ASKED", json.dumps(stated))
    assert left.allows("kafka_asked") is allows
    assert client_config(left.connect("kafka_asked"))["bootstrap_servers"] == ["a:1"]


def test_a_connection_that_is_missing_allows_nothing(monkeypatch):
    monkeypatch.setattr(hook, "find", lambda name: None)
    with pytest.raises(Refused, match="there is no Connection kafka_none, which the clusters file names: add it"):
        left.allows("kafka_none")


def test_a_restore_without_a_plan_is_skipped():
    restore = RestoreOperator(task_id="restore", planned=None, approved=None)
    with pytest.raises(AirflowSkipException, match="no plan was made"):
        restore.work(None, {}, None)


def test_an_approval_has_its_user_time_and_comment():
    assert approval(APPROVED | {"params_input": {"comment": "at night"}}, "x") == Approval("anna", AT, "at night")
    stated = APPROVED | {"responded_at": AT.isoformat(), "responded_by_user": {"id": "7", "name": ""}}
    assert approval(stated | {"params_input": {}}, "x") == Approval("7", AT, None)
    timed_out = {"chosen_options": ["Reject"], "params_input": {"comment": None}, "responded_by_user": None}
    assert approval(None, "x") is None and approval(APPROVED | timed_out, "x") is None


def answered(form: dict) -> dict:
    """The answer of an approval of `rack_outage`, with these fields of its form."""
    asks = ApproveOperator(task_id="approve", shown={}, params=approve_outage_params())
    pushed = SimpleNamespace(xcom_pull=lambda task_ids, key: "x")
    event = {"chosen_options": ["Approve"], "params_input": form, "responded_at": AT, "responded_by_user": None}
    return asks.execute_complete({"ti": pushed}, event)["params_input"]


def test_an_answer_may_leave_out_fields_of_the_form():
    assert answered({"comment": "at night"}) == {"comment": "at night", "give_up_elr": False}
    assert answered({"give_up_elr": True}) == {"comment": None, "give_up_elr": True}
    assert answered({}) == {}


@pytest.mark.parametrize("form", [{"coment": "at night"}, {"give_up_elr": "perhaps"}])
def test_an_answer_that_the_form_does_not_allow_is_none(form):
    with pytest.raises((ValueError, ParamValidationError)):
        answered(form)


def test_an_approval_is_for_one_plan():
    with pytest.raises(AirflowFailException, match="made again since"):
        approval(APPROVED | {"params_input": {}}, "y")


SUBMITTED = """
import json, os
from pathlib import Path
from types import SimpleNamespace
from kafka_durability.spark_job import SparkJob
folder = Path(os.environ["FOLDER"])
os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
job = SparkJob(job="evaluate.py", task_id="plan", conn_id="spark")
lake = SimpleNamespace(location="lake", spark_conf=dict)
for name, here in (("first", False), ("proof", True), ("last", False)):
    job.submit(lake, 10, lambda folder: [name], {}, here=here)
lines = [line.split() for line in (folder / "submitted").read_text().splitlines()]
print("RESULT", json.dumps([[line[line.index("--master") + 1], line[-1]] for line in lines]))
"""


def test_a_task_runs_several_jobs_and_a_proof_on_its_own_host(tmp_path):
    submit = tmp_path / "spark-submit"
    submit.write_text('#!/bin/sh\necho "$@" >> "$FOLDER/submitted"\n')
    submit.chmod(0o755)
    connection = json.dumps({"conn_type": "spark", "host": "spark://elsewhere", "port": 7077})
    seen = result(run_in_airflow(tmp_path, SUBMITTED, FOLDER=str(tmp_path), AIRFLOW_CONN_SPARK=connection))
    assert seen == [["spark://elsewhere:7077", "first"], ["local[*]", "proof"], ["spark://elsewhere:7077", "last"]]
