"""Clusters of several test modules, evaluated as one fleet in one job.

A module states its clusters and their policy as a `Part`, in its list PARTS. The parts of the collected modules that name the
same last tier are joined; a module that runs alone evaluates its own clusters only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from durability.policy.match import matches
from durability.policy.model import Policy, Selector, Tier
from tests.support.judge import Judge

LAST = {
    "critical": {"replication_factor": 3, "min_insync_replicas": 2, "unclean_leader_election": False},
    "acked": {"acked_copies": 2, "acked_racks": 2, "unclean_leader_election": False},
    "nothing": {},
}
"""What the last tier of a joined policy requires, by name. Only topics that are made later are in it: broker-defaults and
remedies of the brokers' defaults read it."""


@dataclass(frozen=True, eq=False)
class Part:
    """Clusters of one module. last: their last tier, a key of LAST. failed: clusters that could not be read, with the reason."""

    last: str
    policy: Policy
    documents: list[dict]
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def clusters(self) -> list[str]:
        return [*(d["cluster"]["id"] for d in self.documents), *(cluster for cluster, _ in self.failed)]


def policy_of(parts: Iterable[Part]) -> Policy:
    """The parts' policies as one, each for its own clusters. Raises ValueError if a tier has two meanings."""
    tiers: dict[str, Tier] = {}
    topics, applications = [], []
    for part in parts:
        for name, tier in part.policy.tiers.items():
            if tiers.setdefault(name, tier) != tier:
                raise ValueError(f"two tiers are called {name}")
        topics += [_only(part, line) for line in part.policy.topics]
        applications += [_only(part, line) for line in part.policy.applications]
        last = part.last
    tiers["last"] = Tier("last", LAST[last])
    return Policy("joined", tiers, (*topics, Selector("last")), tuple(applications))


def _only(part: Part, line):
    """A line of `topics` or `applications` for the part's clusters."""
    mine = [c for c in part.clusters if line.cluster is None or matches(line.cluster, c)]
    return replace(line, cluster="|".join(map(re.escape, mine)) or "no cluster")


def evaluated(spark, parts: list[Part]) -> dict[Part, tuple[Judge, list[dict]]]:
    """Evaluates the parts in one job. Returns for each its judge and findings."""
    names = [cluster for part in parts for cluster in part.clusters]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two clusters are called {', '.join(sorted(twice))}")
    together = _Together(spark)
    failed = [one for part in parts for one in part.failed]
    together.run([d for part in parts for d in part.documents], policy_of(parts), failed=failed)
    judges = {part: together.of(part) for part in parts}
    return {part: (judge, judge.findings()) for part, judge in judges.items()}


class _Together(Judge):
    """Evaluates parts. Their findings are worded apart, because a run plans a limited number of moves."""

    def word(self) -> None:
        pass

    def of(self, part: Part) -> Judge:
        """A judge of the part's clusters."""
        judge, names = Judge(self.spark), pa.array(part.clusters)
        judge.facts = self.facts
        judge.results = {
            n: t.filter(pc.is_in(t["cluster"], names)) for n, t in self.results.items() if "cluster" in t.column_names
        }
        judge.latest = {name: judge.results[name] for name in self.latest}
        judge.plan = replace(self.plan, snapshots=[s for s in self.plan.snapshots if s.cluster in part.clusters])
        judge.word()
        return judge


@pytest.fixture(scope="session")
def judged_once(spark, request) -> Callable[[Part], tuple[Judge, list[dict]]]:
    """Of a part, its judge and its findings, which must not be changed."""
    modules = dict.fromkeys(getattr(item, "module", None) for item in request.session.items)
    collected = dict.fromkeys(p for module in modules for p in getattr(module, "PARTS", ()))
    kept: dict[Part, tuple[Judge, list[dict]]] = {}

    def judge(part: Part) -> tuple[Judge, list[dict]]:
        if part not in kept:
            kept.update(
                evaluated(spark, [p for p in {**collected, part: None} if p.last == part.last and p not in kept])
            )
        return kept[part]

    return judge
