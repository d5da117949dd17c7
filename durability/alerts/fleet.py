"""Clusters that a pulse could not read for a cause that they share. One alert of the fleet pages for all of them.

Two causes are told apart, and each has an alert of its own:

- Many clusters are unread at once. The network of the auditor may be the cause, or one of its workers.
- A collect task ended without a result, so the auditor failed and its clusters have nothing to do with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from durability.alerts.model import FLEET, OPEN, UNREADABLE, Alert, Cause, ClusterPulse, Problem

MANY = 5
"""Fewer unread clusters than this page by themselves, unless a collect task lost them or an alert of the fleet is open."""
ENTER, STAY = 2, 4
"""The clusters share a cause if at least half of the listed ones are unread. While an alert says so, a quarter is enough.
Otherwise a number around the half would page for each of them."""
LOST_TOGETHER = 2
EXAMPLES = 3
CLUSTERS, AUDITOR = "clusters", "auditor"
"""Subjects of the two alerts."""
NAMED = "fleet:"
"""Begins another subject, with the fleet's name: several fleets may share a lake."""
TEXTS = {CLUSTERS: "many clusters not read", AUDITOR: "collect task lost"}


@dataclass(frozen=True)
class Shared:
    """What a pulse says of the fleet.

    pulses: one of FLEET by subject. None of them has a subject that is not its own.
    covered: the clusters that an alert of the fleet pages for, so that no alert of their own does.
    """

    pulses: dict[str, ClusterPulse]
    covered: frozenset[str]


def fleets(subjects: Iterable[str]) -> list[str]:
    """The subjects that name a fleet."""
    return sorted(subject for subject in subjects if subject.startswith(NAMED))


def of_other_fleet(alert: Alert, fleet: str | None) -> bool:
    """Is it an alert of another fleet in the same lake? One of an earlier version may name no fleet."""
    if alert.fleet is not None:
        return alert.fleet != fleet
    return alert.cluster == FLEET and fleets(alert.subjects) not in ([], [f"{NAMED}{fleet}"])


def shared(
    alerts: Sequence[Alert], pulses: Sequence[ClusterPulse], listed: int, receiver: bool, fleet: str | None = None
) -> Shared:
    """alerts: earlier ones, none of another fleet. pulses: of one run, at least one. listed: how many clusters it was to read.

    fleet: the name of the fleet in the lake; None if it has none.
    receiver: does anybody get an alert of the fleet? If not, only one that is open goes on, and clusters page by themselves.
    """
    moment = max(pulse.moment for pulse in pulses)
    unread = [pulse for pulse in pulses if pulse.unread]
    earlier = [alert for alert in alerts if alert.cluster == FLEET]
    here = {pulse.cluster for pulse in pulses}
    # An earlier task runs again. Without an alert of the fleet, those of its clusters show that a later pulse was decided.
    if any(a.pulsed >= moment for a in earlier) or any(a.pulsed > moment for a in alerts if a.cluster in here):
        return Shared({}, frozenset(pulse.cluster for pulse in unread))
    paged = {alert.cluster for alert in alerts if alert.category == UNREADABLE and alert.state == OPEN}
    alone = [pulse for pulse in unread if pulse.cluster not in paged]
    lost = [pulse for pulse in alone if pulse.lost]
    tracked = {subject for alert in earlier if alert.tracked for subject in alert.subjects}
    opened = {subject for alert in earlier if alert.state == OPEN for subject in alert.subjects}
    # An alert of an earlier version, or from before the fleet had a name, goes on without it.
    unnamed = {subject for a in earlier if a.tracked and not fleets(a.subjects) for subject in a.subjects}
    share = STAY if CLUSTERS in tracked else ENTER
    going_on = CLUSTERS in opened
    many = len(alone) >= MANY or (going_on and bool(alone))
    wide = many and share * len(unread) >= listed and (receiver or going_on)
    # If the whole fleet is unread, that lost clusters are among them is no second page.
    together = len(lost) >= LOST_TOGETHER and (AUDITOR in opened or (receiver and not wide))
    found = {CLUSTERS: unread if wide else [], AUDITOR: lost if together else []}
    made = {
        subject: ClusterPulse(
            FLEET,
            moment,
            problems=tuple(_problems(subject, of, alone, listed, None if subject in unnamed else fleet)),
            unread=bool(of),
        )
        for subject, of in found.items()
    }
    return Shared(made, frozenset(pulse.cluster for pulse in (alone if wide else lost if together else ())))


def covered(pulse: ClusterPulse, of: Shared) -> ClusterPulse:
    """The pulse, marked if an alert of the fleet pages for its cluster."""
    return replace(pulse, covered=True) if pulse.cluster in of.covered else pulse


def _problems(
    subject: str, unread: Sequence[ClusterPulse], alone: Iterable[ClusterPulse], listed: int, fleet: str | None
) -> Iterator[Problem]:
    """One problem for each tier that pages for one of the clusters without an alert of its own."""
    names = {pulse.cluster for pulse in unread}
    tiers = {(p.after, p.tier) for pulse in alone if pulse.cluster in names for p in pulse.problems}
    reasons = Counter(p.reason for pulse in unread for p in pulse.problems if p.reason)
    reason = min(reasons, key=lambda text: (-reasons[text], text)) if reasons else None
    examples = tuple(sorted(names)[:EXAMPLES])
    for after, tier in sorted(tiers):
        cause = Cause(TEXTS[subject], frozenset({subject} if fleet is None else {subject, f"{NAMED}{fleet}"}))
        yield Problem(UNREADABLE, tier, after, (cause,), 0, frozenset(), examples, reason, len(names), listed)
        examples = ()
