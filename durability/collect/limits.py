"""Time limits of a collection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one collection. Times are in seconds.

    deadline: of the whole collection. What hasn't been read by then is unreadable with REQUEST_TIMED_OUT.
    connect_timeout: of a broker's TCP, TLS and SASL handshakes together.
    request_timeout: of one request. `request.timeout.ms` of the settings overrides it.
    controller_timeout: of one request that a broker forwards to the controller.
    session_timeout: how long to wait until the controller fences an unreachable broker. It does so when the broker's session
        ends, by default after 9 s (`broker.session.timeout.ms`).
    attempts: the most attempts per request.
    backoff: the pause before the second attempt. It doubles each time.
    """

    deadline: float = 120.0
    connect_timeout: float = 5.0
    request_timeout: float = 20.0
    controller_timeout: float = 10.0
    session_timeout: float = 10.0
    attempts: int = 3
    backoff: float = 0.2
