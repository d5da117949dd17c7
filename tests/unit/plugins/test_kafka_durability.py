"""The Airflow plugin: it loads, and its hook reads Connections."""

from __future__ import annotations

import json

from tests.support.airflow import result, run_dag, run_in_airflow


def test_a_hook_gives_the_connections_settings(tmp_path):
    source = """
import json
from airflow import settings
settings.initialize()
from kafka_durability.hook import KafkaHook
from durability.errors import AuditError
seen = {}
for name in ("kafka_full", "kafka_host", "kafka_empty", "kafka_missing"):
    try:
        seen[name] = KafkaHook(name).settings()
    except AuditError as error:
        seen[name] = str(error)
print("RESULT", json.dumps(seen))
"""
    full = {"conn_type": "kafka", "extra": {"bootstrap.servers": "a:1,b:2", "security.protocol": "SSL"}}
    host = {"conn_type": "kafka", "host": "c", "port": 3, "login": "u", "password": "p"}
    output = run_in_airflow(
        tmp_path,
        source,
        AIRFLOW_CONN_KAFKA_FULL=json.dumps(full),
        AIRFLOW_CONN_KAFKA_HOST=json.dumps(host),
        AIRFLOW_CONN_KAFKA_EMPTY=json.dumps({"conn_type": "kafka"}),
    )
    assert result(output) == {
        "kafka_full": {"bootstrap.servers": "a:1,b:2", "security.protocol": "SSL"},
        "kafka_host": {"bootstrap.servers": "c:3", "sasl.username": "u", "sasl.password": "p"},
        "kafka_empty": "Connection kafka_empty, bootstrap.servers: missing; expected host:port in the extra",
        "kafka_missing": "there is no Connection kafka_missing, which the clusters file names: add it to Airflow",
    }


def test_a_fleet_without_a_cluster_is_skipped_and_not_failed(tmp_path):
    """As shipped: nobody has named a cluster yet, and the schedule runs."""
    (tmp_path / "clusters.yaml").write_text("format: durability-clusters/1\nclusters: []\n")
    conf = {"clusters": "clusters.yaml", "lake": str(tmp_path / "lake"), "out": "out"}
    states = run_dag(tmp_path, "health_pulse", conf)
    assert states == {"run": "success", "plan": "success", "discard": "success", "restore": "success"} | dict.fromkeys(
        ("collect", "gate", "publish", "evaluate", "conclude", "alert"), "skipped"
    )


def test_a_steps_problems_are_in_the_tasks_log(tmp_path):
    """On a schedule nobody reads the journal that `make audit` has."""
    source = """
import json, logging
from kafka_durability.step import reported
lines = []
class Kept(logging.Handler):
    def emit(self, record):
        lines.append((record.levelname, record.getMessage()))
logging.getLogger("airflow.task").addHandler(Kept())
with reported("collect") as summary:
    summary.problems.append("cluster nowhere can't be reached: connection refused")
print("RESULT", json.dumps(lines))
"""
    assert result(run_in_airflow(tmp_path, source)) == [
        ["ERROR", "cluster nowhere can't be reached: connection refused"]
    ]


SUBMIT = """
import json, os, signal, sys, time
from pathlib import Path
from types import SimpleNamespace
from kafka_durability.spark_job import SparkJob

folder = Path(os.environ["FOLDER"])
os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
secret = {"spark.sql.catalog.durability.jdbc.password": "secret"}
lake = SimpleNamespace(location="lake", spark_conf=lambda: secret)
if (task := os.fork()) == 0:
    SparkJob(job="evaluate.py", task_id="evaluate", conn_id="spark").submit(lake, 10, lambda folder: [str(folder)], {})
    os._exit(0)

def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    sys.exit("too late")

wait_for((folder / "started").exists)
job, *arguments = (folder / "started").read_text().split()
properties = Path(arguments[arguments.index("--properties-file") + 1])
seen = {"secret": "secret" in properties.read_text(), "kept": str(properties.parent) == arguments[-1]}
seen["bound"] = [line.split()[1] for line in properties.read_text().splitlines() if line.startswith("spark.driver.bind")]
seen["address"] = (folder / "address").read_text().strip()
os.kill(task, signal.SIGKILL)
os.waitpid(task, 0)
wait_for(lambda: not os.path.exists(f"/proc/{job}"))
wait_for(lambda: not properties.parent.exists())
print("RESULT", json.dumps(seen))
"""

FAKE_SUBMIT = """#!/bin/sh
echo $SPARK_LOCAL_IP > "$FOLDER/address"
echo $$ "$@" > "$FOLDER/part"
mv "$FOLDER/part" "$FOLDER/started"
exec sleep 600
"""


def test_spark_and_its_secrets_go_with_a_killed_task(tmp_path):
    submit = tmp_path / "spark-submit"
    submit.write_text(FAKE_SUBMIT)
    submit.chmod(0o755)
    connection = json.dumps({"conn_type": "spark", "host": "local[*]"})
    seen = result(run_in_airflow(tmp_path, SUBMIT, FOLDER=str(tmp_path), AIRFLOW_CONN_SPARK=connection))
    assert seen == {"secret": True, "kept": True, "bound": ["127.0.0.1"], "address": "127.0.0.1"}


ENDS = """
import json, os
from types import SimpleNamespace
from durability.steps import crash
from durability.steps.evaluate import JobFailed
from kafka_durability.spark_job import SparkJob

os.environ["PATH"] = f"{os.environ['FOLDER']}:{os.environ['PATH']}"
lake = SimpleNamespace(location="lake", spark_conf=dict)
said = []
for end in ("kill -9 $$", "exit 3"):
    os.environ["END"] = end
    try:
        SparkJob(job="evaluate.py", task_id="evaluate", conn_id="spark").submit(lake, 10, lambda folder: ["--plan"], {})
    except JobFailed as error:
        said.append(crash.text_of("evaluate", error, error.lines).splitlines())
print("RESULT", json.dumps(said))
"""


def test_the_reason_why_spark_ended_comes_first(tmp_path):
    submit = tmp_path / "spark-submit"
    submit.write_text('#!/bin/sh\necho "Caused by: no such table"\neval "$END"\n')
    submit.chmod(0o755)
    connection = json.dumps({"conn_type": "spark", "host": "local[*]"})
    said = result(run_in_airflow(tmp_path, ENDS, FOLDER=str(tmp_path), AIRFLOW_CONN_SPARK=connection))
    began = "evaluate stopped before its end: JobFailed: Spark's job"
    assert said == [
        [f"{began} was killed, by a signal or for lack of memory; its log is above", "  Caused by: no such table"],
        [f"{began} failed, exit status 3; its log is above", "  Caused by: no such table"],
    ]
