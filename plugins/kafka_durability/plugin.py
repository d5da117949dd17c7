"""Registers this project's Airflow plugin, through the entry point `airflow.plugins` of the installed package."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class KafkaDurabilityPlugin(AirflowPlugin):
    """Empty so far: hook and operators belong to the provider, see `kafka_durability.provider`."""

    name = "kafka_durability"
