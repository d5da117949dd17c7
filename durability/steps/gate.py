"""Step gate: checks each snapshot for contradictions, and that every planned source gave a result."""

from __future__ import annotations

from collections.abc import Sequence

from durability.errors import Refused
from durability.plain import plain
from durability.plan.plan import LOST
from durability.steps.results import Collected, Failure, Gated
from durability.steps.settings import Settings
from durability.steps.sources import Source
from durability.steps.summary import StepSummary


def gate(
    settings: Settings,
    planned: Sequence[Sequence[Source]],
    groups: Sequence[Collected],
    summary: StepSummary,
    run: tuple[str, str] | None = None,
) -> Gated:
    """The results of all groups with one verdict per attempt; see `expectations.gate`.

    A source without a result is a failure, for example after the loss of a worker.
    run: name and time of a nightly run, whose Data Docs get the gate's pages.
    Raises Refused if documents were planned and none could be read.
    """
    from expectations.gate import check

    lost = lost_sources(planned, groups)
    attempts = [a for group in groups for a in group.attempts]
    summary.problems += [f.text for f in lost]
    if settings.topology and not attempts:
        raise Refused("no document could be read")
    verdicts = check(settings.open_lake(), attempts, run, settings.out) if attempts else []
    rejected = [v for v in verdicts if not v.accepted]
    summary.text = f"{len(verdicts) - len(rejected)} accepted, {len(rejected)} rejected"
    summary.problems += [f"{plain(v.cluster)}: snapshot rejected: {v.reason}" for v in rejected]
    return Gated(attempts, verdicts, [f for group in groups for f in group.failures] + lost)


def lost_sources(planned: Sequence[Sequence[Source]], groups: Sequence[Collected]) -> list[Failure]:
    """A failure for each planned source without a result in `groups`.

    >>> [f.cluster for f in lost_sources([[{"name": "a"}], [{"name": "b"}]], [Collected(["a"])])]
    ['b']
    """
    brought = {name for group in groups for name in group.sources}
    names = [str(s["name"]) for group in planned for s in group]
    return [Failure(name, LOST) for name in names if name not in brought]
