"""How a cluster was read: as which principal, by which requests, with which clock. It is no part of the document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from durability.collect.document import Facts

Requests = Counter[tuple[str, int, int]]
"""How many requests were answered, by name, API key and version."""
CERTIFICATE = "the broker derives it from the client's certificate, if it asks for one"
TOKEN = "the broker derives it from a token or ticket"


def record(
    config: Mapping[str, Any], requests: Requests, facts: Facts, acls: tuple[dict[str, Any] | None, str | None]
) -> dict[str, Any]:
    """The record of a collection, as JSON without secrets.

    config: of kafka-python. requests: those that got an answer. ApiVersions and SASL of each connection aren't among them.
    acls: the principal's, or None and why (`durability.collect.acls`).

    - `principal`: `security_protocol`, `sasl_mechanism`, `name` by Kafka's default rules, or null and the `reason`.
    - `acls`: `count` and `listed`, or null and `acls_reason`.
    - `apis`: `api`, `key`, `version` and `count` of each.
    - `clock_offset_ms`: how far the clock of the quorum's leader is ahead of this machine's; null if it isn't known.
    - `log_dirs`: brokers whose log dirs were read, and the topics and partitions in them; null if there are none.
    """
    return {
        "principal": principal(config),
        "acls": acls[0],
        "acls_reason": acls[1],
        "apis": [
            {"api": api, "key": key, "version": version, "count": count}
            for (api, key, version), count in sorted(requests.items())
        ],
        "clock_offset_ms": facts.quorum.clock_offset_ms if facts.quorum else None,
        "log_dirs": _on_log_dirs(facts),
    }


def principal(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Who the brokers take the collector for, as far as the settings show.

    >>> principal({"security_protocol": "PLAINTEXT"})["name"]
    'User:ANONYMOUS'
    """
    protocol, mechanism = config["security_protocol"], config.get("sasl_mechanism")
    name = reason = None
    if user := config.get("sasl_plain_username"):
        name = f"User:{user}"
    elif mechanism:
        reason = TOKEN
    elif protocol == "SSL":
        reason = CERTIFICATE
    else:
        name = "User:ANONYMOUS"
    return {"security_protocol": protocol, "sasl_mechanism": mechanism, "name": name, "reason": reason}


def _on_log_dirs(facts: Facts) -> dict[str, int] | None:
    if not facts.log_dirs:
        return None
    found = set().union(*(dirs.sizes for dirs in facts.log_dirs.values()))
    return {"brokers": len(facts.log_dirs), "topics": len({topic for topic, _ in found}), "partitions": len(found)}
