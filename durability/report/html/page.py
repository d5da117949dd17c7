"""report.html: everything that its template needs, selected and cut so that the page stays small at any fleet size."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pyarrow as pa

from durability.report.data import outages
from durability.report.data.applications import on_page
from durability.report.data.causes import Causes
from durability.report.data.headline import Standing, compared, first
from durability.report.data.health import BROKERS, METRICS, Health
from durability.report.data.timeline import Timeline, pictures
from durability.report.data.trends import Trends, charts
from durability.report.words import (
    CAVEATS,
    cause_title,
    clipped,
    clipped_script,
    is_script,
    past,
    plural,
    ranges,
    readable,
    visible,
)

__all__ = ["Health", "Report", "Rows", "render"]

HERE = Path(__file__).parent
MEBIBYTE = 1 << 20
# Rows and bytes of the page by what they hold; with the rest of the page this stays under 5 MB.
QUOTAS = {"FAIL": (700, 1.4), "UNKNOWN": (200, 0.4), "EXEMPT": (150, 0.3), "resolved": (100, 0.2)}
TEXT = 700  # characters of one message
REMEDY = 1_800  # characters of one remediation
CAUSES = {"FAIL": (60, 0.5), "UNKNOWN": (40, 0.25), "EXEMPT": (60, 0.25)}
CLUSTERS, WAIVERS, PATHS = 300, 200, 300
ACKS_TABLE = 3200  # bytes of one finding's table of acks values
UNREAD = ("cluster", "unreadable", "hidden_partitions")


class Budget:
    """Lets through so many items, and so many bytes of them once escaped for HTML."""

    def __init__(self, items: int, mebibytes: float):
        self.items, self.bytes, self.seen = items, int(mebibytes * MEBIBYTE), 0

    def takes(self, *texts: str | None, more: int = 0) -> bool:
        """Whether an item with these texts and `more` bytes still fits; every call counts one item as seen."""
        from markupsafe import escape

        self.seen += 1
        if self.items <= 0 or self.bytes <= 0:
            return False
        self.items -= 1
        self.bytes -= 600 + more + sum(len(str(escape(t)).encode()) for t in texts if t)
        return True


class Rows:
    """The findings that the page lists, in the order given, until the quota of their kind is used up."""

    def __init__(self) -> None:
        self.kept: dict[str, list[dict]] = {kind: [] for kind in QUOTAS}
        self.budgets = {kind: Budget(*quota) for kind, quota in QUOTAS.items()}
        self.health: dict[tuple, dict] = {}
        self.scripts: dict[tuple[str, str], dict] = {}
        self.merged = 0

    def add(self, finding: dict) -> None:
        kind = "resolved" if past(finding) else finding["outcome"]
        budget = self.budgets[kind]
        if budget.items <= 0 or budget.bytes <= 0:
            budget.seen += 1
            return
        merged = self._same(finding)
        if merged is not None:
            merged["also"].append({name: finding[name] for name in ("id", "category", "severity")})
            budget.seen += 1
            self.merged += 1
            return
        row = {name: clipped(finding[name], TEXT) for name in ("message", "cause")}
        row["remediation"] = clipped_script(finding["remediation"] or "", REMEDY)
        row["resource"] = clipped(finding["resource"], 260)
        ids = finding["partitions"]
        told = row["message"].startswith("partition") and len(ids) <= 10  # the rules' own messages name the first ten
        row["partitions"] = "" if told else ranges(ids)
        acks = acks_told(finding["observed"])
        if budget.takes(*row.values(), finding["cluster"], more=ACKS_TABLE if acks else 0):
            waiver = finding["waiver"] and {k: clipped(str(v or ""), 300) for k, v in finding["waiver"].items()}
            shown = {**finding, **row, "waiver": waiver, "acks": acks, "also": [], "as_for": None}
            self.kept[kind].append(shown)
            # A cluster's findings with one way out of them name it once.
            if is_script(row["remediation"]):
                before = self.scripts.setdefault((finding["cluster"], row["remediation"]), shown)
                shown["as_for"] = None if before is shown else before
            if kind == "FAIL" and finding["control"] == "partition-health":
                self.health[_fact(finding)] = self.kept[kind][-1]

    def _same(self, finding: dict) -> dict | None:
        """The row that tells already what this finding is about: the same partitions, in another category of health."""
        if finding["control"] != "partition-health" or finding["outcome"] != "FAIL" or past(finding):
            return None
        return self.health.get(_fact(finding))

    def left_out(self, kind: str) -> int:
        return self.budgets[kind].seen - len(self.kept[kind]) - (self.merged if kind == "FAIL" else 0)


def _fact(finding: dict) -> tuple:
    return (finding["cluster"], finding["resource"], finding["cause"], tuple(finding["partitions"]))


ACKS_CELLS = (
    *("accepted", "error", "proposed_error", "retriable", "copies_now", "racks_now", "copies_worst", "racks_worst"),
    *("waits_for", "fewer_than_all", "visible_now", "survives_leader_loss"),
)
ACKS_BESIDE = ("partition", "smallest_min_insync_replicas", "with_min_insync_racks", "readings")
WHEN = {"today": "today", "proposed": "with the proposals"}


def acks_told(observed: dict) -> dict | None:
    """What acked-durability observed, with None for every cell that isn't there; None of other findings."""
    if "acks" not in observed:
        return None
    table = {value: {name: cells.get(name) for name in ACKS_CELLS} for value, cells in observed["acks"].items()}
    answers = (observed.get("partitions_by_answer") or {}).items()
    counted = {WHEN[when]: {error: n for error, n in by.items() if n} for when, by in answers if by}
    return {"acks": table, **{name: observed.get(name) for name in ACKS_BESIDE}, "answers": counted}


