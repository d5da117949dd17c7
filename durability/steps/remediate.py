"""Steps of `remediate`: what is checked before anything is read, a plan, what it needs, and its application.

`durability.steps.verified` has the last step. Connections are Airflow's, so callers pass functions that look them up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.errors import Refused
from durability.plain import plural
from durability.plan.plan import to_text
from durability.report import applied, change
from durability.report.formats.markdown import escaped
from durability.steps import undone, whatif
from durability.steps.change import plan_change
from durability.steps.change_request import OF_FINDINGS, Texts, request
from durability.steps.collect import Connect
from durability.steps.drill import read_again, source
from durability.steps.judged import Evaluate
from durability.steps.proven import Silent
from durability.steps.settings import Settings
from durability.steps.sources import Source
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.apply.cluster import Cluster
    from durability.apply.permissions import Asked, Missing
    from durability.apply.record import Approval, Changes
    from durability.apply.run import Outcome

Allows = Callable[[str], bool]
"""Does the Connection with this id allow changes of its cluster? Refused if there is none."""
POLL_SECONDS = 10.0
"""Between two looks at a batch that is copied."""


def check(settings: Settings, params: Mapping[str, Any], allows: Allows) -> None:
    """Refuses params that contradict each other, and an application that isn't allowed. Reads no cluster and no lake."""
    given = [name for name in (*OF_FINDINGS, "undo") if params[name]]
    if params["plan"] and given:
        raise Refused(f"plan and {given[0]} were both given; a plan that exists has its choice of findings")
    if not params["apply"]:
        return
    if params["throttle"] is None:
        raise Refused(
            "throttle: bytes per second are needed to apply a plan, such as 50000000; it must be above the rate of writes to the"
            " partitions that move"
        )
    if not params["cluster"]:
        raise Refused("cluster: name the cluster that a plan may change")
    if settings.topology:
        raise Refused(f"topology {settings.topology}: no plan can be applied to a document")
    changeable(settings, params["cluster"], allows)


def shown(
    settings: Settings, planned: Mapping[str, Any], params: Mapping[str, Any], connect: Connect, summary: StepSummary
) -> tuple[str, str, list[list[str]]]:
    """Subject and body of the approval, in Markdown, and the changes that are given up: `recorded.change_names`.

    If the plan is to be applied, the cluster says which ACLs are missing. Refused if the plan can't be applied to it now.
    """
    from durability.apply import recorded
    from durability.apply.kafka import connected

    content, place = planned_content(settings, planned)
    summary.text = f"{plural(len(content['steps']), 'step')}, {content['moved']['bytes']:,} bytes"
    about, acls = f"plan {content['id']} to Kafka cluster {escaped(content['cluster'])}", _needed(content)
    if not content["proof"]["offered"]:
        return f"Don't apply {about}: it is not offered", applied.page(content, place, acls), []
    limits, gone = "", []
    if params["apply"]:
        found = source(settings, content["cluster"])
        with connected(content["cluster"], connect(str(found["connection"]))) as cluster:
            _check_now(settings, planned, content, place, cluster)
            acls += _missing(content, cluster)
        gone = recorded.of_other_clusters(settings.open_lake(), content["cluster"], content["kafka_cluster_id"])
        limits = "".join(f"\n\n{escaped(text)}." for text in recorded.given_up(gone))
        limits += (
            f"\n\nThrottle: {params['throttle']:,} bytes per second and broker. A batch takes {params['batch_minutes']} minutes"
            f" at most. The plan is rejected after {params['approve_within']} hours without an answer."
        )
    return f"Apply {about}?", applied.page(content, place, acls) + limits, recorded.change_names(gone)


def _check_now(
    settings: Settings, planned: Mapping[str, Any], content: Mapping[str, Any], place: Path, cluster: Cluster
) -> None:
    """Refused if the plan can't be applied to the cluster as it is. What an earlier run has begun is checked when it goes on.

    Unreachable while another run changes the cluster: what that one has changed until then is no reason for a new plan.
    """
    from durability.apply import partitions, plan_files, preflight, recorded

    plan, changes = plan_files.load(place, content), Application(settings, planned, "", None).changes()
    if rows := changes.state():
        return
    changes.check_unclaimed()
    others = list(recorded.in_the_way(changes, plan.cluster_id))
    if problems := others or preflight.check(plan, plan.steps, cluster, rows).problems:
        raise Refused(f"plan {plan.id} can't be applied now: {partitions.listed(problems)}")


