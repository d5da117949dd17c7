"""Runs the steps of a nightly run in one process, without Airflow. Results are passed as values instead of files."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.errors import AuditError, Refused
from durability.plan.plan import to_text
from durability.steps import (
    collect,
    conclude,
    cross_check,
    evaluate,
    evidence,
    findings,
    gate,
    notify,
    plan,
    publish,
    report,
)
from durability.steps.collect import Connect
from durability.steps.evaluate import SparkEvaluation
from durability.steps.notify import WebhookOf
from durability.steps.results import Gated
from durability.steps.settings import NIGHTLY, Settings
from durability.steps.sources import GROUPS
from durability.steps.summary import StepReporter, report_step

if TYPE_CHECKING:
    from durability.evidence.keys import SigningKey
    from durability.lake import Attempt

log = logging.getLogger(__name__)

COLLECT_WITHIN = timedelta(minutes=48)
"""The time that one group of clusters has under Airflow."""
THREADS = GROUPS * collect.THREADS
"""As many clusters at once as all of Airflow's groups read together."""
Check = Callable[[Settings, Gated], None]
"""Checks staged snapshots before they are committed."""


@dataclass(frozen=True)
class Services:
    """External services that steps use.

    connect: gives a Connection's settings.
    evaluation: runs the Spark job.
    webhook: gives the channel of a team's digest, or of the fleet's.
    reporter: receives the progress of each step.
    signing_key: gives the key that signs the evidence; None for unsigned evidence.
    """

    connect: Connect
    evaluation: SparkEvaluation
    webhook: WebhookOf
    reporter: StepReporter
    signing_key: Callable[[], SigningKey | None]


@dataclass(frozen=True)
class Result:
    """The run's status (`durability.steps.conclude`) and the paths of its reports by name."""

    status: str
    files: dict[str, Path]


def run(settings: Settings, services: Services, started_at: datetime | None = None) -> Result:
    """Audit once what the settings name.

    Raises AuditError for an error that a user can fix, after reporting it. Raises JobFailed if the Spark job fails.
    """
    started_at = started_at or datetime.now(UTC)
    run_id = f"audit:{started_at.isoformat()}"
    reporter = services.reporter

    rows, attempts = snapshots(settings, services.connect, reporter, (run_id, to_text(started_at)))
    with report_step("evaluate", reporter) as summary:
        evaluated = evaluate.plan_evaluation(
            settings, NIGHTLY, run_id, f"{run_id}:1", rows, attempts, started_at, inventories=True
        )
        services.evaluation.run(settings.open_lake(), evaluated, summary)
    with report_step("cross-check", reporter) as summary:
        flagged = cross_check.cross_check(settings, evaluated, summary)
    with report_step("findings", reporter) as summary:
        findings.findings(settings, evaluated, flagged, summary)
    with report_step("report", reporter) as summary:
        files = report.report(settings, evaluated, flagged, summary)
        evidence.attest(settings, evaluated, flagged, files, services.signing_key, log, summary)
    with report_step("notify", reporter) as summary:
        notify.notify(settings, files["findings.json"], services.webhook, log, summary)
    with report_step("conclude", reporter) as summary:
        status = conclude.conclude(evaluated, flagged, summary)
    return Result(status, files)


def snapshots(
    settings: Settings,
    connect: Connect,
    reporter: StepReporter,
    run: tuple[str, str] | None = None,
    check: Check | None = None,
) -> tuple[list[dict[str, Any]], list[Attempt]]:
    """Takes a snapshot of each cluster that the settings name.

    run: see `durability.steps.gate`. check: raises AuditError for snapshots that are of no use. Then none is committed.
    Returns their rows of `snapshots`, rejected ones included, and what was staged. Raises AuditError for an error that a user can
    fix, after reporting it.
    """
    with report_step("plan", reporter) as summary:
        groups = plan.plan(settings, NIGHTLY, summary, groups=1)
        if not groups:
            raise Refused(f"{settings.clusters} lists no cluster: name one there")
    with report_step("collect", reporter) as summary:
        seconds = COLLECT_WITHIN.total_seconds()
        collected = collect.collect(settings, groups[0], connect, seconds, summary, THREADS, keep=True)
    with report_step("gate", reporter) as summary:
        gated = gate.gate(settings, groups, [collected], summary, run)
    if check is not None:
        try:
            check(settings, gated)
        except AuditError:
            lake = settings.open_lake()
            lake.discard(gated.attempts)
            lake.documents.remove(gated.attempts)
            raise
    with report_step("publish", reporter) as summary:
        rows = publish.publish(settings, NIGHTLY, gated, summary)
    return rows, gated.attempts
