"""How long waivers may last in a tier (`waiver_longest`).

The resources of a waiver, and so their tiers, are only known in a run. So a waiver that lasts too long isn't refused when it is
read. In each tier with a limit it counts until the limit at most, and not at all if it doesn't state when it was approved.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from durability.policy.model import Policy, Waiver

LIMITS = "limits"
"""Key of a waiver in a plan and in `runs.waivers`; absent if no tier limits it."""


def limits(waiver: Waiver, policy: Policy) -> dict[str, dict[str, Any]]:
    """By tier that ends the waiver before its last day: `days`, the longest term, and `until`, its last day there.

    `until` is None if the waiver counts on no day, because it doesn't state when it was approved.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, tier in policy.tiers.items():
        if tier.waiver_longest is not None:
            until = _last_day(waiver.approved_at, tier.waiver_longest)
            if until is None or until < waiver.expires:
                found[name] = {"days": tier.waiver_longest.days, "until": until and until.isoformat()}
    return found


def _last_day(approved: date | None, longest: timedelta) -> date | None:
    if approved is None:
        return None
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


def limits_text(waiver: Mapping[str, Any]) -> str:
    """The limits in words; empty without any.

    >>> limits_text({"limits": {"critical": {"days": 90, "until": "2027-02-28"}, "gold": {"days": 1, "until": None}}})
    'tier critical: until 2027-02-28 (90 days at most), tier gold: not in force, approved_at is missing'
    """
    parts = []
    for tier, limit in sorted(waiver.get(LIMITS, {}).items()):
        term = f"until {limit['until']} ({limit['days']:,} days at most)"
        parts.append(f"tier {tier}: {term if limit['until'] else 'not in force, approved_at is missing'}")
    return ", ".join(parts)
