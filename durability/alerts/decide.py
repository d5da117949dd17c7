"""The rules of alerts: earlier alerts and one pulse give the alerts of now. Nothing here reads or sends.

- An alert is about a cluster, a category and what is the cause. Causes that are first seen together share an alert.
- It pages once two pulses have seen it and its tier's delay has passed since the first one. One pulse without it in between
  changes nothing. After two in a row, it starts again.
- A cause that comes on top of an open alert is an alert of its own. A cause that comes when that of an open alert is gone
  continues that alert: a rolling restart is one alert.
- A cause that comes in the next pulse when that of an alert not yet paged is gone confirms nothing: a fast rolling restart does
  not page. Brokers that fail in turn page when the first of them fails again.
- The all-clear needs CONFIRMED pulses in a row without it, and as much time as the tier's delay. If more partitions are unknown
  than at first sight, the pulse confirms nothing.
- A cluster that a pulse could not read keeps its alerts as they are. That it can't be read is an alert of its own, by the same
  rules. It pages only if no pulse in between could read the cluster.
- Clusters that can't be read for a shared cause are one alert of the fleet (`durability.alerts.fleet`). Alerts of their own that
  are open go on. Others wait: a cluster pages by itself if it can't be read once the others can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from durability.alerts.fleet import Shared, covered, fleets, of_other_fleet, shared
from durability.alerts.model import (
    CLOSED,
    DROPPED,
    FLEET,
    OPEN,
    PENDING,
    UNREADABLE,
    Alert,
    ClusterPulse,
    Problem,
    TierSight,
    key_of,
)
from durability.policy.model import PAGING

CONFIRMED = 2
"""Pulses that confirm a page or an all-clear."""
GAP = timedelta(minutes=30)
"""After a longer time without a readable pulse, a pending alert starts again. Nobody knows what happened in between."""
TOO_OLD = timedelta(minutes=30)
"""A pulse older than this decides nothing: an alert task that is cleared hours later must not page for the past."""
UNREAD_FOR = timedelta(days=1)
"""A cluster that isn't listed any more loses its alerts after that time."""
NOT_LISTED = "the cluster is no longer listed"
STILL_UNREADABLE = "the policy no longer pages for its tiers: it still can't be read"
CATEGORIES = (*PAGING, UNREADABLE)
NO_LONGER_PAGED = "the policy no longer pages for its tier: the partitions may still be so"


def advance(
    alerts: Iterable[Alert],
    pulses: Iterable[ClusterPulse],
    listed: Iterable[str],
    now: datetime,
    receiver: bool = True,
    fleet: str | None = None,
) -> list[Alert]:
    """The alerts after a pulse, changed or not. A pulse that was already taken into account changes nothing.

    alerts: earlier ones, closed ones included.
    pulses: of clusters, read or not.
    listed: all clusters that the pulse was to read.
    receiver: does anybody get an alert of the fleet? If not, clusters page by themselves.
    fleet: its name in the lake, which fleets may share. Alerts of other fleets are left alone.
    """
    by_cluster: dict[str, list[Alert]] = {}
    others: list[Alert] = []
    for alert in alerts:
        (others if of_other_fleet(alert, fleet) else by_cluster.setdefault(alert.cluster, [])).append(alert)
    named = set(listed)
    young = [pulse for pulse in pulses if now - pulse.moment <= TOO_OLD]
    if young:
        every = [alert for found in by_cluster.values() for alert in found]
        of_fleet = shared(every, young, len(named), receiver, fleet)
        by_cluster[FLEET] = _of_fleet(by_cluster.get(FLEET, []), of_fleet)
        young = [covered(pulse, of_fleet) for pulse in young]
    for pulse in young:
        before = by_cluster.get(pulse.cluster, [])
        seen = max((alert.pulsed for alert in before), default=None)
        if seen is None or pulse.moment > seen:
            by_cluster[pulse.cluster] = _of_cluster(before, pulse)
    named.add(FLEET)
    mine = [
        replace(alert, fleet=fleet) if alert.cluster in named else _unlisted(alert, now)
        for found in by_cluster.values()
        for alert in found
    ]
    return [*mine, *(_unlisted(alert, now) for alert in others)]


