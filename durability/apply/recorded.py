"""What the record of changes says of plans as a whole: which are to be finished or taken back, and what was before one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from durability.apply.record import (
    BEGIN,
    CLAIM,
    REASSIGN,
    REPORTED,
    SET_CONFIG,
    STOP,
    THROTTLE,
    Approval,
    Changes,
    Row,
    is_open,
    live_claims,
    newest,
    scan,
    unended,
)
from durability.errors import Refused
from durability.lake.change_table import CHANGES, DONE, INTENDED, RACK_OUTAGE, REMEDIATE
from durability.plain import plain

if TYPE_CHECKING:
    from durability.lake import Lake


@dataclass(frozen=True)
class Recorded:
    """A plan that was applied, or a part of it.

    before: `placements`, `settings` and `topic_ids` of what it changed, in the form of before.json. findings: ids of those that
    the plan was for, or improved. changed_at: when the last row of a change was written; None if it made none.
    """

    cluster: str
    kafka_cluster_id: str | None
    before: Mapping[str, Any]
    findings: frozenset[str]
    changed_at: datetime | None


VALUES = (REASSIGN, SET_CONFIG)
"""Kinds of changes that a rack outage puts back at its end."""
STATES = tuple(name for name, _ in CHANGES.columns if name not in ("step", "topics", "was", "becomes", "said"))
"""Columns that state how far changes are, without their values."""


@dataclass(frozen=True)
class Unfinished:
    """A plan with changes to finish or take back.

    rows: of these changes. kafka_cluster_id: Kafka's id of the cluster that was changed; None if the plan has no row of it.
    last: when its last row was written. approval: as that row has it.
    """

    cluster: str
    purpose: str
    plan: str
    rows: tuple[Row, ...] = field(default=(), compare=False, repr=False)
    kafka_cluster_id: str | None = field(default=None, compare=False)
    last: datetime = field(default=datetime.min.replace(tzinfo=UTC), compare=False)
    approval: Approval | None = field(default=None, compare=False)


def others(changes: Changes, kafka_cluster_id: str | None) -> list[Unfinished]:
    """The other plans of the cluster with changes to finish or take back.

    A plan that changed a cluster with another Kafka id is left out: the Connection led to it then.
    """
    own = Unfinished(changes.cluster, changes.purpose, changes.plan)
    plans = unfinished(changes.lake, changes.cluster, claimed=True)
    return [plan for plan in plans if plan != own and plan.kafka_cluster_id in (None, kafka_cluster_id)]


def in_the_way(changes: Changes, kafka_cluster_id: str | None) -> Iterator[str]:
    """Other plans that aren't taken back yet: what is put back later would undo what this one does."""
    for other in others(changes, kafka_cluster_id):
        if other.purpose == RACK_OUTAGE:
            yield "a rack outage changed topics that aren't as before yet: wait until the run of `rack_outage` has ended"
        else:
            yield f"plan {other.plan} isn't taken back yet: clear the task `restore` of its run, or wait for `health_pulse`"


def unfinished(lake: Lake, cluster: str | None = None, *, claimed: bool = False) -> list[Unfinished]:
    """The plans with changes to finish or take back, by cluster and plan.

    claimed: also those of clusters that a run changes now. Values are read only of plans that may have such changes: the table
    keeps all plans for ever, and a pulse asks every few minutes.
    """
    rows = scan(lake, columns=STATES) if cluster is None else scan(lake, columns=STATES, cluster=cluster)
    busy = set() if claimed else {row["cluster"] for row in live_claims(rows, datetime.now(UTC))}
    of_plans: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["captured_at"]):
        if row["cluster"] not in busy:
            of_plans.setdefault((row["cluster"], row["purpose"], row["plan"]), []).append(row)
    found = []
    for names, of_plan in sorted(of_plans.items()):
        if not _may_be_open(of_plan):
            continue
        state = newest(scan(lake, of_plan[0]["captured_at"], cluster=names[0], purpose=names[1], plan=names[2]))
        if opened := _open(names[1], state):
            last = of_plan[-1]
            found.append(Unfinished(*names, opened, _kafka_id(state), last["captured_at"], Approval.of(last)))
    return found


def _open(purpose: str, state: Mapping[str, Row]) -> tuple[Row, ...]:
    """The changes of a plan to finish or take back. state: see `newest`."""
    # A rack outage puts its changes back after the outage, however complete they are.
    kept = VALUES if purpose == RACK_OUTAGE else ()
    return tuple(row for row in state.values() if is_open(row, state) or (row.state == DONE and row.kind in kept))


def _kafka_id(state: Mapping[str, Row]) -> str | None:
    """Kafka's id of the cluster that a plan changed; None if it recorded none."""
    id: str | None = state[BEGIN].was["kafka_cluster_id"] if BEGIN in state else None
    return id


def _may_be_open(rows: Sequence[Mapping[str, Any]]) -> bool:
    """May a plan have changes to finish or take back? rows: of STATES, in the order in which they were written.

    A value on the way to another one is open, too. Its run was killed then, so its claim has no end: `Changes.claimed`.
    """
    last = {row["change"]: row for row in rows if row["kind"] != CLAIM}
    kept = (THROTTLE, *VALUES) if rows[0]["purpose"] == RACK_OUTAGE else (THROTTLE,)
    return bool(unended(rows)) or any(
        row["state"] == INTENDED or (row["state"] == DONE and row["kind"] in kept) for row in last.values()
    )


