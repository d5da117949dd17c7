"""The Asset of a run's findings. Other DAGs can react to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import Asset

FINDINGS = Asset(name="kafka_durability_findings", uri="kafka-durability://lake/findings")


def announce(context: Mapping[str, Any], outlets: Iterable[Any], run: str, findings: Path) -> None:
    """Attach `counts` to the events of a task's outlets. Airflow sends them when the task has succeeded."""
    extra = counts(run, findings)
    for outlet in outlets:
        context["outlet_events"][outlet].extra = extra


def counts(run: str, findings: Path) -> dict[str, str | int | bool]:
    """The content of an event about a findings.json.

    - `run`: the run's id. `findings`: the file.
    - `critical`, `warning`: failures without waived ones. `unknown`: unknown findings.
    - `new`: findings that the previous run didn't have. `worsened`: failures that it had as unknown, less severe or accepted.
    - `new_critical`: critical failures among both.
    - `verified`: did the cross-check agree?
    """
    from durability.report.files import load
    from durability.report.news import worsened_total

    document = load(findings)
    summary = document["summary"]
    return {
        "run": run,
        **{severity: summary["severities"][severity] for severity in ("critical", "warning")},
        "unknown": summary["outcomes"]["UNKNOWN"],
        "new": summary["changes"]["new"],
        "worsened": worsened_total(summary),
        "new_critical": summary["new_failures"]["critical"] + summary["worsened_failures"]["critical"],
        "verified": document["run"]["verified"],
        "findings": str(findings),
    }