def is_sent_by(alert: Alert, fleet: str | None, listed: Iterable[str] | None) -> bool:
    """Does this fleet send the alert? Other fleets send theirs. Those of a fleet without pulses are closed, and sent, by any.

    fleet: None for documents, and if the clusters file can't be read. An alert sent twice is better than one not sent.
    listed: the clusters of the pulse; None if that isn't known.
    """
    if fleet is None or alert.why == NOT_LISTED:
        return True
    if of_other_fleet(alert, fleet):
        return False
    return alert.fleet == fleet or listed is None or alert.cluster in listed


def is_written_by_others(alert: Alert, fleet: str | None, now: datetime) -> bool:
    """Does another fleet write the alert with its own pulses? What this one has read of it may be older."""
    return alert.fleet not in (None, fleet) and alert.tracked and now - alert.pulsed < GAP


def _unlisted(alert: Alert, now: datetime) -> Alert:
    if not alert.tracked or now - alert.pulsed < UNREAD_FOR:
        return alert
    if alert.state == PENDING:
        return replace(alert, state=DROPPED)
    return replace(alert, state=CLOSED, closed=now, why=NOT_LISTED)


def _of_fleet(alerts: Sequence[Alert], of_fleet: Shared) -> list[Alert]:
    """The fleet's alerts after a pulse. Causes of the fleet are alerts of their own, so none continues another."""
    after = list(alerts)
    for subject, pulse in of_fleet.pulses.items():
        mine = [alert for alert in after if alert.tracked and subject in alert.subjects]
        after = [alert for alert in after if alert not in mine] + _of_category(mine, pulse, UNREADABLE)
    return after


def _of_cluster(alerts: Sequence[Alert], pulse: ClusterPulse) -> list[Alert]:
    categories = (UNREADABLE,) if pulse.unread else CATEGORIES
    after = [alert for alert in alerts if not alert.tracked or alert.category not in categories]
    for category in categories:
        mine = sorted((a for a in alerts if a.tracked and a.category == category), key=lambda a: a.first_seen)
        after += _of_category(mine, pulse, category)
    return after


def _of_category(alerts: list[Alert], pulse: ClusterPulse, category: str) -> list[Alert]:
    problems = [problem for problem in pulse.problems if problem.category == category]
    known = frozenset().union(*(alert.subjects for alert in alerts))
    subjects = frozenset().union(*(problem.subjects for problem in problems))
    if (fresh := subjects - known) and not pulse.covered:
        alerts = _with(alerts, fresh, subjects, problems, pulse, category)
    return [_seen(alert, problems, pulse) for alert in alerts]


def _with(
    alerts: list[Alert],
    fresh: frozenset[str],
    subjects: frozenset[str],
    problems: list[Problem],
    pulse: ClusterPulse,
    category: str,
) -> list[Alert]:
    """The alerts with subjects that none of them has: in an alert that they continue, else in a new one."""
    for alert in alerts:
        if alert.state == OPEN and not alert.subjects & subjects:
            # What it was about before is gone. If that comes back on top of this, it is a second cause.
            moved = replace(alert, subjects=fresh, revision=alert.revision + 1)
            return [moved if one is alert else one for one in alerts]
    for alert in alerts:
        # Brokers of a rack don't fail in the same second, so what is not paged yet may still grow.
        if alert.state == PENDING and alert.subjects & subjects:
            return [replace(one, subjects=one.subjects | fresh) if one is alert else one for one in alerts]
    for alert in alerts:
        if alert.state == PENDING and category in PAGING and not alert.clean:
            moved = replace(alert, subjects=alert.subjects | fresh, tiers=())
            return [moved if one is alert else one for one in alerts]
    texts = _texts([problem for problem in problems if problem.subjects & fresh], fresh)
    cause = ", ".join(texts)
    made = Alert(
        key=key_of(pulse.cluster, category, ", ".join([*texts, *fleets(fresh)]), pulse.moment),
        cluster=pulse.cluster,
        category=category,
        cause=cause,
        subjects=fresh,
        first_seen=pulse.moment,
        last_seen=pulse.moment,
        pulsed=pulse.moment,
        team=pulse.team,
        unknown=pulse.unknown.get(category, 0),
    )
    return [*alerts, made]