def same_cluster(changes: Changes, now: str | None) -> None:
    """Refused unless this is the cluster that a plan changed: the Connection may lead to another one by now. now: Kafka's id.

    A plan that recorded no id isn't refused: its cluster is unknown, not another one.
    """
    changed = _kafka_id(changes.state())
    if changed is not None and now != changed:
        shown = "unknown" if now is None else plain(now)
        raise Refused(
            f"cluster {changes.cluster}: nothing is changed or taken back, because this is another cluster: its Kafka cluster id"
            f" is {shown}, and plan {changes.plan} changed {plain(changed)}. Let the Connection lead there, and restore again."
            " If that cluster is gone for good, run `rack_outage` or `remediate` with `apply` on this one: the approval names"
            " what is given up"
        )


def check_approved(cluster: str, approved: str | None, now: str | None) -> None:
    """Refused unless this is the cluster that an approval is for. approved, now: Kafka's ids; None: not known."""
    if now != approved:
        ids = ["unknown" if id is None else plain(id) for id in (now, approved)]
        raise Refused(
            f"cluster {cluster}: nothing is changed, because this isn't the approved cluster: its Kafka cluster id is {ids[0]},"
            f" and the approval is for {ids[1]}. Let the Connection lead there, or trigger a new run"
        )


def of_other_clusters(lake: Lake, cluster: str, kafka_cluster_id: str | None) -> list[Unfinished]:
    """The unfinished plans that changed a cluster of this name with another Kafka id. None of them if an id is unknown."""
    if kafka_cluster_id is None:
        return []
    plans = unfinished(lake, cluster, claimed=True)
    return [plan for plan in plans if plan.kafka_cluster_id not in (None, kafka_cluster_id)]


def given_up(plans: Iterable[Unfinished]) -> list[str]:
    """What an approver agrees to, a sentence for each of the plans that `of_other_clusters` returns."""
    return [
        plain(
            f"Given up: changes that plan {plan.plan} made to the Kafka cluster with id {plan.kafka_cluster_id} and didn't take"
            f" back ({len(plan.rows):,} in the table changes). If that cluster still runs, they stay there"
        )
        for plan in plans
    ]


def change_names(plans: Iterable[Unfinished]) -> list[list[str]]:
    """The purpose, plan and name of each change of these plans, as JSON."""
    return [[plan.purpose, plan.plan, row.change] for plan in plans for row in plan.rows]


def give_up(changes: Changes, approved: Iterable[Sequence[str]], now: str | None) -> list[str]:
    """Closes changes that plans of other Kafka clusters left open, as left. Returns a sentence per plan.

    approved: `change_names` of what the approver agreed to; nothing else is closed. now: Kafka's id of the cluster, which must
    not be claimed yet. Raises Unreachable while another run changes the cluster.
    """
    closed, agreed = [], {tuple(names) for names in approved}
    for plan in of_other_clusters(changes.lake, changes.cluster, now) if agreed else ():
        other = changes.of_plan(plan.purpose, plan.plan)
        names = {change for purpose, of_plan, change in agreed if (purpose, of_plan) == (plan.purpose, plan.plan)}
        closed.append(close(other, plan, f"given up: the Kafka cluster has the id {now} now", names))
    return given_up(plan for plan in closed if plan.rows)


def close(changes: Changes, plan: Unfinished, said: str, names: Collection[str] | None = None) -> Unfinished:
    """Closes open changes of a plan as left, and returns the plan with those. said: why. names: of changes; None: all."""
    with changes.claimed():
        # Read again: until it was claimed, another run may have taken changes back, or begun on another cluster.
        state = changes.state()
        opened = _open(plan.purpose, state) if _kafka_id(state) == plan.kafka_cluster_id else ()
        rows = tuple(row for row in opened if names is None or row.change in names)
        for row in rows:
            changes.left(row.change, said)
    return replace(plan, rows=rows)


def plans(lake: Lake) -> list[str]:
    """The ids of all plans with rows."""
    from pyiceberg.expressions import EqualTo

    if not lake.has(CHANGES):
        return []
    return sorted({row["plan"] for row in lake.scan(CHANGES, EqualTo("purpose", REMEDIATE), ["plan"]).to_pylist()})


def plan(lake: Lake, id: str) -> Recorded | None:
    """What the rows of a plan say; None if it has none."""
    from pyiceberg.expressions import And, EqualTo

    if not lake.has(CHANGES):
        return None
    rows = lake.scan(CHANGES, And(EqualTo("purpose", REMEDIATE), EqualTo("plan", id))).to_pylist()
    if not rows:
        return None
    rows.sort(key=lambda row: row["captured_at"])
    begun = [json.loads(row["was"]) for row in rows if row["kind"] == BEGIN]
    kafka_id = begun[-1]["kafka_cluster_id"] if begun else None
    # Rows of an earlier release name no findings.
    findings = frozenset(id for was in begun for id in was.get("findings", ()))
    before = _before(rows) | {
        "topic_ids": {topic: id for was in begun for topic, id in was.get("topic_ids", {}).items()}
    }
    # Each try of a restore claims the cluster, also if it changes nothing.
    changed = [row["captured_at"] for row in rows if row["kind"] not in (CLAIM, BEGIN, STOP, REPORTED)]
    return Recorded(rows[0]["cluster"], kafka_id, before, findings, changed[-1] if changed else None)


def _before(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """rows: in the order in which they were written. The first value of each setting is the one from before the plan."""
    placements: dict[tuple[str, int], dict[str, Any]] = {}
    settings: dict[tuple[str | None, str], dict[str, Any]] = {}
    for row in rows:
        if row["kind"] == REASSIGN:
            for placed in json.loads(row["was"])["placements"]:
                placements.setdefault((placed["topic"], placed["partition"]), placed)
        elif row["kind"] == SET_CONFIG:
            for setting in json.loads(row["was"]):
                stated = {name: setting[name] for name in ("topic", "name", "value")}
                settings.setdefault((setting["topic"], setting["name"]), stated)
    return {"placements": [placements[key] for key in sorted(placements)], "settings": list(settings.values())}
