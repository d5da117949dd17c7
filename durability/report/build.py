"""From the lake's rows of one run to findings.json, findings.csv and report.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.tables import (
    CLUSTERS,
    FINDINGS,
    HEALTH_COUNTERS,
    PARTITION_HEALTH,
    RESOLVED_POLICY,
    TOPIC_POSTURE,
)
from durability.report import plans
from durability.report.data import applications, lost_racks, outages, results, timeline, trends
from durability.report.data.causes import Causes
from durability.report.data.headline import Standing, StatusCounter
from durability.report.data.health import BROKERS_LISTED
from durability.report.files import AtomicFiles, CsvWriter, JsonWriter
from durability.report.html import page
from durability.report.words import COUNTED_ONLY, stamp

OUTAGE = ("cluster", "topic", "tier", "rack_outage")
NO_STEPS = pa.schema([TOPIC_POSTURE.arrow.field(name) for name in OUTAGE]).empty_table()


@dataclass(frozen=True)
class Summary:
    """What was written: `counts` is findings.json's `summary`, `standing` the fleet's state in sentences."""

    counts: dict[str, object]
    standing: Standing
    files: dict[str, Path]


def build(lake, plan, flagged, out: Path) -> Summary:
    """Report the results of (plan.run_id, plan.result_id) into the folder `out`.

    `lake`: anything with `scan(table, where, columns) -> pa.Table`. `plan`: durability.plan.Plan. `flagged`: what
    `expectations.posture` returned, of which `verified`, `checked` and `not_cross_checked` are reported.
    The three files are replaced whole, all of them at the end. Errors: Refused when `out` can't be written.
    """
    from pyiceberg.expressions import And, EqualTo, In, NotIn, NotNull, Or  # what the lake takes as a condition

    this = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id))
    shown = Or(NotIn("outcome", COUNTED_ONLY), EqualTo("change", "resolved"))
    counted = lake.scan(FINDINGS, this, columns=results.COUNTED)
    found = results.assemble(counted, lake.scan(FINDINGS, And(this, shown)))
    counters = lake.scan(HEALTH_COUNTERS, this)
    if plan.look_back and plan.look_back.uncounted:  # earlier snapshots that this run counted: no state of now
        judged = pa.array([part.snapshot_id for part in plan.judged], pa.string())
        counters = counters.filter(pc.is_in(counters["snapshot_id"], judged))
    health = page.Health(lake.scan(PARTITION_HEALTH, this), counters)
    attempts = [part.attempt_id for part in plan.snapshots if part.attempt_id]
    facts = lake.scan(CLUSTERS, In("attempt_id", attempts), columns=page.UNREAD) if attempts else None
    named = And(this, EqualTo("resource_type", "application"))
    streams = lake.scan(RESOLVED_POLICY, named, columns=applications.COLUMNS) if plan.applications else None
    steps = lake.scan(TOPIC_POSTURE, And(this, NotNull("rack_outage_step")), columns=OUTAGE)
    since = lost_racks.since(lake, plan, health.lost_racks())
    lines = timeline.read(lake, plan)
    severities = results.failed_by_severity(found.counted)
    year = trends.read(lake, plan, severities)
    summary = write(found, health, facts, plan, flagged, out, streams, steps, lines, since, year)
    planned = plans.write(lake, plan, Path(out))
    if planned:
        summary.files["plans"] = planned
    return summary


def write(
    found: results.Results,
    health: page.Health,
    facts: pa.Table | None,
    plan,
    flagged,
    out: Path,
    streams: pa.Table | None = None,
    steps: pa.Table = NO_STEPS,
    timelines: Sequence[timeline.Timeline] = (),
    lost_since: Mapping[tuple[str, str], lost_racks.Lost] = MappingProxyType({}),
    year: trends.Trends | None = None,
) -> Summary:
    """The same from Arrow tables, wherever they come from; `facts`: rows of CLUSTERS (columns page.UNREAD), `streams`:
    rows of RESOLVED_POLICY (columns applications.COLUMNS), `steps`: rows of TOPIC_POSTURE (columns OUTAGE) with a step of
    a rack outage's procedure, `lost_since`: by cluster and rack since when it is lost."""
    run = run_of(plan, flagged)
    counts = results.summarise(found.counted, [s["cluster"] for s in run["snapshots"]])
    causes, watch, rows = Causes(), StatusCounter(), page.Rows()
    named = applications.applications(streams)
    outage = outages.of(steps, health.lost_racks(), lost_since, plan.policy.tiers)
    racks_lost = outage.clusters()
    with AtomicFiles(Path(out)) as files:
        more = {
            "applications": named[: applications.DOCUMENTED],
            "brokers": health.brokers()[:BROKERS_LISTED],
            "rack_outages": racks_lost,
        }
        as_json = JsonWriter(files.text("findings.json"), run, counts, more)
        as_csv = CsvWriter(files.text("findings.csv"))
        for finding in results.documents(found.listed, plan.waivers):
            for reader in (as_json, as_csv, causes, watch, rows):
                reader.add(finding)
        as_json.close()
        standing = watch.standing(counts, run["snapshots"])
        state = (standing, causes, watch.resolved, rows, health, racks_lost, facts)
        report = page.Report(run, counts, *state, plan, flagged, named, timelines, year)
        files.text("report.html").writelines(page.render(report))
        if steps.num_rows:
            outages.write(files.text(outages.FILE), outage.rows())
    if not steps.num_rows:
        outages.forget(Path(out))
    return Summary(counts, standing, {n: Path(out) / n for n in ("findings.json", "findings.csv", "report.html")})


def run_of(plan, flagged) -> dict[str, object]:
    """findings.json's `run`."""
    return {
        "id": plan.run_id,
        "started_at": stamp(plan.started_at),
        "verified": bool(flagged.verified),
        "policy": {"name": plan.policy.name, "sha256": plan.policy.sha256},
        "snapshots": [snapshot(s) for s in plan.snapshots],
    }


def snapshot(part) -> dict[str, object]:
    """A judged, rejected or failed snapshot (durability.plan.SnapshotPart); `stale_snapshot`: the last accepted one of
    a cluster that can't be judged now; `compared`: was there an earlier run's result to compare with?"""
    stale = part.stale_snapshot
    return {
        "cluster": part.cluster,
        "snapshot_id": part.snapshot_id,
        "captured_at": stamp(part.captured_at),
        "status": part.status,
        "reason": part.reason,
        "sha256": part.sha256,
        "compared": part.previous_result_id is not None,
        "stale_snapshot": stale and {"snapshot_id": stale.snapshot_id, "captured_at": stamp(stale.captured_at)},
    }
