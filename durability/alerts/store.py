"""Alerts in the lake: the table `alerts`. The newest row of a key counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.alerts.model import Alert, Delivery, TierSight
from durability.lake.tables import ALERTS

if TYPE_CHECKING:
    from durability.lake import Lake

RECENT = timedelta(hours=1)
"""Each pulse writes all alerts that aren't over, so the newest rows are this young unless pulses stopped."""
PULSED = timedelta(minutes=15)
"""If the newest row is older, pulses stopped."""
_SAME = (
    *("key", "cluster", "category", "team", "state", "cause", "tier", "partitions", "topics", "first_seen", "opened"),
    *("last_seen", "closed", "why", "pulsed", "clean", "unknown", "revision", "reason"),
    *("clusters", "listed", "fleet"),
)


def load(lake: Lake, now: datetime) -> list[Alert]:
    """The newest state of each alert: of those written in the last hour of pulses, else of all.

    A pulse writes in several commits. If pulses stopped, the hour before its last one counts: an hour before `now` may begin
    between two of its commits.
    """
    from pyiceberg.expressions import GreaterThanOrEqual

    if not lake.has(ALERTS):
        return []

    def since(moment: datetime) -> pa.Table:
        return lake.scan(ALERTS, GreaterThanOrEqual("captured_at", (moment - RECENT).astimezone(UTC).isoformat()))

    rows = since(now) or lake.scan(ALERTS)
    last = pc.max(rows["captured_at"]).as_py()
    if last is not None and now - last > PULSED:
        rows = since(last)
    newest = {row["key"]: row for row in rows.sort_by("captured_at").to_pylist()}
    return [_alert(row) for row in newest.values()]


def write(lake: Lake, alerts: Iterable[Alert], run: tuple[str, str], now: datetime) -> None:
    """Write the states of alerts in one commit. run: run_id and result_id of the pulse."""
    rows = [_row(alert, run, now) for alert in alerts]
    if rows:
        lake.append(ALERTS, pa.Table.from_pylist(rows, ALERTS.arrow))


def _row(alert: Alert, run: tuple[str, str], now: datetime) -> dict[str, Any]:
    return {
        **{name: getattr(alert, name) for name in _SAME},
        "captured_at": now,
        "run_id": run[0],
        "result_id": run[1],
        "now": list(alert.now),
        "subjects": sorted(alert.subjects),
        "examples": list(alert.examples),
        "after_seconds": None if alert.after is None else int(alert.after.total_seconds()),
        "tiers": [asdict(sight) for sight in alert.tiers],
        "sent": [asdict(delivery) for delivery in alert.deliveries],
    }


def _alert(row: dict[str, Any]) -> Alert:
    after = row["after_seconds"]
    return Alert(
        **{name: row[name] for name in _SAME},
        now=tuple(row["now"] or ()),
        subjects=frozenset(row["subjects"] or ()),
        examples=tuple(row["examples"] or ()),
        after=None if after is None else timedelta(seconds=after),
        tiers=tuple(TierSight(**sight) for sight in row["tiers"] or ()),
        deliveries=tuple(Delivery(**sent) for sent in row["sent"] or ()),
    )
