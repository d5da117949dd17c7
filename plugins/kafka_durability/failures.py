"""Tells Slack that a run failed: a run that dies before `notify` or `alert` would otherwise be silent."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from durability.errors import AuditError
from durability.plain import plain

log = logging.getLogger("airflow.task")
OFTEN = "health_pulse"
"""This DAG runs every few minutes. Its failures are reported once per hour of the clock (UTC)."""


def tell_slack(context: Mapping[str, Any]) -> None:
    """`on_failure_callback` of each DAG. Does nothing without a Connection for the digest. Never raises.

    The lake remembers what was told. If it can't be used, Slack is told each time.
    """
    from durability.steps.notify import CONNECTIONS
    from kafka_durability.channels import post_to_slack
    from kafka_durability.connections import find

    try:
        connection = find(*CONNECTIONS)
        if connection is None:
            return
        dag_id, run_id = context["dag"].dag_id, str(context["run_id"])
        name = _name(dag_id, run_id, datetime.now(UTC))
        lake = _lake(context)
        if lake is not None and lake.was_sent(name):
            return
        post_to_slack(connection.conn_id, payload(dag_id, run_id, _task(context), str(context.get("reason") or "")))
        if lake is not None:
            lake.remember_sent(name)
    except Exception as error:
        reason = error if isinstance(error, AuditError) else type(error).__name__
        log.error("the message about the failed run could not be sent to Slack: %s", reason)


def payload(dag_id: str, run_id: str, task_id: str | None, reason: str) -> dict[str, Any]:
    """The message. task_id: the task that failed last, if known."""
    from durability.report.text.slack import code, escaped

    where = f" Its task {code(task_id, 80)} failed." if task_id else ""
    why = f" Airflow's reason: {escaped(plain(reason), 200)}." if reason else ""
    often = " Further failures of this DAG in this hour are not reported." if dag_id == OFTEN else ""
    text = f":x: *The run of {code(dag_id, 80)} failed.*{where}{why} See the log of run {code(run_id, 150)}.{often}"
    return {
        "text": f"The run of {escaped(dag_id, 80)} failed",
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}],
    }


def _name(dag_id: str, run_id: str, now: datetime) -> str:
    told = f"{now:%Y-%m-%dT%H}" if dag_id == OFTEN else run_id
    return hashlib.sha256(f"failed:{dag_id}:{told}".encode()).hexdigest()


def _task(context: Mapping[str, Any]) -> str | None:
    ti = context.get("ti")
    return None if ti is None else str(ti.task_id)


def _lake(context: Mapping[str, Any]) -> Any:
    from durability.lake import Lake

    params = context.get("params") or context["dag"].params
    try:
        return Lake.open(str(params["lake"]))
    except Exception:
        return None
