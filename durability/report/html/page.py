"""report.html: selects what its template shows, so that the page stays small for any fleet."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from durability.catalogue import CONTROLS
from durability.plain import plural
from durability.plan.plan import Plan
from durability.policy.terms import limits_text
from durability.report.data import outages
from durability.report.data.causes import Causes
from durability.report.data.headline import Headline, changes_text, is_first
from durability.report.data.health import METRICS
from durability.report.data.results import WAIVER_KEYS
from durability.report.data.run_data import RunData
from durability.report.html.facets import Facets
from durability.report.html.failures import FailureRows
from durability.report.html.objectives import objective_rows
from durability.report.html.pictures.over_time import timeline_chart, trend_charts
from durability.report.html.rows import QUOTAS, Budget, FindingRows
from durability.report.news import previous, worsened, worsened_total
from durability.report.words import (
    CAVEATS,
    OUTCOMES,
    cause_title,
    clipped,
    clipped_script,
    is_script,
    percent,
    ranges,
    readable,
    visible,
)

HERE = Path(__file__).parent
TEXT, REMEDIATION = 700, 1_800
"""The most characters of a message and of a remediation."""
CAUSES = {"FAIL": (60, 0.5), "UNKNOWN": (40, 0.25)}
"""By outcome, the most causes and the most mebibytes of their text."""
TOPICS, BROKERS, CLUSTERS, WAIVERS, PATHS, NEW = 150, 60, 300, 200, 300, 12
OUTAGES, STEPS, TIMELINES, TRENDS = 20, 12, 24, 5
APPLICATIONS, TEAMS = 100, 30
"""The most applications and teams that are shown."""


@dataclass(frozen=True)
class Report:
    """The data of a page.

    run, counts: as in findings.json.
    resolved: the number of findings by reason.
    outages: of `Outages.clusters`.
    flagged: the result of `expectations.posture`.
    """

    run: Mapping[str, Any]
    counts: Mapping[str, Any]
    headline: Headline
    causes: Causes
    resolved: Counter[str]
    rows: FindingRows
    facets: Facets
    outages: Sequence[dict[str, Any]]
    failures: FailureRows
    data: RunData
    plan: Plan
    flagged: Any


def render(report: Report) -> Iterator[str]:
    """The page in pieces. It loads nothing and runs one script of its own. Its policy (CSP) forbids anything else."""
    template = environment().get_template("report.html.j2")
    yield from template.generate(**style_and_script(), **context(report))


def style_and_script() -> dict[str, str]:
    """The template's variables for the CSS and the script, with their hashes."""
    css, css_hash = stylesheet()
    script, script_hash = _text_and_hash("find.js")
    return {"css": css, "css_hash": css_hash, "script": script, "script_hash": script_hash}


def stylesheet() -> tuple[str, str]:
    """The pages' CSS, and its SHA-256 as a Content-Security-Policy names it."""
    return _text_and_hash("report.css")


def _text_and_hash(name: str) -> tuple[str, str]:
    text = (HERE / name).read_text(encoding="utf-8")
    return text, base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def breakable(text: str | None) -> Markup:
    """Text whose names, such as an error's, may break after an underscore if their column is narrow.

    >>> breakable("<b>NOT_ENOUGH_REPLICAS")
    Markup('&lt;b&gt;NOT_<wbr>ENOUGH_<wbr>REPLICAS')
    """
    return Markup(str(escape(visible(text or ""))).replace("_", "_<wbr>"))


