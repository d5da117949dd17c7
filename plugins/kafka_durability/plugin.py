"""Registers what this project adds to Airflow, through the entry point `airflow.plugins` of the installed package."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class KafkaDurabilityPlugin(AirflowPlugin):
    """Has no part of its own yet: hook and operators are the provider's, see `kafka_durability.provider`."""

    name = "kafka_durability"
