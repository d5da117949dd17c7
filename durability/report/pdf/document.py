"""report.pdf: what a person who signs needs, the worst first. Page one says what is judged, by what, and what isn't known."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from reportlab.platypus import Flowable, KeepTogether, PageBreak

from durability.plain import plural
from durability.report.html.page import Report, accepted, cause_rows, cluster_rows, unread_rows, waiver_rows
from durability.report.pdf.paper import TONES, gap, script, table, text, write
from durability.report.words import CAVEATS, cause_title, clipped, is_script, numbers, readable

FILE = "report.pdf"
CAUSES, UNKNOWN, CLUSTERS, WAIVERS = 30, 20, 100, 60
"""The most that the document lists of each."""
ON_PAGE_ONE = 6
"""The most causes of unknown verdicts, and the most clusters without a snapshot, on page one."""
SIGNERS = ("Prepared by", "Reviewed by", "Risk accepted by")


def build(file: BinaryIO, report: Report, findings: Path) -> None:
    """Write report.pdf. findings: the complete findings.json of the same run, whose SHA-256 is the document's fingerprint."""
    with findings.open("rb") as lines:
        fingerprint = hashlib.file_digest(lines, "sha256").hexdigest()
    run = report.run
    parts = [
        *_page_one(report, fingerprint),
        *_clusters(report),
        *_causes(report),
        *_waivers(report),
        *_unknown(report),
        *_sign(),
    ]
    foot = f"Kafka durability audit {readable(run['started_at'])} · findings.json SHA-256 {fingerprint[:16]}…"
    made = datetime.fromisoformat(run["started_at"])
    write(file, parts, f"Kafka durability audit {readable(run['started_at'])}", foot, made)


def _page_one(report: Report, fingerprint: str) -> Iterator[Flowable]:
    run, counts = report.run, numbers(report.counts)
    yield text(f"Kafka durability audit · {readable(run['started_at'])}", "dim")
    yield text(report.headline.sentence, "h1", TONES[report.headline.tone])
    if report.headline.details:
        yield text(" ".join(report.headline.details))
    yield gap(6)
    yield table(tuple(counts), [[f"{n:,}" for n in counts.values()]], [1 / 7] * 7, "n" * 7)
    yield text("Unknown", "h2")
    yield from _not_known(report)
    yield text("Scope and inputs", "h2")
    stated = [
        ("run", run["id"]),
        ("cross-check", "Spark and Great Expectations agree" if run["verified"] else "not verified"),
        ("policy", [run["policy"]["name"], f"SHA-256 of policy and waivers: {run['policy']['sha256']}"]),
        ("findings.json", f"SHA-256 {fingerprint}"),
    ]
    yield table(("What", "Which"), stated, (0.16, 0.84), "tm")
    yield text("Snapshots", "h2")
    snapshots = run["snapshots"]
    rows = [
        (s["cluster"], s["status"], readable(s["captured_at"]) if s["captured_at"] else "none", s["sha256"] or "none")
        for s in snapshots[:CLUSTERS]
    ]
    yield table(("Cluster", "State", "Taken", "SHA-256 of the topology"), rows, (0.18, 0.09, 0.21, 0.52), "tttm")
    yield from _left(len(snapshots) - len(rows), "more snapshot")


def _not_known(report: Report) -> Iterator[Flowable]:
    """What the run doesn't know, in a few lines. The document's section Unknown has the rest."""
    missing = [s for s in report.run["snapshots"] if not accepted(s)]
    unknown = cause_rows(report.causes, "UNKNOWN", {s["cluster"] for s in missing})
    unread = unread_rows(report.data.unread)
    if not report.run["verified"]:
        yield text("This run is not verified: where Spark and Great Expectations differ, the finding is unknown.")
    for snapshot in missing[:ON_PAGE_ONE]:
        reason = clipped(snapshot["reason"] or "no reason recorded", 300)
        yield text(f"{snapshot['cluster']} was not evaluated: {reason}")
    yield from _left(len(missing) - ON_PAGE_ONE, "more cluster was not evaluated", "more clusters were not evaluated")
    for row in unknown["shown"][:ON_PAGE_ONE]:
        cause = row["group"]
        yield text(f"{cause.cluster}: {cause.extent} unknown. {clipped(cause_title(cause.cause), 200)}.")
    left = len(unknown["shown"]) + unknown["left"] - ON_PAGE_ONE
    yield from _left(left, "more cause of unknown verdicts", "more causes of unknown verdicts")
    for cluster, partitions in unread["hidden"][:ON_PAGE_ONE]:
        yield text(f"{cluster}: {plural(partitions, 'partition')} of topics that the auditor may not describe.")
    if not (missing or unknown["shown"] or unread["hidden"]) and report.run["verified"]:
        yield text("Every fact that the controls need could be read.")


def _clusters(report: Report) -> Iterator[Flowable]:
    rows = [
        [row["name"], *(f"{row['severities'][name]:,}" for name in ("critical", "warning", "info"))]
        + [f"{row['outcomes'][name]:,}" for name in ("UNKNOWN", "EXEMPT", "PASS")]
        for row in cluster_rows(report)
    ]
    yield PageBreak()
    yield text("Clusters", "h2")
    heads = ("Cluster", "critical", "warning", "info", "unknown", "exempt", "passed")
    yield table(heads, rows[:CLUSTERS], (0.4, *[0.1] * 6), "tnnnnnn")
    yield from _left(len(rows) - CLUSTERS, "more cluster")


