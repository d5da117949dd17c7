"""`kafka-durability plan`: a proven plan of change for each cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from durability.cli import exit_status, from_snapshot, inputs
from durability.cli.audit import JOB
from durability.cli.from_snapshot import Work
from durability.cli.options import Given, Options
from durability.errors import NotOfCluster, Refused
from durability.plain import plain
from durability.policy.yamlfile import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from durability.plan.chosen import Chosen
    from durability.steps.change_request import Request
    from durability.steps.judged import Together
    from durability.steps.proven import Drafted, Results


def request(given: Given, options: Options) -> Request:
    """What the options ask for. Refused for a value that is none."""
    from durability.steps import change_request, undone

    asked, undo = change_request.Texts(given.text, given.label), given.text("undo")
    if not undo:
        return change_request.request(asked)
    settings = inputs.documents_or_fleet(options).settings(options)
    return change_request.request(asked, undone.find(settings, undo, given.label("undo"), options.cluster))


def run(options: Options, asked: Request) -> int:
    """Makes the plan; returns the exit status: 1 if there is something to do and no plan is offered."""
    if asked.undo is not None:  # an address alone doesn't say which cluster it is
        options = replace(options, cluster=asked.undo.cluster)
    chosen = asked.chosen
    of_brokers = [str(item) for item in chosen.avoid if item.kind != "rack"]
    of_one = f"{chosen.labels['avoid']}{of_brokers[0]}" if of_brokers else None
    plans = _Plans(asked)
    try:
        status = from_snapshot.run(options, "plan", plans.draft, every=True, of_one=of_one, then=plans.prove)
    except NotOfCluster:
        if len(plans.opened) > 1:  # the error knows the findings of one cluster alone
            _check_findings(chosen, set().union(*plans.opened.values()))
        raise
    if status != exit_status.INCOMPLETE:
        _check_findings(chosen, set().union(*plans.opened.values()))
    return status


def _check_findings(chosen: Chosen, opened: set[str]) -> None:
    """Refused for a finding that no cluster has. opened: the open ones of all clusters, but of those without the chosen topic."""
    for id in chosen.findings:
        if id not in opened and not chosen.topic:
            hint = did_you_mean(id, opened)
            raise Refused(plain(f"{chosen.labels['findings']}{id}: no cluster has such a finding{hint}"))


class _Plans:
    """The plans of a command's clusters. All are drafted before the first one is proven, so one job evaluates what they lead to.

    opened: ids of open findings, by cluster.
    """

    def __init__(self, asked: Request):
        self.asked = asked
        self.opened: dict[str, set[str]] = {}
        self._drafts: dict[str, Drafted] = {}
        self._together: Together | None = None
        self._results: dict[str, Results] | None = None

    def draft(self, work: Work) -> None:
        """Drafts the plan of a cluster."""
        from durability.steps import change
        from durability.steps.judged import Together

        if self._together is None:
            self._together = Together(work.others)
        cluster = work.snapshot["cluster"]
        with work.console.running():
            self._drafts[cluster] = change.draft_change(
                work.settings,
                work.snapshot,
                replace(self.asked, chosen=replace(self.asked.chosen, several=bool(work.others))),
                lambda lake, plan: work.submit(lake, plan, JOB),
                work.console,
                self.opened.setdefault(cluster, set()),
                self._together,
            )

    def prove(self, work: Work) -> int:
        """Proves the plan of a cluster, and writes it. Returns 1 if there is something to do and no plan is offered."""
        from durability.report import change as report
        from durability.steps import change

        drafted = self._drafts[work.snapshot["cluster"]]
        with work.console.running():
            place = change.prove(work.settings, drafted, partial(self._after, work), work.console)
        work.console.line()
        made = json.loads((place / report.PLAN).read_text(encoding="utf-8"))
        for line in report.summary(made, place):
            work.console.line(line)
        wanted = made["targets"] or made["undoes"] is not None
        return exit_status.REACHED if wanted and not made["proof"]["offered"] else exit_status.DONE

    def _after(self, work: Work, drafted: Drafted, attempt: int) -> dict[str, Results]:
        """What all plans lead to, or in a later attempt what this one does.

        If the job of all fails, each is evaluated alone, so that the fault of one costs that one.
        """
        from durability.steps.evaluate import JobFailed
        from durability.steps.proven import planned_results

        def results(drafts: Iterable[Drafted], folder: str) -> dict[str, Results]:
            scratch = work.session.folder / folder
            return planned_results(work.settings, drafts, lambda lake, plan: work.submit(lake, plan, JOB), scratch)

        if self._results is None and attempt == 0:
            try:
                self._results = results(self._drafts.values(), "proof")
            except JobFailed:
                if len(self._drafts) == 1:
                    raise
                self._results = {}
        if self._results and attempt == 0:
            return self._results
        return results([drafted], f"proof-{drafted.snapshot['snapshot_id']}-{attempt}")
