"""What docker-compose.yml would start, started here by the same commands: no container, other addresses and folders."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml

from deploy import new_env
from durability.cli import airflow_home
from durability.collect import collect
from durability.embedded_kafka import tools
from durability.errors import Unreachable
from durability.runtime import jars, processes
from tests import ROOT
from tests.support.airflow import template
from tests.support.stores import KEY, programs

SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
KAFKA = "4.3.1"


@pytest.fixture
def session():
    with processes.Session("durability-test-compose-") as made:
        yield made


def environment(service: str, folder: Path, replaced: dict[str, str]) -> dict[str, str]:
    """A service's environment with a new .env's values, and addresses and folders of this machine."""
    file = folder / ".env"
    if not file.exists():
        assert new_env.main(file) == 0
    values = dict(line.split("=", 1) for line in file.read_text().splitlines())
    found = {}
    for name, text in SERVICES[service]["environment"].items():
        filled = re.sub(r"\$\{([A-Z0-9_]+):\?[^}]*\}", lambda m: values[m[1]], str(text))
        for there, here in replaced.items():
            filled = filled.replace(there, here)
        found[name] = filled
    return found


def command(service: str, replaced: dict[str, str], *, check: bool = False) -> list[str]:
    """A service's command or health check with the programs and addresses of this machine."""
    stated = SERVICES[service]["healthcheck"]["test"] if check else ["CMD", *SERVICES[service]["command"]]
    assert stated[0] == "CMD"
    words = stated[1:]
    for there, here in replaced.items():
        words = [word.replace(there, here) for word in words]
    return words


def healthy(
    checks: dict[str, list[str]],
    running: dict[str, subprocess.Popen],
    logs: Path,
    env: dict | None = None,
    every: float = 0.5,
):
    """Asks each service's health check until it says yes."""
    deadline = time.monotonic() + 240
    for name, check in checks.items():
        while True:
            asked = subprocess.run(check, env=env, capture_output=True, text=True, timeout=120)
            if asked.returncode == 0:
                break
            said = (logs / f"{name}.log").read_text()[-1500:]
            assert running[name].poll() is None, f"{name} ended: {said}"
            assert time.monotonic() < deadline, f"{name}: {check}: {asked.stdout[-500:]} {asked.stderr[-500:]} {said}"
            time.sleep(every)


def test_the_kafka_cluster(session, tmp_path):
    """By the image's own set-up program, which makes server.properties of the environment and formats the log dir."""
    nodes = [f"kafka-{n}" for n in (1, 2, 3)]
    ports = {name: (processes.free_port(), processes.free_port()) for name in nodes}
    everywhere = {f"{n}:{at}": f"127.0.0.1:{p}" for n in nodes for at, p in zip((9092, 9093), ports[n], strict=True)}
    running, checks = {}, {}

    def start(name: str) -> None:
        home = tmp_path / name
        for folder in ("image", "mounted", "config", "data"):
            (home / folder).mkdir(parents=True)
        broker, controller = ports[name]
        own = {"://:9092": f"://127.0.0.1:{broker}", "://:9093": f"://127.0.0.1:{controller}"}
        own |= {"/var/lib/kafka/data": str(home / "data")}
        env = session.environment({**os.environ, **environment(name, tmp_path, everywhere | own)})

        def java(main: str, *arguments: str) -> list[str]:
            return tools.java(KAFKA, main, *arguments, heap_mb=384, home=home)

        folders = ["-D", str(home / "image"), "-M", str(home / "mounted"), "-F", str(home / "config")]
        tools.run(java("kafka.docker.KafkaDockerWrapper", "setup", *folders), env=env, what=f"setting {name} up")
        program, *arguments = command(name, {"localhost:9092": f"127.0.0.1:{broker}"}, check=True)
        assert program == "/opt/kafka/bin/kafka-broker-api-versions.sh"
        checks[name] = java("org.apache.kafka.tools.BrokerApiVersionsCommand", *arguments)
        server = java("kafka.Kafka", str(home / "config" / "server.properties"))
        running[name] = session.popen(server, log=tmp_path / f"{name}.log", cwd=home, env=env)

    jars.ensure(f"kafka-{KAFKA}")
    environment(nodes[0], tmp_path, {})
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(start, nodes))
    time.sleep(3)  # each question is a JVM
    healthy(checks, running, tmp_path, every=3)

    connection = environment("airflow-scheduler", tmp_path, everywhere)["AIRFLOW_CONN_KAFKA_COMPOSE"]
    deadline = time.monotonic() + 60
    while True:  # a broker answers before all of them are registered
        try:
            document = collect("compose", json.loads(connection)["extra"]).document
            if len([b for b in document["brokers"] if b["live"]]) == 3:
                break
        except Unreachable:
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline, "three brokers answer, and aren't all live"
        time.sleep(0.5)
    assert {b["id"]: (b["rack"], b["live"]) for b in document["brokers"]} == {
        1: ("az1", True),
        2: ("az2", True),
        3: ("az3", True),
    }
    assert [v["id"] for v in document["cluster"]["quorum"]["voters"]] == [1, 2, 3]
    for n, broker in enumerate(document["brokers"], 1):
        assert (
            broker["configs"]["min.insync.replicas"] == "2" and broker["configs"]["default.replication.factor"] == "3"
        )
        assert broker["configs"]["auto.create.topics.enable"] == "false"
        assert [d["path"] for d in broker["log_dirs"]] == [str(tmp_path / f"kafka-{n}" / "data")]


