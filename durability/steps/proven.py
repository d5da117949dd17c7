"""The proof of a plan of change: the topology that it leads to, judged by the same rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.errors import AuditError
from durability.steps.judged import Evaluate, Judged, results_of
from durability.steps.settings import NIGHTLY, Settings

if TYPE_CHECKING:
    from durability.remedies.change.draft import Draft, Inputs
    from durability.remedies.change.proof import Proof
    from durability.steps.undone import Undone

Results = Judged | AuditError
"""What rules say of a planned topology, or why the gate rejected it."""
ATTEMPTS = 3
"""How often a plan is proven, each time without the topics that refuted it. Each attempt is a Spark job."""


@dataclass(frozen=True)
class Drafted:
    """A cluster's plan before its proof, from a row of `snapshots`.

    targets: ids of the findings that it is to fix. inputs: what it was drafted from; None if it takes an earlier plan back.
    """

    snapshot: Mapping[str, Any]
    judged: Judged
    draft: Draft
    targets: list[str]
    started: datetime
    undone: Undone | None = None
    inputs: Inputs | None = None


class Silent:
    """Reports nothing: these steps are part of another one."""

    def started(self, step: str) -> None: ...

    def progress(self, step: str, done: int, total: int) -> None: ...

    def problem(self, step: str, text: str) -> None: ...

    def done(self, step: str, seconds: float, text: str) -> None: ...


def proven(drafted: Drafted, results: Callable[[Drafted, int], Mapping[str, Results]]) -> tuple[Drafted, Proof]:
    """A plan and its proof. Topics that refute it are left out, and what remains is proven again, at most ATTEMPTS times in all.

    results: `planned_results` of a plan and the number of the attempt, from 0.
    """
    proof = _proven(drafted, partial(results, drafted, 0))
    for attempt in range(1, ATTEMPTS):
        if (without := _without_worse(drafted, proof)) is None:
            break
        drafted = without
        proof = _proven(drafted, partial(results, drafted, attempt))
    return drafted, proof


def _without_worse(drafted: Drafted, proof: Proof) -> Drafted | None:
    """The plan without the topics that it would make worse; None if it isn't refuted, or not by its own topics alone."""
    from durability.findings import words
    from durability.remedies.change import regress
    from durability.remedies.change.draft import draft

    if drafted.inputs is None or proof.harms or not proof.new:
        return None
    changed = {topic for step in drafted.draft.change.steps for topic in step.topics} - drafted.inputs.barred.keys()
    if not all(one["resource_type"] == "topic" and one["resource"] in changed for one in proof.new):
        return None
    # The worst finding of a topic comes first in `new`, so it is the reason.
    barred = {one["resource"]: regress.CAUSES.format(words.message(one)) for one in reversed(proof.new)}
    inputs = replace(drafted.inputs, barred={**drafted.inputs.barred, **barred})
    return replace(drafted, inputs=inputs, draft=draft(inputs))


def _proven(drafted: Drafted, results: Callable[[], Mapping[str, Results]]) -> Proof:
    """The comparison of the findings with those of the planned topology, if there are steps."""
    from durability.findings import words
    from durability.remedies.change import proof, states

    draft, judged, targets = drafted.draft, drafted.judged, drafted.targets

    def why(finding: Mapping[str, Any], later: Mapping[str, Any] | None) -> str:
        return draft.why(finding, words.remediation(finding), words.message(later) if later else None)

    unchanged = replace(
        proof.compare(judged.open, {}, (), targets, why, steps=False, disputed=judged.disputed),
        cross_checked=judged.cross_checked,
    )
    if not draft.change.steps:
        return unchanged
    after = results()[drafted.snapshot["cluster"]]
    if isinstance(after, AuditError):  # the gate rejected it: the plan is kept, with the reason
        return replace(unchanged, harms=(f"Its topology is refused: {after}",))
    if not after.open and not after.closed:
        return replace(unchanged, harms=("Its topology has no verdicts",))
    closed = {id for id, finding in judged.open.items() if after.shows_closed(finding)}
    harms = states.worded(draft.change.harms)
    allowed = None if drafted.undone is None else drafted.undone.findings
    compared = proof.compare(judged.open, after.open, closed, targets, why, harms, allowed, disputed=judged.disputed)
    return replace(compared, cross_checked=judged.cross_checked)


def planned_results(
    settings: Settings, drafts: Iterable[Drafted], evaluate: Evaluate, scratch: Path
) -> dict[str, Results]:
    """By cluster, the results of the topology that its plan leads to, if it has steps.

    These go through gate and evaluate together, as documents do.

    evaluate: runs once, over a lake of its own in the folder `scratch`. So no reader of the run's lake takes a planned topology
    for the cluster.
    """
    from durability.steps import audit, whatif
    from durability.steps.evaluate import plan_evaluation

    folder = scratch / "planned"
    folder.mkdir(parents=True, exist_ok=True)
    planned = [drafted.draft.change.planned for drafted in drafts if drafted.draft.change.steps]
    for number, document in enumerate(planned):
        text = json.dumps(document, ensure_ascii=False)
        (folder / f"planned-{number}.json").write_text(text, encoding="utf-8")
    own = replace(settings, topology=folder, lake=str(scratch / "lake"), out=scratch / "out", scratch=True)
    lake = own.open_lake()
    lake.ensure()
    clusters = [document["cluster"]["id"] for document in planned]
    found: dict[str, Results] = {}
    try:
        rows, _ = audit.snapshots(own, lambda name: {}, Silent())
    except AuditError as error:
        return dict.fromkeys(clusters, error)
    accepted = []
    for cluster in clusters:
        try:
            accepted.append(whatif.chosen(rows, cluster))
        except AuditError as error:
            found[cluster] = error
    if accepted:
        plan = plan_evaluation(own, NIGHTLY, "proof", "proof:1", accepted, [])
        evaluate(lake, plan)
        found |= {part.cluster: results_of(lake, replace(plan, snapshots=[part])) for part in plan.judged}
    return found
