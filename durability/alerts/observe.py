"""What a pulse saw: its unhealthy partitions, with the tier of each topic by the policy of now, and what it couldn't read.

Only topics with such partitions are matched with the policy, so this costs little at any size of a fleet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from durability.alerts.model import NO_CAUSE, UNREADABLE, Cause, ClusterPulse, Problem
from durability.alerts.unread import unread
from durability.catalogue.causes import split
from durability.lake.conditions import of_result
from durability.lake.tables import BROKERS, CLUSTERS, GROUPS, PARTITION_HEALTH, TOPICS
from durability.plan.resolved import streams_groups
from durability.policy.model import PAGING, Policy
from durability.policy.resolve import resolve

if TYPE_CHECKING:
    from durability.lake import Lake, Table
    from durability.plan.plan import Plan, SnapshotPart

COLUMNS = ("cluster", "topic", "partitions", "categories", "cause", "categories_known", "out_of_sync")
CONFIGURATION = "configuration"
"""The cause of partitions under min ISR whose replicas are all in sync."""
EXAMPLES = 3
_SUBJECT = re.compile(r"(broker:\d+|rack:.*) [a-z-]+", re.DOTALL)
Racks = Mapping[tuple[str, str], frozenset[str]]
"""By cluster and rack, its brokers as subjects."""


def observe(lake: Lake, plan: Plan, policy: Policy) -> list[ClusterPulse]:
    """What the pulse of a plan saw of each cluster, after `evaluate` and before its facts are discarded.

    A cluster whose topics could not be listed counts as one that could not be read.
    """
    read = _listed(lake, plan)
    page = {c: frozenset(name for name, tier in policy.tiers.items() if c in tier.page_after) for c in PAGING}
    page[UNREADABLE] = frozenset[str]().union(*page.values())
    missing = unread(lake, plan, policy, (part.cluster for part in read), page)
    if not page[UNREADABLE]:
        return [*(ClusterPulse(part.cluster, part.moment, part.team, paging=page) for part in read), *missing]
    return [*_read(lake, plan, policy, read, page), *missing]


def _read(
    lake: Lake, plan: Plan, policy: Policy, read: list[SnapshotPart], page: Mapping[str, frozenset[str]]
) -> list[ClusterPulse]:
    """What the pulse saw of the clusters that it could read."""
    rows = _unhealthy(lake, plan)
    of_topics = _staged(lake, plan, TOPICS, ("cluster", "topic", "internal", "replication_factor", "partitions_known"))
    named = {(row["cluster"], row["topic"]) for row in rows}
    tiers = _tiers(lake, plan, policy, of_topics, named)
    racks = _racks(lake, plan) if any("rack:" in (row["cause"] or "") for row in rows) else {}
    counts: dict[tuple[str, str, str, str], _Count] = {}
    unknown: dict[str, dict[str, int]] = {part.cluster: dict.fromkeys(PAGING, 0) for part in read}
    for row in rows:
        paging = _delays(policy, tiers.get((row["cluster"], row["topic"]), ()))
        for category, tier in paging.items():
            if category in row["categories"]:
                text = row["cause"] or (NO_CAUSE if row["out_of_sync"] or category == "offline" else CONFIGURATION)
                counts.setdefault((row["cluster"], category, tier, text), _Count()).add(row)
            elif not row["categories_known"] and row["cluster"] in unknown:
                unknown[row["cluster"]][category] += len(row["partitions"])
    for cluster, topic in _unlisted(of_topics):
        for category in _delays(policy, tiers.get((cluster, topic), ())):
            unknown.setdefault(cluster, dict.fromkeys(PAGING, 0))[category] += 1
    return [
        ClusterPulse(
            part.cluster,
            part.moment,
            part.team,
            tuple(
                Problem(
                    category,
                    tier,
                    policy.tiers[tier].page_after[category],
                    causes(text, part.cluster, racks),
                    found.partitions,
                    frozenset(found.topics),
                    tuple(found.examples),
                )
                for (cluster, category, tier, text), found in sorted(counts.items())
                if cluster == part.cluster
            ),
            unknown[part.cluster],
            page,
        )
        for part in read
    ]


def causes(text: str, cluster: str, racks: Racks) -> tuple[Cause, ...]:
    """The causes in a row of `partition_health`.

    >>> [(c.text, sorted(c.subjects)) for c in causes("broker:3 down, rack:a, b down, no-leader", "eu", {})]
    [('broker:3 down', ['broker:3']), ('rack:a, b down', ['rack:a, b']), ('no-leader', ['no-leader'])]
    """
    found = []
    for one in split(text):
        match = _SUBJECT.fullmatch(one)
        subject = match[1] if match else one
        brokers = (
            racks.get((cluster, subject.removeprefix("rack:")), frozenset()) if "rack:" in subject else frozenset()
        )
        found.append(Cause(one, brokers | {subject}))
    return tuple(found)


class _Count:
    """Partitions and topics of rows that belong together."""

    def __init__(self) -> None:
        self.partitions = 0
        self.topics: set[str] = set()
        self.examples: list[str] = []

    def add(self, row: Mapping[str, object]) -> None:
        numbers = row["partitions"]
        assert isinstance(numbers, list)
        self.partitions += len(numbers)
        self.topics.add(str(row["topic"]))
        if numbers and len(self.examples) < EXAMPLES:
            self.examples.append(f"{row['topic']}-{numbers[0]}")


def _delays(policy: Policy, tiers: Iterable[str]) -> dict[str, str]:
    """By category, the tier that pages first. A topic whose tier is undecided may be in several."""
    first: dict[str, str] = {}
    for category in PAGING:
        delays = [(policy.tiers[t].page_after[category], t) for t in tiers if category in policy.tiers[t].page_after]
        if delays:
            first[category] = min(delays)[1]
    return first


def _unhealthy(lake: Lake, plan: Plan) -> list[dict]:
    """The rows of `partition_health` that are, or may be, in a category that pages."""
    rows: list[dict] = []
    for part in lake.parts(PARTITION_HEALTH, of_result(plan), COLUMNS):
        categories = part["categories"].combine_chunks()
        paging = pc.is_in(categories.flatten(), value_set=pa.array(PAGING))
        listed = pc.is_in(
            pa.array(range(part.num_rows), pa.int64()),
            value_set=pc.list_parent_indices(categories).filter(paging).cast(pa.int64()),
        )
        rows += part.filter(pc.or_(listed, pc.invert(part["categories_known"]))).to_pylist()
    return rows


def _staged(lake: Lake, plan: Plan, table: Table, columns: tuple[str, ...]) -> pa.Table:
    return lake.read_files(table, plan.staged.get(table.name, []), columns)


def _listed(lake: Lake, plan: Plan) -> list[SnapshotPart]:
    """The evaluated snapshots whose topics were listed."""
    rows = _staged(lake, plan, CLUSTERS, ("cluster", "topics_known")).to_pylist()
    known = {row["cluster"] for row in rows if row["topics_known"]}
    return [part for part in plan.judged if part.cluster in known]


def _unlisted(topics: pa.Table) -> list[tuple[str, str]]:
    """Topics whose partitions could not be listed."""
    missing = topics.filter(pc.invert(pc.fill_null(topics["partitions_known"], False)))
    return [(row["cluster"], row["topic"]) for row in missing.select(["cluster", "topic"]).to_pylist()]


def _tiers(
    lake: Lake, plan: Plan, policy: Policy, topics: pa.Table, named: set[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """By cluster and topic, the tier, or the tiers that it may be in. Of named topics and those that could not be listed."""
    wanted = named | set(_unlisted(topics))
    pairs = zip(topics["cluster"].to_pylist(), topics["topic"].to_pylist(), strict=True)
    mine = topics.filter(pa.array([pair in wanted for pair in pairs], pa.bool_()))
    if not mine.num_rows:
        return {}
    groups = streams_groups(lake.read_files(GROUPS, plan.staged.get(GROUPS.name, []))) if policy.applications else {}
    found = resolve(policy, mine, {part.cluster: part.team for part in plan.judged}, groups)
    rows = zip(mine.to_pylist(), found.tier.to_pylist(), found.undecided.to_pylist(), strict=True)
    return {
        (row["cluster"], row["topic"]): tuple(t for t in (undecided or [tier]) if t is not None)
        for row, tier, undecided in rows
    }


def _racks(lake: Lake, plan: Plan) -> Racks:
    brokers: dict[tuple[str, str], set[str]] = {}
    for row in _staged(lake, plan, BROKERS, ("cluster", "rack", "broker")).to_pylist():
        if row["rack"] is not None:
            brokers.setdefault((row["cluster"], row["rack"]), set()).add(f"broker:{row['broker']}")
    return {rack: frozenset(found) for rack, found in brokers.items()}
