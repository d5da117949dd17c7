"""Step publish: commits the accepted snapshots. Their rows in `snapshots` are written last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from durability.plain import plural
from durability.steps.results import Failure, Gated
from durability.steps.settings import PULSE, SNAPSHOT_KINDS, Settings
from durability.steps.summary import StepSummary


def publish(settings: Settings, kind: str, gated: Gated, summary: StepSummary) -> list[dict[str, Any]]:
    """The newest row of `snapshots` for each cluster that was read or could not be read.

    A pulse writes these rows only. Its facts stay staged.
    """
    lake = settings.open_lake()
    attempts = [replace(a, kind=SNAPSHOT_KINDS[kind]) for a in gated.attempts]
    rows = lake.publish(attempts, gated.verdicts) if attempts else []
    # An unusable document gets no row in the lake. Only the report names it.
    if settings.topology:
        missing = [unread(failure) for failure in gated.failures]
    else:
        failures = [(f.cluster, f.at, f.reason) for f in gated.failures]
        missing = lake.record_failures(failures, SNAPSHOT_KINDS[kind])
    summary.text = f"{plural(len(rows), 'snapshot')} {'noted' if kind == PULSE else 'committed'}"
    newest: dict[str, dict[str, Any]] = {}
    for row in sorted(rows + missing, key=lambda r: r["captured_at"]):
        newest[row["cluster"]] = row
    return list(newest.values())


def unread(failure: Failure) -> dict[str, Any]:
    """A row shaped like `snapshots` for an unreadable source. Only its name is known."""
    unknown = dict.fromkeys(("snapshot_id", "attempt_id", "sha256", "partitions"))
    stated = {"captured_at": failure.at, "status": "failed", "reason": failure.reason, "source": failure.cluster}
    return {"cluster": failure.cluster, **stated, **unknown}
