"""Compares the cost of an audit with the cost of its tools alone.

The floor is `airflow dags test` of an empty DAG, plus an empty Spark job (`range(1).count()`) with the same jars, settings and
JVM flags. It is compared with `make audit` of BOOTSTRAP= (by default an embedded cluster) or TOPOLOGY=. With LOSE=, `make whatif`
of the same input is compared with the audit. The parts of a round run one after the other, so that a busy machine slows all of
them. The result has medians of ROUNDS rounds.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from bench.clock import run
from durability.cli import airflow_home
from durability.runtime import spark

ROUNDS = 5
TARGET = 2.5
WHATIF_TARGET = 1.0
"""The most that a prediction may take, in times of the audit."""
EMPTY_DAG = """
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG("empty", schedule=None):
    EmptyOperator(task_id="nothing")
"""
EMPTY_JOB = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("empty").getOrCreate()
spark.range(1).count()
spark.stop()
"""


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Print the table. Returns 1 if a ratio is above its target."""
    from durability.embedded_kafka import demo
    from durability.runtime import processes

    rounds = int(environ.get("ROUNDS") or ROUNDS)
    given = {k: environ[k] for k in ("BOOTSTRAP", "TOPOLOGY") if environ.get(k)}
    with processes.Session("durability-bench-") as session, ExitStack() as stack:
        given = given or {"BOOTSTRAP": stack.enter_context(demo.running()).bootstrap}
        parts = measured(session.folder, given, rounds, environ.get("LOSE", ""))
    medians = {name: statistics.median(seconds) for name, seconds in parts.items()}
    floor = medians["empty DAG"] + medians["empty Spark job"]
    ratio = medians["audit"] / floor
    for name, seconds in parts.items():
        runs = "  ".join(f"{s:.1f}" for s in seconds)
        print(f"{name:<16}{medians[name]:7.1f} s   ({runs})")
    print(f"{'floor':<16}{floor:7.1f} s\nratio           {ratio:7.2f}     (at most {TARGET})")
    results = {"given": sorted(given), "seconds": parts, "medians": medians, "floor": floor, "ratio": ratio}
    missed = ratio > TARGET
    if "whatif" in parts:
        results["whatif_ratio"] = of_audit = medians["whatif"] / medians["audit"]
        missed |= of_audit > WHATIF_TARGET
        print(f"whatif / audit  {of_audit:7.2f}     (at most {WHATIF_TARGET})")
    out = Path(environ.get("OUT") or "out")
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(json.dumps(results, indent=1))
    return int(missed)


def measured(folder: Path, given: Mapping[str, str], rounds: int, lose: str = "") -> dict[str, list[float]]:
    """Seconds of each round's parts.

    folder: for all files that they write. given: what the audit reads. lose: predict this loss, too; '' to predict none.
    """
    empty_dag, empty_job = _empty_dag(folder), _empty_job(folder)
    parts: dict[str, list[float]] = {"empty DAG": [], "empty Spark job": [], "audit": []}
    if lose:
        parts["whatif"] = []
    for number in range(rounds):
        own = {"OUT": str(folder / f"out-{number}"), "LAKE": str(folder / "lake")}
        audit = {**os.environ, "FAIL_ON": "never", "BOOTSTRAP": "", "TOPOLOGY": "", **own, **given}
        parts["empty DAG"].append(run(*empty_dag))
        parts["empty Spark job"].append(run(*empty_job))
        parts["audit"].append(run([sys.executable, "-m", "durability.cli", "audit", "--airflow"], audit))
        if lose:
            # Without a lake of its own, it would find the snapshot that the audit has published.
            own = {"LOSE": lose, "OUT": str(folder / f"whatif-{number}"), "LAKE": str(folder / "whatif-lake")}
            whatif = [sys.executable, "-m", "durability.cli", "whatif", "--airflow"]
            parts["whatif"].append(run(whatif, audit | own))
    return parts


def _empty_dag(folder: Path) -> tuple[list[str], dict[str, str]]:
    dags = folder / "dags"
    dags.mkdir()
    (dags / "empty.py").write_text(EMPTY_DAG)
    home = airflow_home.private_home(folder / "airflow")
    environment = {
        **airflow_home.environment(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(folder / "plugins"),
    }
    return [airflow_home.airflow(), "dags", "test", "empty"], environment


def _empty_job(folder: Path) -> tuple[list[str], dict[str, str]]:
    job = folder / "empty_job.py"
    job.write_text(EMPTY_JOB)
    properties = spark.write_properties(folder / "spark.properties", spark.settings(1))
    return spark.submit(properties, str(job)), spark.environment(airflow_home.environment(folder / "airflow"))


if __name__ == "__main__":
    sys.exit(main())
