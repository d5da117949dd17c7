"""Clusters that a pulse could not read. None of their topics can page meanwhile, so this is a cause of its own.

The delay is the shortest `page_after` of the tiers that the cluster's topics have by the last nightly run. A cluster that no
nightly run has evaluated may have each tier that a line of the policy can give its topics. So may one whose tiers of that run
are no longer in the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from durability.alerts.model import UNREADABLE, Cause, ClusterPulse, Problem
from durability.lake.tables import RESOLVED_POLICY
from durability.plan.plan import LOST
from durability.policy.model import Policy
from durability.report.words import clipped

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan.plan import Plan, SnapshotPart

SUBJECT = "cluster"
NOT_LISTED = "topics not listed"
"""The cause if a snapshot is accepted but its topics could not be listed. The others are of CAUSES, by a snapshot's status."""
CAUSES = {"failed": "not read", "rejected": "snapshot rejected"}
AUDITOR = "auditor failed"
"""The cause if the cluster's collect task ended without a result."""
REASON = 500
"""The most characters of a reason. It may be a stranger's text."""


def unread(
    lake: Lake, plan: Plan, policy: Policy, read: Iterable[str], paging: Mapping[str, frozenset[str]]
) -> list[ClusterPulse]:
    """A pulse of each cluster of the plan that isn't among `read`. paging: as in ClusterPulse."""
    known = set(read)
    parts = [part for part in plan.snapshots if part.cluster not in known]
    resolved = _resolved(lake, parts) if parts and paging[UNREADABLE] else {}
    # After tiers are renamed, those of the last nightly run say nothing.
    known_tiers = {cluster: tiers for cluster, tiers in resolved.items() if tiers <= policy.tiers.keys()}
    return [
        ClusterPulse(
            part.cluster,
            part.moment,
            part.team,
            tuple(_problem(part, policy, known_tiers.get(part.cluster) or _possible(policy, part))),
            paging=paging,
            unread=True,
            lost=part.reason == LOST,
        )
        for part in parts
    ]


def _problem(part: SnapshotPart, policy: Policy, tiers: Iterable[str]) -> Iterable[Problem]:
    """One problem, of the tier that pages first; none if no tier pages."""
    paging = [policy.tiers[name] for name in tiers if name in policy.tiers and policy.tiers[name].page_after]
    delays = [(min(tier.page_after.values()), tier.name) for tier in paging]
    if delays:
        after, tier = min(delays)
        text = AUDITOR if part.reason == LOST else CAUSES.get(part.status, NOT_LISTED)
        cause = Cause(text, frozenset({SUBJECT}))
        reason = clipped(part.reason, REASON) or None
        yield Problem(UNREADABLE, tier, after, (cause,), partitions=0, reason=reason)


def _resolved(lake: Lake, parts: Iterable[SnapshotPart]) -> dict[str, set[str]]:
    """By cluster, the tiers that the last nightly run which evaluated it gave its topics. Tiers that are undecided count."""
    from pyiceberg.expressions import And, EqualTo, In, Or

    results = [
        And(EqualTo("result_id", part.resolved_result_id), EqualTo("cluster", part.cluster))
        for part in parts
        if part.resolved_result_id
    ]
    if not results:
        return {}
    where = And(Or(*results) if len(results) > 1 else results[0], In("resource_type", ("topic",)))
    found: dict[str, set[str]] = {}
    rows = lake.scan(RESOLVED_POLICY, where, columns=("cluster", "tier", "undecided"))
    for row in rows.to_pylist():
        found.setdefault(row["cluster"], set()).update(filter(None, row["undecided"] or [row["tier"]]))
    return found


def _possible(policy: Policy, part: SnapshotPart) -> set[str]:
    """The tiers that the policy's lines can give topics of the cluster."""
    found: set[str] = set()
    for selector in policy.topics:
        if selector.matches_cluster(part.cluster, part.team):
            found.add(selector.tier)
            if selector.topic is None and selector.internal is None and selector.replication_factor is None:
                break
    return found
