"""Measures a nightly run over a whole fleet, step by step, as the DAG runs it: `make bench SIZE=700000 SEED=1`.

In the same run and over the same files it also measures the rows alone, and as bare Parquet files. Their ratio compares writing
the same rows into the lake, with `publish`. It measures an empty Spark job with the same settings, and DuckDB and Polars, whose
verdicts on topics are compared with the lake's row by row (`bench.peers`). Generating the fleet isn't measured.

The step `no losses` evaluates the fleet without the losses of brokers and racks, and `losses` computes these with DuckDB.

There are two fleets: Kafka's assignor places the replicas of one, the other repeats few placements (`bench.placements`).
PLACEMENT= restricts the run to one fleet, ROUNDS= repeats it and reports medians, RESULTS= names a file for the numbers.
Each fleet and round has a separate process.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import And, EqualTo, In

from bench import fleet, floor, placements
from bench.clock import Clock, Peak, machine, run
from bench.peers import compare, losses
from durability import findings, resources
from durability.lake import Lake, rows
from durability.lake.attempt import Attempt
from durability.lake.tables import FINDINGS
from durability.plan import Plan, build_plan
from durability.policy import load_policy, load_waivers
from durability.report.build import build
from durability.runtime import processes, spark
from expectations import gate, posture

ROOT = resources.PACKAGES
POLICY, WAIVERS = ROOT / "policies" / "policy.yaml", ROOT / "policies" / "waivers.yaml"


def staged(
    location: str, folder: Path, size: int, seed: int, placement: str
) -> tuple[list[Attempt], dict[str, tuple[float, float]]]:
    """Stage the fleet cluster by cluster, and write the same rows as bare Parquet files.

    Returns the attempts, and seconds and processor seconds by step. Run it in a separate process, so that the memory of a
    fleet isn't part of the peak of the following steps.
    """
    lake = Lake.open(location)
    attempts, took = [], {name: (0.0, 0.0) for name in ("rows", "lake parquet", "bare parquet", "stage")}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        wall, cpu = time.monotonic(), time.process_time()
        made = work()
        so_far = took[name]
        took[name] = so_far[0] + time.monotonic() - wall, so_far[1] + time.process_time() - cpu
        return made

    for topology in fleet.topologies(size, seed, placement=placement):
        attempts.append(timed("stage", partial(lake.stage, topology)))
        tables = timed("rows", partial(rows.build, topology, "bare", "bare"))
        timed("lake parquet", partial(lake.write, tables))
        timed("bare parquet", partial(_write_bare, tables, folder))
    return attempts, took


def _write_bare(tables: Mapping[str, pa.Table], folder: Path) -> None:
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")


PEERS, LOSSES = compare.PEERS, "losses"
"""Programs that compute the same in the same run. `losses` is DuckDB's, too."""
NOT_OF_A_RUN = ("rows", "lake parquet", "bare parquet", "empty job", "no losses", *PEERS, LOSSES)
"""Steps for comparison only. A nightly run doesn't have them."""


def measured(folder: Path, size: int, seed: int, placement: str) -> dict:
    """Run the steps over a fleet in a lake below `folder`. Returns RESULTS' document for this fleet.

    Each step is reported separately, and those of a nightly run also in the total.
    """
    peak = Peak()
    peak.start()
    clock = Clock(peak)
    lake = Lake.open(str(folder / "lake"))
    lake.ensure()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
        attempts, took = own.submit(staged, lake.location, folder, size, seed, placement).result()
    for name, (wall, cpu) in took.items():
        clock.add(name, wall, cpu)
    warehouse, out, empty = folder / "lake" / "warehouse", folder / "out", folder / "empty.py"
    empty.write_text(floor.EMPTY_JOB)
    with clock("gate"):
        decisions = gate.check(lake, attempts)
    with clock("publish"):
        snapshots = lake.publish(attempts, decisions)
    with clock("plan"):
        plan = planned(lake, snapshots)
    submit = partial(_submit, folder, lake, plan.partitions)
    with clock("empty job"):
        submit(empty)
    facts = compare.inputs(warehouse, attempts, plan.policy, folder)
    with clock("evaluate"):
        submit(ROOT / "spark_jobs" / "evaluate.py", "--plan", str(plan.write(folder / "plan.json")))
    # The run is evaluated again, without losses.
    again = planned(lake, snapshots, "bench:without-losses").write(folder / "again.json")
    with clock("no losses"):
        submit(ROOT / "bench" / "without_losses.py", "--plan", str(again))
    for name in (*PEERS, LOSSES):
        with clock(name):
            compare.run(name, facts, folder)
    with clock("cross-check"):
        checked = posture.flag(lake, plan, out)
    with clock("findings"):
        findings.write(lake, plan)
    with clock("report"):
        build(lake, plan, checked, out)
    highest = peak.stop()
    refused = [d.reason for d in decisions if not d.accepted]
    if refused or not checked.verified:
        raise SystemExit(f"the run isn't what it should be: {refused[:3]} {checked.problems[:3]}")
    differ = [line for name in PEERS for line in compare.differences(warehouse, plan.result_id, folder / name)]
    differ += compare.differences(warehouse, plan.result_id, folder / LOSSES, losses.TABLES)
    print("\n".join(differ) or "the same rows from all three")
    return document(plan.partitions, not differ, highest, clock) | {
        "report_html_mb": round((out / "report.html").stat().st_size / 1e6, 2),
        "worded": worded(lake, plan),
    }


