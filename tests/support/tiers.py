"""The tier of one topic, selector by selector. `durability.policy.resolve` computes the same by columns."""

from __future__ import annotations

from durability.policy.match import matches
from durability.policy.model import KAFKA_INTERNAL, Policy, Selector


def tier_of(
    policy: Policy,
    cluster: str,
    topic: str,
    internal: bool | None = None,
    team: str | None = None,
    replication_factor: int | None = None,
) -> str | None:
    """The tier of the first selector that matches; None if there is none, or if it is undecided.

    internal: None to decide by the name.
    """
    found = candidates(policy, cluster, topic, internal, team, replication_factor)
    return found[0] if len(found) == 1 else None


def candidates(
    policy: Policy,
    cluster: str,
    topic: str,
    internal: bool | None = None,
    team: str | None = None,
    replication_factor: int | None = None,
) -> list[str | None]:
    """The tiers that a topic may be in, in the order of selectors: several only if its replication factor is unknown (None)."""
    known = topic in KAFKA_INTERNAL if internal is None else internal
    found: list[str | None] = []
    for selector in policy.topics:
        if not _matches(selector, cluster, topic, known, team):
            continue
        worlds = range(1, 100) if replication_factor is None else [replication_factor]
        low, high = selector.replication_factor or (None, None)
        seen = {(low or 1) <= n <= (high or 99) for n in worlds}
        if True in seen:
            found.append(selector.tier)
        if seen == {True}:
            return list(dict.fromkeys(found))
    return list(dict.fromkeys([*found, None]))


def _matches(selector: Selector, cluster: str, topic: str, internal: bool, team: str | None) -> bool:
    return (
        (selector.internal is None or selector.internal == internal)
        and (selector.cluster is None or matches(selector.cluster, cluster))
        and (selector.team is None or (team is not None and matches(selector.team, team)))
        and (selector.topic is None or matches(selector.topic, topic))
    )
