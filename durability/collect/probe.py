"""Does a cluster answer? One Metadata request, for the Test button of a Connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from durability.collect.limits import Limits

QUICK = Limits(deadline=10, connect_timeout=3, request_timeout=5, attempts=1)
"""Somebody waits for the answer."""


@dataclass(frozen=True)
class Answer:
    """cluster_id: Kafka's own; None before it had any. brokers: how many are up."""

    cluster_id: str | None
    brokers: int


def probe(name: str, settings: Mapping[str, object], *, limits: Limits = QUICK) -> Answer:
    """Asks the first bootstrap server that answers for Metadata without topics, and nothing else.

    name: what errors call the cluster; settings: as for `durability.collect.collect`.
    Raises BadInput and Unreachable as `collect` does.
    """
    from durability.collect.reasons import Unread
    from durability.collect.settings import client_config
    from durability.collect.wire import Wire
    from durability.errors import Unreachable

    wire = Wire(client_config(settings, f"the connection of cluster {name}"), limits)
    try:
        metadata = wire.run(lambda: wire.bootstrap(name))
    except Unread as error:
        raise Unreachable(f"cluster {name} can't be reached: {error.reason}. Check that its brokers are up.") from error
    finally:
        wire.close()
    return Answer(metadata.cluster_id or None, len(metadata.brokers))
