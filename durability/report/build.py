"""Writes the files of a run's report: those in FILES, teams' pages, reassignment plans, and the steps for lost racks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from durability.atomic import atomic_files
from durability.plan.plan import Plan
from durability.report import plans
from durability.report.data import outages, results
from durability.report.data.causes import Causes
from durability.report.data.headline import StatusCounter
from durability.report.data.run_data import RunData, read
from durability.report.data.teams import team_pages, with_teams
from durability.report.files import CsvWriter, JsonWriter
from durability.report.formats import junit, metrics
from durability.report.html import page
from durability.report.html.facets import Facets
from durability.report.html.failures import FailureRows
from durability.report.html.rows import FindingRows
from durability.report.losses import LossesWriter
from durability.report.teams import TeamPages

FILES = ("findings.json", "findings.csv", "report.html", "losses.json", junit.FILE, metrics.FILE)
APPLICATIONS = BROKERS = 1_000
"""The most applications and brokers that findings.json lists."""


def build(lake: Any, plan: Plan, flagged: Any, out: Path) -> dict[str, Path]:
    """Write the report of the result (plan.run_id, plan.result_id) into the folder `out`. Returns the paths by name.

    lake: an object with `scan(table, where, columns) -> pa.Table` and `parts`, the same file by file.
    flagged: the result of `expectations.posture`.
    Raises Refused if `out` can't be written.
    """
    files = write(read(lake, plan), plan, flagged, out)
    planned = plans.write(lake, plan, out)
    return files | ({"plans": planned} if planned else {})


def write(data: RunData, plan: Plan, flagged: Any, out: Path) -> dict[str, Path]:
    """Write the report of data that was already read. At the end the files replace those of an earlier report together."""
    run = run_of(plan, flagged)
    counts = results.summarise(data.counted, [s["cluster"] for s in run["snapshots"]])
    lost = data.outages.clusters()
    head = {
        "run": run,
        "applications": data.applications[:APPLICATIONS],
        "brokers": data.health.brokers()[:BROKERS],
        "rack_outages": lost,
        "objectives": [entry.to_dict() for entry in data.objectives.entries if data.objectives.counted],
        "summary": counts,
    }
    listed, pages = with_teams(data.listed, plan), team_pages(plan)
    causes, status, rows, facets, of_teams = Causes(), StatusCounter(), FindingRows(), Facets(pages), TeamPages(pages)
    lowered = data.outages.posture.num_rows > 0
    with atomic_files(out, *FILES, *([outages.FILE] if lowered else ())) as (
        json_file,
        csv_file,
        html_file,
        losses_file,
        junit_file,
        metrics_file,
        *more,
    ):
        as_json, as_csv, as_junit = JsonWriter(json_file, head), CsvWriter(csv_file), junit.JUnit(run)
        for finding in results.documents(listed, plan.waivers):
            for reader in (as_json, as_csv, as_junit, causes, status, rows, facets, of_teams):
                reader.add(finding)
        as_json.close()
        as_junit.write(junit_file, data.counted)
        metrics.write(metrics_file, run, data.counted, data.health, plan.waivers)
        losses, failures = LossesWriter(losses_file, run), FailureRows()
        for entry in data.losses:
            losses.add(entry)
            failures.add(entry)
        losses.close()
        headline = status.headline(counts, run["snapshots"])
        report = page.Report(
            run, counts, headline, causes, status.resolved, rows, facets, lost, failures, data, plan, flagged
        )
        html_file.writelines(page.render(report))
        for file in more:
            data.outages.write(file)
    of_teams.write(plan, run, facets, out)
    if not lowered:
        (out / outages.FILE).unlink(missing_ok=True)
    return {name: out / name for name in FILES}


def run_of(plan: Plan, flagged: Any) -> dict[str, Any]:
    """The member `run` of findings.json."""
    return {
        "id": plan.run_id,
        "started_at": plan.started_at,
        "verified": bool(flagged.verified),
        "policy": {"name": plan.policy.name, "sha256": plan.policy.sha256},
        "snapshots": [
            {
                **{name: getattr(part, name) for name in ("cluster", "snapshot_id", "captured_at", "status", "reason")},
                "sha256": part.sha256,
                "compared": part.previous_result_id is not None,
                "stale_snapshot": part.stale_snapshot and vars(part.stale_snapshot),
            }
            for part in plan.snapshots
        ],
    }
