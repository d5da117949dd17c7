"""Reads a live Kafka cluster into a `kafka-topology/1` document. `unreadable` lists the parts that could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from durability.collect.limits import Limits

if TYPE_CHECKING:
    from durability.topology import Topology

__all__ = ["Limits", "collect"]


def collect(
    cluster_id: str,
    settings: Mapping[str, object],
    *,
    controllers: Mapping[int, str] | None = None,
    limits: Limits | None = None,
) -> Topology:
    """Read the whole cluster once and return its validated topology (source "live").

    cluster_id: the cluster's name in the fleet. It becomes `cluster.id`.
    settings: librdkafka-style connection settings, as in the extra of an Airflow `kafka` Connection; see
        `durability.collect.settings`.
    controllers: rack by node id, for controllers that are no brokers. Kafka doesn't state these racks.

    Raises BadInput for settings that can't be used, and Unreachable if no bootstrap server answers as Kafka should.
    """
    from durability.collect.collector import read_cluster
    from durability.topology import validate

    document, record = read_cluster(cluster_id, settings, controllers=controllers or {}, limits=limits or Limits())
    return replace(validate(document, "live"), collection=record)
