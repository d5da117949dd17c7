"""The key that signs evidence, from an Airflow Connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from durability.evidence.keys import SigningKey


def signing_key() -> SigningKey | None:
    """The key of the Connection `kafka_durability_signing`; None if there is none. Raises Refused if it can't be used."""
    from durability.evidence import keys
    from kafka_durability.connections import find

    connection = find(keys.CONNECTION)
    if connection is None:
        return None
    return keys.from_connection({"password": connection.password, "extra": connection.extra_dejson})
