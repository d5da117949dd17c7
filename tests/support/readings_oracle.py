"""KIP-427's readings over time by plain loops over one history, written from the texts and not from the Spark rule.

At every moment the topic is at zero, at min ISR or worse because replicas are missing, or not readable. A broker is out at a
moment if one of its replicas is missing.
"""

from __future__ import annotations

import itertools
import statistics
from datetime import UTC, datetime, timedelta

from durability.policy.model import Readings
from tests.support.readings import Moment

Window = tuple[datetime, datetime]
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def depth(moment: Moment) -> int | None:
    """0 zero, 1 at min ISR, 2 under, 3 offline, None unknown."""
    return {"0": 0, "c": 0, "r": 0, "?": None, "!": None, "u": 2, "x": 3}.get(moment.drawn, 1)


def out(moment: Moment) -> set[int] | None:
    if moment.drawn == "?":
        return None
    if moment.drawn in "0c":
        return set()
    return {1, 2} if moment.drawn in "&!" else {1} if moment.drawn in "uxr" else {int(moment.drawn)}


def reading(
    history: list[Moment], policy: Readings, windows: list[Window], tier: str | None, *, whole_cluster: bool
) -> dict:
    """{"prolonged": (since, changes)} and/or {"bouncing": (since, changes)}, or {outcome: None}, or {} for no finding."""
    now = history[-1].at
    line = [m for m in history if m.at >= now - policy.look_back]
    apart = [b.at - a.at for a, b in itertools.pairwise(line)]
    usual = statistics.median(apart) if apart else None
    followed = len(line) >= 3 and usual <= policy.bouncing_within / policy.bouncing_changes
    shortest = min(policy.delay(c, t) for c in ("at-min-isr", "under-min-isr", "offline") for t in (None, "gold"))
    bridge = max(usual * 2.5, shortest / 2) if followed else policy.prolonged_after
    recent = [m for m in line if m.at >= now - policy.bouncing_within]

    known = [m for m in line if depth(m) is not None]
    changed = [
        b
        for a, b in itertools.pairwise(known)
        if (depth(a) > 0) != (depth(b) > 0)
        and a.at >= recent[0].at
        and not any(s <= b.at and a.at < e for s, e in windows)
    ]
    orderly, in_turn = rolling(line, recent, windows, bridge)
    found, hidden = {}, False
    for worst, category in ((3, "offline"), (2, "under-min-isr"), (1, "at-min-isr")):
        since, earliest = run(line, worst, bridge)
        if since is None or in_turn:
            continue
        delay = policy.delay(category, tier)
        if (now - since) - outage(windows, since, now) >= delay:
            found.setdefault("prolonged", (text(since), len(changed)))
        elif earliest is not None:
            hidden = hidden or (now - earliest) - outage(windows, earliest, now) >= delay
    if len(changed) >= policy.bouncing_changes and not orderly:
        found["bouncing"] = (text(changed[0].at), len(changed))
    if found:
        return found
    start = now - policy.bouncing_within
    blind = sum(
        (b.at - max(a.at, start) for a, b in itertools.pairwise(line) if b.at - a.at > bridge and b.at > start),
        timedelta(0),
    )
    unclear = hidden or depth(line[-1]) is None
    if not followed:
        too_seldom = len(line) >= 3 or len(history) < 3
        return ({"NOT_APPLICABLE": None} if too_seldom else {"UNKNOWN": None}) if whole_cluster else {}
    if blind > policy.bouncing_within / 2 and not unclear:
        return {"UNKNOWN": None} if whole_cluster else {}
    return {"UNKNOWN": None} if unclear else {"PASS": None}


def run(line: list[Moment], worst: int, bridge: timedelta) -> tuple[datetime | None, datetime | None]:
    """Since when it has been this bad or worse, and since when it may have been.

    It walks back from now until the topic was better, couldn't be read or wasn't looked at. In the latter cases the second value
    is set; it is None if nothing is hidden.
    """
    if depth(line[-1]) is None or depth(line[-1]) < worst:
        return None, None
    since = line[-1].at
    for m in reversed(line[:-1]):
        if depth(m) is None or since - m.at > bridge:
            better = [b.at for b in line if b.at <= m.at and depth(b) is not None and depth(b) < worst]
            return since, max(better, default=LONG_AGO)
        if depth(m) < worst:
            break
        since = m.at
    return since, None


def outage(windows: list[Window], since: datetime, now: datetime) -> timedelta:
    """How much of a time is in windows. Overlapping windows count once."""
    edges = sorted({since, now, *(e for w in windows for e in w if since < e < now)})
    pieces = itertools.pairwise(edges)
    return sum((b - a for a, b in pieces if any(s <= a and b <= e for s, e in windows)), timedelta(0))


def rolling(line: list[Moment], recent: list[Moment], windows: list[Window], bridge: timedelta) -> tuple[bool, bool]:
    """Is it an orderly rolling restart, and is the broker that is out now in turn and no later than the others?"""
    torn = set()
    for a, b in itertools.pairwise(m for m in line if out(m) is not None):
        if b.at - a.at > bridge:
            torn |= {a.at, b.at}
    episodes: list[list] = []  # broker, since, until
    gone: set[int] = set()
    for m in recent:
        if any(s <= m.at < e for s, e in windows):
            continue
        absent = out(m)
        if absent is None:
            continue
        if len(absent) > 1 or (absent and m.at in torn) or (gone and absent and gone != absent):
            return False, False
        if absent and not gone:
            episodes.append([*absent, m.at, None])
        if gone and not absent:
            episodes[-1][2] = m.at
        gone = absent
    brokers = [e[0] for e in episodes]
    orderly = len(brokers) >= 2 and len(set(brokers)) == len(brokers)
    over = [until - since for _, since, until in episodes if until]
    ongoing = [line[-1].at - since for _, since, until in episodes if not until]
    return orderly, bool(orderly and over and ongoing and ongoing[0] <= max(over))


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
