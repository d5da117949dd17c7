"""The tier of each topic, computed by columns: one selector at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from durability.policy.match import match_column
from durability.policy.model import KAFKA_INTERNAL, Policy, Selector
from durability.streams.internal_topics import ENDING, application_of


def resolve(
    policy: Policy,
    topics: pa.Table,
    teams: Mapping[str, str | None] | None = None,
    applications: Mapping[str, Collection[str]] | None = None,
) -> pa.Array:
    """The tier of each row of `topics` (cluster, topic: string; internal: bool): that of the first selector that matches.

    null: no selector matches. `internal` null (unreadable) is decided by the name, as Kafka itself does.
    teams: team by cluster. applications: the Streams groups of each cluster. Their internal topics have the tier of the
        application's line; where no line matches or the line has no tier, selectors decide.
    Each expression is matched once against each distinct value.
    """
    clusters = topics["cluster"].combine_chunks().dictionary_encode()
    names = topics["topic"].combine_chunks().dictionary_encode()
    by_name = pc.is_in(topics["topic"], value_set=pa.array(sorted(KAFKA_INTERNAL), pa.string()))
    internal = pc.coalesce(topics["internal"], by_name).combine_chunks()
    tier = _of_applications(policy, clusters, names, applications or {})
    for selector in policy.topics:
        if tier.null_count == 0:
            break
        selected = pc.and_(pc.is_null(tier), _mask(selector, clusters, names, internal, teams or {}))
        tier = pc.if_else(selected, pa.scalar(selector.tier), tier)
    return tier


def _of_applications(
    policy: Policy,
    clusters: pa.DictionaryArray,
    names: pa.DictionaryArray,
    applications: Mapping[str, Collection[str]],
) -> pa.Array:
    """The tier of the application that a topic is an internal topic of; null: there is no such application or tier."""
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
        wanted = [selector.matches_cluster(c, teams.get(c)) for c in clusters.dictionary.to_pylist()]
        mask = pc.and_(mask, pc.take(pa.array(wanted, pa.bool_()), clusters.indices))
    if selector.topic is not None:
        mask = pc.and_(mask, pc.take(match_column(selector.topic, names.dictionary), names.indices))
    return mask