def _texts(problems: Iterable[Problem], subjects: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted({c.text for problem in problems for c in problem.causes if c.subjects & subjects}))


def _seen(alert: Alert, problems: Sequence[Problem], pulse: ClusterPulse) -> Alert:
    """The alert after a pulse of its cluster."""
    mine = [problem for problem in problems if problem.subjects & alert.subjects]
    late = alert.state == PENDING and pulse.moment - alert.pulsed > GAP
    # Whoever got the page gets the all-clear.
    team = alert.team if alert.state == OPEN else pulse.team
    alert = replace(alert, pulsed=pulse.moment, team=team, tiers=() if late else alert.tiers)
    if not mine:
        return _missed(alert, pulse)
    alert = replace(
        alert,
        last_seen=pulse.moment,
        clean=0,
        now=_texts(mine, alert.subjects),
        tiers=_sighted(alert.tiers, {problem.tier for problem in mine}, pulse.moment),
        partitions=sum(problem.partitions for problem in mine),
        topics=len(frozenset[str]().union(*(problem.topics for problem in mine))),
        examples=tuple(name for problem in mine for name in problem.examples)[:3],
        reason=mine[0].reason,
        clusters=mine[0].clusters,
        listed=mine[0].listed,
    )
    if alert.state != PENDING or pulse.covered:
        return alert
    sights = {sight.tier: sight for sight in alert.tiers}
    due = [
        (problem.after, problem.tier)
        for problem in mine
        if sights[problem.tier].pulses >= CONFIRMED and pulse.moment - sights[problem.tier].since >= problem.after
    ]
    if not due:
        return alert
    after, tier = min(due)
    return replace(alert, state=OPEN, opened=pulse.moment, tier=tier, after=after, cause=", ".join(alert.now))


def _sighted(tiers: tuple[TierSight, ...], seen: set[str], moment: datetime) -> tuple[TierSight, ...]:
    """The tiers with those that a pulse saw. One that two pulses in a row didn't see starts again."""
    known = {sight.tier: sight for sight in tiers}
    after = []
    for tier in sorted(known.keys() | seen):
        if tier not in known:
            after.append(TierSight(tier, moment))
        elif tier in seen:
            after.append(replace(known[tier], pulses=known[tier].pulses + 1, missed=0))
        elif known[tier].missed + 1 < CONFIRMED:
            after.append(replace(known[tier], missed=known[tier].missed + 1))
    return tuple(after)


def _missed(alert: Alert, pulse: ClusterPulse) -> Alert:
    """The alert after a pulse that didn't see it."""
    if pulse.unknown.get(alert.category, 0) > alert.unknown:
        return alert
    alert = replace(alert, clean=alert.clean + 1, tiers=_sighted(alert.tiers, set(), pulse.moment))
    # A cluster that was read hid nothing, so only pulses in a row that can't read it page.
    restarts = alert.state == PENDING and alert.category == UNREADABLE
    if alert.clean < CONFIRMED and not restarts:
        return alert
    if alert.state == PENDING:
        return replace(alert, state=DROPPED)
    if pulse.moment - alert.last_seen < (alert.after or timedelta(0)):
        return alert
    return replace(alert, state=CLOSED, closed=pulse.moment, why=_why(alert, pulse))


def _why(alert: Alert, pulse: ClusterPulse) -> str | None:
    """Why an alert is closed that is not over."""
    if alert.category == UNREADABLE:
        return STILL_UNREADABLE if pulse.unread else None
    pages = pulse.paging is None or alert.tier in pulse.paging.get(alert.category, ())
    return None if pages else NO_LONGER_PAGED
