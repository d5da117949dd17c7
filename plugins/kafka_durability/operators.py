"""One operator per step of an audit. Each hands its settings to a room of the domain and says what came of it.

XCom carries references and counts only; what grows with the fleet goes through `handover`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kafka_durability import handover, slack, sources
from kafka_durability.assets import announce
from kafka_durability.collecting import collect_group, failure
from kafka_durability.hook import KafkaHook
from kafka_durability.step import Notes, Settings, Step

# What a run's kind makes of its snapshots: a pulse's are no evidence of the fleet as a whole.
SNAPSHOT_KINDS = {"nightly": "full", "pulse": "pulse"}
# How far back it looks for how large clusters are and which could not be read: a few runs.
LOOK_BACK = {"nightly": timedelta(days=3), "pulse": timedelta(minutes=30)}
IN_TIME = 0.8  # of the collect task's execution timeout; the rest is for staging what was read last
# How long a run's tasks can be cleared; a pulse's facts are gone when it ends, so later only its traces are of use.
HANDOVER_DAYS = {"nightly": 30, "pulse": 1}


def _lake(settings: Settings):
    from durability.lake import Lake

    return Lake.open(settings.lake)


def _named(cluster: str, reason: str) -> str:
    return reason if cluster in reason else f"{cluster}: {reason}"


def _s(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


class PlanOperator(Step):
    """Checks policy, waivers and clusters, makes the lake's tables where missing, and deals the sources into groups.

    Returns the groups, see `kafka_durability.sources`; with none, as long as nobody has named a cluster, the rest of the run
    is skipped. The tables are made here, once: first users racing for them
    fail each other. Here as well, what earlier runs of this DAG handed over goes when nobody will clear their tasks any
    more, and the nightly run removes the staged files of killed runs, pulses' too: a pulse has no time for that.
    """

    def __init__(self, *, kind: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.kind = kind

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> list[list[dict]]:
        from durability.policy import load_policy, load_waivers

        policy = load_policy(settings.policy)
        load_waivers(settings.waivers)
        documents = settings.topology
        listed = sources.from_documents(documents) if documents else sources.from_clusters(settings.clusters)
        lake = _lake(settings)
        lake.ensure()
        last = datetime.now(UTC) - LOOK_BACK[self.kind]
        before = [] if documents else lake.snapshots(kind=SNAPSHOT_KINDS[self.kind], since=last)
        groups = sources.deal(listed, before)
        handover.prune(settings.lake, self.dag_id, HANDOVER_DAYS[self.kind])
        if self.kind == "nightly":
            orphans = lake.discard_orphans()
            self.log.info("%s of killed runs removed", _s(orphans, "staged file"))
        what = documents.name if documents else _s(len(listed), "cluster")
        notes.text = f"{what}, policy {policy.name}"
        if not groups:
            self.log.warning("%s lists no cluster, so this run ends here: name one there", settings.clusters)
        return groups


class CollectOperator(Step):
    """Reads a group of sources and stages what it read; commits nothing.

    Returns a reference to `{"attempts", "failures"}`: every source is in one of them, so this task succeeds also when
    none could be read.
    """

    template_fields = ("group",)

    def __init__(self, *, group: list[dict], **kwargs: Any):
        super().__init__(**kwargs)
        self.group = group

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> dict[str, str]:
        # What isn't read in time is missing by name; a task that Airflow ends would lose what it has read as well.
        seconds = (self.execution_timeout or timedelta(hours=1)).total_seconds() * IN_TIME
        results = collect_group(_lake(settings), self.group, lambda c: KafkaHook(c).settings(), seconds=seconds)
        partitions = sum(a["partitions"] for a in results["attempts"])
        notes.text = f"{_s(len(results['attempts']), 'snapshot')}, {_s(partitions, 'partition')}"
        notes.problems += [_named(f["cluster"], f["reason"]) for f in results["failures"]]
        ti = context["ti"]
        name = f"collect-{ti.map_index}-{ti.try_number}"
        return {"results": handover.put(settings.lake, handover.run_of(context), name, results)}


class GateOperator(Step):
    """Holds each snapshot against itself, and counts the sources against what was planned.

    Returns a reference to `{"attempts", "verdicts", "failures"}`. A source whose group brought nothing (a lost worker)
    is a failure like any other.
    """

    template_fields = ("planned", "collected")

    def __init__(self, *, planned: Any, collected: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.planned, self.collected = planned, collected

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> dict[str, str]:
        from expectations import gate

        if self.planned == []:
            raise AirflowSkipException(f"{settings.clusters} lists no cluster; see the task `plan`")
        if not self.planned:
            raise AirflowFailException("nothing was planned; see the task `plan`")
        groups = groups_of(settings, self.collected)
        gathered = gather(self.planned, groups)
        notes.problems += gathered["lost"]
        attempts = attempts_of(gathered)
        if settings.topology and not attempts:
            raise AirflowFailException("no document could be read")
        verdicts = gate.check(_lake(settings), attempts) if attempts else []
        rejected = [v for v in verdicts if not v.accepted]
        notes.text = f"{len(verdicts) - len(rejected)} accepted, {len(rejected)} rejected"
        notes.problems += [f"{v.cluster}: snapshot rejected: {v.reason}" for v in rejected]
        gathered["verdicts"] = [asdict(v) for v in verdicts]
        return {"gated": handover.put(settings.lake, handover.run_of(context), "gate", gathered)}


def gather(planned: Sequence[Sequence[dict]], groups: Sequence[dict]) -> dict[str, list]:
    """All groups' results as one, each planned source accounted for: `attempts`, `failures`, `lost` (in words).

    >>> got = gather([[{"name": "a"}], [{"name": "b"}]], [{"sources": ["a"], "attempts": [{}], "failures": []}])
    >>> len(got["attempts"]), [f["cluster"] for f in got["failures"]]
    (1, ['b'])
    """
    brought = {name for group in groups for name in group["sources"]}
    reason = "its collect task ended without a result; see that task's log"
    lost = [s["name"] for group in planned for s in group if s["name"] not in brought]
    failures = [f for group in groups for f in group["failures"]] + [failure(name, reason) for name in lost]
    attempts = [a for group in groups for a in group["attempts"]]
    return {"attempts": attempts, "failures": failures, "lost": [f"{name}: {reason}" for name in lost]}


class PublishOperator(Step):
    """Commits what was read and writes the `snapshots` rows, last; of a pulse those rows alone.

    Returns references to the rows that the run judges or finds missing, the newest of each cluster of this input, and to
    what the gate saw.
    """

    template_fields = ("gated",)

    def __init__(self, *, gated: Any, kind: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.gated, self.kind = gated, kind

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> dict[str, str]:
        from expectations.gate import Verdict

        lake = _lake(settings)
        gated = handover.get(settings.lake, self.gated["gated"])
        attempts = [replace(a, kind=SNAPSHOT_KINDS[self.kind]) for a in attempts_of(gated)]
        verdicts = [Verdict(**v) for v in gated["verdicts"]]
        rows = [asdict(r) for r in lake.publish(attempts, verdicts)] if attempts else []
        failures = [(f["cluster"], datetime.fromisoformat(f["at"]), f["reason"]) for f in gated["failures"]]
        # A document that can't be used leaves no row in the lake; the report alone names it.
        recorded = [] if settings.topology else lake.record_failures(failures, SNAPSHOT_KINDS[self.kind])
        lost = [unread(*f) for f in failures] if settings.topology else [asdict(r) for r in recorded]
        notes.text = f"{_s(len(rows), 'snapshot')} {'noted' if self.kind == 'pulse' else 'committed'}"
        newest: dict[str, dict] = {}
        for row in sorted(rows + lost, key=lambda r: r["captured_at"]):
            newest[row["cluster"]] = row
        published = handover.put(settings.lake, handover.run_of(context), "publish", list(newest.values()))
        return {"published": published, **self.gated}


def unread(cluster: str, at: datetime, reason: str) -> dict[str, Any]:
    """A row like those of `snapshots` for a source of which nothing is known but its name."""
    nothing = dict.fromkeys(("snapshot_id", "attempt_id", "sha256", "partitions"))
    return {"cluster": cluster, "captured_at": at, "status": "failed", "reason": reason, "source": cluster, **nothing}


class FlagOperator(Step):
    """Has Great Expectations judge the posture by itself and compares; differences become UNKNOWN.

    Returns `Flagged` as a dict.
    """

    template_fields = ("evaluated",)

    def __init__(self, *, evaluated: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.evaluated = evaluated

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> dict:
        from expectations import posture

        flagged = posture.flag(_lake(settings), plan_of(settings, self.evaluated), settings.out)
        notes.text = f"{_s(len(flagged.checked), 'control')} checked again, {_s(flagged.disagreements, 'difference')}"
        return asdict(flagged)


class ReportOperator(Step):
    """Writes findings.json, findings.csv and report.html. Returns their paths; events of its outlets say the counts."""

    template_fields = ("evaluated", "flagged")

    def __init__(self, *, evaluated: Any, flagged: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.evaluated, self.flagged = evaluated, flagged

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> dict[str, str]:
        from durability import report
        from expectations.posture import Flagged

        plan = plan_of(settings, self.evaluated)
        summary = report.build(_lake(settings), plan, Flagged(**self.flagged), settings.out)
        announce(context, self.outlets, plan.run_id, summary.files["findings.json"])
        return {name: str(path) for name, path in summary.files.items()}


class NotifyOperator(Step):
    """Sends the run's digest to Slack where there is such a Connection; failing to is logged, never the audit's end."""

    template_fields = ("reported",)

    def __init__(self, *, reported: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.reported = reported

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> str:
        notes.text = slack.send_digest(Path(self.reported["findings.json"]), self.log)
        return notes.text


class ConcludeOperator(Step):
    """Writes the `runs` row, from which results exist for every reader; fails if a cluster or the proof is missing."""

    template_fields = ("evaluated", "flagged", "reported")

    def __init__(self, *, evaluated: Any, flagged: Any, reported: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.evaluated, self.flagged, self.reported = evaluated, flagged, reported

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> str:
        from durability.report.files import load

        plan = plan_of(settings, self.evaluated)
        missing = [s.cluster for s in plan.snapshots if not s.judged]
        status = "unverified" if not self.flagged["verified"] else "incomplete" if missing else "complete"
        summary = load(Path(self.reported["findings.json"]))["summary"]
        _lake(settings).commit_run(run_row(plan, status, self.flagged["verified"], summary))
        if not self.flagged["verified"]:
            notes.problems += self.flagged["problems"] or ["the second check of the verdicts did not confirm them"]
        notes.text = status
        if status != "complete":
            raise AirflowFailException(f"the run is {status}: {', '.join(missing) or 'see the problems above'}")
        return status


class ConcludePulseOperator(Step):
    """Writes a pulse's `runs` row with its counters as the summary; fails if a cluster could not be read.

    Its verdicts are Spark's alone.
    """

    template_fields = ("evaluated",)

    def __init__(self, *, evaluated: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.evaluated = evaluated

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> str:
        plan = plan_of(settings, self.evaluated)
        missing = [s.cluster for s in plan.snapshots if not s.judged]
        status = "incomplete" if missing else "complete"
        lake = _lake(settings)
        row = run_row(plan, status, None, {})
        summary = counted(lake, row)
        lake.commit_run({**row, "summary": json.dumps(summary)})
        unhealthy = {name: n for name, n in summary.items() if n and name not in ("clusters", "partitions")}
        notes.text = f"{status}; " + (", ".join(f"{name} {n:,}" for name, n in unhealthy.items()) or "all healthy")
        if missing:
            raise AirflowFailException(f"the pulse is incomplete: {', '.join(missing)}")
        return status


class DiscardOperator(Step):
    """Removes what a pulse staged, whatever became of the pulse. Returns how many files."""

    template_fields = ("collected",)

    def __init__(self, *, collected: Any, **kwargs: Any):
        super().__init__(**kwargs)
        self.collected = collected

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> int:
        groups = groups_of(settings, self.collected)
        removed = _lake(settings).discard([a for group in groups for a in attempts_of(group)])
        notes.text = f"{_s(removed, 'staged file')} removed"
        return removed


def counted(lake, run: Mapping[str, Any]) -> dict[str, int]:
    """How many clusters a result judged, and its `health_counters` summed over them."""
    from pyiceberg.expressions import IsNull

    from durability.lake.tables import COUNTED, HEALTH_COUNTERS

    rows = lake.results(HEALTH_COUNTERS, run, IsNull("topic"))
    return {"clusters": rows.num_rows, **{name: sum(rows[name].to_pylist()) for name in COUNTED}}


def run_row(plan, status: str, verified: bool | None, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The row of `runs` for a plan: columns of `durability.lake.tables.RUNS`."""
    started = datetime.fromisoformat(plan.started_at)
    columns = ("cluster", "snapshot_id", "attempt_id", "status", "reason", "sha256")
    moments = {s.cluster: datetime.fromisoformat(s.captured_at) if s.captured_at else None for s in plan.snapshots}
    return {
        "run_id": plan.run_id,
        "result_id": plan.result_id,
        "kind": plan.kind,
        "captured_at": max((moments[s.cluster] for s in plan.judged), default=started),
        "started_at": started,
        "finished_at": datetime.now(UTC),
        "status": status,
        "verified": verified,
        "policy_name": plan.policy.name,
        "policy_sha256": plan.policy.sha256,
        "waivers": json.dumps(plan.waivers),
        "snapshots": [
            {**{c: getattr(s, c) for c in columns}, "captured_at": moments[s.cluster]} for s in plan.snapshots
        ]
        + counted_earlier(plan),
        "summary": json.dumps(summary),
    }


