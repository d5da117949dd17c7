"""The waivers of a period's runs: when each was in the file, what it exempted, and whether it has expired.

A run's row has all waivers of its file. A finding has the index of the waiver that exempts it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from durability.evidence.exceptions import grouped, is_in
from durability.evidence.nights import Period, night
from durability.plan.inventory import Inventory
from durability.policy.terms import LIMITS

EXPIRED, EXPIRED_BEFORE, GONE, VALID = "expired in the period", "expired before", "removed or changed", "valid"
STATES = (EXPIRED, EXPIRED_BEFORE, GONE, VALID)
"""What a waiver is at the end of the period. GONE: the waivers of the fleet's last run don't have it as it was."""
LIMIT = ("days", "since", "until")
"""What a row says of a tier's limit: the longest term, and the first and last day on which the waiver counts there."""
STATED = (
    *("control", "cluster", "resource", "owner", "requested_by", "approved_by", "approved_at", "approved_count"),
    *("reason", "risk", "compensating_control", "ticket", "expires"),
)
Row = Mapping[str, Any]


@dataclass
class _Waiver:
    stated: dict[str, Any]
    first: str
    last: str = ""
    last_run: str = ""
    exempted: Counter[str] = field(default_factory=Counter)  # findings by result id
    covers: int = 0
    limits: Mapping[str, Row] = field(default_factory=dict)  # of the last run that has it, by tier


def read(lake: Any, period: Period, runs: Sequence[Row], controls: Collection[str] | None) -> list[dict[str, Any]]:
    """The member `waivers` of period.json: expired ones first, then those that are GONE, by the day on which they expire.

    runs: oldest first. controls: those whose waivers are listed; None for all.
    """
    found: dict[str, _Waiver] = {}
    by_index: dict[tuple[str, int], _Waiver] = {}
    at_end: dict[str | None, set[str]] = {}
    for run in runs:
        if run["waivers"] is not None:
            fleet = Inventory.from_dict(json.loads(run["inventory"])).fleet if run.get("inventory") else None
            at_end[fleet] = set()
        for stated in json.loads(run["waivers"] or "[]"):
            same = {name: value for name, value in stated.items() if name not in ("index", LIMITS)}
            key = json.dumps(same, sort_keys=True)
            at_end[fleet].add(key)
            day = night(run["captured_at"]).isoformat()
            waiver = found.setdefault(key, _Waiver(stated, day))
            waiver.last, waiver.last_run, waiver.limits = day, run["result_id"], stated.get(LIMITS) or {}
            by_index[run["result_id"], stated["index"]] = waiver
    exempt = is_in("outcome", ("EXEMPT",))
    for row in grouped(lake, runs, exempt, ("result_id", "waiver")) if found else ():
        if waiver_of := by_index.get((row["result_id"], row["waiver"])):
            waiver_of.exempted[row["result_id"]] += row["count_all"]
    _cover(lake, runs, found.values(), by_index)
    nights = {run["result_id"]: night(run["captured_at"]) for run in runs}
    stated_at_end = set[str]().union(*at_end.values())
    rows = [
        _row(waiver, period, nights, key in stated_at_end)
        for key, waiver in found.items()
        if controls is None or set(waiver.stated.get("controls") or ()) & set(controls)
    ]
    return sorted(rows, key=lambda row: (STATES.index(row["state"]), row["expires"], row["control"], row["cluster"]))


def _cover(lake: Any, runs: Sequence[Row], waivers: Any, by_index: Mapping[tuple[str, int], _Waiver]) -> None:
    """Count the resources that each waiver covers in the last run that has it."""
    last = {waiver.last_run for waiver in waivers if waiver.exempted}
    resources: defaultdict[int, set[tuple]] = defaultdict(set)
    keys = ("result_id", "waiver", "cluster", "resource_type", "resource")
    of_last = [run for run in runs if run["result_id"] in last]
    for row in grouped(lake, of_last, is_in("outcome", ("EXEMPT",)), keys):
        waiver = by_index.get((row["result_id"], row["waiver"]))
        if waiver is not None and waiver.last_run == row["result_id"]:
            resources[id(waiver)].add((row["cluster"], row["resource_type"], row["resource"]))
    for waiver in waivers:
        waiver.covers = len(resources[id(waiver)])


def _row(waiver: _Waiver, period: Period, nights: Mapping[str, date], at_end: bool) -> dict[str, Any]:
    stated = waiver.stated
    return {
        **{name: stated.get(name) for name in STATED},
        "state": _state(date.fromisoformat(stated["expires"]), period, at_end),
        "first_night": waiver.first,
        "last_night": waiver.last,
        "nights_used": len({nights[result] for result in waiver.exempted}),
        "findings_at_most": max(waiver.exempted.values(), default=0),
        "covers_at_last": waiver.covers,
        "limits": [
            {"tier": tier, **{name: limit.get(name) for name in LIMIT}, "state": _in_tier(tier, limit, period)}
            for tier, limit in sorted(waiver.limits.items())
        ],
    }


def _in_tier(tier: str, limit: Row, period: Period) -> str:
    """What a tier with a limit makes of the waiver, at the end of the period.

    >>> october = Period(date(2026, 10, 1), date(2026, 11, 1))
    >>> _in_tier("gold", {"until": "2026-10-05"}, october), _in_tier("gold", {"until": None}, october)
    ('ended in tier gold on 2026-10-05', 'counts on no day in tier gold')
    >>> _in_tier("gold", {"since": "2026-10-01", "until": "2027-01-01"}, october)
    'counts in tier gold until 2027-01-01'
    >>> _in_tier("gold", {"since": "2026-12-01", "until": "2027-01-01"}, october)
    'does not count in tier gold before 2026-12-01'
    """
    since, until = limit.get("since"), limit["until"]
    if until is None:
        return f"counts on no day in tier {tier}"
    if since is not None and date.fromisoformat(since) >= period.end:
        return f"does not count in tier {tier} before {since}"
    if date.fromisoformat(until) < period.end:
        return f"ended in tier {tier} on {until}"
    return f"counts in tier {tier} until {until}"


def _state(expires: date, period: Period, at_end: bool) -> str:
    """A waiver is valid through the day on which it expires. at_end: does the last run have it?"""
    if expires >= period.end:
        return VALID if at_end else GONE
    return EXPIRED if expires >= period.start else EXPIRED_BEFORE
