"""What a run over a whole fleet costs, step by step: the rooms as the DAG calls them, over a fleet made from a seed.

`make bench SIZE=700000 SEED=1 RESULTS=results.json`: stage, gate, publish, plan, evaluate (spark-submit), flag, report; the
making of the fleet isn't counted. Beside it, in the same run: the making of the rows by itself and bare Parquet files of them
(held against these is writing the same rows into the lake, and `publish`), an empty Spark job of the same settings, and what
is found of topics in DuckDB and in Polars, compared row by row (`bench.beside`). With ROUNDS= all of it as many times, each in
a process of its own, and the medians.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from bench import beside, fleet, floor
from durability import report, resources
from durability.lake import Lake, rows
from durability.lake.attempt import Attempt
from durability.policy import load_policy, load_waivers
from durability.run import Plan, build_plan
from durability.runtime import processes, spark
from expectations import gate, posture

ROOT = resources.PACKAGES
POLICY, WAIVERS = ROOT / "policies" / "policy.yaml", ROOT / "policies" / "waivers.yaml"


LARGE = 1 << 30
"""Bytes of a process from which on what it shares with others is little beside its own."""


class Peak(threading.Thread):
    """The most memory that this process and all below it held at one time, in MB, looked at once a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.mb = self.of_step = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        this, before = psutil.Process(), 0
        # Not more often: asking holds up a process that is just getting memory.
        while not self._done.wait(1):
            total = 0
            for process in (this, *this.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):  # it has ended
                    total += _held(process)
            # What a process shares with one that it starts is counted twice for an instant.
            held, before = min(total, before) / 1e6, total
            self.mb, self.of_step = max(self.mb, held), max(self.of_step, held)

    def stop(self) -> int:
        self._done.set()
        self.join()
        return round(self.mb)


def _held(process: psutil.Process) -> int:
    """Bytes of a process; of a small one its part alone of what it shares. Of three gigabytes that takes 40 ms to find out."""
    resident = process.memory_info().rss
    return resident if resident > LARGE else process.memory_full_info().pss


@dataclass(frozen=True)
class Step:
    """Seconds on the clock and of all processors, and the most memory."""

    wall: float
    cpu: float
    peak_mb: int


class Clock:
    """What each step took, by name, told as it ends."""

    def __init__(self, peak: Peak):
        self.steps: dict[str, Step] = {}
        self._peak = peak

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._peak.of_step = 0.0
        wall, cpu = time.monotonic(), _cpu()
        yield
        self.add(name, time.monotonic() - wall, _cpu() - cpu)

    def add(self, name: str, wall: float, cpu: float) -> None:
        step = self.steps[name] = Step(round(wall, 2), round(cpu, 2), round(self._peak.of_step))
        print(f"{name:<14}{step.wall:9.1f} s{step.cpu:9.1f} s{step.peak_mb:9} MB", flush=True)

    def wall(self, name: str) -> float:
        return self.steps[name].wall