def counted_earlier(plan) -> list[dict[str, Any]]:
    """Entries of a `runs` row for the earlier snapshots that the run counted: no later run counts them again."""
    from durability.run.plan import COUNTED

    earlier = plan.look_back.uncounted if plan.look_back else []
    kept = ("cluster", "snapshot_id", "attempt_id", "sha256")
    return [
        {
            **{name: getattr(e, name) for name in kept},
            "captured_at": datetime.fromisoformat(e.captured_at),
            "status": COUNTED,
            "reason": None,
        }
        for e in earlier
    ]


def groups_of(settings: Settings, collected: Sequence[Mapping[str, str] | None] | None) -> list[dict[str, Any]]:
    """What the groups' collect tasks brought, each one's as it was handed over; nothing of one that brought nothing.

    Read as a slice: of what mapped tasks give, Airflow finds the end otherwise by asking for one more than there are, and
    its client logs an error for that.
    """
    return [handover.get(settings.lake, c["results"]) for c in (collected[:] if collected else ()) if c]


def attempts_of(gathered: Mapping[str, Any]) -> list:
    """The `Attempt`s among what `collect` or `gate` handed over."""
    from durability.lake import Attempt

    return [Attempt.from_json(json.dumps(item)) for item in gathered["attempts"]]


def plan_of(settings: Settings, evaluated: Mapping[str, str]):
    """The run's plan, as `evaluate` left it."""
    from durability.run import Plan

    return Plan.from_json(handover.get(settings.lake, evaluated["plan"]))
