"""How long waivers may last in a tier (`waiver_longest`).

The resources of a waiver, and so their tiers, are only known in a run. So a waiver that lasts too long isn't refused when it is
read. In each tier with a limit it counts from the day of its approval until the limit at most. It doesn't count at all if it
doesn't state who approved it and when.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from durability.policy.model import Policy, Waiver

LIMITS = "limits"
"""Key of a waiver in a plan and in `runs.waivers`; absent if no tier has a limit."""
NEEDED = ("approved_by", "approved_at")
"""What a waiver states to count in a tier with a limit."""


def limits(waiver: Waiver, policy: Policy) -> dict[str, dict[str, Any]]:
    """By tier with a limit: `days`, the longest term, and the first and last day on which the waiver counts there.

    These are `since` and `until`. Both are None if the waiver counts on no day: it doesn't state who approved it and when.
    A day of approval that is still to come is no approval yet.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, tier in policy.tiers.items():
        if tier.waiver_longest is not None:
            since = until = None
            if waiver.approved_by and waiver.approved_at:
                since = waiver.approved_at.isoformat()
                until = min(_last_day(waiver.approved_at, tier.waiver_longest), waiver.expires).isoformat()
            found[name] = {"days": tier.waiver_longest.days, "since": since, "until": until}
    return found


def _last_day(approved: date, longest: timedelta) -> date:
    # A limit of a hundred years must not exceed the last day that a date can have.
    return approved + min(longest, date.max - approved)


def with_limits(waiver: Waiver, policy: Policy) -> dict[str, Any]:
    """The waiver as a plan has it."""
    found = limits(waiver, policy)
    return waiver.to_dict() | ({LIMITS: found} if found else {})


def last_day(waiver: Mapping[str, Any], tier: str | None) -> str | None:
    """The last day on which a plan's waiver counts for resources of a tier; None if it counts on no day.

    >>> stated = {"expires": "2027-06-30", "limits": {"critical": {"days": 90, "until": "2027-02-28"}}}
    >>> last_day(stated, "critical"), last_day(stated, None), last_day({"expires": "2027-06-30"}, "critical")
    ('2027-02-28', '2027-06-30', '2027-06-30')
    """
    limit = waiver.get(LIMITS, {}).get(tier)
    return limit["until"] if limit else waiver["expires"]


def missing(waiver: Mapping[str, Any]) -> str:
    """What a waiver doesn't state of NEEDED, as the subject of "missing"; empty if nothing.

    >>> missing({"approved_by": "cro"}), missing({})
    ('approved_at is', 'approved_by and approved_at are')
    """
    names = [name for name in NEEDED if not waiver.get(name)]
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}" if names else ""


def limits_text(waiver: Mapping[str, Any], today: str) -> str:
    """The limits that cut the waiver's term, in words; empty without any. today: a day, such as 2027-01-31.

    >>> critical = {"days": 90, "since": "2026-11-30", "until": "2027-02-28"}
    >>> stated = {"expires": "2027-06-30", "approved_at": "2026-11-30", "limits": {"critical": critical}}
    >>> limits_text(stated | {"approved_by": "cro"}, "2027-01-01"), limits_text(stated | {"expires": "2027-02-28"}, "2027-01-01")
    ('tier critical: until 2027-02-28 (90 days at most)', '')
    >>> limits_text(stated, "2026-11-01")
    'tier critical: not in force before 2026-11-30, the day of approval'
    >>> limits_text(stated | {"limits": {"gold": {"days": 1, "until": None}}}, "2027-01-01")
    'tier gold: not in force, approved_by is missing'
    """
    parts = []
    for tier, limit in sorted(waiver.get(LIMITS, {}).items()):
        if limit["until"] is None:
            parts.append(f"tier {tier}: not in force, {missing(waiver)} missing")
        elif (limit.get("since") or "") > today:
            parts.append(f"tier {tier}: not in force before {limit['since']}, the day of approval")
        elif limit["until"] < waiver["expires"]:
            parts.append(f"tier {tier}: until {limit['until']} ({limit['days']:,} days at most)")
    return ", ".join(parts)
