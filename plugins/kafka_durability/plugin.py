"""Registers this project's Airflow plugin, through the entry point `airflow.plugins` of the installed package."""

from __future__ import annotations

from typing import Any

from airflow.plugins_manager import AirflowPlugin


class KafkaDurabilityPlugin(AirflowPlugin):
    """Serves metrics. Hook and operators belong to the provider, see `kafka_durability.provider`."""

    name = "kafka_durability"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The app below the API server's address. Only the API server uses it, so only there it is imported."""
        from kafka_durability.metrics import PREFIX, app

        return [{"name": self.name, "app": app, "url_prefix": PREFIX}]
