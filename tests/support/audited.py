"""An audit of documents, one step after the other, without Airflow and in a given Spark session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

SNAPSHOT = ("cluster", "snapshot_id", "attempt_id", "captured_at", "status", "reason", "sha256")


def audit(session, lake, documents: Sequence[dict], policy: Path, name: str, out: Path | None = None):
    """Gates, publishes, evaluates and words; returns the plan. out: where to cross-check and report to, or neither is done.

    session: one that has `lake` as its catalog (`tests.support.lake.attach`). name: of the run.
    """
    from durability import findings
    from durability.plan import Plan, build_plan
    from durability.policy import load_policy
    from durability.report.build import build
    from durability.topology import validate
    from expectations import gate, posture
    from spark_jobs import evaluate, lake_tables
    from tests.support.judge import expressions, losses_of

    attempts = [lake.stage(validate(document, f"{document['cluster']['id']}.json")) for document in documents]
    snapshots = lake.publish(attempts, gate.check(lake, attempts))
    plan = build_plan(
        lake,
        run_id=f"nightly:{name}",
        result_id=name,
        kind="nightly",
        policy=load_policy(policy),
        waivers=[],
        snapshots=snapshots,
    )
    plan = Plan.from_json(plan.to_json())
    with losses_of(plan):
        evaluate.run(session, plan, lake_tables.reader(session, plan), lake_tables.append, expressions(plan.pulse))
    flagged = posture.flag(lake, plan, out) if out else None
    findings.write(lake, plan)
    if out:
        build(lake, plan, flagged, out)
    row = {"run_id": plan.run_id, "result_id": plan.result_id, "kind": plan.kind, "status": "complete"}
    row |= {
        "verified": flagged and flagged.verified,
        "policy_name": plan.policy.name,
        "policy_sha256": plan.policy.sha256,
    }
    row |= {
        "captured_at": max(s["captured_at"] for s in snapshots),
        "started_at": datetime.fromisoformat(plan.started_at),
    }
    row |= {"snapshots": [{c: s[c] for c in SNAPSHOT} for s in snapshots]}
    lake.commit_run(row | {"finished_at": datetime.now(UTC), "waivers": "[]", "summary": "{}"})
    return plan
