"""Runs a DAG that asks for an approval, and answers as Airflow's REST API does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.airflow import RUN, result, run_in_airflow

ANSWERED = """
import threading, time
from types import SimpleNamespace
from sqlalchemy import select
from airflow.api_fastapi.core_api.datamodels.hitl import UpdateHITLDetailPayload
from airflow.api_fastapi.core_api.routes.public import hitl
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.session import create_session

answer, shown = json.loads(os.environ["ANSWER"]), {}
user = SimpleNamespace(get_id=lambda: "7", get_name=lambda: "anna")

def answered():
    while not shown:
        time.sleep(0.5)
        with create_session() as session:
            waiting = session.scalars(select(TaskInstance).where(TaskInstance.state == "awaiting_input")).first()
            if waiting is not None:
                detail = session.scalars(select(HITLDetail).where(HITLDetail.ti_id == waiting.id)).one()
                texts = {name: getattr(detail, name) for name in ("subject", "body", "defaults")}
                names = waiting.dag_id, waiting.run_id, waiting.task_id
                hitl.update_hitl_detail(*names, UpdateHITLDetailPayload(**answer), user, session)
                shown.update(texts)

threading.Thread(target=answered, daemon=True).start()
"""


def run_approved(
    folder: Path, dag_id: str, conf: Mapping[str, Any], option: str, form: Mapping[str, Any], **environ: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """`run_dag` for a DAG with one approval, which user anna answers. Also returns its subject, body and defaults.

    option: Approve or Reject. form: what is entered with it.
    """
    source = RUN.replace("asked =", f"{ANSWERED}\nasked =", 1).replace(
        '{"run": run.state', '{**shown, "run": run.state'
    )
    asked = json.dumps({"dag_id": dag_id, "conf": conf})
    answer = json.dumps({"chosen_options": [option], "params_input": form})
    states = result(run_in_airflow(folder, source, ASKED=asked, ANSWER=answer, DURABILITY_RETRIES="0", **environ))
    return states, {name: states.pop(name) for name in ("subject", "body", "defaults")}
