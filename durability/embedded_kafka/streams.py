"""A real Streams application on an embedded cluster: Kafka's own WordCountDemo, one instance per zone, with standbys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import as_properties
from durability.runtime import processes

if TYPE_CHECKING:
    import subprocess

MAIN = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
# What the demo's topology names its store; the names of its internal topics follow.
_STORE = "KSTREAM-AGGREGATE-STATE-STORE-0000000003"


@dataclass
class StreamsApplication:
    """WordCountDemo instances, one for each of `zones` (the value of their client tag `zone`). They end with the cluster.

    group: application id and group id. standbys: num.standby.replicas. settings: further properties of each instance.
    tags: further client tags by zone.
    """

    cluster: LocalCluster
    zones: Sequence[str] = ("az1", "az2", "az3")
    group: str = "streams-wordcount"
    standbys: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    _processes: dict[str, subprocess.Popen] = field(default_factory=dict)

    @property
    def internal_topics(self) -> tuple[str, str]:
        """Names of its changelog and its repartition topic."""
        return f"{self.group}-{_STORE}-changelog", f"{self.group}-{_STORE}-repartition"

    def start(self) -> StreamsApplication:
        """Starts every instance and doesn't wait (`wait` does). The input and output topics have to exist."""
        for zone in self.zones:
            self.start_instance(zone)
        return self

    def start_instance(self, zone: str) -> None:
        """Starts one more instance, or starts a stopped one again; doesn't wait."""
        name = f"streams-{zone}"
        settings = self.cluster.program_home(name) / "streams.properties"
        settings.write_text(as_properties(self._properties(zone, str(self._state(zone)))), encoding="utf-8")
        self._processes[zone] = self.cluster.launch(name, MAIN, str(settings))

    def state_folder(self, zone: str) -> Path:
        """The folder with a zone's state: one folder per task, and the instance's process id."""
        return self._state(zone) / self.group

    @property
    def pids(self) -> dict[str, int]:
        """The operating system's process id by zone, of running instances."""
        return {zone: process.pid for zone, process in self._processes.items()}

    def wait(self, seconds: float = 60.0) -> None:
        """Waits until the group is Stable with every instance a member."""
        self.cluster.wait_until(self._is_stable, f"Streams group {self.group} is Stable", seconds)

    def stop_instance(self, zone: str) -> None:
        """Shuts one instance down in order."""
        processes.stop(self._processes.pop(zone))

    def _state(self, zone: str) -> Path:
        return self.cluster.program_home(f"streams-{zone}") / "state"

    def _is_stable(self) -> bool:
        with self.cluster.admin() as admin:
            described = admin.describe_groups([self.group])[self.group]
        return described["group_state"] == "Stable" and len(described["members"]) == len(self._processes)

    def _properties(self, zone: str, state: str) -> dict[str, str]:
        return {
            "application.id": self.group,
            "bootstrap.servers": self.cluster.bootstrap,
            "application.server": f"127.0.0.1:{processes.free_port()}",
            "client.id": f"{self.group}-{zone}",
            "client.tag.zone": zone,
            "rack.aware.assignment.tags": "zone",
            "num.standby.replicas": str(self.standbys),
            "replication.factor": "3",
            "num.stream.threads": "1",
            "state.dir": state,
            **self.settings,
            **{f"client.tag.{key}": value for key, value in self.tags.get(zone, {}).items()},
        }
