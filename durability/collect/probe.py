"""Tests with one Metadata request whether a cluster answers. The Test button of a Connection uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from durability.collect.limits import Limits
from durability.collect.wire import connected

QUICK = Limits(deadline=10, connect_timeout=3, request_timeout=5, attempts=1)
"""Short limits, because a user waits for the answer."""


@dataclass(frozen=True)
class Answer:
    """cluster_id: Kafka's own id; None if it isn't stated. brokers: the number of live brokers. live: their ids."""

    cluster_id: str | None
    brokers: int
    live: frozenset[int] = frozenset()


def probe(name: str, settings: Mapping[str, object], *, limits: Limits = QUICK) -> Answer:
    """Send one Metadata request without topics to the first bootstrap server that answers.

    name: the cluster's name in errors.
    settings: as for `durability.collect.collect`.
    Raises BadInput and Unreachable as `collect` does.
    """
    with connected(name, settings, limits) as wire:
        metadata = wire.run(wire.bootstrap)
    live = frozenset(broker.node_id for broker in metadata.brokers)
    return Answer(metadata.cluster_id or None, len(metadata.brokers), live)