def _needed(content: Mapping[str, Any]) -> list[str]:
    """The ACLs that changes of each kind need, besides those of reading."""
    from durability.apply.permissions import READING, needed

    found = []
    for kind in dict.fromkeys(step["kind"] for step in content["steps"]):
        acls = [acl for acl in needed([kind], cluster_wide=_is_cluster_wide(content, kind)) if acl not in READING]
        if acls:
            found.append(f"{kind}: {', '.join(f'{acl.operation} on {acl.on}' for acl in acls)}")
    return found


def _is_cluster_wide(content: Mapping[str, Any], kind: str) -> bool:
    settings = (setting for step in content["steps"] if step["kind"] == kind for setting in step["settings"])
    return any(setting["topic"] is None for setting in settings)


def _missing(content: Mapping[str, Any], cluster: Asked) -> list[str]:
    """Which ACLs the principal of the Connection lacks, as far as the cluster says so."""
    from durability.apply.permissions import listed

    found = _permissions(content, cluster)
    lacking = [f"missing: {text}" for text in listed(found.lacking)]
    return [*lacking, *(f"unknown: {text}" for text in listed(found.unknown))] or ["The Connection has all of them."]


def _permissions(content: Mapping[str, Any], cluster: Asked) -> Missing:
    from durability.apply.permissions import missing, needed

    kinds = {step["kind"] for step in content["steps"]}
    acls = needed(kinds, cluster_wide=any(_is_cluster_wide(content, kind) for kind in kinds))
    topics = sorted({topic for step in content["steps"] for topic in step["topics"]})
    return missing(cluster, acls, topics)


def _check_permissions(content: Mapping[str, Any], cluster: Asked) -> None:
    """Refused if the principal lacks an ACL that a step needs: the steps before it would be made, and then taken back."""
    from durability.apply.permissions import listed

    if lacking := listed(_permissions(content, cluster).lacking):
        raise Refused(
            f"plan {content['id']} isn't applied: the principal of the Connection lacks {'; '.join(lacking)}."
            " Nothing was changed. Grant these ACLs, then clear the task `apply`"
        )


def changeable(settings: Settings, cluster: str, allows: Allows) -> Source:
    """The cluster as the clusters file has it. Refused unless its Connection allows changes."""
    found = source(settings, cluster)
    if not allows(str(found["connection"])):
        raise Refused(
            f"Connection {found['connection']} of {cluster} doesn't allow changes: set allow_changes to true in its extra"
        )
    return found


def plan(
    settings: Settings, params: Mapping[str, Any], connect: Connect, evaluate: Evaluate, scratch: Path
) -> dict[str, Any]:
    """Makes and proves a plan, or finds the one in the param `plan`. Returns it as `applied.brief` does.

    A new plan is for the newest accepted snapshot of the cluster in the lake, and one that takes a plan back for a new snapshot:
    the newest one may be older than what is taken back. evaluate, scratch: see `plan_change`.
    """
    cluster = params["cluster"] or None
    if params["plan"]:
        place = applied.find(settings.out, params["plan"], cluster)
    else:
        undo = undone.find(settings, params["undo"], "undo ", cluster) if params["undo"] else None
        texts = Texts(lambda name: str(params[name] if params[name] is not None else "").strip(), "{} ".format)
        asked = request(texts, undo)
        if undo is None:
            snapshot = whatif.newest(settings, cluster)
        else:
            of_cluster = source(settings, undo.cluster)
            snapshot = read_again(settings, of_cluster, connect, StepSummary())
        place = plan_change(settings, snapshot, asked, evaluate, Silent(), scratch)
    return applied.brief(change.read(place), place)


