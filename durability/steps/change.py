"""Step plan-of-change: from a snapshot and its findings to a proven plan in a folder."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.errors import Refused
from durability.plain import plain, plural
from durability.remedies.change.model import Limits
from durability.steps.change_request import Request
from durability.steps.judged import Evaluate, Judged, Together, of_snapshot
from durability.steps.proven import Drafted, Results, planned_results, proven
from durability.steps.settings import Settings
from durability.steps.summary import StepReporter, report_step
from durability.steps.undone import Undone

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan.chosen import Chosen
    from durability.remedies.change.draft import Draft, Inputs
    from durability.remedies.change.model import Document
    from durability.remedies.change.proof import Proof


def plan_change(
    settings: Settings,
    snapshot: Mapping[str, Any],
    request: Request,
    evaluate: Evaluate,
    reporter: StepReporter,
    scratch: Path,
) -> Path:
    """Makes the plan for a row of `snapshots`, proves it, and writes its folder; returns the folder.

    evaluate: runs once over the snapshot, if no complete run did, and over each planned topology; see `planned_results`.
    Refused for names that fit nothing, and if the snapshot's document isn't kept any more.
    """

    def results(planned: Drafted, attempt: int) -> Mapping[str, Results]:
        return planned_results(settings, [planned], evaluate, scratch / str(attempt))

    return prove(settings, draft_change(settings, snapshot, request, evaluate, reporter), results, reporter)


def draft_change(
    settings: Settings,
    snapshot: Mapping[str, Any],
    request: Request,
    evaluate: Evaluate,
    reporter: StepReporter,
    opened: set[str] | None = None,
    together: Together | None = None,
) -> Drafted:
    """The plan for a row of `snapshots` before its proof; see `plan_change`.

    opened: gets the ids of the cluster's open findings. together: the snapshots of other clusters, whose plans are made, too.
    """
    from durability.plan import chosen as asked

    asked.check(request.chosen)
    lake, started, undone, inputs = settings.open_lake(), datetime.now(UTC), request.undo, None
    if undone is not None:
        _check_undone(lake, snapshot, undone)
    base = _document(lake, snapshot)
    asked.check_topic(request.chosen, [topic["name"] for topic in base["topics"]])
    avoid = _avoided(lake, snapshot, request.chosen)
    with report_step("evaluate", reporter) as summary:
        run_id = f"plan:{started.isoformat()}"
        judged = of_snapshot(settings, lake, snapshot, run_id, evaluate, summary, together)
    if opened is not None:
        opened.update(judged.open)
    with report_step("order steps", reporter) as summary:
        if undone is None:
            inputs = _inputs(lake, snapshot, base, judged, request, avoid)
            draft = _drafted(inputs)
            targets = [finding["id"] for finding in inputs.targeted]
        else:
            draft, targets = _undone(lake, snapshot, base, judged, undone, request.limits), []
        summary.text = plural(len(draft.change.steps), "step")
    return Drafted(snapshot, judged, draft, targets, started, undone, inputs)


def prove(
    settings: Settings,
    drafted: Drafted,
    results: Callable[[Drafted, int], Mapping[str, Results]],
    reporter: StepReporter,
) -> Path:
    """Proves a plan, and writes its folder; returns the folder. results: see `proven`."""
    from durability.report import change as report

    with report_step("prove", reporter) as summary:
        drafted, proof = proven(drafted, results)
        summary.text = "offered" if proof.offered else "not offered"
    with report_step("write", reporter) as summary:
        made = _made(settings.open_lake(), drafted, proof)
        place = report.write(made, drafted.judged.facts, settings.out)
        summary.text = made.head["id"]
    return place


def _check_undone(lake: Lake, snapshot: Mapping[str, Any], undone: Undone) -> None:
    """Refused if the snapshot isn't of the cluster that a plan changed, or is older than its last change."""
    from durability.lake.tables import CLUSTERS

    if undone.cluster != snapshot["cluster"]:
        raise Refused(f"plan {undone.id} is for cluster {undone.cluster}, not for {snapshot['cluster']}")
    [kafka_id] = lake.facts(CLUSTERS, snapshot)["kafka_cluster_id"].to_pylist()
    if undone.kafka_cluster_id and kafka_id and undone.kafka_cluster_id != kafka_id:
        raise Refused(
            f"plan {undone.id} is for the cluster with Kafka's id {plain(undone.kafka_cluster_id)}, and {snapshot['cluster']} has"
            f" {plain(kafka_id)}"
        )
    if undone.changed_at is not None and snapshot["captured_at"] < undone.changed_at:
        raise Refused(
            f"plan {undone.id} changed {snapshot['cluster']} after its newest snapshot: audit it again, or read it now with"
            " --bootstrap"
        )


def _document(lake: Lake, snapshot: Mapping[str, Any]) -> Document:
    """The snapshot's document as it was evaluated: racks of dead brokers are those of earlier snapshots."""
    from durability.lake.tables import BROKERS, CLUSTERS

    kept = lake.documents.read(snapshot["attempt_id"])
    if kept is None:
        raise Refused(
            f"{snapshot['cluster']}: the document of its newest snapshot isn't kept any more; read the cluster again with"
            " --bootstrap or --topology"
        )
    document: Document = json.loads(gzip.decompress(kept))
    rows = lake.facts(BROKERS, snapshot).select(["broker", "rack", "rack_state"]).to_pylist()
    carried = {row["broker"]: row["rack"] for row in rows if row["rack_state"] == "carried"}
    known = set()
    for index, broker in enumerate(document["brokers"]):
        if broker["id"] in carried:
            broker["rack"] = carried[broker["id"]]
            known |= {f"/brokers/{index}/rack", f"/brokers/{broker['id']}/rack"}
    if known:
        document["unreadable"] = [entry for entry in document.get("unreadable", ()) if entry["path"] not in known]
    [provider] = lake.facts(CLUSTERS, snapshot)["provider"].to_pylist()
    if provider not in (None, "self", "other") and not document["cluster"].get("provider"):
        document["cluster"]["provider"] = provider
    return document


