"""How long and how often the collector asks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of one collection; times in seconds.

    deadline: of the whole collection. What hasn't been read by then is unreadable with REQUEST_TIMED_OUT.
    connect_timeout: until a broker's TCP, TLS and SASL handshakes are done.
    request_timeout: until the answer to one request; `request.timeout.ms` of the settings wins over it.
    attempts: sends of one request, the first included; `backoff` doubles between them.
    width: requests under way at once.
    rereads: further readings of all partitions while two consecutive ones disagree.
    topics_per_request, groups_per_request: batch sizes of DescribeConfigs and DescribeGroups.
    """

    deadline: float = 120.0
    connect_timeout: float = 5.0
    request_timeout: float = 20.0
    attempts: int = 3
    backoff: float = 0.2
    width: int = 16
    rereads: int = 4
    reread_pause: float = 0.5
    topics_per_request: int = 500
    groups_per_request: int = 200