def _submit(folder: Path, lake: Lake, partitions: int, job: Path, *arguments: str) -> None:
    """Run a Spark job with the settings that `evaluate` uses for so many partitions."""
    properties = {**spark.settings(partitions), **lake.spark_conf()}
    (folder / "spark.properties").unlink(missing_ok=True)
    file = spark.write_properties(folder / "spark.properties", properties)
    run(spark.submit(file, str(job), *arguments), spark.environment(), folder / "spark.log")


def worded(lake: Lake, plan: Plan) -> int:
    """The number of findings with a message of their own: those that fail, are exempt or unknown."""
    where = And(EqualTo("result_id", plan.result_id), In("outcome", ["FAIL", "EXEMPT", "UNKNOWN"]))
    return lake.scan(FINDINGS, where, ["id"]).num_rows


def planned(lake: Lake, snapshots: list[dict], result_id: str = "bench:1") -> Plan:
    """The plan of a nightly run over these snapshots, with the shipped policy."""
    return build_plan(
        lake,
        run_id=result_id.partition(":")[0],
        result_id=result_id,
        kind="nightly",
        policy=load_policy(POLICY),
        waivers=load_waivers(WAIVERS),
        snapshots=snapshots,
        clusters=[],
        attempts=[],
        started_at=datetime.now(UTC),
    )


def document(partitions: int, equal: bool, peak_mb: int, clock: Clock) -> dict:
    """RESULTS for a fleet: seconds of each step.

    Of `evaluate`: `session_s`, an empty job's; `spark_s`, without session and losses; `losses_s`, what the losses take.
    """
    session = clock.wall("empty job")
    of_run = [name for name in clock.steps if name not in NOT_OF_A_RUN]
    return {
        "rows": partitions,
        "equal": equal,
        "peak_mb": peak_mb,
        "collect": {
            "lake_s": round(clock.wall("lake parquet") + clock.wall("publish"), 2),
            "parquet_s": clock.wall("bare parquet"),
            "rows_s": clock.wall("rows"),
        },
        "evaluate": {
            "session_s": session,
            "spark_s": round(clock.wall("no losses") - session, 2),
            "losses_s": round(clock.wall("evaluate") - clock.wall("no losses"), 2),
            **{f"{name}_s": clock.wall(name) for name in PEERS},
            "losses_duckdb_s": clock.wall(LOSSES),
        },
        **{f"{name.replace('-', '_')}_s": clock.wall(name) for name in of_run if name != "evaluate"},
        "total_s": round(sum(clock.wall(name) for name in of_run), 2),
        "steps": {name: asdict(step) for name, step in clock.steps.items()},
        "machine": machine(),
    }


def medians(documents: Sequence[dict]) -> dict:
    """One document for several rounds: `equal` if all are, the highest peak, the lower median of every other number.

    >>> medians([{"equal": True, "peak_mb": 5, "evaluate": {"spark_s": s}, "machine": {}} for s in (9.0, 2.0, 3.0)])
    {'equal': True, 'peak_mb': 5, 'evaluate': {'spark_s': 3.0}, 'machine': {}}
    """
    ways: dict[str, Callable[[list], Any]] = {"equal": all, "peak_mb": max}

    def one(name: str, values: list) -> Any:
        if isinstance(values[0], dict):
            return {inner: one(inner, [value[inner] for value in values]) for inner in values[0]}
        if isinstance(values[0], str):
            return values[0]
        return ways.get(name, statistics.median_low)(values)

    return {name: one(name, [document[name] for document in documents]) for name in documents[0]}


