"""Steps of `rack_outage`, KIP-1290's "Rack Outage Handling": detect, assess, change, watch, restore.

`spark_jobs.history.rack_outage` decides which topics need a change. `durability.apply.outage` checks on the cluster, just before
each change, that it is still needed and safe. Connections are Airflow's, so callers pass functions that look them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durability.errors import Refused
from durability.plain import plain, plural
from durability.plan.plan import to_text
from durability.policy.yamlfile import did_you_mean
from durability.steps import drill, whatif
from durability.steps.collect import Connect
from durability.steps.outage_known import known_for_changes, known_of, racks_of
from durability.steps.remediate import Allows, changeable
from durability.steps.settings import NIGHTLY, Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.apply.cluster import Cluster
    from durability.apply.kafka import KafkaCluster
    from durability.apply.outage import Decision
    from durability.apply.outage_back import Restored
    from durability.apply.outage_run import Entries, Known, Outcome
    from durability.apply.permissions import Asked
    from durability.apply.record import Approval, Changes
    from durability.apply.recorded import Unfinished
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.remedies.change.model import Kind

NAMED = 20
"""Topics of each kind that an approval names, and problems that it lists."""
Racks = dict[str, list[int]]
"""By rack, the ids of its brokers."""
Evaluate = Callable[["Lake", "Plan"], None]


def check(settings: Settings, params: Mapping[str, Any], allows: Allows) -> None:
    """Refuses a change that isn't allowed. Reads no cluster and no lake."""
    if params["apply"]:
        if not params["cluster"]:
            raise Refused("cluster: name the cluster that may be changed")
        changeable(settings, params["cluster"], allows)


def cluster_of(settings: Settings, params: Mapping[str, Any]) -> str:
    """The name of the run's cluster: the param `cluster`, else the only one in the lake."""
    return str(whatif.newest(settings, params["cluster"] or None)["cluster"])


def lost_now(settings: Settings, params: Mapping[str, Any], connect: Connect) -> tuple[str, Racks]:
    """The cluster's name, and the racks that have lost all their brokers: one Metadata request. The param `rack` needs none.

    The racks of brokers are those of the newest accepted snapshot, since dead brokers state none. Refused for an unknown rack.
    """
    snapshot = whatif.newest(settings, params["cluster"] or None)
    racks = racks_of(settings.open_lake(), snapshot)
    rack = params["rack"]
    if rack:
        if rack not in racks:
            raise Refused(f"{snapshot['cluster']} has no rack {rack}{did_you_mean(rack, racks)}")
        return snapshot["cluster"], {rack: racks[rack]}
    live = drill.live(drill.source(settings, snapshot["cluster"]), connect)
    return snapshot["cluster"], {rack: ids for rack, ids in racks.items() if live.isdisjoint(ids)}


@dataclass(frozen=True)
class Ids:
    """run_id and result_id of results in the lake."""

    run_id: str
    result_id: str


def assess(
    settings: Settings, cluster: str, lost: Racks, connect: Connect, ids: Ids, evaluate: Evaluate, summary: StepSummary
) -> dict[str, Any]:
    """Takes a snapshot, evaluates it, and states what the outage costs and what would be changed. JSON for the next tasks.

    evaluate: submits `spark_jobs/evaluate.py`. Unreachable if the cluster can't be read.
    """
    from durability.apply import outage as outage_rules
    from durability.apply import outage_run, recorded
    from durability.lake.change_table import RACK_OUTAGE
    from durability.steps.evaluate import plan_evaluation

    lake = settings.open_lake()
    source = drill.source(settings, cluster)
    snapshot = drill.read_again(settings, source, connect, summary)
    plan = plan_evaluation(settings, NIGHTLY, ids.run_id, ids.result_id, [snapshot], [])
    evaluate(lake, plan)
    entries, knows_racks = _asked(lake, cluster, ids, lost)
    known = known_for_changes(lake, snapshot, knows_racks)
    state = Work(settings, cluster, ids.run_id).changes().state()
    with opened(cluster, source, connect) as reached:
        kafka_id = reached.read([]).cluster_id
        gone = recorded.of_other_clusters(lake, cluster, kafka_id)
        before = {} if any(plan.purpose == RACK_OUTAGE for plan in gone) else outage_rules.open_values(state)
        usual = outage_run.decided(reached, entries, known, False, before)
        giving_up = outage_run.decided(reached, entries, known, True, before)
        acls = _acls(reached, [*usual, *giving_up])
    topics: dict[str, list[str]] = {}
    for decision in usual:
        topics.setdefault(decision.act, []).append(decision.topic)
    lowered = sum(decision.act == "lower" for decision in giving_up)
    changes = sum(len(names) for act, names in topics.items() if act != "hold")
    summary.text = f"{plural(len(entries), 'topic')} under a threshold, {plural(changes, 'topic')} to change"
    return {
        "cluster": cluster,
        **vars(ids),
        "snapshot_id": snapshot["snapshot_id"],
        "kafka_cluster_id": kafka_id,
        "given_up": recorded.given_up(gone),
        "given_up_changes": recorded.change_names(gone),
        "lost": lost,
        "racks": _since(lake, plan, cluster, lost),
        "maintenance": _maintenance(plan, cluster),
        **_costs(lake, snapshot, ids),
        "acts": {act: len(names) for act, names in topics.items()},
        "topics": {act: names[:NAMED] for act, names in topics.items()},
        "bytes": sum(decision.bytes for decision in usual),
        "give_up_elr": lowered - len(topics.get("lower", ())),
        "acls": acls,
        "problems": {d.topic: d.why for d in [d for d in usual if d.why][:NAMED]},
    }