def planned_content(settings: Settings, planned: Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
    """plan.json of a plan and its folder. Refused if it isn't the plan that was shown. planned: as `applied.brief` returns it."""
    place = applied.find(settings.out, planned["plan"], planned["cluster"])
    content = change.read(place)
    if content["sha256"] != planned["sha256"]:
        raise Refused(f"{place}: it isn't the plan that this run made; trigger a new run")
    return content, place


def ends_after_plan(
    settings: Settings, params: Mapping[str, Any], planned: Mapping[str, Any], allows: Allows
) -> str | None:
    """Why the run ends after the plan, with success; None if the plan is to be approved.

    Refused if it is to be applied and isn't offered, or if the Connection doesn't allow changes any more.
    """
    content, place = planned_content(settings, planned)
    if not params["apply"]:
        return f"`apply` is false, so nothing is changed. The plan is in {place}"
    if not content["targets"] and content["undoes"] is None:
        return "there is no finding to fix"
    if not content["proof"]["offered"]:
        why = change.introduction(content)[-1]
        raise Refused(f"plan {content['id']} isn't applied. {why} See {place / change.README}")
    changeable(settings, content["cluster"], allows)
    return None


@dataclass(frozen=True)
class Application:
    """A plan that is applied. planned: as `applied.brief` returns it. given_up: as the approver saw it, see `shown`."""

    settings: Settings
    planned: Mapping[str, Any]
    run_id: str
    approval: Approval | None
    given_up: Collection[Sequence[str]] = ()

    def changes(self) -> Changes:
        """The record of the plan's changes in the lake."""
        from durability.apply.record import Changes
        from durability.lake.change_table import REMEDIATE

        lake = self.settings.open_lake()
        lake.ensure()
        return Changes(lake, self.planned["cluster"], REMEDIATE, self.planned["plan"], self.run_id, self.approval)


def signed(approval: Approval | None) -> dict[str, Any]:
    """The approval as the file of an applied plan has it."""
    if approval is None:
        return dict.fromkeys(("approved_by", "approved_at", "comment"))
    return {"approved_by": approval.by, "approved_at": to_text(approval.at), "comment": approval.comment}


def apply(
    application: Application, params: Mapping[str, Any], connect: Connect, allows: Allows, say: Callable[[str], None]
) -> Outcome:
    """Applies the plan, or what an earlier try left of it. say: gets sentences about the progress.

    What earlier plans left open on clusters with another Kafka id is given up first, as far as the approval names it.

    Refused for a plan that isn't the one that was approved, or isn't offered, and if the Connection doesn't allow changes.
    Also refused if no step has begun and an ACL is missing.
    """
    from durability.apply import plan_files, recorded, run
    from durability.apply.kafka import connected

    content, place = planned_content(application.settings, application.planned)
    files = plan_files.load(place, content)
    found = changeable(application.settings, files.cluster, allows)
    options = run.Options(params["throttle"], batch_seconds=60 * params["batch_minutes"], poll_seconds=POLL_SECONDS)
    with connected(files.cluster, connect(str(found["connection"]))) as cluster:
        changes = application.changes()
        recorded.check_approved(files.cluster, files.cluster_id, kafka_id := cluster.read([]).cluster_id)
        if not changes.state():
            _check_permissions(content, cluster)
        given_up = recorded.give_up(changes, application.given_up, kafka_id)
        for text in given_up:
            say(text)
        outcome = run.apply(files, cluster, changes, options, say)
        return replace(outcome, left=[*given_up, *outcome.left])


def counts(outcome: Outcome) -> str:
    """What was done, in a few words."""
    return f"{plural(len(outcome.done), 'step')} complete" + (f", {len(outcome.left)} left" if outcome.left else "")


def restore(application: Application, connect: Connect, allows: Allows) -> list[str]:
    """Takes back what the application left: moves in flight, values on the way and throttles.

    Returns what stays, in sentences. Refused if the lake isn't the one that the plan was made from. Another one doesn't know what
    was changed.
    """
    from durability.apply import run
    from durability.apply.kafka import connected

    name, lake = application.planned["cluster"], application.settings.lake
    found, changes = changeable(application.settings, name, allows), application.changes()
    if not changes.state() and not changes.lake.snapshots(name):
        raise Refused(
            f"the lake {lake} has no snapshot of {name}, so it isn't the one that the plan was made from, or its folder isn't"
            " mounted. Bring it back, and clear the task restore"
        )
    with connected(str(found["name"]), connect(str(found["connection"]))) as cluster:
        return run.restore(cluster, changes)
