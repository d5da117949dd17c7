"""Tiers for whole columns of topics: `Policy.tier_of`, a selector at a time instead of a topic at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from durability.policy.match import match_column, matches
from durability.policy.model import KAFKA_INTERNAL, Policy, Selector
from durability.streams.internal_topics import ENDING, application_of


def resolve(
    policy: Policy,
    topics: pa.Table,
    teams: Mapping[str, str | None] | None = None,
    applications: Mapping[str, Collection[str]] | None = None,
) -> pa.Array:
    """Tier per row of `topics` (cluster, topic: string; internal: bool, null decided by the name); null: none.

    teams: team by cluster. applications: by cluster the Streams groups that exist there: their internal topics have the
    tier of the application's line; where no line or none with a tier matches, selectors decide as for any topic.
    Each expression is matched once against each distinct value.
    """
    clusters = _dictionary(topics["cluster"])
    names = _dictionary(topics["topic"])
    by_name = pc.is_in(topics["topic"], value_set=pa.array(sorted(KAFKA_INTERNAL), pa.string()))
    internal = _flat(pc.coalesce(topics["internal"], by_name))
    tier = _of_applications(policy, clusters, names, applications or {})
    for selector in policy.topics:
        if tier.null_count == 0:
            break
        free = pc.is_null(tier)
        hit = (
            pc.and_(free, _mask(selector, clusters, names, internal, teams or {}))
            if not selector.unconditional
            else free
        )
        tier = pc.if_else(hit, pa.scalar(selector.tier), tier)
    return tier


def _of_applications(
    policy: Policy,
    clusters: pa.DictionaryArray,
    names: pa.DictionaryArray,
    applications: Mapping[str, Collection[str]],
) -> pa.Array:
    """Tier per topic by the application that it is an internal topic of; null: of none, or of one without a tier."""
    none = pa.nulls(len(names), pa.string())
    if not policy.applications or not any(applications.values()):
        return none
    internal = pc.take(match_column(f".*(?:{ENDING})", names.dictionary), names.indices)
    groups = {cluster: frozenset(found) for cluster, found in applications.items()}
    tiers: dict[tuple[str, str | None], str | None] = {}
    found = []
    for cluster, topic in zip(clusters.filter(internal).to_pylist(), names.filter(internal).to_pylist(), strict=True):
        group = application_of(topic, groups.get(cluster, frozenset()))
        if group is not None and (cluster, group) not in tiers:
            line = policy.application_of(cluster, group)
            tiers[cluster, group] = line.tier if line is not None else None
        found.append(tiers.get((cluster, group)))
    return pc.replace_with_mask(none, internal, pa.array(found, pa.string()))


def _mask(
    selector: Selector,
    clusters: pa.DictionaryArray,
    names: pa.DictionaryArray,
    internal: pa.Array,
    teams: Mapping[str, str | None],
) -> pa.Array:
    mask = pa.repeat(pa.scalar(True), len(internal))
    if selector.internal is not None:
        mask = pc.and_(mask, internal if selector.internal else pc.invert(internal))
    if selector.cluster is not None or selector.team is not None:
        wanted = [_cluster_matches(selector, c, teams.get(c)) for c in clusters.dictionary.to_pylist()]
        mask = pc.and_(mask, pc.take(pa.array(wanted, pa.bool_()), clusters.indices))
    if selector.topic is not None:
        mask = pc.and_(mask, pc.take(match_column(selector.topic, names.dictionary), names.indices))
    return mask


def _cluster_matches(selector: Selector, cluster: str, team: str | None) -> bool:
    return (selector.cluster is None or matches(selector.cluster, cluster)) and (
        selector.team is None or (team is not None and matches(selector.team, team))
    )


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    flat = _flat(column)
    return flat if isinstance(flat, pa.DictionaryArray) else flat.dictionary_encode()