def environment() -> Environment:
    """The Jinja environment with the filters and globals of the templates."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(readable=readable, clipped=clipped, cause=cause_title, partitions=ranges, percent=percent)
    made.filters.update(breakable=breakable)
    titles = {name: control.title for name, control in CONTROLS.items()}
    made.globals.update(
        worsened=worsened, was=previous, plural=plural, is_script=is_script, titles=titles, caveats=CAVEATS
    )
    return made


def first(items: Sequence[Any], limit: int, row: Callable[[Any], Any] = lambda item: item) -> dict[str, Any]:
    """`shown`: the rows of the first `limit` items. `left`: the number of other items."""
    return {"shown": [row(item) for item in items[:limit]], "left": max(0, len(items) - limit)}


def context(report: Report) -> dict[str, Any]:
    """The template's variables."""
    # Altair takes a quarter of a second to import, and other pages have no pictures.
    from durability.report.html.pictures.page import drawn

    snapshots, data, policy = report.run["snapshots"], report.data, report.plan.policy
    missing = [s for s in snapshots if not accepted(s)]
    topics, unhealthy = data.health.topics(TOPICS)
    for kind in ("FAIL", "UNKNOWN", "EXEMPT"):
        report.facets.mark(report.rows.shown[kind])
    changed = None if is_first(report.run) else changes_text(report.counts, report.headline.waived)
    failures = report.failures.context(snapshots, report.rows.shown["FAIL"])
    timelines, trends = first(data.timelines, TIMELINES, timeline_chart), trend_charts(data.trends, TRENDS)
    return {
        **{name: getattr(report, name) for name in ("run", "counts", "headline", "plan", "flagged")},
        "resolved_why": sorted(report.resolved.items(), key=lambda item: (-item[1], item[0])),
        "changed": changed,
        "causes": cause_rows(report.causes, "FAIL"),
        "halted": any(cause.stops_cluster for cause in report.causes.ranked("FAIL")[:1]),
        "unknown_causes": cause_rows(report.causes, "UNKNOWN", {s["cluster"] for s in missing}),
        "clusters": first(cluster_rows(report), CLUSTERS),
        "controls": control_rows(report.counts["controls"]),
        "rows": report.rows.shown,
        "facets": report.facets,
        "teams": first(report.facets.teams(), TEAMS),
        "left_out": {kind: report.rows.left_out(kind) for kind in QUOTAS},
        "fresh": [r for r in report.rows.shown["FAIL"] if r["change"] == "new"][:NEW],
        "worse": first([r for r in report.rows.shown["FAIL"] if worsened(r)], NEW),
        "worsened_total": worsened_total(report.counts),
        "health": {"shown": topics, "left": unhealthy - len(topics), "read": bool(data.health.clusters)},
        "placements": data.placements,
        "evaluated": len(missing) < len(snapshots),
        "applications": first(data.applications, APPLICATIONS),
        "brokers": first(data.health.brokers(), BROKERS),
        "metrics": METRICS.values(),
        "outages": outage_rows(report.outages),
        "failures": failures,
        "timelines": timelines,
        "trends": trends,
        "pictures": drawn(failures["detailed"], data.placements, data.applications, timelines["shown"], trends),
        "objectives": objective_rows(data.objectives, bool(policy.objectives)),
        "missing": missing[:CLUSTERS],
        "unread": unread_rows(data.unread),
        "snapshots": first(snapshots, CLUSTERS),
        "waivers": first(waiver_rows(report), WAIVERS),
        "requirements": dict.fromkeys(key for tier in policy.tiers.values() for key in tier if key != "name"),
        "planned": [name for name, control in CONTROLS.items() if control.planned],
    }