def needs_approval(assessed: Mapping[str, Any], params: Mapping[str, Any]) -> str | None:
    """Why the run ends after the assessment, with success; None if there is something to approve."""
    if not params["apply"]:
        return "`apply` is false, so nothing is changed"
    if not assessed["given_up"] and not assessed["give_up_elr"] and set(assessed["acts"]) <= {"hold"}:
        return "no topic needs a change, or nothing but the rack's return helps"
    return None


def _asked(lake: Lake, cluster: str, ids: Ids, lost: Racks) -> tuple[Entries, bool]:
    """By topic, its entries for the lost racks; and do brokers know min.insync.racks as a setting of topics?"""
    from pyiceberg.expressions import And, EqualTo, NotNull

    from durability.lake.conditions import of_result
    from durability.lake.tables import TOPIC_POSTURE

    where = And(of_result(ids), EqualTo("cluster", cluster), NotNull("rack_outage_step"))
    columns = ("topic", "rack_outage", "configured_min_insync_racks_source")
    rows = lake.scan(TOPIC_POSTURE, where, columns=columns).to_pylist()
    found = {
        row["topic"]: [entry for entry in row["rack_outage"] or () if not lost.keys().isdisjoint(entry["racks"] or ())]
        for row in rows
    }
    knows = any(row["configured_min_insync_racks_source"] == "topic" for row in rows)
    return {topic: entries for topic, entries in found.items() if entries}, knows


def _acls(cluster: Asked, decisions: Sequence[Decision]) -> list[str]:
    """The ACLs that the changes need and the principal lacks, or that the cluster doesn't state."""
    from durability.apply.permissions import listed, missing, needed

    kinds: dict[str, Kind] = {"lower": "lower-min-isr", "add-replicas": "reassign"}
    topics = {decision.topic for decision in decisions if decision.act in kinds}
    acts = {decision.act for decision in decisions} & kinds.keys()
    if not topics:
        return []
    found = missing(cluster, needed(kinds[act] for act in acts), topics)
    return [
        *(f"missing: {text}" for text in listed(found.lacking)),
        *(f"unknown: {text}" for text in listed(found.unknown)),
    ]


def _since(lake: Lake, plan: Plan, cluster: str, lost: Racks) -> list[dict[str, Any]]:
    from durability.report.data import lost_racks, moments

    of_cluster = {cluster: [{"rack": rack} for rack in lost]}
    since = lost_racks.since(lake, plan, of_cluster, moments.tolerated(plan, {}))
    found = []
    for rack, ids in sorted(lost.items()):
        times = since[cluster, rack]
        perhaps = to_text(times.perhaps) if times.perhaps != times.since else None
        found.append({"rack": rack, "brokers": ids, "since": to_text(times.since), "perhaps_since": perhaps})
    return found


def _maintenance(plan: Plan, cluster: str) -> str | None:
    """The maintenance window of the snapshot's time, as the policy has it."""
    [part] = plan.judged
    for start, end, reason in plan.policy.windows(cluster):
        if start <= part.moment < end:
            return plain(f"until {to_text(end)}: {reason}")
    return None