def _cpu() -> float:
    """Seconds of processors that this process used, and those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


def staged(location: str, folder: Path, size: int, seed: int) -> tuple[list[str], dict[str, tuple[float, float]]]:
    """Stages the fleet cluster by cluster, and writes the same rows as bare Parquet files.

    Returns the attempts as JSON, and by step the seconds on the clock and of the processor. Meant for a process of its own:
    what it takes to make a fleet isn't held against the steps that follow.
    """
    lake = Lake.open(location)
    attempts, took = [], {name: (0.0, 0.0) for name in ("rows", "lake parquet", "bare parquet", "stage")}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        wall, cpu = time.monotonic(), time.process_time()
        made = work()
        so_far = took[name]
        took[name] = so_far[0] + time.monotonic() - wall, so_far[1] + time.process_time() - cpu
        return made

    for topology in fleet.topologies(size, seed):
        attempts.append(timed("stage", lambda t=topology: lake.stage(t)).to_json())
        tables = timed("rows", lambda t=topology: rows.build(t, "bare", "bare"))
        timed("lake parquet", lambda t=tables: lake.write(t))
        timed("bare parquet", lambda t=tables: [pq.write_table(t[n], folder / f"{n}.parquet") for n in t])
    return attempts, took


def measured(folder: Path, size: int, seed: int) -> dict:
    """Runs the steps over a fleet in a lake below `folder`; RESULTS' document."""
    peak = Peak()
    peak.start()
    clock = Clock(peak)
    lake = Lake.open(str(folder / "lake"))
    lake.ensure()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
        found, took = own.submit(staged, lake.location, folder, size, seed).result()
    for name, (wall, cpu) in took.items():
        clock.add(name, wall, cpu)
    attempts = [Attempt.from_json(text) for text in found]
    with clock("gate"):
        verdicts = gate.check(lake, attempts)
    with clock("publish"):
        snapshots = [asdict(r) for r in lake.publish(attempts, verdicts)]
    with clock("plan"):
        plan = planned(lake, snapshots)
    (folder / "empty.py").write_text(floor.EMPTY_JOB)
    with clock("empty job"):
        submitted(folder, lake, plan.partitions, folder / "empty.py")
    with clock("evaluate"):
        job = ROOT / "spark_jobs" / "evaluate.py"
        submitted(folder, lake, plan.partitions, job, "--plan", str(plan.write(folder / "plan.json")))
    inputs = beside.inputs(folder / "lake" / "warehouse", attempts, plan.policy, folder)
    for name in beside.OPPONENTS:
        with clock(name):
            beside.run(name, inputs, folder)
    with clock("flag"):
        flagged = posture.flag(lake, plan, folder / "out")
    with clock("report"):
        report.build(lake, plan, flagged, folder / "out")
    highest = peak.stop()
    refused = [v.reason for v in verdicts if not v.accepted]
    if refused or not flagged.verified:
        raise SystemExit(f"the run isn't what it should be: {refused[:3]} {flagged.problems[:3]}")
    differ = [
        d
        for n in beside.OPPONENTS
        for d in beside.differences(folder / "lake" / "warehouse", plan.result_id, folder / n)
    ]
    print("\n".join(differ) or "the same rows from all three")
    page = (folder / "out" / "report.html").stat().st_size
    return document(plan.partitions, not differ, highest, clock) | {"report_html_mb": round(page / 1e6, 2)}