def _avoided(lake: Lake, snapshot: Mapping[str, Any], chosen: Chosen) -> frozenset[int]:
    from durability.lake.tables import BROKERS
    from durability.plan import lose

    if not chosen.avoid:
        return frozenset()
    rows = lake.facts(BROKERS, snapshot).select(["broker", "rack", "live"]).to_pylist()
    return frozenset(lose.resolve(chosen.avoid, rows, (), chosen.labels["avoid"]).brokers)


def _inputs(
    lake: Lake,
    snapshot: Mapping[str, Any],
    document: Document,
    judged: Judged,
    request: Request,
    avoid: frozenset[int],
) -> Inputs:
    from pyiceberg.expressions import And, EqualTo

    from durability.lake.conditions import of_result
    from durability.lake.tables import BROKERS, CLUSTERS, TOPIC_POSTURE
    from durability.plan import chosen as asked
    from durability.remedies.change.brokers import of_rows
    from durability.remedies.change.draft import Inputs
    from durability.remedies.change.proof import severity_rank

    targeted = asked.targeted(request.chosen, list(judged.open.values()), judged.closed)
    targeted.sort(key=lambda finding: (-severity_rank(finding), finding["control"], finding["resource"], finding["id"]))
    where = And(of_result(judged.plan), EqualTo("cluster", snapshot["cluster"]))
    postures = {row["topic"]: row for row in lake.scan(TOPIC_POSTURE, where).to_pylist()}
    [cluster] = lake.facts(CLUSTERS, snapshot).to_pylist()
    return Inputs(
        document=document,
        brokers=of_rows(lake.facts(BROKERS, snapshot).to_pylist()),
        postures=postures,
        required=judged.plan.policy.required,
        targeted=targeted,
        facts=judged.facts,
        limits=request.limits,
        reassigning_known=bool(cluster["reassignments_known"]),
        avoid=avoid,
        margin_disk=request.margin_disk,
    )


def _drafted(inputs: Inputs) -> Draft:
    from durability.remedies.change.draft import draft

    return draft(inputs)


def _undone(
    lake: Lake,
    snapshot: Mapping[str, Any],
    document: Document,
    judged: Judged,
    undone: Undone,
    limits: Limits,
) -> Draft:
    from durability.lake.tables import CLUSTERS
    from durability.remedies.change.way_back import undo

    [cluster] = lake.facts(CLUSTERS, snapshot).to_pylist()
    known = bool(cluster["reassignments_known"])
    try:
        return undo(document, undone.before, judged.facts, limits, reassigning_known=known)
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"plan {undone.id}: what was before it can't be read; make a new plan") from error


def _waves(lake: Lake, snapshot: Mapping[str, Any], judged: Judged, draft: Draft) -> dict[str, int]:
    """In how many waves brokers can restart, before and after the plan. A quick search, as it compares the two."""
    from durability.remedies.change import states
    from durability.restart.constraints import Partitions
    from durability.restart.plan import Limits, plan
    from durability.steps.restart import nodes

    of_cluster, quick = nodes(lake, snapshot), Limits(seconds=0)
    found: dict[str, int] = {}
    for name, document in (("before", draft.document), ("after", draft.change.planned)):
        counted_states = states.partitions(document, judged.facts)
        partitions = [
            Partitions(replicas, isr, minimum, count, example)
            for (replicas, isr, minimum), (count, example) in counted_states.items()
        ]
        found[name] = len(plan(partitions, of_cluster, quick).waves)
    return found


def _made(lake: Lake, drafted: Drafted, proof: Proof) -> Any:
    from durability.findings import words
    from durability.lake.tables import CLUSTERS
    from durability.plan.plan import to_text
    from durability.remedies.change.describe import before, notes, numbers
    from durability.report.change import BEFORE, Made
    from durability.report.html.change import FINDINGS

    snapshot, judged, draft, targets = drafted.snapshot, drafted.judged, drafted.draft, drafted.targets
    [cluster] = lake.facts(CLUSTERS, snapshot).to_pylist()
    started, undone = drafted.started, drafted.undone
    made_at = to_text(started)
    unique = hashlib.sha256(f"{snapshot['snapshot_id']} {made_at} {','.join(targets)}".encode()).hexdigest()[:8]
    names = {
        "cluster": snapshot["cluster"],
        "kafka_cluster_id": cluster["kafka_cluster_id"],
        "snapshot_id": snapshot["snapshot_id"],
        "captured_at": to_text(snapshot["captured_at"]),
    }
    head = {
        "id": f"{started:%Y%m%dT%H%M%SZ}-{unique}",
        "made_at": made_at,
        **names,
        "policy": {"name": judged.plan.policy.name, "sha256": judged.plan.policy.sha256},
        "undoes": None if undone is None else undone.id,
        "targets": targets,
        **numbers(draft),
        "notes": notes(draft),
        "waves": _waves(lake, snapshot, judged, draft),
    }
    found = [judged.open[id] for id in targets[:FINDINGS] if id in judged.open]
    return Made(
        head,
        draft.change,
        proof,
        {"format": BEFORE, **names, **before(draft.change)},
        draft.left_out,
        tuple({**finding, "message": words.message(finding)} for finding in found),
    )
