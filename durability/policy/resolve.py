"""Tiers for whole columns of topics: `Policy.tier_of`, a selector at a time instead of a topic at a time."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from durability.policy.match import match_column, matches
from durability.policy.model import KAFKA_INTERNAL, Policy, Selector


def resolve(policy: Policy, topics: pa.Table, teams: Mapping[str, str | None]) -> pa.Array:
    """Tier per row of `topics` (cluster, topic: string; internal: bool, null decided by the name); null: none."""
    rows = topics.num_rows
    clusters = _dictionary(topics["cluster"])
    names = _dictionary(topics["topic"])
    by_name = pc.is_in(topics["topic"], value_set=pa.array(sorted(KAFKA_INTERNAL), pa.string()))
    internal = _flat(pc.coalesce(topics["internal"], by_name))
    tier = pa.nulls(rows, pa.string())
    for selector in policy.topics:
        if tier.null_count == 0:
            break
        free = pc.is_null(tier)
        hit = pc.and_(free, _mask(selector, clusters, names, internal, teams)) if not selector.unconditional else free
        tier = pc.if_else(hit, pa.scalar(selector.tier), tier)
    return tier


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