def planned(lake, snapshots: list[dict]) -> Plan:
    """The plan of a nightly run over these snapshots, by the policy that is shipped."""
    return build_plan(
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


def document(partitions: int, equal: bool, peak_mb: int, clock: Clock) -> dict:
    """What RESULTS has. `session_s` is the empty job's, which the evaluation has inside it; `total_s` leaves out what is
    beside the run."""
    apart = ("rows", "lake parquet", "bare parquet", "empty job", *beside.OPPONENTS)
    session = clock.wall("empty job")
    return {
        "rows": partitions,
        "equal": equal,
        "peak_mb": peak_mb,
        "collect": {
            "lake_s": round(clock.wall("lake parquet") + clock.wall("publish"), 2),
            "parquet_s": clock.wall("bare parquet"),
            "rows_s": clock.wall("rows"),
        },
        "gate_s": clock.wall("gate"),
        "plan_s": clock.wall("plan"),
        "evaluate": {
            "session_s": session,
            "spark_s": round(clock.wall("evaluate") - session, 2),
            **{f"{name}_s": clock.wall(name) for name in beside.OPPONENTS},
        },
        "flag_s": clock.wall("flag"),
        "report_s": clock.wall("report"),
        "total_s": round(sum(s.wall for name, s in clock.steps.items() if name not in apart), 2),
        "steps": {name: asdict(step) for name, step in clock.steps.items()},
        "machine": machine(),
    }


def medians(documents: Sequence[dict]) -> dict:
    """One document of several rounds': `equal` if all are, the highest peak, of every other number the (lower) median.

    >>> medians([{"equal": True, "peak_mb": 5, "evaluate": {"spark_s": s}, "machine": {}} for s in (9.0, 2.0, 3.0)])
    {'equal': True, 'peak_mb': 5, 'evaluate': {'spark_s': 3.0}, 'machine': {}}
    """
    ways = {"equal": all, "peak_mb": max}

    def one(name: str, values: list) -> Any:
        if isinstance(values[0], dict):
            return {inner: one(inner, [value[inner] for value in values]) for inner in values[0]}
        if isinstance(values[0], str):
            return values[0]
        return ways.get(name, statistics.median_low)(values)

    return {name: one(name, [document[name] for document in documents]) for name in documents[0]}


def ratios(results: dict) -> dict[str, float]:
    """What is held against what."""
    collect, evaluate = results["collect"], results["evaluate"]
    held = {"rows to the lake, of a bare write": collect["lake_s"] / max(collect["parquet_s"], 0.01)}
    for name in beside.OPPONENTS:
        held[f"evaluate, of {name}"] = evaluate["spark_s"] / max(evaluate[f"{name}_s"], 0.01)
    return held


def submitted(folder: Path, lake, partitions: int, job: Path, *arguments: str) -> None:
    """A Spark job with the settings that `evaluate` has for so many partitions."""
    properties = {**spark.settings(partitions), **lake.spark_conf(), **lake.spark_secrets()}
    (folder / "spark.properties").unlink(missing_ok=True)
    file = spark.write_properties(folder / "spark.properties", properties)
    command = spark.submit(file, str(job), *arguments)
    with open(folder / "spark.log", "w") as log:
        done = subprocess.run(command, env=spark.environment(), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"{job.name} failed:\n{(folder / 'spark.log').read_text()[-3000:]}")


def machine() -> dict:
    """What it was measured on."""
    memory = round(psutil.virtual_memory().total / 2**30)
    return {"processors": os.cpu_count(), "memory_gb": memory, "python": platform.python_version()}


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Print the steps as they end; write RESULTS, if asked for. Returns 1 where the results differ."""
    try:
        size, seed, rounds = int(environ["SIZE"]), int(environ.get("SEED") or 1), int(environ.get("ROUNDS") or 1)
    except ValueError:
        raise SystemExit("SIZE, SEED and ROUNDS are numbers: make bench SIZE=700000 SEED=1") from None
    if size < 1 or seed < 0 or rounds < 1:
        raise SystemExit("SIZE and ROUNDS are at least 1, SEED at least 0")
    with processes.Session("durability-bench-") as session:
        documents = (
            [measured(session.folder, size, seed)] if rounds == 1 else list(_rounds(session.folder, rounds, environ))
        )
    results = medians(documents)
    if rounds > 1:
        print(f"medians of {rounds} rounds")
    print(f"total         {results['total_s']:9.1f} s, {results['rows']:,} partitions, at most {results['peak_mb']} MB")
    held = [ratios(document) for document in documents]
    for name in held[0]:
        print(f"{name:<34}{statistics.median_low(of[name] for of in held):9.1f}")
    print(f"{'report.html':<34}{results['report_html_mb']:9.1f} MB")
    if environ.get("RESULTS"):
        Path(environ["RESULTS"]).write_text(json.dumps(results, indent=1) + "\n")
    return 0 if results["equal"] else 1


def _rounds(folder: Path, rounds: int, environ: Mapping[str, str]) -> Iterator[dict]:
    """The documents of so many rounds, one after the other: what one leaves in memory is no part of the next one's peak."""
    for number in range(1, rounds + 1):
        print(f"round {number}", flush=True)
        file = folder / f"round-{number}.json"
        subprocess.run([sys.executable, "-m", "bench.scale"], env={**environ, "ROUNDS": "1", "RESULTS": str(file)})
        if not file.exists():
            raise SystemExit(f"round {number} failed, see above")
        yield json.loads(file.read_text())


if __name__ == "__main__":
    sys.exit(main())