def _costs(lake: Lake, snapshot: Mapping[str, Any], ids: Ids) -> dict[str, Any]:
    """How many topics and partitions reject acks=all writes, and how many are one loss away from it.

    The evaluation also counts earlier snapshots that no run has counted, so only the rows of this one are read.
    """
    from pyiceberg.expressions import And, EqualTo

    from durability.lake.conditions import of_result
    from durability.lake.tables import HEALTH_COUNTERS

    columns = ("topic", "offline", "under_min_isr", "one_broker_from_refusing", "one_rack_from_refusing")
    where = And(of_result(ids), *(EqualTo(name, snapshot[name]) for name in ("cluster", "snapshot_id")))
    rows = lake.scan(HEALTH_COUNTERS, where, columns=columns).to_pylist()
    [total] = [row for row in rows if row["topic"] is None]
    refusing = [row for row in rows if row["topic"] is not None and (row["offline"] or row["under_min_isr"])]
    return {
        "rejects": {
            "topics": len(refusing),
            "partitions": total["offline"] + total["under_min_isr"],
            "offline": total["offline"],
        },
        "one_loss_away": {what: total[f"one_{what}_from_refusing"] for what in ("broker", "rack")},
    }


@contextmanager
def opened(cluster: str, source: Mapping[str, Any], connect: Connect) -> Iterator[KafkaCluster]:
    """The cluster, to read and to change."""
    from durability.apply.kafka import connected

    with connected(cluster, connect(str(source["connection"]))) as reached:
        yield reached


@dataclass(frozen=True)
class Work:
    """The changes of the outage of a cluster.

    throttle: of replicas that are copied, in bytes per second and broker; None: none. approval: of this run; None if it only
    restores: then its rows have the last approval, since that covers the way back.
    """

    settings: Settings
    cluster: str
    run_id: str
    throttle: int | None = None
    approval: Approval | None = None

    def changes(self) -> Changes:
        """Their record in the lake."""
        from durability.apply.outage_run import OUTAGE
        from durability.apply.record import Changes
        from durability.lake.change_table import RACK_OUTAGE

        lake = self.settings.open_lake()
        lake.ensure()
        approval = self.approval or _approval(lake, self.cluster)
        return Changes(lake, self.cluster, RACK_OUTAGE, OUTAGE, self.run_id, approval)

    @contextmanager
    def reached(
        self, changes: Changes, connect: Connect, allows: Allows, approved: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Cluster, list[str]]]:
        """The cluster, and what was given up. Refused if its Connection doesn't allow changes, or leads to another cluster.

        changes: their record. If nothing is left to put back, the Connection may lead to another cluster than before.
        approved: the assessment that an approval is for. Another cluster is refused then, and what the assessment names of
        clusters with other ids is given up.
        """
        from durability.apply import recorded

        with opened(self.cluster, changeable(self.settings, self.cluster, allows), connect) as cluster:
            kafka_id = cluster.read([]).cluster_id
            given_up: list[str] = []
            if approved is not None:
                recorded.check_approved(self.cluster, approved["kafka_cluster_id"], kafka_id)
                given_up = recorded.give_up(changes, approved["given_up_changes"], kafka_id)
            if _is_open(changes):
                recorded.same_cluster(changes, kafka_id)
            yield cluster, given_up

    def known(self) -> Known:
        """What the newest snapshot knows of the cluster."""
        return known_of(self.settings.open_lake(), whatif.newest(self.settings, self.cluster))


def left(settings: Settings, plan: Unfinished, run_id: str) -> Work:
    """The work on what a run left, which was killed. Replicas are moved back with the throttle that they were moved with."""
    from durability.apply import outage_throttle

    return Work(
        settings, plan.cluster, run_id, outage_throttle.last_rate(Work(settings, plan.cluster, run_id).changes())
    )


def _approval(lake: Lake, cluster: str) -> Approval | None:
    """The last approval of a change in an outage of the cluster."""
    from pyiceberg.expressions import And, EqualTo, NotNull

    from durability.apply.outage_run import OUTAGE
    from durability.apply.record import Approval
    from durability.lake.change_table import CHANGES

    where = And(EqualTo("cluster", cluster), EqualTo("plan", OUTAGE), NotNull("approved_by"))
    rows = lake.scan(CHANGES, where, ["captured_at", "approved_by", "approved_at", "comment"]).to_pylist()
    last = max(rows, key=lambda row: row["captured_at"], default=None)
    return None if last is None else Approval.of(last)


