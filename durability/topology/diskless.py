"""Diskless topics (KIP-1150): their records are in object storage. Their partitions need no leader and no replicas."""

from __future__ import annotations

from collections.abc import Mapping

SETTINGS = ("diskless.enable", "inkless.enable")
"""A topic with one of these settings on is diskless. The second is its earlier name, in Aiven's fork of Kafka."""


def is_diskless(configs: Mapping[str, str] | None) -> bool:
    """Do a topic's configs call it diskless? Unknown configs don't.

    >>> is_diskless({"inkless.enable": "True"}), is_diskless({"diskless.enable": "false"}), is_diskless(None)
    (True, False, False)
    """
    return any((configs or {}).get(name, "").strip().lower() == "true" for name in SETTINGS)
