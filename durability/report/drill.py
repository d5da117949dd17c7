"""drill.json and the terminal's summary: a predicted loss against what happened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.atomic import atomic_files
from durability.plain import plain, plural

if TYPE_CHECKING:
    from durability.report.data.drill import Comparison

FORMAT = "durability-drill/1"
FILE = "drill.json"
SHOWN = 20
"""Differences that the terminal shows."""


def document(
    predicted: Mapping[str, Any],
    seen_at: str,
    found: Comparison,
    *,
    miniature: Mapping[str, Any] | None = None,
    ledger: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of drill.json.

    predicted: `cluster`, `snapshot_id`, `captured_at`, `lose` and `quorum`, as whatif.json has them. seen_at: RFC 3339.
    miniature, ledger: of a drill on the embedded cluster; None for one on a cluster of its own.
    """
    return {
        "format": FORMAT,
        **{key: predicted[key] for key in ("cluster", "snapshot_id", "captured_at", "lose", "quorum")},
        "seen_at": seen_at,
        "compared": found.compared,
        "agreed": found.agreed,
        "agreement": found.agreement,
        "fields": {name: dict(counts) for name, counts in found.fields.items()},
        "differs": found.differs,
        "not_compared": [
            {"field": name, "why": why, "partitions": count} for (name, why), count in found.not_compared.items()
        ],
        "miniature": miniature,
        "ledger": ledger,
    }


def holds(drill: Mapping[str, Any]) -> bool:
    """Did everything that was compared agree, and is the ledger whole? drill: the content of drill.json."""
    ledger = drill["ledger"]
    return drill["agreement"] == 1 and (ledger is None or ledger["whole"])


def write(drill: Mapping[str, Any], out: Path) -> Path:
    """Writes drill.json into the folder `out`; returns its path."""
    with atomic_files(out, FILE) as (file,):
        json.dump(drill, file, ensure_ascii=False, indent=1)
        file.write("\n")
    return out / FILE


def summary(drill: Mapping[str, Any], path: Path) -> list[str]:
    """The result in a few lines. drill: the content of drill.json."""
    lines = [*_headline(drill), *_differences(drill), *_gaps(drill)]
    return [plain(line) for line in [*lines, "", f"  {path}"]]


def _headline(drill: Mapping[str, Any]) -> list[str]:
    asked, compared = " and ".join(drill["lose"]["asked"]), drill["compared"]
    if not compared:
        return [f"Without {asked}, in {drill['cluster']}: nothing could be compared."]
    verb = "agrees" if drill["agreed"] == 1 else "agree"
    share = f"{drill['agreed']:,} of {plural(compared, 'partition')} {verb} with the prediction"
    lines = [f"Without {asked}, in {drill['cluster']}: {share} ({_percent(drill['agreement'])})."]
    if drill["miniature"]:
        built = drill["miniature"]
        lines.append(
            f"Rebuilt: {plural(built['placements'], 'placement')} for {plural(built['partitions'], 'partition')}, "
            f"on Kafka {built['kafka_version']} with {plural(len(built['brokers']), 'broker')}."
        )
    return lines + _ledger(drill["ledger"])


def _ledger(ledger: Mapping[str, Any] | None) -> list[str]:
    if ledger is None:
        return []
    known = f"{ledger['found']:,} of {plural(ledger['acknowledged'], 'acknowledged record')} are there afterwards"
    lost = f"; {ledger['missing_as_predicted']:,} were deleted as predicted" if ledger["missing_as_predicted"] else ""
    lines = [f"Ledger: {known}{lost}."]
    for entry in ledger["missing"]:
        many = plural(entry["records"], "record")
        lines.append(f"  {_place(entry)}: {many} missing that the prediction keeps")
    if ledger["unread"]:
        lines.append(f"  not read, {ledger['why_unread']}")
    return lines


def _differences(drill: Mapping[str, Any]) -> list[str]:
    differs = drill["differs"]
    lines = [
        f"  {_place(entry)}: {entry['field']} predicted {_shown(entry['predicted'])}, seen {_shown(entry['seen'])}"
        for entry in differs[:SHOWN]
    ]
    if len(differs) > SHOWN:
        lines.append("  more differences are in the file")
    return ["", "Differences", *lines] if lines else []


def _gaps(drill: Mapping[str, Any]) -> list[str]:
    lines = [
        f"Not compared: {plural(entry['partitions'], 'partition')}"
        + (f", {entry['field']}" if entry["field"] else "")
        + f": {entry['why']}."
        for entry in drill["not_compared"]
    ]
    if drill["miniature"]:
        built = drill["miniature"]
        lines += [f"Left out: {plural(e['partitions'], 'partition')}: {e['why']}." for e in built["left_out"]]
        lines += [f"Not rebuilt: {text}." for text in built["not_rebuilt"]]
    return lines


def _place(entry: Mapping[str, Any]) -> str:
    return f"{entry['topic']}-{entry['partition']}"


def _percent(share: float) -> str:
    """
    >>> _percent(1.0), _percent(0.9999), _percent(0.5)
    ('100 %', '99.99 %', '50 %')
    """
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + " %"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
