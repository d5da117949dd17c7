"""Reports: what the rules decided, said to a platform team, an on-call engineer and an auditor.

Nothing is decided here. Findings come from the lake, their causes and remedies with them; this room counts, groups,
sorts and escapes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from durability.report.builder import Summary


def build(lake, plan, flagged, out: Path) -> Summary:
    """Write findings.json, findings.csv and report.html into `out`; see `durability.report.builder.build`."""
    from durability.report.builder import build as write_reports  # Arrow and Jinja are loaded only by who reports

    return write_reports(lake, plan, flagged, out)