def change(
    work: Work, assessed: Mapping[str, Any], give_up_elr: bool, connect: Connect, allows: Allows, summary: StepSummary
) -> dict[str, int]:
    """Changes the assessed topics that still need it. Returns how many, by what was done.

    Refused, after all others were changed, if the cluster refuses a topic's change.
    """
    from durability.apply import outage_run
    from durability.apply.claimed import ClaimedCluster

    lake = work.settings.open_lake()
    entries, knows_racks = _asked(lake, work.cluster, Ids(assessed["run_id"], assessed["result_id"]), assessed["lost"])
    snapshot = whatif.newest(work.settings, work.cluster, assessed["snapshot_id"])
    known = known_for_changes(lake, snapshot, knows_racks)
    changes = work.changes()
    with work.reached(changes, connect, allows, assessed) as (cluster, given_up), changes.claimed():
        summary.problems += given_up
        held = ClaimedCluster(cluster, changes)
        outcome: Outcome = outage_run.change(held, changes, entries, known, give_up_elr, work.throttle)
    done = dict(outcome.topics)
    summary.text = ", ".join(f"{plural(n, 'topic')}: {act}" for act, n in sorted(done.items())) or "nothing changed"
    summary.problems += _told(outcome.held)
    if outcome.failed:
        raise Refused(f"not everything could be changed. {'. '.join(_told(outcome.failed))}")
    return done


def is_open(work: Work) -> bool:
    """Has the outage, or an earlier one, changed anything that wasn't put back?"""
    return _is_open(work.changes())


def _is_open(changes: Changes) -> bool:
    from durability.apply import outage, outage_throttle

    return bool(outage.open_rows(changes.state()) or outage_throttle.open_rows(changes))


def is_ready(work: Work, connect: Connect, allows: Allows, summary: StepSummary) -> bool:
    """Can anything be put back now? Throttles of replicas that were added are, once these are in sync.

    The cluster is claimed only for a change: a claim is two commits, and this is asked every 30 seconds for days.
    """
    from durability.apply import outage_back, outage_throttle
    from durability.apply.claimed import ClaimedCluster

    changes = work.changes()
    with work.reached(changes, connect, allows) as (cluster, _):
        if outage_throttle.are_over(cluster, changes):
            with changes.claimed():
                summary.problems += outage_throttle.lift(ClaimedCluster(cluster, changes), changes)
        back, ready = outage_back.survey(cluster, changes, work.known())
    waits = outage_back.waiting(back)
    summary.problems += _told(waits.failed | _stuck(waits.waiting))
    ready = ready or not back.stays()
    summary.text = "topics can be restored" if ready else _waiting(waits)
    return ready


def restore(work: Work, connect: Connect, allows: Allows, summary: StepSummary) -> bool:
    """Puts back what can be put back now. Is everything back? The cluster is claimed as by `is_ready`."""
    from durability.apply import outage_back, outage_throttle
    from durability.apply.claimed import ClaimedCluster

    changes, known = work.changes(), work.known()
    with work.reached(changes, connect, allows) as (cluster, _):
        back, ready = outage_back.survey(cluster, changes, known)
        if not ready and not outage_throttle.are_over(cluster, changes):
            restored = outage_back.waiting(back)
        else:
            with changes.claimed():
                restored = outage_back.restore(ClaimedCluster(cluster, changes), changes, known, work.throttle)
        throttled = bool(outage_throttle.open_rows(changes))
    waiting = f", {_waiting(restored)}" if restored.waiting else ""
    summary.text = f"{plural(restored.back, 'topic')} as before{waiting}"
    if throttled and not restored.waiting:
        summary.text += ", a throttle stays until its brokers are up and its topics aren't being moved"
    summary.problems += restored.left + restored.throttles + _told(restored.failed | _stuck(restored.waiting))
    return not restored.waiting and not throttled


def _waiting(restored: Restored) -> str:
    """How many topics wait, and why the first of them does."""
    topic, why = min(restored.waiting.items())
    return plain(f"{plural(len(restored.waiting), 'topic')} waiting, such as {topic}: {why}")


def _stuck(waiting: Mapping[str, str]) -> dict[str, str]:
    """The topics, of those that wait, that need a hand."""
    from durability.apply.outage import needs_help

    return {topic: why for topic, why in waiting.items() if needs_help(why)}


def _told(problems: Mapping[str, str]) -> list[str]:
    """The first problems of topics, as sentences."""
    shown = [plain(f"topic {topic}: {why}") for topic, why in sorted(problems.items())]
    more = len(shown) - NAMED
    return shown[:NAMED] + ([f"{plural(more, 'more topic')}"] if more > 0 else [])
