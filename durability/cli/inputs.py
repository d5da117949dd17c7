"""The input of an audit: the embedded cluster, one cluster, a fleet or documents, with their Connections."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from durability import resources
from durability.cli.options import Options
from durability.collect import client_properties, connections
from durability.steps.settings import Settings

CONNECTION = "kafka_bootstrap"
"""Id of the Connection for a single cluster."""


@dataclass(frozen=True)
class Input:
    """An audit's input.

    name: shown to the user.
    topology: a document or folder; None to read the clusters in the file `clusters`.
    connection: settings of the single cluster, which may include secrets. None for documents, and for a fleet, in which each
        cluster has its own Connection.
    """

    name: str
    clusters: Path
    topology: Path | None = None
    connection: Mapping[str, object] | None = None

    def settings(self, options: Options) -> Settings:
        """The settings for the steps of a run over this input."""
        return Settings(
            policy=options.policy,
            waivers=options.waivers,
            clusters=self.clusters,
            out=options.out,
            lake=options.lake,
            topology=self.topology,
            framework=options.framework,
            ad_hoc=self.connection is not None,
        )

    def connect(self, name: str, environ: Mapping[str, str]) -> Mapping[str, object]:
        """The settings of a Connection, without Airflow."""
        return self.connection if self.connection is not None else connections.from_environment(name, environ)


def documents_or_fleet(options: Options) -> Input:
    """The input of `--topology` or `--clusters`."""
    shipped = resources.shipped("policies", "clusters.yaml")
    if options.topology:
        return Input(str(options.topology), shipped, topology=options.topology)
    return Input(f"the clusters of {options.clusters}", options.clusters or shipped)


def cluster(folder: Path, bootstrap: str, name: str, security: Mapping[str, object] | None = None) -> Input:
    """One cluster by its address, as a clusters file in `folder`. security: its other settings."""
    file = folder / "clusters.yaml"
    listed = {"id": name, "connection": CONNECTION, "provider": "self"}
    # JSON is valid YAML, and it escapes any character of an address.
    file.write_text(json.dumps({"format": "durability-clusters/1", "clusters": [listed]}))
    return Input(name, file, connection={**(security or {}), connections.SERVERS: bootstrap})


def security(options: Options, environ: Mapping[str, str]) -> dict[str, object]:
    """Security settings for `--bootstrap`, from --command-config, else from AIRFLOW_CONN_KAFKA_BOOTSTRAP, else none.

    Raises BadInput or Refused for settings that can't be used. The error shows no value.
    """
    if options.command_config:
        settings = client_properties.read(options.command_config)
    else:
        stated = connections.stated_connection(CONNECTION, environ)
        if stated is None:
            return {}
        login = {key: stated.get(key) or None for key in ("login", "password")}
        extra = {connections.SERVERS: options.bootstrap, **stated["extra"]}
        settings = connections.connection_settings(CONNECTION, extra, **login)
    settings.pop("metadata.broker.list", None)
    return settings
