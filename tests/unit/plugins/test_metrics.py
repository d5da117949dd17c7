"""The plugin's app in Airflow's API server: who may read the metrics, and what they get."""

from __future__ import annotations

import json

from prometheus_client.parser import text_string_to_metric_families

from tests.support.airflow import result, run_in_airflow
from tests.support.report_cases import report
from tests.unit.report.formats.test_junit import ROWS

ASK = """
import json, os, shutil, sys
from pathlib import Path
os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
from airflow import plugins_manager, settings
settings.initialize()
from airflow.api_fastapi.app import init_auth_manager, init_plugins
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi import FastAPI
from starlette.testclient import TestClient

plugins_manager.get_flask_plugins()
light = "kafka_durability.plugin" in sys.modules and "kafka_durability.metrics" not in sys.modules
host = FastAPI()
manager = init_auth_manager()
init_plugins(host)
[ours] = [each for each in plugins_manager.get_fastapi_plugins()[0] if each["name"] == "kafka_durability"]
client = TestClient(host, follow_redirects=False)

def ask(token=None, path="/durability/metrics", **more):
    headers = {"Authorization": token} if token else {}
    answer = client.get(path, headers=headers, **more)
    return answer.status_code, answer.text, dict(answer.headers)

def bearer(role):
    return "Bearer " + manager.generate_jwt(SimpleAuthManagerUser(username="ann", role=role))

out, there = Path(os.environ["DURABILITY_OUT"]), Path(os.environ["REPORT"])
seen = {"routes": {r.path: ask(path="/durability" + r.path)[0] for r in ours["app"].routes}}
seen["early"] = ask("Bearer s3cret")[:2]
shutil.copytree(there, out)
seen["password"] = ask("Bearer s3cret")
seen["viewer"], seen["nobody"] = ask(bearer("viewer"))[0], ask(bearer(None))[0]
cookie = bearer("viewer").removeprefix("Bearer ")
seen["page"] = client.get("/durability/metrics", cookies={"_token": cookie}).status_code
client.cookies.clear()
wrong = (None, "s3cret", "Basic s3cret", "Bearer", "Bearer ", "Bearer s3cret2", "Bearer None", "Bearer sécret".encode())
seen["wrong"] = [ask(each)[0] for each in wrong]
os.environ["AIRFLOW_CONN_DURABILITY_METRICS"] = json.dumps({"conn_type": "http", "password": ""})
seen["empty"] = [ask(each)[0] for each in ("Bearer ", "Bearer None", "Bearer s3cret")]
os.environ["AIRFLOW_CONN_DURABILITY_METRICS"] = "{s3cret"
seen["malformed"] = ask("Bearer s3cret")[:2]
del os.environ["AIRFLOW_CONN_DURABILITY_METRICS"]
seen["removed"] = ask("Bearer s3cret")[0]
os.environ["DURABILITY_OUT"] = str(out / "metrics.prom")
seen["no folder"] = ask(bearer("viewer"))[:2]
print("RESULT", json.dumps(seen | {"light": light}))
"""


def test_metrics_are_served_to_prometheus_and_to_users_who_may_see_the_runs(tmp_path):
    written, out = tmp_path / "report", tmp_path / "out"
    report(ROWS, written)
    connection = json.dumps({"conn_type": "http", "password": "s3cret"})
    where = {"DURABILITY_OUT": str(out), "REPORT": str(written), "AIRFLOW_CONN_DURABILITY_METRICS": connection}
    seen = result(run_in_airflow(tmp_path, ASK, **where))
    assert seen["light"], "tasks load the plugin too, and need no server"
    assert seen["routes"] == {"/metrics": 401}, "no page of documentation, and nothing without credentials"
    status, text = seen["early"]
    assert status == 503 and f"no report in {out} yet" in text

    status, text, headers = seen["password"]
    assert (status, text) == (200, (written / "metrics.prom").read_text())
    assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert {family.name for family in text_string_to_metric_families(text)} >= {
        "kafka_durability_run_timestamp_seconds"
    }

    assert (seen["viewer"], seen["page"], seen["nobody"]) == (200, 200, 403)
    assert seen["wrong"] == [401, 401, 401, 401, 401, 403, 403, 403]
    assert seen["empty"] == [401, 403, 403], "no password is not a password"
    status, text = seen["malformed"]
    assert status == 503 and "AIRFLOW_CONN_DURABILITY_METRICS is set" in text and "s3cret" not in text
    assert seen["removed"] == 403
    status, text = seen["no folder"]
    assert status == 503 and "Not a directory" in text