def ratios(results: dict) -> dict[str, float]:
    """Seconds of a run's steps relative to what they are compared with, and those of evaluate in CPU seconds, too.

    On a machine that others use, CPU seconds differ less between runs.
    """
    collect = results["collect"]
    found = {"rows to the lake, of a bare write": collect["lake_s"] / max(collect["parquet_s"], 0.01)}
    for measure, unit in (("wall", ""), ("cpu", " (CPU)")):
        took = {name: step[measure] for name, step in results["steps"].items()}
        spark, losses = took["no losses"] - took["empty job"], took["evaluate"] - took["no losses"]
        for name in PEERS:
            found[f"evaluate without losses, of {name}{unit}"] = spark / max(took[name], 0.01)
        found[f"losses, of evaluate without them{unit}"] = losses / max(spark, 0.01)
        found[f"losses, of duckdb{unit}"] = losses / max(took[LOSSES], 0.01)
    return found


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Print each finished step and the ratios of each fleet; write RESULTS, if given. Returns 1 if results differ."""
    try:
        size, seed, rounds = int(environ["SIZE"]), int(environ.get("SEED") or 1), int(environ.get("ROUNDS") or 1)
    except ValueError:
        raise SystemExit("SIZE, SEED and ROUNDS are numbers: make bench SIZE=700000 SEED=1") from None
    if size < 1 or seed < 0 or rounds < 1:
        raise SystemExit("SIZE and ROUNDS are at least 1, SEED at least 0")
    fleets = (environ["PLACEMENT"],) if environ.get("PLACEMENT") else placements.PLACEMENTS
    if not set(fleets) <= set(placements.PLACEMENTS):
        raise SystemExit(f"PLACEMENT is one of {', '.join(placements.PLACEMENTS)}; without it both fleets are measured")
    with processes.Session("durability-bench-") as session:
        if rounds == len(fleets) == 1:
            documents = {fleets[0]: [measured(session.folder, size, seed, fleets[0])]}
        else:
            documents = _in_processes(session.folder, fleets, rounds, environ)
    results = {placement: medians(each) for placement, each in documents.items()}
    print("\n".join(table(results, documents)))
    equal = all(document["equal"] for document in results.values())
    if environ.get("RESULTS"):
        Path(environ["RESULTS"]).write_text(json.dumps({"equal": equal, "fleets": results}, indent=1) + "\n")
    return 0 if equal else 1


def table(results: Mapping[str, dict], documents: Mapping[str, Sequence[dict]]) -> list[str]:
    """Lines with a column for each fleet: its totals, and the median of each ratio over its rounds."""
    ratios_of = {placement: [ratios(document) for document in each] for placement, each in documents.items()}
    rows = {
        "partitions": [f"{r['rows']:,}" for r in results.values()],
        "total, seconds": [f"{r['total_s']:.1f}" for r in results.values()],
        "highest memory, MB": [f"{r['peak_mb']}" for r in results.values()],
        "report.html, MB": [f"{r['report_html_mb']:.1f}" for r in results.values()],
        "findings worded a second": [f"{r['worded'] / max(r['findings_s'], 0.01):,.0f}" for r in results.values()],
    }
    for name in next(iter(ratios_of.values()))[0]:
        rows[name] = [f"{statistics.median_low(one[name] for one in each):.1f}" for each in ratios_of.values()]
    rounds = len(next(iter(documents.values())))
    title = f"medians of {rounds} rounds" if rounds > 1 else ""
    return [
        f"{name:<44}" + "".join(f"{cell:>12}" for cell in cells) for name, cells in {title: results, **rows}.items()
    ]


def _in_processes(
    folder: Path, fleets: Sequence[str], rounds: int, environ: Mapping[str, str]
) -> dict[str, list[dict]]:
    """The documents of each fleet's rounds, the fleets in turn.

    Each round is a separate process, so that memory left by one isn't part of the next one's peak.
    """
    documents: dict[str, list[dict]] = {placement: [] for placement in fleets}
    for number in range(1, rounds + 1):
        for placement in fleets:
            print(f"{placement} fleet" + (f", round {number}" if rounds > 1 else ""), flush=True)
            file = folder / f"{placement}-{number}.json"
            own = {"PLACEMENT": placement, "ROUNDS": "1", "RESULTS": str(file)}
            subprocess.run([sys.executable, "-m", "bench.scale"], env={**environ, **own})
            if not file.exists():
                raise SystemExit(f"the run over the {placement} fleet failed, see above")
            documents[placement].append(json.loads(file.read_text())["fleets"][placement])
    return documents


if __name__ == "__main__":
    sys.exit(main())
