"""Evaluates topology documents with the Spark rules only, without lake and Airflow. All documents are one fleet in one job."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.expressions import And

from durability.findings import findings_of, reassignments
from durability.findings.clusters import facts_of_clusters
from durability.findings.disputes import Disputes
from durability.lake import partition_groups, rows, tables
from durability.plan.applications import applications
from durability.plan.plan import Earlier, LookBack, Plan, SnapshotPart, from_text, policy_part, to_text
from durability.policy.model import Policy, Waiver
from durability.policy.terms import with_limits
from durability.topology import validate
from tests.support.policy import shipped
from tests.support.tiers import candidates

NONE = tables.DISAGREEMENTS.arrow.empty_table()


@cache
def expressions(pulse: bool):
    """About two thousand expressions, equal for all plans, as `evaluate.warm_up` builds them: once for the runs of a session."""
    from spark_jobs.assemble.evaluation import topic_expressions

    return topic_expressions(pulse)


def per_partition(rows_: pa.Table) -> list[dict]:
    """Rows of `partition_health` with `partition`: one row for each of the equal partitions in a row."""
    return [{**row, "partition": p} for row in rows_.to_pylist() for p in row.pop("partitions")]


def plan_of(
    topologies,
    policy: Policy,
    waivers: list[Waiver] = (),
    result: str = "r1",
    providers=None,
    previous=None,
    failed=(),
    kind="nightly",
    inventory=None,
):
    """A plan that evaluates `topologies`, one per cluster. previous: the plan to compare with."""
    before = {s.cluster: previous for s in previous.snapshots if s.judged} if previous else {}
    parts = [
        SnapshotPart(
            cluster=t.cluster,
            status="accepted",
            captured_at=to_text(t.captured_at),
            snapshot_id=f"s-{t.sha256[:8]}",
            attempt_id=f"{result}-{t.cluster}",
            provider=(providers or {}).get(t.cluster, "self"),
            partitions=sum(len(topic.get("partitions") or []) for topic in t.document["topics"]),
            previous_run_id=before[t.cluster].run_id if t.cluster in before else None,
            previous_result_id=before[t.cluster].result_id if t.cluster in before else None,
            previous_policy_sha256=before[t.cluster].policy.sha256 if t.cluster in before else None,
            previous_attempt_id=f"{before[t.cluster].result_id}-{t.cluster}" if t.cluster in before else None,
        )
        for t in topologies
    ]
    told = {s.cluster for s in previous.snapshots} if previous else set()
    parts += [
        SnapshotPart(
            cluster=c,
            status="failed",
            reason=reason,
            provider="self",
            previous_result_id=previous.result_id if c in told else None,
            previous_policy_sha256=previous.policy.sha256 if c in told else None,
        )
        for c, reason in failed
    ]
    return Plan(
        run_id=f"run-{result}",
        kind=kind,
        result_id=result,
        started_at="2026-11-21T12:00:00Z",
        policy=policy_part(policy, list(waivers)),
        waivers=[with_limits(w, policy) for w in waivers],
        snapshots=parts,
        partitions=0,
        inventory=inventory,
    )


def resolved(
    topologies, plan: Plan, policy: Policy, waivers: list[Waiver], streams: list[dict] = (), factors: dict | None = None
) -> list[dict]:
    """Rows of `resolved_policy`. streams: the result of `applications`. factors: replication factors by cluster and topic."""
    out = []

    def add(cluster, kind, resource, tier=None, placement=None, undecided=None):
        matching = [w.index for w in waivers if any(w.applies(c, cluster, resource) for c in w.controls)]
        out.append(
            {
                "cluster": cluster,
                "run_id": plan.run_id,
                "result_id": plan.result_id,
                "resource_type": kind,
                "resource": resource,
                "tier": tier,
                "waivers": matching,
                "placement": placement,
                "undecided": undecided,
            }
        )

    clusters = {part.attempt_id: part.cluster for part in plan.judged}
    for s in streams:
        add(clusters[s["attempt_id"]], "application", s["resource"], s["tier"], s["placement"])
    for t in topologies:
        add(t.cluster, "cluster", t.cluster)
        for name in policy.tiers:
            add(t.cluster, "tier", name)
        for b in t.document["brokers"]:
            add(t.cluster, "broker", str(b["id"]))
        for topic in t.document["topics"]:
            factor = (factors or {}).get((t.cluster, topic["name"]))
            found = candidates(policy, t.cluster, topic["name"], topic["internal"], None, factor)
            tier, undecided = (found[0], None) if len(found) == 1 else (None, found)
            add(t.cluster, "topic", topic["name"], tier, undecided=undecided)
    for listed in plan.inventory.not_audited if plan.inventory else ():
        add(listed.id, "cluster", listed.id)
    return out


def _holds(rows_: pa.Table, where) -> pa.ChunkedArray:
    """The rows for which an expression of And, EqualTo and In is true."""
    if isinstance(where, And):
        return pc.and_(_holds(rows_, where.left), _holds(rows_, where.right))
    values = {literal.value for literal in where.literals} if hasattr(where, "literals") else {where.literal.value}
    return pc.is_in(rows_[where.term.name], pa.array(sorted(values)))


_NONE: dict = {}
"""By session, of the latest one: a frame writes to the catalog of the session that made it."""


def no_losses(evaluation):
    """The frames of `Losses` without a row, made once for the runs of a session."""
    from spark_jobs.assemble.failure_costs import Losses

    if evaluation.spark not in _NONE:
        rows, topics, clusters = evaluation._facts("partitions"), evaluation.topics, evaluation.base_clusters
        made = Losses(rows.where("false"), topics.where("false"), clusters.where("false"), evaluation._checkpointed)
        _NONE.clear()
        names = ("of_topics", "distances", "costs", "sets")
        _NONE[evaluation.spark] = {name: getattr(made, name)().localCheckpoint() for name in names}
    frames = _NONE[evaluation.spark]
    return SimpleNamespace(**{name: partial(lambda frame: frame, frame) for name, frame in frames.items()})


@contextmanager
def losses_of(plan: Plan, wanted: bool | None = None):
    """Within it, evaluations of the plan leave out what a loss breaks unless `wanted`, which saves a third of their time.

    wanted: None for: if a tier requires its topics to survive a loss. No verdict depends on losses without such a tier.
    """
    from spark_jobs.assemble import evaluation

    required = any(tier.get("survive") for tier in plan.policy.tiers.values())
    with pytest.MonkeyPatch.context() as patch:
        if not (required if wanted is None else wanted):
            patch.setattr(evaluation.Evaluation, "_found_losses", no_losses)
        yield


class Judge:
    """Keeps facts and results of its runs in memory, like a lake."""

    def __init__(self, spark):
        self.spark, self.facts, self.results = spark, {}, {}
        self.results[tables.RUNS.name] = tables.RUNS.arrow.empty_table()

    def _add(self, name: str, table: pa.Table) -> None:
        self.facts[name] = pa.concat_tables([self.facts[name], table]) if name in self.facts else table

    def _read(self, name: str):
        # A table that no run has written yet is empty.
        none_yet = tables.TABLES[name].arrow.empty_table()
        table = self.results[name] if name in self.results else self.facts.get(name, none_yet)
        # Use one chunk: Spark 4.1 loses rows of an Arrow table in many small chunks.
        return self.spark.createDataFrame(table.combine_chunks())

    def _write(self, frame, table) -> None:
        # Runs differ in the columns that Spark knows to be never NULL, so cast to the table's schema.
        self._keep(table, frame.toArrow().cast(table.arrow) if table is tables.VERDICTS else frame.toArrow())

    def _keep(self, table, rows_: pa.Table) -> None:
        self.latest[table.name] = rows_
        self.results[table.name] = (
            pa.concat_tables([self.results[table.name], rows_]) if table.name in self.results else rows_
        )

    def word(self) -> None:
        """Make findings of the latest verdicts, without disagreements."""
        if "verdicts" not in self.latest:
            return
        verdicts = self.latest["verdicts"]
        facts = facts_of_clusters(self, self.plan, reassignments.make(self, self.plan))
        self._keep(tables.FINDINGS, pa.concat_tables(findings_of([verdicts], Disputes(NONE), facts)))

    def scan(self, table, where, columns) -> pa.Table:
        """Rows of a table, like `Lake.scan`."""
        kept = self.results.get(table.name, self.facts.get(table.name, table.arrow.empty_table()))
        return kept.filter(_holds(kept, where)).select(list(columns))

    def parts(self, table, where, columns) -> list[pa.Table]:
        return [self.scan(table, where, columns)]

    def _finish(self, plan: Plan) -> None:
        """Add the run's row, so that its results count."""
        captured = max((from_text(s.captured_at) for s in plan.judged), default=from_text(plan.started_at))
        row = {"run_id": plan.run_id, "result_id": plan.result_id, "kind": plan.kind, "captured_at": captured}
        row |= {"started_at": from_text(plan.started_at), "finished_at": captured}
        runs = self.results[tables.RUNS.name]
        self.results[tables.RUNS.name] = pa.concat_tables([runs, pa.Table.from_pylist([row], tables.RUNS.arrow)])

    def _earlier(self, documents, result: str) -> LookBack | None:
        """Keep the facts of these documents under separate attempts, as snapshots that no run has counted."""
        topologies = [validate(d, f"{d['cluster']['id']}.json") for d in documents]
        found = [
            Earlier(t.cluster, to_text(t.captured_at), f"s-{t.sha256[:8]}", f"{result}-earlier-{n}")
            for n, t in enumerate(topologies)
        ]
        for t, e in zip(topologies, found, strict=True):
            for name, table in rows.build(t, e.snapshot_id, e.attempt_id, provider="self").items():
                self._add(name, table)
        since = min((t.captured_at for t in topologies), default=None)
        return LookBack(to_text(since), dict(Counter(e.cluster for e in found)), found) if found else None

    def run(
        self,
        documents,
        policy: Policy | None = None,
        waivers=(),
        *,
        findings=True,
        losses: bool | None = None,
        earlier=(),
        **options,
    ) -> list[dict]:
        """The findings of one run over `documents` (each a different cluster), with observed and required as dicts.

        findings: False computes only the measures of topics, in a third of the time. A pulse has no findings.
        losses: see `losses_of`.
        earlier: documents of the same clusters from before, in one folder with these.
        """
        policy = policy or shipped()
        topologies = [validate(d, f"{d['cluster']['id']}.json") for d in documents]
        plan = plan_of(topologies, policy, waivers, **options)
        plan = replace(plan, look_back=self._earlier(earlier, plan.result_id))
        for t, part in zip(topologies, plan.snapshots, strict=False):
            for name, table in rows.build(t, part.snapshot_id, part.attempt_id, provider=part.provider).items():
                self._add(name, table)
        made = self.facts["partition_groups"]
        usable = made.filter(pc.equal(made["reads"], partition_groups.READS))["attempt_id"]
        plan = replace(plan, grouped=pc.unique(usable).to_pylist())
        attempts = pa.array([part.attempt_id for part in plan.judged], pa.string())
        groups = self.facts.get("groups")
        mine = groups.filter(pc.is_in(groups["attempt_id"], attempts)) if groups is not None else None
        streams = []
        if mine is not None:
            about = {"attempt_id": mine["attempt_id"], "resource": mine["group"]}
            streams = pa.table(about | applications(mine, policy)).to_pylist()
        self.plan = plan = replace(plan, applications=sum(s["placement"] is not None for s in streams))
        topics = self.facts["topics"].filter(pc.is_in(self.facts["topics"]["attempt_id"], attempts))
        factors = {(row["cluster"], row["topic"]): row["replication_factor"] for row in topics.to_pylist()}
        policies = resolved(topologies, plan, policy, list(waivers), streams, factors)
        self._add("resolved_policy", pa.Table.from_pylist(policies, tables.RESOLVED_POLICY.arrow))
        self.latest = {}
        with losses_of(plan, losses):
            self._evaluate(plan, findings)
        if not findings:
            return []
        self._finish(plan)
        self.word()
        return self.findings()

    def findings(self) -> list[dict]:
        """The findings of the latest run, with observed and required as dicts."""
        found = self.latest["findings"].to_pylist() if "findings" in self.latest else []
        for f in found:
            f["observed"], f["required"] = json.loads(f["observed"]), json.loads(f["required"])
        return found

    def _evaluate(self, plan: Plan, findings: bool) -> None:
        from spark_jobs.assemble import evaluation

        built = expressions(plan.pulse)
        if findings:
            evaluation.run(self.spark, plan, self._read, self._write, built)
            return
        with ThreadPoolExecutor(4) as background:
            measured = evaluation.Evaluation(self.spark, plan, self._read, background, built)
            evaluation.write_measures(measured, self._write)

    def partition_health(self) -> list[dict]:
        """The rows of `partition_health`, one for each partition."""
        return per_partition(self.latest["partition_health"])

    def posture(self) -> list[dict]:
        return self.latest["topic_posture"].to_pylist()


def pick(found: list[dict], **wanted) -> list[dict]:
    """The findings whose fields equal `wanted`."""
    return [f for f in found if all(f[k] == v for k, v in wanted.items())]


def one(found: list[dict], **wanted) -> dict:
    """The single finding whose fields equal `wanted`."""
    matching = pick(found, **wanted)
    assert len(matching) == 1, [(f["control"], f["resource"], f["outcome"], f["category"]) for f in matching]
    return matching[0]
