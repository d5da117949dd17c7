"""Step alert: pages for partitions that pulses see offline or under min ISR, and gives the all-clear."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from durability.plain import plural
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.alerts.deliver import Channel
    from durability.alerts.model import Alert
    from durability.plan import Plan


SEND_FOR = {True: timedelta(minutes=1), False: timedelta(seconds=90)}
"""Nothing more is sent after that, by whether receivers recognize alerts. One that doesn't answer can take a minute more. All is
within the task's timeout."""


def now() -> datetime:
    return datetime.now(UTC)


def alert(
    settings: Settings,
    plan: Plan | None,
    run_id: str,
    channels_of: Callable[[str | None], Iterable[Channel]],
    log: Any,
    summary: StepSummary,
    clock: Callable[[], datetime] = now,
) -> list[Alert]:
    """Decide which alerts open and close, record that in the lake, then send what is due. Returns the alerts.

    A receiver that fails is logged and gets it with the next pulse. Nothing is raised for it.

    plan: the pulse's plan; None if it evaluated nothing. Then no alert changes, and only what is due is sent.
    channels_of: the receivers of a team's alerts; None: of clusters without a team.
    Raises Refused or Unreachable if the lake can't be used.
    """
    from durability.alerts import decide, deliver, store
    from durability.alerts.model import OPEN
    from durability.alerts.observe import observe
    from durability.policy import load_policy

    lake = settings.open_lake()
    run = (run_id, plan.result_id if plan else run_id)
    fleet = settings.fleet
    alerts = store.load(lake, clock())
    states = {one.key: one.state for one in alerts}
    listed = None
    if plan:
        pulses = observe(lake, plan, load_policy(settings.policy))
        listed = [part.cluster for part in plan.snapshots]
        alerts = decide.advance(alerts, pulses, listed, clock(), receiver=bool(list(channels_of(None))), fleet=fleet)
    channels = {team: list(channels_of(team)) for team in {one.team for one in alerts}}

    def remember(changed: Iterable[Alert]) -> None:
        store.write(lake, changed, run, clock())

    remember(
        one
        for one in alerts
        if states.get(one.key) != one.state
        or (
            not decide.is_written_by_others(one, fleet, clock())
            and deliver.unfinished(one, channels[one.team], clock())
        )
    )
    alerts = [one for one in alerts if decide.is_sent_by(one, fleet, listed)]

    def send(alerts: list[Alert], keyed: bool) -> list[Alert]:
        of_kind = {team: [one for one in each if one.keyed == keyed] for team, each in channels.items()}
        return deliver.deliver(alerts, lambda team: of_kind[team], remember, clock, log, clock() + SEND_FOR[keyed])

    # Alertmanager takes an alert for over that isn't sent again, so no slow receiver comes before that.
    deliver.refresh([one for one in alerts if one.state == OPEN], channels, clock(), log)
    alerts = send(alerts, keyed=True)
    alerts = send(alerts, keyed=False)
    paged = [one for one in alerts if one.state == OPEN]
    summary.text = plural(len(paged), "open alert")
    if paged and not all(channels[one.team] for one in paged):
        summary.text += "; no Connection to send them to"
    return alerts
