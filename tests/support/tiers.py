"""The tier of one topic, selector by selector: what `durability.policy.resolve` computes by columns."""

from __future__ import annotations

from durability.policy.match import matches
from durability.policy.model import KAFKA_INTERNAL, Policy, Selector


def tier_of(
    policy: Policy, cluster: str, topic: str, internal: bool | None = None, team: str | None = None
) -> str | None:
    """The tier of the first selector that matches; None: there is none. internal None: decided by the name."""
    known = topic in KAFKA_INTERNAL if internal is None else internal
    return next((s.tier for s in policy.topics if _matches(s, cluster, topic, known, team)), None)


def _matches(selector: Selector, cluster: str, topic: str, internal: bool, team: str | None) -> bool:
    return (
        (selector.internal is None or selector.internal == internal)
        and (selector.cluster is None or matches(selector.cluster, cluster))
        and (selector.team is None or (team is not None and matches(selector.team, team)))
        and (selector.topic is None or matches(selector.topic, topic))
    )
