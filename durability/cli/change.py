"""`kafka-durability plan`: a proven plan of change for each cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from durability.cli import exit_status, from_snapshot, inputs
from durability.cli.audit import JOB
from durability.cli.from_snapshot import Work
from durability.cli.options import Given, Options
from durability.errors import NotOfCluster, Refused
from durability.plain import plain
from durability.policy.yamlfile import did_you_mean

if TYPE_CHECKING:
    from durability.plan.chosen import Chosen
    from durability.steps.change_request import Request
    from durability.steps.judged import Together


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
    opened: dict[str, set[str]] = {}
    together: list[Together] = []
    try:
        status = from_snapshot.run(
            options, "plan", lambda work: _plan(work, asked, opened, together), every=True, of_one=of_one
        )
    except NotOfCluster:
        if len(opened) > 1:  # the error knows the findings of one cluster alone
            _check_findings(chosen, set().union(*opened.values()))
        raise
    if status != exit_status.INCOMPLETE:
        _check_findings(chosen, set().union(*opened.values()))
    return status


def _check_findings(chosen: Chosen, opened: set[str]) -> None:
    """Refused for a finding that no cluster has. opened: the open ones of all clusters, but of those without the chosen topic."""
    for id in chosen.findings:
        if id not in opened and not chosen.topic:
            hint = did_you_mean(id, opened)
            raise Refused(plain(f"{chosen.labels['findings']}{id}: no cluster has such a finding{hint}"))


def _plan(work: Work, asked: Request, opened: dict[str, set[str]], together: list[Together]) -> int:
    """Makes the plan of a cluster.

    opened: gets the ids of its open findings, by cluster. together: gets what the clusters share.
    """
    from durability.report import change as report
    from durability.steps import change
    from durability.steps.judged import Together

    if not together:
        together.append(Together(work.others))
    with work.console.running():
        place = change.plan_change(
            work.settings,
            work.snapshot,
            replace(asked, chosen=replace(asked.chosen, several=bool(work.others))),
            lambda lake, plan: work.submit(lake, plan, JOB),
            work.console,
            work.session.folder / f"proof-{work.snapshot['snapshot_id']}",
            opened.setdefault(work.snapshot["cluster"], set()),
            together[0],
        )
    work.console.line()
    made = json.loads((place / report.PLAN).read_text(encoding="utf-8"))
    for line in report.summary(made, place):
        work.console.line(line)
    wanted = made["targets"] or made["undoes"] is not None
    return exit_status.REACHED if wanted and not made["proof"]["offered"] else exit_status.DONE