@dataclass(frozen=True)
class Report:
    """What a page is made of; `run`, `counts` and `applications` as in findings.json, `resolved`: why, and how many."""

    run: dict
    counts: dict
    standing: Standing
    causes: Causes
    resolved: Counter
    rows: Rows
    health: Health
    outages: list[dict]
    facts: pa.Table | None
    plan: object
    flagged: object
    applications: list[dict] = field(default_factory=list)
    timelines: Sequence[Timeline] = ()
    trends: Trends | None = None


def render(report: Report) -> Iterator[str]:
    """The page, piece by piece. It loads nothing, runs no script, and its policy (CSP) forbids both."""
    css = (HERE / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    template = _environment().get_template("report.html.j2")
    yield from template.generate(css=css, css_hash=digest, **context(report))


@cache
def _environment():
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(readable=readable, clipped=clipped, cause=cause_title, partitions=ranges)
    environment.globals.update(plural=plural, is_script=is_script)
    return environment


def context(report: Report) -> dict[str, object]:
    """The template's variables."""
    from durability.policy import CONTROLS

    snapshots = report.run["snapshots"]
    policy = report.plan.policy
    clusters = cluster_rows(report)
    return {
        "run": report.run,
        "counts": report.counts,
        "standing": report.standing,
        "resolved_why": sorted(report.resolved.items(), key=lambda item: (-item[1], item[0])),
        "changed": None if first(report.run) else compared(report.counts["changes"], report.standing.waived),
        "causes": cause_rows(report.causes, "FAIL"),
        "unknown_causes": cause_rows(report.causes, "UNKNOWN", {s["cluster"] for s in snapshots if not accepted(s)}),
        "accepted": cause_rows(report.causes, "EXEMPT"),
        "clusters": clusters[:CLUSTERS],
        "clusters_left": len(clusters) - CLUSTERS,
        "controls": control_rows(report.counts["controls"], CONTROLS),
        "titles": {name: control.title for name, control in CONTROLS.items()},
        "rows": report.rows.kept,
        "left_out": {kind: report.rows.left_out(kind) for kind in QUOTAS},
        "fresh": [r for r in report.rows.kept["FAIL"] if r["change"] == "new"][:12],
        "health": report.health.topics(),
        "planned": [name for name, control in CONTROLS.items() if control.planned],
        "judged": any(accepted(s) for s in snapshots),
        "applications": on_page(report.applications),
        "brokers": broker_rows(report.health.brokers()),
        "outages": outage_rows(report.outages),
        "timelines": pictures(report.timelines),
        "trends": charts(report.trends),
        "missing": [s for s in snapshots if not accepted(s)][:CLUSTERS],
        "unread": unread_rows(report.facts),
        "snapshots": snapshots[:CLUSTERS],
        "waivers": waiver_rows(report)[:WAIVERS],
        "waivers_left": len(report.plan.waivers) - WAIVERS,
        "tiers": tier_table(policy.tiers),
        "last_tier": policy.last_tier,
        "crosscheck": {"checked": _checked(report.flagged), "unchecked": list(report.flagged.not_cross_checked)},
        "problems": [clipped(text, TEXT) for text in report.flagged.problems[:10]],
        "caveats": CAVEATS,
    }


def _checked(flagged) -> list[tuple[str, int]]:
    return sorted(dict(flagged.checked).items())


def accepted(snapshot: dict) -> bool:
    return snapshot["status"] == "accepted"


def cause_rows(causes: Causes, outcome: str, without: Set[str] = frozenset()) -> dict[str, object]:
    """Causes of one outcome with what the page says about each, but those of the clusters `without`.

    `left`: how many the page leaves to findings.csv.
    """
    budget = Budget(*CAUSES[outcome])
    shown = []
    for cause in causes.ranked(outcome):
        if cause.cluster in without:
            continue
        commands = [(clipped_script(text, REMEDY), n) for text, n in cause.first_commands(4)]
        messages = [(clipped(text, TEXT), n) for text, n in cause.first_messages(3)]
        names = [clipped(name, 120) for name in cause.names(6)]
        example = clipped(cause.gravest[1], TEXT) if cause.gravest else ""
        texts = [example, *(text for text, _ in (*commands, *messages))]
        if budget.takes(*texts, *names, cause.cause, cause.cluster):
            row = {"group": cause, "commands": commands, "messages": messages, "names": names, "example": example}
            row["more_commands"] = len(cause.commands) - len(commands)
            row["more_messages"] = len(cause.messages) - len(messages)
            row["more_names"] = len(cause.resources) - len(names)
            row["counts"] = cause.extent
            shown.append(row)
    return {"shown": shown, "left": budget.seen - len(shown)}


def broker_rows(brokers: list[dict]) -> dict[str, object]:
    """The worst brokers with their counts in the order of `metrics`; `left`: how many the page leaves to findings.json."""
    kinds = ("critical", "critical", "warning", "info", "info", "UNKNOWN")
    names = (*METRICS.values(), "unknown")
    shown = [
        {"cluster": b["cluster"], "broker": b["broker"], "rack": clipped(b["rack"], 120), "live": b["live"]}
        | {"counts": [(b[name], kind) for name, kind in zip(names, kinds, strict=True)]}
        for b in brokers[:BROKERS]
    ]
    return {"shown": shown, "left": len(brokers) - len(shown), "metrics": names[:-1]}


def outage_rows(clusters: list[dict]) -> dict[str, object]:
    """`Outages.clusters` as far as the page shows them."""
    shown = clusters[: outages.CLUSTERS]
    return {"shown": shown, "left": len(clusters) - len(shown), "groups": outages.GROUPS, "file": outages.FILE}


def unread_rows(facts: pa.Table | None) -> dict[str, object]:
    """What the collector could not read, path by path, and how many partitions the auditor may not see."""
    rows = facts.select(UNREAD).to_pylist() if facts is not None else []
    budget, paths = Budget(PATHS, 0.2), []
    for row in sorted(rows, key=lambda r: r["cluster"]):
        for entry in row["unreadable"] or ():
            path, reason = clipped(entry["path"], 300), clipped(entry["reason"], 300)
            if budget.takes(row["cluster"], path, reason):
                paths.append({"cluster": row["cluster"], "path": path, "reason": reason})
    hidden = [(row["cluster"], row["hidden_partitions"]) for row in rows if row["hidden_partitions"]]
    return {"paths": paths, "left": budget.seen - len(paths), "hidden": sorted(hidden)[:CLUSTERS]}


def cluster_rows(report: Report) -> list[dict[str, object]]:
    """A row per cluster, those that couldn't be judged first, then by what is critical."""
    graded: dict[str, Counter] = {}
    for cause in report.causes.ranked("FAIL"):
        graded.setdefault(cause.cluster, Counter()).update(cause.severities)
    by_name = {s["cluster"]: s for s in report.run["snapshots"]}
    rows = []
    for name, outcomes in report.counts["clusters"].items():
        severities = graded.get(name, Counter())
        state = by_name.get(name)
        row = {"name": name, "outcomes": outcomes, "severities": severities, "snapshot": state}
        row["health"] = report.health.clusters.get(name)
        rows.append(row)
    return sorted(rows, key=lambda r: (_judged(r), -r["severities"]["critical"], -r["outcomes"]["FAIL"], r["name"]))


def _judged(row: dict) -> bool:
    return row["snapshot"] is not None and accepted(row["snapshot"])


def control_rows(counts: dict[str, dict[str, int]], catalogue: dict) -> list[dict[str, object]]:
    """Every control of the catalogue with its counts, in the catalogue's order, and any other that was found."""
    names = [*catalogue, *(name for name in counts if name not in catalogue)]
    nothing = dict.fromkeys(("FAIL", "UNKNOWN", "EXEMPT", "PASS", "NOT_APPLICABLE"), 0)
    return [
        {"id": name, "outcomes": counts.get(name, nothing), "entry": catalogue.get(name), "ran": name in counts}
        for name in names
    ]


def waiver_rows(report: Report) -> list[dict[str, object]]:
    """Waivers with the findings each one exempts; those past their day first.

    A waiver counts through its day, in UTC, against the snapshot's moment; the newest one is used for the label here.
    """
    exempted: Counter = Counter()
    for cause in report.causes.ranked("EXEMPT"):
        exempted[cause.waiver["index"] if cause.waiver else None] += cause.findings
    days = [s["captured_at"][:10] for s in report.run["snapshots"] if s["captured_at"]]
    today = max(days, default=report.run["started_at"][:10])
    rows = []
    for at, waiver in enumerate(report.plan.waivers):
        index = waiver.get("index", at)
        row = {k: clipped(str(waiver.get(k) or ""), 300) for k in ("control", "cluster", "resource", "owner", "reason")}
        row |= {k: clipped(str(waiver.get(k) or ""), 120) for k in ("approved_by", "ticket", "expires")}
        rows.append({**row, "index": index, "expired": row["expires"] < today, "exempts": exempted[index]})
    return sorted(rows, key=lambda r: (not r["expired"], r["expires"], r["index"]))


def tier_table(tiers: dict[str, dict]) -> dict[str, object]:
    """Requirements as rows, tiers as columns; None where a tier requires nothing."""
    wanted: list[str] = []
    for tier in tiers.values():
        wanted += [key for key in tier if key not in wanted and key != "name"]
    return {"names": list(tiers), "rows": [(key, [said(tier.get(key)) for tier in tiers.values()]) for key in wanted]}


def said(value: object) -> str | None:
    """
    >>> said(False), said(["broker", "rack"]), said(2), said(None)
    ('no', 'broker, rack', '2', None)
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or None
    return None if value is None else str(value)