def test_sparks_master_and_worker(session, tmp_path):
    import pyspark

    package = Path(pyspark.__file__).parent
    port, page, worker = (processes.free_port() for _ in range(3))
    here = {
        "/opt/spark": str(package),
        "/tmp/spark-work": str(tmp_path / "work"),
        "spark-master:7077": f"127.0.0.1:{port}",
        "spark-master/7077": f"127.0.0.1/{port}",
        "spark-master": "127.0.0.1",
        "localhost/8081": f"127.0.0.1/{worker}",
    }
    env = {**os.environ, "SPARK_HOME": str(package), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_MASTER_PORT": str(port)}
    env |= {"SPARK_MASTER_WEBUI_PORT": str(page), "SPARK_WORKER_WEBUI_PORT": str(worker)}
    running = {}
    for name in ("spark-master", "spark-worker"):
        started = session.popen(command(name, here), log=tmp_path / f"{name}.log", cwd=tmp_path, env=env)
        running[name] = started
        healthy({name: command(name, here, check=True)}, running, tmp_path)
    deadline = time.monotonic() + 60
    while "Successfully registered with master" not in (tmp_path / "spark-worker.log").read_text():
        assert time.monotonic() < deadline, (tmp_path / "spark-worker.log").read_text()[-1500:]
        time.sleep(0.3)


def test_the_databases_are_made_for_a_user_each(postgresql):
    user, _, address = re.fullmatch(r"postgresql://(.+):(.+)@(.+)", postgresql).groups()
    host, port = address.split(":")
    env = {**os.environ, "PATH": f"{programs()}{os.pathsep}{os.environ['PATH']}", "PGHOST": host, "PGPORT": port}
    env |= {"PGPASSWORD": "p@ss/word", "POSTGRES_USER": user, "PGDATABASE": "postgres"}
    env |= {"AIRFLOW_DB_PASSWORD": "it's $(one)", "LAKE_DB_PASSWORD": 'an"other'}
    script = ["bash", str(ROOT / "deploy" / "postgres-init.sh")]
    subprocess.run(script, env=env, check=True, capture_output=True, text=True)
    for name, own in (("airflow", "it's $(one)"), ("durability", 'an"other')):
        ask = ["psql", "--username", name, "--dbname", name, "--tuples-only", "--no-align", "--command"]
        made = subprocess.run(
            [*ask, "create table t (); select current_user"],
            env=env | {"PGPASSWORD": own},
            check=True,
            capture_output=True,
            text=True,
        )
        assert made.stdout.splitlines()[-1] == name


def scraped(address: str) -> list[object]:
    """What Prometheus gets without and with the password of the Connection."""
    url = f"{address}/durability/metrics"
    with pytest.raises(HTTPError) as refused:
        urlopen(url, timeout=30)
    with urlopen(Request(url, headers={"Authorization": "Bearer s3cret"}), timeout=30) as answer:
        return [refused.value.code, answer.status, answer.read().decode()]


@pytest.mark.slow
def test_airflows_services(session, s3, tmp_path, monkeypatch):
    """`airflow-init` and the four that wait for it, each asked by its own health check; the database is SQLite here."""
    import boto3

    api, health, *logs = (str(processes.free_port()) for _ in range(4))
    home = airflow_home.private_home(tmp_path / "airflow", template())
    here = {
        "airflow-api-server:8080": f"127.0.0.1:{api}",
        "localhost:8080": f"127.0.0.1:{api}",
        "localhost:8974": f"127.0.0.1:{health}",
        "http://s3:9000": s3,
        "/opt/airflow": str(home),
        "/opt/durability": str(ROOT),
        "s3://durability-lake": "s3://compose-lake",
    }
    (home / "auth").mkdir()
    out = tmp_path / "out"
    out.mkdir()
    (out / "metrics.prom").write_text("kafka_durability_run_timestamp_seconds 1.0\n")
    stated = environment("airflow-scheduler", tmp_path, here)
    env = airflow_home.environment(home, {**os.environ, **stated, **KEY})
    env |= {
        "AIRFLOW__API__PORT": api,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": health,
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": logs[0],
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": logs[1],
        "DURABILITY_OUT": str(out),
        "AIRFLOW_CONN_DURABILITY_METRICS": '{"conn_type": "http", "password": "s3cret"}',
        # The pulse would run in the middle of it.
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
    }
    env = session.environment(env)
    assert command("airflow-init", {})[0] == "bash"
    done = subprocess.run(command("airflow-init", here), env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    with sqlite3.connect(home / "airflow.db") as database:
        assert database.execute("select slots from slot_pool where pool = 'kafka_durability'").fetchall() == [(8,)]
    for name, value in KEY.items():
        monkeypatch.setenv(name, value)
    buckets = boto3.client("s3", endpoint_url=s3, region_name=KEY["AWS_REGION"]).list_buckets()["Buckets"]
    assert "compose-lake" in {b["Name"] for b in buckets}

    names = [f"airflow-{each}" for each in ("api-server", "scheduler", "dag-processor", "triggerer")]
    running = {}
    try:
        for name in names:
            running[name] = session.popen(command(name, here), log=tmp_path / f"{name}.log", cwd=tmp_path, env=env)
        healthy({n: command(n, here, check=True) for n in names}, running, tmp_path, env)
        assert scraped(f"http://127.0.0.1:{api}") == [401, 200, (out / "metrics.prom").read_text()]
    finally:
        # The pages' server writes its title over the environment by which the session would know it.
        for service in running.values():
            processes.stop_family(service, signal.SIGTERM)
    passwords = json.loads((home / "auth" / "passwords.json").read_text())
    assert list(passwords) == ["admin"] and len(passwords["admin"]) >= 16
