"""A night and a pulse on a lake on S3 with a PostgreSQL catalog, as a scheduler runs them: no command holds the lake for them.

The night's Spark is a standalone master with two workers.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import groupby
from pathlib import Path

import pytest

from durability.lake import Lake, catalog, tables
from durability.runtime import lease, out_lock, processes
from durability.runtime.spark import jars
from tests import ROOT
from tests.support import topology
from tests.support.airflow import run_dag, run_in_airflow
from tests.support.lake import attach
from tests.support.runs import SICK, Runs
from tests.support.stores import KEY
from tests.support.topology import document

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of JVMs that end before HotSpot's optimizing compiler has paid off."""


def daemon(stack: ExitStack, folder: Path, name: str, *arguments: str, **environ: str) -> None:
    """Starts one of Spark's, which ends with the test."""
    import pyspark

    package = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(package), "SPARK_LOCAL_IP": "127.0.0.1", **environ}
    environment["SPARK_DAEMON_JAVA_OPTS"] = LIGHT
    log = stack.enter_context((folder / f"{name}-{len(list(folder.iterdir()))}.log").open("w"))
    command = [str(package / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    started = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    stack.callback(lambda: (started.terminate(), started.wait(20)))


@pytest.fixture
def standalone(tmp_path, away):
    """The port of a master, and its workers' folders."""
    with ExitStack() as stack:
        port, page = processes.free_port(), processes.free_port()
        here = ["--host", "127.0.0.1", "--port"]
        daemon(stack, tmp_path, "master.Master", *here, str(port), "--webui-port", str(page))
        work = [tmp_path / "first", tmp_path / "second"]
        keys = KEY | {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
        for folder in work:
            own = [
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(folder),
                "--webui-port",
                str(processes.free_port()),
            ]
            daemon(stack, tmp_path, "worker.Worker", *here, "0", *own, f"spark://127.0.0.1:{port}", **keys)
        deadline = time.monotonic() + 180
        while _alive(page) < 2:
            assert time.monotonic() < deadline, [p.read_text()[-800:] for p in tmp_path.glob("*.log")]
            time.sleep(0.5)
        yield port, work


def _alive(page: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
            return json.load(answer)["aliveworkers"]
    except OSError:
        return 0


@pytest.mark.slow
def test_a_scheduled_night_on_a_master_and_two_workers_and_a_pulse(tmp_path, standalone, away, spark):
    port, work = standalone
    night = (document(SICK, cluster=name, captured_at="2026-11-21T02:00:00Z") for name in ("eu", "us"))
    params = {"topology": str(topology.write(tmp_path / "documents", *night)), "lake": away}
    params |= {"out": str(tmp_path / "out")}
    params |= {name: str(ROOT / "policies" / f"{name}.yaml") for name in ("policy", "waivers")}
    connection = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": port}
    environ = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path)}
    environ |= {"AIRFLOW_CONN_SPARK": json.dumps(connection)}
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.executor.memory 640m\nspark.driver.memory 900m\nspark.executor.extraJavaOptions {LIGHT}\n"
    )
    place, spoken, leased = catalog.place(away), set(), []
    with ThreadPoolExecutor(1) as beside:
        audit = beside.submit(run_dag, tmp_path, "nightly_audit", params, **environ)
        while not audit.done():
            spoken |= _arguments()
            has = lease.current(place)
            leased.append(has.run.partition(":")[0] if has else None)
            time.sleep(0.2)
    states = audit.result()
    assert set(states.values()) == {"success"} and "conclude" in states
    assert [run for run, _ in groupby(leased)] == [None, "nightly_audit", None], "from its plan to its end"
    assert (tmp_path / "out" / "report.html").is_file()
    with out_lock.held([tmp_path / "out"]):
        pass
    told = json.loads((tmp_path / "out" / "findings.json").read_text())
    assert told["run"]["verified"] is True
    health = [f for f in told["findings"] if f["control"] == "partition-health"]
    categories = (("shrunk", "at-min-isr"), ("shrunk", "under-replicated"), ("gone", "offline"))
    assert {(f["cluster"], f["resource"], f["category"]) for f in health} == {
        (cluster, *found) for cluster in ("eu", "us") for found in categories
    }
    assert all(list(folder.glob("app-*/*/stderr")) for folder in work), "a worker had nothing to do"
    evaluated = [line for line in spoken if "evaluate.py" in line]
    assert any(f"spark://127.0.0.1:{port}" in line for line in evaluated)
    assert any("-Xmx900m" in line for line in evaluated), "nor does what it says of the driver"
    executors = [line for line in spoken if "CoarseGrainedExecutorBackend" in line]
    assert executors and all("-Xmx640M" in line for line in executors), "what spark-defaults.conf says doesn't count"
    for secret in ("p@ss/word", "p%40ss%2Fword", KEY["AWS_SECRET_ACCESS_KEY"]):
        assert not [line for line in spoken if secret in line], secret

    lake, session = Lake.open(away), spark.newSession()
    attach(session, lake)
    run = Runs(tmp_path, lake, session)
    assert run("pulse", "2026-11-21T02:05:00Z") == "complete"
    counted = lake.scan(
        tables.HEALTH_COUNTERS, f"result_id = '{run.plans[-1].result_id}'", ["cluster", "topic", "offline"]
    )
    wholes = [row for row in counted.to_pylist() if row["topic"] is None]
    assert sorted((row["cluster"], row["offline"]) for row in wholes) == [("eu", 1), ("us", 1)]
    assert lake.scan(tables.PARTITIONS, columns=["cluster"]).num_rows == 6


def _arguments() -> set[str]:
    """Every process's command line, as anybody on this machine can read it."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            found.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def test_spark_on_s3_takes_what_iceberg_needs_for_it():
    on_s3, in_folder = (jars(lake).split(",") for lake in ("s3://bucket/lake", "lake"))
    assert {path.rpartition("/")[2].rpartition("-")[0] for path in set(on_s3) - set(in_folder)} == {
        "iceberg-aws-bundle"
    }


def test_the_documented_connections_make_the_command_lines_meant(tmp_path):
    blocks = [
        json.loads(block) for block in re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "spark.md").read_text(), re.S)
    ]
    source = """
import json
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
spark_submit.kube_client = object()  # as if its provider were there; a client is made when a job is killed
for name in ("a", "b", "c"):
    hook = SparkSubmitHook(conn_id=name, name="kafka-durability", properties_file="own.properties", jars="lake.jar",
                           application_args=["--plan", "plan.json"])
    print("COMMAND", json.dumps(hook._build_spark_submit_command("evaluate.py")))
"""
    connections = {f"AIRFLOW_CONN_{n}": json.dumps(block) for n, block in zip("ABC", blocks, strict=True)}
    output = run_in_airflow(tmp_path, source, **connections)
    lines = [json.loads(line.removeprefix("COMMAND ")) for line in output.splitlines() if line.startswith("COMMAND ")]
    masters = [dict(itertools.pairwise(line))["--master"] for line in lines]
    assert masters == ["spark://spark-master:7077", "yarn", "k8s://https://kubernetes.default.svc:443"]
    for line in lines:
        assert line[-3:] == ["evaluate.py", "--plan", "plan.json"]
        following = dict(itertools.pairwise(line))
        assert (following["--properties-file"], following["--jars"]) == ("own.properties", "lake.jar")
    assert "--queue" in lines[1] and lines[2][lines[2].index("--deploy-mode") + 1] == "client"
    assert any("namespace" in part for part in lines[2])
