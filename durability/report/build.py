"""Writes the files of a run's report: those in FILES, teams' pages, reassignment plans, and the steps for lost racks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from durability.atomic import atomic_files
from durability.garbage import uncollected
from durability.plan.plan import Plan
from durability.policy import Framework, shipped_frameworks
from durability.policy.frameworks import named
from durability.report import plans
from durability.report.data import outages, results
from durability.report.data.causes import Causes
from durability.report.data.headline import StatusCounter
from durability.report.data.run_data import RunData, read
from durability.report.data.teams import FOLDER, team_pages, with_teams
from durability.report.files import JsonWriter
from durability.report.formats import junit, markdown, metrics, ocsf, oscal, spreadsheet
from durability.report.html import page
from durability.report.html.facets import Facets
from durability.report.html.failures import FailureRows
from durability.report.html.rows import FindingRows
from durability.report.losses import LossesWriter
from durability.report.pdf import document as pdf
from durability.report.teams import TeamPages

FILES = (
    *("findings.json", "findings.csv", "report.html", pdf.FILE, "losses.json"),
    *(junit.FILE, ocsf.FILE, metrics.FILE, markdown.FILE, *oscal.FILES),
)
APPLICATIONS = BROKERS = 1_000
"""The most applications and brokers that findings.json lists."""


@uncollected()
def build(lake: Any, plan: Plan, flagged: Any, out: Path, framework: str | None = None) -> dict[str, Path]:
    """Write the report of the result (plan.run_id, plan.result_id) into the folder `out`. Returns the paths by name.

    lake: an object with `scan(table, where, columns) -> pa.Table` and `parts`, the same file by file.
    flagged: the result of `expectations.posture`.
    framework: the id of a framework. Only the controls that support it are reported. None: all controls.
    Raises Refused if `out` can't be written or there is no such framework, and BadInput if policies/frameworks.yaml is wrong.
    """
    cut = named(shipped_frameworks(), framework) if framework else None
    files = write(read(lake, plan), plan, flagged, out, cut)
    planned = plans.write(lake, plan, out)
    return files | ({"plans": planned} if planned else {})


def write(data: RunData, plan: Plan, flagged: Any, out: Path, cut: Framework | None = None) -> dict[str, Path]:
    """Write the report of data that was already read. At the end the files replace those of an earlier report together.

    cut: the framework whose controls are reported; None for all.
    """
    run = run_of(plan, flagged, cut)
    if cut:
        data = data.of_controls(cut.controls)
    counts = results.summarise(data.counted, [s["cluster"] for s in run["snapshots"]])
    lost = data.outages.clusters()
    head = _head(run, data, lost, counts)
    listed, pages = with_teams(data.listed, plan), team_pages(plan)
    causes, status, rows, facets, of_teams = Causes(), StatusCounter(), FindingRows(), Facets(pages), TeamPages(pages)
    wanted = {
        outages.FILE: data.outages.posture.num_rows > 0,
        oscal.POAM: counts["outcomes"]["FAIL"] + counts["outcomes"]["EXEMPT"] > 0,
    }
    names = (*FILES, *(name for name, is_wanted in wanted.items() if is_wanted))
    with atomic_files(out, *names) as opened:
        files = dict(zip(names, opened, strict=True))
        spreadsheet.write(files["findings.csv"].buffer, listed, plan.waivers)
        as_json = JsonWriter(files["findings.json"], head)
        as_junit = junit.JUnit(run)
        frameworks = [cut] if cut else shipped_frameworks()
        as_ocsf, as_oscal = ocsf.OcsfWriter(files[ocsf.FILE], run, frameworks), oscal.Oscal(run, frameworks)
        for finding in results.documents(listed, plan.waivers):
            for reader in (as_json, as_junit, as_ocsf, as_oscal, causes, status, rows, facets, of_teams):
                reader.add(finding)
        as_json.close()
        as_junit.write(files[junit.FILE], data.counted)
        metrics.write(files[metrics.FILE], run, data.counted, data.health, _ending(plan, causes), data.objectives)
        losses, failures = LossesWriter(files["losses.json"], run), FailureRows()
        for entry in data.losses:
            losses.add(entry)
            failures.add(entry)
        losses.close()
        headline = status.headline(counts, run)
        markdown.write(files[markdown.FILE], head, headline, causes)
        report = page.Report(
            run, counts, headline, causes, status.resolved, rows, facets, lost, failures, data, plan, flagged
        )
        files["report.html"].writelines(page.render(report))
        as_oscal.write(files, data.counted, causes, plan.waivers)
        if outages.FILE in files:
            data.outages.write(files[outages.FILE])
        files["findings.json"].flush()
        pdf.build(files[pdf.FILE].buffer, report, Path(files["findings.json"].name))
    teams = of_teams.write(plan, run, facets, out)
    for name in wanted.keys() - set(names):
        (out / name).unlink(missing_ok=True)
    return {name: out / name for name in names} | ({FOLDER: teams} if teams else {})


def _ending(plan: Plan, causes: Causes) -> list[dict[str, Any]]:
    """The plan's waivers. `expires` is the day on which each first ends for what it exempts, if it exempts something."""
    return [waiver | {"expires": causes.ends.get(waiver["index"], waiver["expires"])} for waiver in plan.waivers]


def _head(run: dict[str, Any], data: RunData, lost: list[dict[str, Any]], counts: dict[str, Any]) -> dict[str, Any]:
    """The members of findings.json apart from the findings."""
    return {
        "run": run,
        "applications": data.applications[:APPLICATIONS],
        "brokers": data.health.brokers()[:BROKERS],
        "rack_outages": lost,
        "objectives": [entry.to_dict() for entry in data.objectives.entries if data.objectives.counted],
        "summary": counts,
    }


def run_of(plan: Plan, flagged: Any, cut: Framework | None = None) -> dict[str, Any]:
    """The member `run` of findings.json. cut: the framework whose controls are reported; None for all."""
    return {
        "id": plan.run_id,
        "started_at": plan.started_at,
        "verified": bool(flagged.verified),
        "policy": {"name": plan.policy.name, "sha256": plan.policy.sha256},
        "framework": cut and {"id": cut.id, "title": cut.title, "controls": sorted(cut.controls)},
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
