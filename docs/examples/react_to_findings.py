"""Opens a ticket if an audit has new critical findings, or new ones and unknown ones: an example for your own DAGs folder."""

from __future__ import annotations

import logging

from airflow.sdk import dag, task
from kafka_durability.assets import FINDINGS

log = logging.getLogger(__name__)


@dag(dag_id="react_to_findings", schedule=FINDINGS, catchup=False)
def react_to_findings():
    @task
    def open_tickets(triggering_asset_events=None) -> list[str]:
        """The runs that need attention."""
        alarming = []
        for event in triggering_asset_events[FINDINGS]:
            found = event.extra
            if found["new_critical"] or (found["new"] and found["unknown"]):
                log.warning("run %(run)s: %(new_critical)d new critical, %(unknown)d unknown, %(new)d new", found)
                alarming.append(found["run"])  # call your ticket system here
        return alarming

    open_tickets()


react_to_findings()
