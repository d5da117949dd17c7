"""Histories of partition health drawn as text, judged by the Spark rule as one fleet in one job.

A history is a line, one character a moment, five minutes apart, the last one judged: `0` all in sync; `1` to `9` that
broker out and the topic at min ISR; `&` brokers 1 and 2 out, at min ISR; `u` under min ISR and `x` offline, broker 1 out;
`c` at min ISR by configuration alone; `r` broker 1 out and the topic still above its min ISR; `?` not readable; `!` not
readable, but brokers 1 and 2 are out; `-` no pulse. Blanks are for the eye.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from durability.plan.plan import LookBack, Plan, SnapshotPart, policy_part, to_text
from durability.policy.model import Maintenance, Policy, Readings, Selector, Tier

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PULSE = timedelta(minutes=5)
NOTHING = {"unknown": 0, "offline": 0, "under_min_isr": 0, "at_min_isr": 0, "under_replicated": 0}
NOTHING |= {"at_min_isr_by_configuration": 0, "under_min_isr_by_configuration": 0, "out_of_sync": []}
DRAWN = {
    "0": {},
    "&": {"at_min_isr": 1, "out_of_sync": [2, 1]},
    "u": {"under_min_isr": 1, "out_of_sync": [1]},
    "x": {"offline": 1, "out_of_sync": [1]},
    "c": {"at_min_isr": 2, "at_min_isr_by_configuration": 2},
    "r": {"under_replicated": 1, "out_of_sync": [1]},
    "?": {"unknown": 1},
    "!": {"unknown": 1, "out_of_sync": [1, 2]},
    **{str(n): {"at_min_isr": 1, "out_of_sync": [n]} for n in range(1, 10)},
}
COUNTS = "unknown int,offline int,under_min_isr int,at_min_isr int,under_replicated int,"
COUNTS += "at_min_isr_by_configuration int,under_min_isr_by_configuration int,out_of_sync array<int>"
SNAPSHOT = "cluster string, captured_at timestamp, snapshot_id string"
ROWS = "cluster string,topic string,captured_at timestamp,snapshot_id string,result_id string," + COUNTS
BROKERS = "array<struct<broker:int,down:string,lag_cause:string>>"
UNHEALTHY = (
    "array<struct<partition:int,categories:array<string>,by_configuration:boolean,under_by_configuration:boolean,"
    "ids:array<int>>>"
)


@dataclass(frozen=True)
class Moment:
    """One snapshot of a history: when, and what it shows of the one topic."""

    at: datetime
    drawn: str

    @property
    def counts(self) -> dict:
        return {**NOTHING, **DRAWN[self.drawn]}


def drawn(line: str, step: timedelta = PULSE, last: datetime = NOON) -> list[Moment]:
    """The moments of a line, the last at `last`."""
    cells = line.replace(" ", "")
    count = len(cells)
    return [Moment(last - (count - 1 - n) * step, c) for n, c in enumerate(cells) if c != "-"]


def policy_of(readings: Readings | None = None, maintenance: Sequence[tuple[str, datetime, datetime]] = ()) -> Policy:
    windows = tuple(Maintenance(cluster, start, end, "planned") for cluster, start, end in maintenance)
    return Policy("p", {"t": Tier("t")}, (Selector("t"),), readings=readings or Readings(), maintenance=windows)


def judge(spark, histories: dict[str, list[Moment]], policy: Policy, tiers: dict[str, str] | None = None) -> dict:
    """(cluster, resource) -> the findings of at-min-isr-over-time of it, each with observed as a dict, by category."""
    from pyspark.sql import functions as F

    from spark_jobs.assemble import past as history
    from spark_jobs.assemble import verdicts
    from spark_jobs.controls import at_min_isr_over_time as control
    from spark_jobs.frames.literals import literal
    from spark_jobs.history import readings

    plan = _plan(histories, policy)
    lines = [(cluster, m) for cluster, line in histories.items() for m in line]
    rows = [_row(cluster, m, topic) for cluster, m in lines for topic in (None, "orders")]
    lasts = {cluster: line[-1].at for cluster, line in histories.items()}
    now = spark.createDataFrame([r for r in rows if r["captured_at"] == lasts[r["cluster"]]], ROWS)
    # The topic has a row only where there is something to count, as in the lake.
    then = [r for r in rows if r["captured_at"] < lasts[r["cluster"]] and (r["topic"] is None or {**r, **NOTHING} != r)]
    tables = {
        "health_counters": spark.createDataFrame(then, ROWS),
        "runs": spark.createDataFrame(
            [("pulse", NOON, NOON)], "result_id string, captured_at timestamp, finished_at timestamp"
        ),
    }
    captured = F.try_element_at(
        literal({s.cluster: s.captured_at for s in plan.snapshots}, "map<string,string>"), F.col("cluster")
    ).cast("timestamp")
    of_clusters, found = history.over_time(
        plan, history.counted(plan, plan.look_back, tables.__getitem__, captured), now, None
    )
    brokers = [(n, f"broker:{n} down", f"broker:{n} lagging") for n in range(1, 10)]
    clusters = spark.createDataFrame(
        [(c, lasts[c], c, "self", brokers, True, 0) for c in histories],
        f"{SNAPSHOT}, provider string, brokers {BROKERS}, topics_known boolean, hidden_partitions long",
    )
    topics = spark.createDataFrame(
        [
            (c, lasts[c], c, "orders", (tiers or {}).get(c, "t"), "self", [(0, ["at-min-isr"], False, False, [0])])
            for c in histories
        ],
        f"{SNAPSHOT}, topic string, tier string, provider string, unhealthy {UNHEALTHY}",
    )
    wanted = plan.policy.readings
    whole = control.judged(clusters, clusters, of_clusters, found, F.lit(readings.WHOLE), wanted)
    each = control.judged(topics, clusters, of_clusters, found, F.col("topic"), wanted)
    frames = [
        verdicts.with_outcomes(whole, "cluster", F.col("cluster"), control.cluster_verdicts(plan)),
        verdicts.with_outcomes(each, "topic", F.col("topic"), control.topic_verdicts(plan)),
    ]
    result: dict = {}
    for finding in verdicts.row_per_outcome(frames[0].unionByName(frames[1])).toArrow().to_pylist():
        finding["observed"] = json.loads(finding["observed"])
        key = (finding["cluster"], "cluster" if finding["resource_type"] == "cluster" else finding["resource"])
        result.setdefault(key, {})[finding["category"] or finding["outcome"]] = finding
    return result


def _plan(histories: dict[str, list[Moment]], policy: Policy) -> Plan:
    parts = [
        SnapshotPart(cluster=c, status="accepted", captured_at=to_text(line[-1].at), snapshot_id=c, attempt_id=c)
        for c, line in histories.items()
    ]
    since = min(line[-1].at for line in histories.values()) - policy.readings.look_back
    return Plan(
        run_id="run",
        kind="nightly",
        result_id="result",
        started_at=to_text(NOON),
        policy=policy_part(policy, []),
        waivers=[],
        snapshots=parts,
        partitions=0,
        look_back=LookBack(to_text(since), {c: len(line) - 1 for c, line in histories.items()}),
    )


def _row(cluster: str, moment: Moment, topic: str | None) -> dict:
    keys = {"cluster": cluster, "topic": topic, "captured_at": moment.at, "result_id": "pulse"}
    return keys | {"snapshot_id": f"{cluster}@{moment.at}"} | moment.counts
