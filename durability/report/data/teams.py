"""Which team a finding is for, and the names of the teams' pages.

The first line of the policy's `owners` that matches decides. Else it is the team that owns the cluster, by the clusters file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.plan.plan import Plan
from durability.policy.match import match_column, matches

FOLDER, INDEX = "teams", "index.html"
CONDITIONS = {"topic": "topic", "group": "application"}
"""Conditions on the names of resources, with the type of the resources."""
_HASHED = re.compile(r"-[0-9a-f]{16}")


def with_teams(findings: pa.Table, plan: Plan) -> pa.Table:
    """`findings` with a column `team`; null if no team is named. It has the columns cluster, resource_type and resource."""
    clusters, resources = (findings[name].combine_chunks().dictionary_encode() for name in ("cluster", "resource"))
    team = pa.nulls(findings.num_rows, pa.string())
    for line in plan.policy.owners:
        fits = pc.and_(pc.is_null(team), _fits(line, clusters, resources, findings["resource_type"].combine_chunks()))
        team = pc.if_else(pc.fill_null(fits, False), pa.scalar(line["team"], pa.string()), team)
    owners = {part.cluster: part.team for part in plan.snapshots}
    of_cluster = pa.array([owners.get(name) for name in clusters.dictionary.to_pylist()], pa.string())
    return findings.append_column("team", pc.coalesce(team, pc.take(of_cluster, clusters.indices)))


def _fits(
    line: Mapping[str, Any], clusters: pa.DictionaryArray, resources: pa.DictionaryArray, types: pa.Array
) -> pa.Array:
    mask = pa.repeat(pa.scalar(True), len(types))
    if line["cluster"] is not None:
        mask = pc.take(match_column(line["cluster"], clusters.dictionary), clusters.indices)
    for condition, kind in CONDITIONS.items():
        if line[condition] is not None:
            of_name = pc.take(match_column(line[condition], resources.dictionary), resources.indices)
            mask = pc.and_(mask, pc.and_(pc.equal(types, kind), of_name))
    return mask


def team_pages(plan: Plan) -> dict[str, str]:
    """The file of each team that the policy or the clusters file names, by team, sorted."""
    of_clusters = {part.team for part in plan.snapshots if part.team}
    return {team: file_name(team) for team in sorted(of_clusters | {line["team"] or "" for line in plan.policy.owners})}


def may_have(team: str, plan: Plan) -> set[str]:
    """The clusters that may have resources of a team: its own, and those that a line of `owners` for it matches."""
    lines = [line for line in plan.policy.owners if line["team"] == team]

    def named(cluster: str) -> bool:
        return any(line["cluster"] is None or matches(line["cluster"], cluster) for line in lines)

    return {part.cluster for part in plan.snapshots if part.team == team or named(part.cluster)}


def file_name(team: str) -> str:
    """The name of a team's page, safe for file systems and links. No two teams share one, and it is the same in each run.

    >>> file_name("payments"), file_name("../Pay & Co"), file_name("index")
    ('payments.html', 'pay-co-afb5ba9586efbd7e.html', 'index-1bc04b5291c26a46.html')
    """
    safe = re.sub(r"[^a-z0-9]+", "-", team.lower()).strip("-")[:60]
    if safe == team and f"{safe}.html" != INDEX and not _HASHED.search(safe):
        return f"{safe}.html"
    digest = hashlib.sha256(team.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{safe or 'team'}-{digest}.html"
