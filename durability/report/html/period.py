"""period.html: the evidence of a period as a page to read and sign, in the report's style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from durability.report.html.objectives import BADGES, HARMS, percent
from durability.report.html.page import environment, first, stylesheet

CLUSTERS, GAPS, ROWS, WAIVERS, POLICIES, DRILLS, ACLS = 300, 400, 300, 300, 100, 100, 20


def render(found: Mapping[str, Any], sha256: str) -> Iterator[str]:
    """The page in pieces. found: the content of period.json. sha256: of that file."""
    css, digest = stylesheet()
    counts, exceptions = found["nights"], found["exceptions"]
    gaps = [{"cluster": cluster["cluster"], **gap} for cluster in found["clusters"] for gap in cluster["gaps"]]
    left = [{"cluster": cluster["cluster"], **gap} for cluster in found["clusters"] for gap in cluster["not_expected"]]
    apart = [{"outcome": name, **row} for name in ("unknown", "exempt") for row in exceptions[name]]
    known = counts["done"] == counts["expected"] and exceptions["open_at_end"] == 0
    template = environment().get_template("period.html.j2")
    yield from template.generate(
        css=css,
        css_hash=digest,
        found=found,
        sha256=sha256,
        tone="good" if known else "unknown",
        clusters=first(found["clusters"], CLUSTERS),
        principals=first(found["principals"], CLUSTERS),
        acls=ACLS,
        gaps=first(gaps, GAPS),
        left=first(left, GAPS),
        rows=first(exceptions["rows"], ROWS),
        apart=first(apart, ROWS),
        waivers=first(found["waivers"], WAIVERS),
        policies=first(found["policies"]["in_force"], POLICIES),
        pulses=first(found["pulses"], CLUSTERS),
        objectives=first([_objective(row) for row in found["objectives"]["found"] or ()], ROWS),
        drills=first(found["drills"]["found"] or [], DRILLS),
    )


def _objective(row: Mapping[str, Any]) -> dict[str, Any]:
    minutes, used, stated = row["partition_minutes"], row["budget_used"], row["objective"]
    least = "≥ " if minutes["unknown"] else ""
    return {
        **row,
        "harm": HARMS[row["harm"]],
        "near": percent(minutes["one_failure_away"] / minutes["all"]),
        "unknown": percent(minutes["unknown"] / minutes["all"]),
        "objective": f"{stated:.10g} %" if stated is not None else None,
        "badge": BADGES[row["state"]],
        "used": f"{least}{percent(used)}" if used is not None else None,
    }