def _causes(report: Report) -> Iterator[Flowable]:
    """What fails, by cause, with the fix of the most urgent findings."""
    causes = cause_rows(report.causes, "FAIL")
    yield text("Failures by cause", "h2")
    if not causes["shown"]:
        yield text("Nothing fails.")
    for row in causes["shown"][:CAUSES]:
        cause = row["group"]
        since = f", since {readable(cause.since)}" if cause.since else ""
        yield KeepTogether(
            [
                text(f"{cause.cluster}: {clipped(cause_title(cause.cause), 300)}", "h3"),
                text(f"{cause.extent}{since}. {_named(row)}", "dim"),
                *([text(row["example"])] if row["example"] else []),
            ]
        )
        for fix, _ in row["fixes"][:1]:
            yield script(fix) if is_script(fix) else text(fix)
        yield from _left(len(row["fixes"]) - 1 + row["more_fixes"], "more fix", "more fixes")
    yield from _left(len(causes["shown"]) - CAUSES + causes["left"], "more cause")


def _named(row: Mapping[str, Any]) -> str:
    more = f" and {row['more_names']:,} more" if row["more_names"] > 0 else ""
    return f"{', '.join(row['names'])}{more}"


def _waivers(report: Report) -> Iterator[Flowable]:
    waivers = waiver_rows(report)
    yield text("Accepted risks", "h2")
    if not waivers:
        yield text("There is no waiver: no risk is accepted.")
        return
    rows = [
        (
            "expired" if w["expired"] else "in force",
            [w["control"], w["cluster"], clipped(w["resource"], 200)],
            _people(w),
            [clipped(said, 300) for said in _reasons(w)],
            [line for line in (w["ends"], clipped(w["limits"], 300)) if line],
            [f"{w['exempts']:,}"]
            + ([f"approved for {w['approved_count']:,}"] if w["approved_count"] is not None else []),
        )
        for w in waivers[:WAIVERS]
    ]
    heads = ("State", "Control, cluster, resource", "Owner", "Reason", "Last day", "Exempts")
    yield table(heads, rows, (0.09, 0.28, 0.18, 0.25, 0.11, 0.09), "tmtttn")
    yield from _left(len(waivers) - WAIVERS, "more waiver")


def _people(waiver: Mapping[str, Any]) -> list[str]:
    """Who owns, approved and requested it, one per line."""
    approved = f"approved by {clipped(waiver['approved_by'], 120)}" if waiver["approved_by"] else "no approver named"
    day = f", {waiver['approved_at']}" if waiver["approved_at"] else ""
    asked = [f"requested by {clipped(waiver['requested_by'], 120)}"] if waiver["requested_by"] else []
    return [clipped(waiver["owner"], 120), f"{approved}{day}", *asked]


def _reasons(waiver: Mapping[str, Any]) -> list[str]:
    meanwhile = waiver["compensating_control"]
    risk = [f"Risk: {waiver['risk']}"] if waiver["risk"] else []
    return [waiver["reason"], *risk, *([f"Meanwhile: {meanwhile}"] if meanwhile else [])]


def _unknown(report: Report) -> Iterator[Flowable]:
    unknown, unread = cause_rows(report.causes, "UNKNOWN"), unread_rows(report.data.unread)
    yield text("Unknown in detail", "h2")
    yield text("A fact that could not be read never counts as compliant.")
    rows = [
        (row["group"].cluster, clipped(cause_title(row["group"].cause), 300), row["group"].extent, row["example"])
        for row in unknown["shown"][:UNKNOWN]
    ]
    if not rows and not unread["paths"]:
        yield text("Every fact that the controls need could be read.")
    if rows:
        yield table(("Cluster", "Why", "Verdicts", "Example"), rows, (0.18, 0.26, 0.16, 0.4), "tttt")
    yield from _left(len(unknown["shown"]) - UNKNOWN + unknown["left"], "more cause")
    paths = [(u["cluster"], u["path"], u["reason"] or "no reason recorded") for u in unread["paths"][:UNKNOWN]]
    if paths:
        yield text("Not readable", "h3")
        yield table(("Cluster", "Part of the topology", "Reason"), paths, (0.2, 0.35, 0.45), "tmt")
        yield from _left(len(unread["paths"]) - UNKNOWN + unread["left"], "more path")


def _sign() -> Iterator[Flowable]:
    rows = [(who, "", "", "") for who in SIGNERS]
    yield text("How to read this", "h2")
    for caveat in (*CAVEATS, "Unknown is never compliant. Exempt is a failure with a waiver."):
        yield text(caveat)
    lines = table(("", "Name", "Signature", "Date"), rows, (0.19, 0.31, 0.3, 0.2), "tttt", height=34)
    yield KeepTogether([text("Signatures", "h2"), lines])


def _left(number: int, one: str, many: str | None = None) -> Sequence[Flowable]:
    """A line that says how many are left out, and where they are."""
    return [text(f"{plural(number, one, many)}, in findings.csv.", "dim")] if number > 0 else []
