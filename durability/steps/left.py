"""Takes back what killed runs of `remediate` and `rack_outage` left. DAGs that run often call it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from durability.errors import AuditError, Refused, Unreachable
from durability.plain import plain, plural
from durability.policy.yamlfile import did_you_mean
from durability.steps import outage, remediate, sources
from durability.steps.collect import Connect
from durability.steps.remediate import Allows, Application
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.apply.recorded import Unfinished

IDLE = timedelta(minutes=30)
"""A run that doesn't add a row for so long has ended: it renews its claim, and Airflow tries a failed task again sooner. A run of
`rack_outage` may still watch: what is put back here, it finds as before."""


def restore(settings: Settings, run_id: str, connect: Connect, allows: Allows, summary: StepSummary) -> int:
    """Takes back the changes of every plan whose run was killed, once nothing has happened for IDLE. Returns how many there were.

    Changes of a rack outage are put back as far as they can be: the rack is back, replicas are in sync, and no ELR is left.
    A cluster whose Connection doesn't allow changes is reported. One that the clusters file doesn't list is reported once: the
    record says whether it was. After all others were tried: Unreachable if a cluster didn't
    answer, since a later run tries again, and an ExceptionGroup that names the plans with any other error.
    """
    from durability.apply.recorded import unfinished

    lake = settings.open_lake()
    plans = [plan for plan in unfinished(lake) if datetime.now(UTC) - plan.last >= IDLE]
    tried: set[Unfinished] = set()
    silent: list[str] = []
    crashed: dict[str, Exception] = {}
    for plan in plans:
        try:
            if plan.cluster not in _listed(settings):
                summary.problems += _gone(settings, run_id, plan)
                continue
            stays = _restore(settings, run_id, plan, connect, allows)
            summary.problems += [plain(f"{plan.cluster}, plan {plan.plan}: {text}") for text in stays]
            tried.add(plan)
        except Unreachable as error:
            silent.append(str(error))
        except AuditError as error:
            summary.problems.append(f"plan {plan.plan} was not finished, and can't be taken back: {error}")
        except Exception as error:
            crashed[plain(f"{plan.cluster}, plan {plan.plan}: {type(error).__name__}: {error}")] = error
    waiting = tried.intersection(unfinished(lake, claimed=True)) if tried else tried
    ended = {"taken back": len(tried - waiting), "waiting": len(waiting)}
    summary.text = ", ".join(f"{plural(count, 'application')} {what}" for what, count in ended.items() if count)
    if crashed:
        raise ExceptionGroup("; ".join([*crashed, *silent]), list(crashed.values()))
    if silent:
        raise Unreachable("; ".join(silent))
    return len(plans)


def _listed(settings: Settings) -> set[str]:
    return {str(found["name"]) for found in sources.from_clusters(settings.clusters)}


def _gone(settings: Settings, run_id: str, plan: Unfinished) -> list[str]:
    """What is said of a plan whose cluster the clusters file doesn't list; nothing if it was said before."""
    from durability.apply.record import REPORTED, Changes

    changes = Changes(settings.open_lake(), plan.cluster, plan.purpose, plan.plan, run_id, plan.approval)
    if REPORTED in changes.state():
        return []
    said = plain(
        f"plan {plan.plan} was not finished, and can't be taken back: {settings.clusters} doesn't list {plan.cluster}."
        f" Add it there. If it is gone for good, trigger lake_upkeep with give_up={plan.cluster}, which closes these changes."
        " This is said once"
    )
    with changes.claimed():
        changes.reported(said)
    return [said]


def give_up(settings: Settings, run_id: str, cluster: str, summary: StepSummary) -> int:
    """Closes the unfinished changes of a cluster that is gone for good, as left. Returns of how many plans.

    Refused for a cluster that the clusters file lists: its changes can be taken back. Refused, too, if nothing is unfinished.
    """
    from durability.apply.record import Changes
    from durability.apply.recorded import close, unfinished

    if cluster in _listed(settings):
        text = f"give_up: {settings.clusters} lists cluster {cluster}, so its changes can be taken back. Is it gone for good?"
        raise Refused(plain(f"{text} Then remove it there first"))
    lake = settings.open_lake()
    plans = unfinished(lake, claimed=True)
    of_cluster = [plan for plan in plans if plan.cluster == cluster]
    if not of_cluster:
        names = sorted({plan.cluster for plan in plans})
        hint = did_you_mean(cluster, names) or f". Those that have: {', '.join(names) or 'none'}"
        raise Refused(plain(f"give_up: cluster {cluster} has no unfinished changes{hint}"))
    for plan in of_cluster:
        changes = Changes(lake, cluster, plan.purpose, plan.plan, run_id, plan.approval)
        rows = close(changes, plan, "given up: the cluster is gone").rows
        summary.problems.append(
            plain(f"given up: {plural(len(rows), 'change')} of plan {plan.plan} to cluster {cluster}")
        )
    return len(of_cluster)


def _restore(settings: Settings, run_id: str, plan: Unfinished, connect: Connect, allows: Allows) -> list[str]:
    """Takes back one plan. Returns what stays, in sentences."""
    from durability.lake.change_table import REMEDIATE

    if plan.purpose == REMEDIATE:
        names = {"cluster": plan.cluster, "plan": plan.plan}
        return remediate.restore(Application(settings, names, run_id, plan.approval), connect, allows)
    of_outage = StepSummary()
    outage.restore(outage.left(settings, plan, run_id), connect, allows, of_outage)
    return of_outage.problems
