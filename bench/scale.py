"""What a run over a whole fleet costs, step by step: the rooms as the DAG calls them, over a fleet made from a seed.

`make bench SIZE=700000 SEED=1 RESULTS=results.json`: stage, gate, publish, plan, evaluate (spark-submit), flag, report; the
making of the fleet isn't counted. Beside it, in the same run, what the tools cost by themselves: the bare Parquet files of
the same rows, and an empty Spark job of the same settings.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pyarrow.parquet as pq

from bench import fleet, floor
from durability import report
from durability.lake import Lake, rows
from durability.launch import airflow_home, spark
from durability.policy import load_policy, load_waivers
from durability.run import build_plan
from durability.runtime import processes
from expectations import gate, posture

ROOT = airflow_home.ROOT
POLICY, WAIVERS = ROOT / "policies" / "policy.yaml", ROOT / "policies" / "waivers.yaml"


class Peak(threading.Thread):
    """The most memory that this process and all below it held at one time, in MB, looked at several times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.mb, self._done, self._before = 0.0, threading.Event(), 0.0

    def run(self) -> None:
        this = psutil.Process()
        while not self._done.wait(0.2):
            total = 0
            for process in (this, *this.children(recursive=True)):
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
            # What a process shares with one that it starts is counted twice for an instant.
            self.mb, self._before = max(self.mb, min(total, self._before) / 1e6), total

    def stop(self) -> float:
        self._done.set()
        self.join()
        return round(self.mb)


class Clock:
    """Seconds of each step, by name."""

    def __init__(self):
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.add(name, time.monotonic() - began)

    def add(self, name: str, seconds: float) -> None:
        self.seconds[name] = round(seconds, 2)
        print(f"{name:<12}{seconds:9.1f} s", flush=True)


def staged(lake, folder: Path, size: int, seed: int, clock: Clock) -> list:
    """Stages the fleet cluster by cluster, and writes the same rows as bare Parquet files."""
    attempts, ours, bare = [], 0.0, 0.0
    for topology in fleet.topologies(size, seed):
        began = time.monotonic()
        attempts.append(lake.stage(topology))
        ours += time.monotonic() - began
        tables = rows.build(topology, "bare", "bare")
        began = time.monotonic()
        for name, table in tables.items():
            pq.write_table(table, folder / f"{name}.parquet")
        bare += time.monotonic() - began
    clock.add("bare parquet", bare)
    clock.add("stage", ours)
    return attempts


def measured(folder: Path, size: int, seed: int) -> dict:
    """Runs the steps over a fleet in a lake below `folder`; RESULTS' document."""
    clock, peak = Clock(), Peak()
    peak.start()
    lake = Lake.open(str(folder / "lake"))
    lake.ensure()
    attempts = staged(lake, folder, size, seed, clock)
    with clock("gate"):
        verdicts = gate.check(lake, attempts)
    with clock("publish"):
        snapshots = [asdict(r) for r in lake.publish(attempts, verdicts)]
    with clock("plan"):
        plan = build_plan(
            lake,
            run_id="bench",
            result_id="bench:1",
            kind="nightly",
            policy=load_policy(POLICY),
            waivers=load_waivers(WAIVERS),
            snapshots=snapshots,
            clusters=[],
            attempts=[],
            started_at=datetime.now(UTC),
        )
    (folder / "empty.py").write_text(floor.EMPTY_JOB)
    with clock("empty job"):
        submitted(folder, lake, plan.partitions, folder / "empty.py")
    with clock("evaluate"):
        job = ROOT / "spark_jobs" / "evaluate.py"
        submitted(folder, lake, plan.partitions, job, "--plan", str(plan.write(folder / "plan.json")))
    with clock("flag"):
        flagged = posture.flag(lake, plan, folder / "out")
    with clock("report"):
        report.build(lake, plan, flagged, folder / "out")
    refused = [v.reason for v in verdicts if not v.accepted]
    if refused or not flagged.verified:
        raise SystemExit(f"the run isn't what it should be: {refused[:3]} {flagged.problems[:3]}")
    return document(sum(a.partitions for a in attempts), peak.stop(), clock.seconds)


def document(partitions: int, peak_mb: int, seconds: dict[str, float]) -> dict:
    """Seconds by step as RESULTS has them; `session_s` is the empty job's, which the evaluation has inside it."""
    steps = {name: s for name, s in seconds.items() if name not in ("bare parquet", "empty job")}
    return {
        "rows": partitions,
        "peak_mb": peak_mb,
        "collect": {
            "lake_s": round(seconds["stage"] + seconds["publish"], 2),
            "parquet_s": seconds["bare parquet"],
        },
        "gate_s": seconds["gate"],
        "plan_s": seconds["plan"],
        "evaluate": {
            "session_s": seconds["empty job"],
            "spark_s": round(seconds["evaluate"] - seconds["empty job"], 2),
        },
        "flag_s": seconds["flag"],
        "report_s": seconds["report"],
        "total_s": round(sum(steps.values()), 2),
        "machine": machine(),
    }


def submitted(folder: Path, lake, partitions: int, job: Path, *arguments: str) -> None:
    """A Spark job with the settings that `evaluate` has for so many partitions."""
    properties = {**spark.settings(partitions), **lake.spark_conf(), **lake.spark_secrets()}
    (folder / "spark.properties").unlink(missing_ok=True)
    file = spark.write_properties(folder / "spark.properties", properties)
    submit = [str(Path(sys.executable).parent / "spark-submit"), "--master", "local[*]"]
    command = [*submit, "--properties-file", str(file), "--jars", spark.jars(), str(job), *arguments]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with open(folder / "spark.log", "w") as log:
        done = subprocess.run(command, env=environment, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"{job.name} failed:\n{(folder / 'spark.log').read_text()[-3000:]}")


def machine() -> dict:
    """What it was measured on."""
    memory = round(psutil.virtual_memory().total / 2**30)
    return {"processors": os.cpu_count(), "memory_gb": memory, "python": platform.python_version()}


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Print the steps as they end; write RESULTS, if asked for."""
    try:
        size, seed = int(environ["SIZE"]), int(environ.get("SEED") or 1)
    except ValueError:
        raise SystemExit("SIZE and SEED are numbers: make bench SIZE=700000 SEED=1") from None
    if size < 1 or seed < 0:
        raise SystemExit("SIZE is at least 1, SEED at least 0")
    with processes.Session("durability-bench-") as session:
        results = measured(session.folder, size, seed)
    print(
        f"{'total':<12}{results['total_s']:9.1f} s\n{'peak':<12}{results['peak_mb']:9.0f} MB\n{results['rows']:,} partitions"
    )
    if environ.get("RESULTS"):
        Path(environ["RESULTS"]).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
