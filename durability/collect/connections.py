"""Reads Connections in Airflow's form into the settings of `durability.collect.collect`, without Airflow.

Settings contain secrets. They are never logged and never process arguments. Errors show no values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from durability.errors import BadInput, Refused

SERVERS = "bootstrap.servers"
VARIABLE = "AIRFLOW_CONN_"
EXPECTED = (
    'JSON such as {"conn_type": "kafka", "extra": {"bootstrap.servers": "host:9093", "security.protocol": "SASL_SSL"}}'
)

ANOTHER = "state `connection` in the clusters file, with letters, digits and underscores"


def connection_settings(
    name: str,
    extra: Mapping[str, object],
    *,
    host: str | None = None,
    port: int | None = None,
    login: str | None = None,
    password: str | None = None,
) -> dict[str, object]:
    """Settings from the fields of a Connection of type `kafka`, with librdkafka's keys in `extra`, as for Airflow's provider.

    Without servers in the extra, host and port are used. Without SASL credentials, login and password are used.

    Raises BadInput if the Connection has no address.

    >>> connection_settings("k", {}, host="a", login="u")
    {'bootstrap.servers': 'a:9092', 'sasl.username': 'u'}
    """
    settings: dict[str, object] = dict(extra)
    if not settings.get(SERVERS) and host:
        settings[SERVERS] = f"{host}:{port or 9092}"
    if not settings.get(SERVERS):
        raise BadInput(f"Connection {name}", SERVERS, "missing; expected host:port in the extra")
    if login:
        settings.setdefault("sasl.username", login)
    if password:
        settings.setdefault("sasl.password", password)
    return settings


def from_environment(name: str, environ: Mapping[str, str]) -> dict[str, object]:
    """Settings of a Connection from AIRFLOW_CONN_<NAME>. Raises Refused if the variable is missing or isn't JSON."""
    stated = stated_connection(name, environ)
    if stated is None:
        variable = f"{VARIABLE}{name.upper()}"
        hint = "" if variable.isascii() and variable.isidentifier() else f". A shell can't set this name: {ANOTHER}"
        raise Refused(f"there is no Connection {name}: without Airflow, set {variable} to {EXPECTED}{hint}")
    fields = {key: stated.get(key) or None for key in ("host", "port", "login", "password")}
    return connection_settings(name, stated["extra"], **fields)


def stated_connection(name: str, environ: Mapping[str, str], expected: str = EXPECTED) -> dict[str, Any] | None:
    """The JSON object in AIRFLOW_CONN_<NAME>, with `extra` as an object; None if the variable isn't set.

    expected: an example of the JSON, for the message of Refused.
    """
    variable = f"{VARIABLE}{name.upper()}"
    text = environ.get(variable)
    if not text:
        return None
    try:
        stated = json.loads(text)
        extra = stated.get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else extra
        return {**stated, "extra": {**extra}}
    except (ValueError, AttributeError, TypeError):
        # Don't show its text, which contains a password.
        raise Refused(f"{variable} can't be used: expected {expected} (Airflow's URI form isn't read here)") from None
