"""Airflow Connections that are optional: those that exist are used."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from durability.errors import Refused

if TYPE_CHECKING:
    from airflow.sdk import Connection


def find(*ids: str) -> Connection | None:
    """The first of these Connections that exists; None if there is none.

    Airflow treats a variable AIRFLOW_CONN_<ID> that it can't parse as if it weren't there. Raises Refused for it,
    because its owner expects that it is used. The error doesn't contain its value, which is a secret.
    """
    for connection in ids:
        try:
            return BaseHook.get_connection(connection)
        except AirflowNotFoundException:
            variable = f"AIRFLOW_CONN_{connection.upper()}"
            if variable in os.environ:
                raise Refused(f"{variable} is set, but it is no Connection in JSON or URI form: correct it") from None
    return None
