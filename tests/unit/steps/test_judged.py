"""The snapshots of several clusters are evaluated by one job."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from durability.steps import evaluate, judged
from durability.steps.evaluate import JobFailed
from durability.steps.judged import Judged, Together, of_snapshot

ROWS = [{"cluster": name} for name in ("asia", "eu", "us")]


@dataclass(frozen=True)
class Planned:
    snapshots: list
    partitions: int = 0
    judged: list = field(default_factory=list)


@pytest.mark.parametrize(
    ("judged_before", "fails", "jobs"),
    [
        ((), False, [["asia", "eu", "us"]]),
        (("eu",), False, [["asia", "us"]]),
        (("eu", "us"), False, [["asia"]]),
        ((), True, [["asia", "eu", "us"], ["asia"], ["eu"], ["us"]]),
    ],
)
def test_several_clusters_take_one_job(monkeypatch, judged_before, fails, jobs):
    def plan_evaluation(settings, kind, run_id, attempt, snapshots, problems):
        parts = [SimpleNamespace(cluster=row["cluster"], partitions=7) for row in snapshots]
        return Planned(parts, 7 * len(parts), parts)

    def submit(lake, plan):
        ran.append([part.cluster for part in plan.snapshots])
        if fails and len(plan.snapshots) > 1:
            raise JobFailed("it ended without results")

    ran: list[list[str]] = []
    earlier = SimpleNamespace(run_id="earlier", cluster="eu")
    monkeypatch.setattr(evaluate, "plan_evaluation", plan_evaluation)
    monkeypatch.setattr(judged, "_of_run", lambda s, lake, row: earlier if row["cluster"] in judged_before else None)
    monkeypatch.setattr(judged, "results_of", lambda lake, plan: Judged(plan, None, {}, frozenset()))
    together, said = Together(ROWS), SimpleNamespace(text="")
    for row in ROWS:
        found = of_snapshot(None, None, row, "plan:1", submit, said, together)
        if row["cluster"] in judged_before:
            assert found.plan is earlier and found.cross_checked
        else:
            assert [part.cluster for part in found.plan.snapshots] == [row["cluster"]] and found.plan.partitions == 7
    assert ran == jobs