def outage_rows(clusters: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The clusters with steps, and `spared`, those where no setting has to be changed."""
    acts, spared = [c for c in clusters if c["steps"]], [c for c in clusters if not c["steps"]]
    texts = {"steps": STEPS, "file": outages.FILE, "assess": outages.ASSESS}
    return {**first(acts, OUTAGES), **texts, "spared": first(spared, OUTAGES)}


def accepted(snapshot: Mapping[str, Any]) -> bool:
    return snapshot["status"] == "accepted"


def cause_rows(causes: Causes, outcome: str, without: Collection[str] = ()) -> dict[str, Any]:
    """Causes of one outcome with their texts, without those of the clusters `without`. `left`: the number of others."""
    budget, shown = Budget(*CAUSES[outcome]), []
    for cause in causes.ranked(outcome):
        if cause.cluster in without:
            continue
        fixes = [(clipped_script(text, REMEDIATION), n) for text, n in cause.first_remediations(4)]
        messages = [(clipped(text, TEXT), n) for text, n in cause.first_messages(3)]
        names = cause.names()
        named = [clipped(name, 120) for name in names[:6]]
        example = clipped(cause.example[1], TEXT) if cause.example else ""
        texts = [example, *(text for text, _ in (*fixes, *messages))]
        if budget.takes(*texts, *named, cause.cause, cause.cluster):
            row = {"group": cause, "fixes": fixes, "messages": messages, "names": named, "example": example}
            row["more_fixes"] = len(cause.remediations) - len(fixes)
            row["more_messages"] = len(cause.messages) - len(messages)
            row["more_names"] = len(names) - len(named)
            shown.append(row)
    return {"shown": shown, "left": budget.offered - len(shown)}


def unread_rows(unread: pa.Table) -> dict[str, Any]:
    """The paths that the collector could not read, and by cluster the number of partitions that the auditor may not see."""
    budget, paths = Budget(PATHS, 0.2), []
    rows = sorted(unread.to_pylist(), key=lambda row: row["cluster"])
    for row in rows:
        for entry in row["unreadable"] or ():
            path, reason = clipped(entry["path"], 300), clipped(entry["reason"], 300)
            if budget.takes(path, reason):
                paths.append({"cluster": row["cluster"], "path": path, "reason": reason})
    hidden = [(row["cluster"], row["hidden_partitions"]) for row in rows if row["hidden_partitions"]]
    return {"paths": paths, "left": budget.offered - len(paths), "hidden": hidden[:CLUSTERS]}


def cluster_rows(report: Report) -> list[dict[str, Any]]:
    """Every cluster with its counts. Clusters without an accepted snapshot come first, then those with most critical findings."""
    severities: dict[str, Counter[str | None]] = {}
    for cause in report.causes.ranked("FAIL"):
        severities.setdefault(cause.cluster, Counter()).update(cause.severities)
    by_name = {s["cluster"]: s for s in report.run["snapshots"]}
    rows = [
        {
            "name": name,
            "outcomes": outcomes,
            "severities": severities.get(name, Counter()),
            "snapshot": by_name.get(name),
            "health": report.data.health.clusters.get(name),
        }
        for name, outcomes in report.counts["clusters"].items()
    ]

    def order(row: dict[str, Any]) -> tuple:
        evaluated = row["snapshot"] is not None and accepted(row["snapshot"])
        return (evaluated, -row["severities"]["critical"], -row["outcomes"]["FAIL"], row["name"])

    return sorted(rows, key=order)


def control_rows(counts: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    """Every control of the catalogue with its counts, in the catalogue's order, then any other control with findings."""
    nothing = dict.fromkeys(OUTCOMES, 0)
    return [
        {"id": name, "outcomes": counts.get(name, nothing), "entry": CONTROLS.get(name), "ran": name in counts}
        for name in dict.fromkeys((*CONTROLS, *counts))
    ]


def waiver_rows(report: Report) -> list[dict[str, Any]]:
    """Waivers with the numbers of findings and of resources that each exempts. Expired ones come first.

    `grown`: it covers more resources than when it was approved.

    `ends`: the day on which it first ends for what it exempts, else its own last day.

    A waiver is valid through its last day in UTC. The newest snapshot decides whether it is expired.
    """
    exempted: Counter[int | None] = Counter()
    covered: defaultdict[int | None, set[tuple[str, str, str]]] = defaultdict(set)
    for cause in report.causes.ranked("EXEMPT"):
        index = cause.waiver["index"] if cause.waiver else None
        exempted[index] += cause.findings
        covered[index].update((cause.cluster, *resource) for resource in cause.resources)
    days = [s["captured_at"][:10] for s in report.run["snapshots"] if s["captured_at"]]
    today = max(days, default=report.run["started_at"][:10])
    rows = []
    for waiver in report.plan.waivers:
        index, approved = waiver["index"], waiver.get("approved_count")
        row = dict.fromkeys(WAIVER_KEYS) | waiver
        row["limits"] = limits_text(waiver, today)
        row["ends"] = report.causes.ends.get(index, waiver["expires"])
        row |= {"expired": row["ends"] < today, "exempts": exempted[index], "covers": len(covered[index])}
        rows.append(row | {"grown": approved is not None and len(covered[index]) > approved})
    return sorted(rows, key=lambda r: (not r["expired"], r["ends"], r["index"]))
