"""Registers what this project adds to Airflow."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class KafkaDurabilityPlugin(AirflowPlugin):
    """The hook and operators of `kafka_durability`, importable by DAGs because this folder is on sys.path."""

    name = "kafka_durability"
