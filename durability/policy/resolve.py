"""Computes the tier of each topic by columns, one selector at a time.

A selector may have a condition on a topic's replication factor. If that is unknown, it is unknown whether the selector matches.
The topic is then in its tier or in that of a later selector. If these differ, the tier is undecided: a guess could choose the
laxer one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from durability.policy.match import match_column
from durability.policy.model import KAFKA_INTERNAL, Policy, Selector
from durability.streams.internal_topics import ENDING, application_of


class Resolved(NamedTuple):
    """tier: by topic; null if no selector matches or the tier is undecided.

    undecided: the tiers that the topic may be in, as a list in the selectors' order; null if the tier is certain.
    """

    tier: pa.Array
    undecided: pa.Array


def resolve(
    policy: Policy,
    topics: pa.Table,
    teams: Mapping[str, str | None] | None = None,
    applications: Mapping[str, Collection[str]] | None = None,
) -> Resolved:
    """The tier of each row of `topics`: that of the first selector that matches.

    Each expression is matched once against each distinct value.

    topics: columns cluster and topic (string), internal (bool) and, if a selector needs it, replication_factor (int). For a
        null (unreadable) `internal`, the name decides, as in Kafka itself.
    teams: team by cluster.
    applications: the Streams groups of each cluster. Their internal topics have the tier of the application's line. If no line
        matches, or if the line has no tier, selectors decide.
    """
    clusters = topics["cluster"].combine_chunks().dictionary_encode()
    names = topics["topic"].combine_chunks().dictionary_encode()
    by_name = pc.is_in(topics["topic"], value_set=pa.array(sorted(KAFKA_INTERNAL), pa.string()))
    internal = pc.coalesce(topics["internal"], by_name).combine_chunks()
    tier = _of_applications(policy, clusters, names, applications or {})
    factors = _replication_factors(topics)
    possible: list[tuple[str, pa.Array]] = []
    for selector in policy.topics:
        if tier.null_count == 0:
            break
        selected = pc.and_(pc.is_null(tier), _mask(selector, clusters, names, internal, teams or {}))
        if selector.replication_factor is not None:
            within = _within(factors, *selector.replication_factor)
            possible.append((selector.tier, pc.and_(selected, pc.is_null(within))))
            selected = pc.and_(selected, pc.fill_null(within, False))
        tier = pc.if_else(selected, pa.scalar(selector.tier), tier)
    return _with_undecided(tier, possible)


def _replication_factors(topics: pa.Table) -> pa.Array:
    if "replication_factor" not in topics.column_names:
        return pa.nulls(topics.num_rows, pa.int32())
    return topics["replication_factor"].combine_chunks()


def _within(factors: pa.Array, least: int | None, most: int | None) -> pa.Array:
    """Is each number from `least` to `most` (None: no limit)? null if the number is unknown and may be either.

    Each topic has at least one replica.
    """
    any_number = pa.repeat(pa.scalar(True), len(factors))
    enough = any_number if least is None or least <= 1 else pc.greater_equal(factors, least)
    few_enough = any_number if most is None else pc.less_equal(factors, most)
    return pc.and_kleene(enough, few_enough)


def _with_undecided(tier: pa.Array, possible: list[tuple[str, pa.Array]]) -> Resolved:
    """tier: of the selectors that certainly match. possible: tier and mask of each earlier selector that may match."""
    candidates: dict[int, list[str | None]] = {}
    for name, mask in possible:
        for row in pc.indices_nonzero(mask).to_pylist():
            candidates.setdefault(row, []).append(name)
    for row, found in candidates.items():
        found.append(tier[row].as_py())
    several = {row: list(dict.fromkeys(found)) for row, found in candidates.items() if len(set(found)) > 1}
    kind = pa.list_(pa.string())
    undecided = pa.array(map(several.get, range(len(tier))), kind) if several else pa.nulls(len(tier), kind)
    return Resolved(pc.if_else(pc.is_null(undecided), tier, pa.scalar(None, pa.string())), undecided)


def _of_applications(
    policy: Policy,
    clusters: pa.DictionaryArray,
    names: pa.DictionaryArray,
    applications: Mapping[str, Collection[str]],
) -> pa.Array:
    """The tier of the application whose internal topic a topic is; null if there is no such application or tier."""
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
