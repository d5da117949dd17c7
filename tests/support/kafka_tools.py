"""Kafka's tools for tests: as scripts on PATH, and with an archive of their classes, which halves the CPU time of a start."""

from __future__ import annotations

import atexit
import itertools
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from durability.embedded_kafka import tools
from durability.embedded_kafka.cluster import LocalCluster

MAINS = {
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "ConfigCommand",
    "kafka-features": "FeatureCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-reassign-partitions": "ReassignPartitionsCommand",
    "kafka-topics": "TopicCommand",
}
"""The tools under the names of Kafka's distribution."""


class Archives:
    """Archives of the classes that Kafka's programs load (JEP 350), one per release, made when a tool first asks a cluster."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._made: dict[str, Path] = {}
        self._lock = threading.Lock()
        self._java = tools.java

    def java(self, version: str, main: str, *arguments: str, heap_mb: int, home: Path) -> list[str]:
        """As `tools.java`, with the release's archive if there is one or `arguments` name a cluster to make it with."""
        given = dict(itertools.pairwise(arguments))
        archive = self.of(version, given.get("--bootstrap-server"))
        java, *rest = self._java(version, main, *arguments, heap_mb=heap_mb, home=home)
        return [java, *([f"-XX:SharedArchiveFile={archive}"] if archive else []), *rest]

    def of(self, version: str, bootstrap: str | None = None) -> Path | None:
        """The release's archive, made with the cluster at `bootstrap` if there is none; None if none can be made."""
        with self._lock:
            if version not in self._made and bootstrap:
                self._made[version] = self._make(version, bootstrap)
            archive = self._made.get(version)
        return archive if archive and archive.exists() else None

    def _make(self, version: str, bootstrap: str) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="durability-test-kafka-classes-"))
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        archive = self._folder / f"{version}.jsa"
        asked = ("--bootstrap-server", bootstrap, "--describe", "--entity-type", "topics")
        main = tools.main_class(version, "ConfigCommand")
        java, *rest = self._java(version, main, *asked, heap_mb=96, home=self._folder)
        subprocess.run([java, f"-XX:ArchiveClassesAtExit={archive}", *rest], capture_output=True, timeout=120)
        return archive


ARCHIVES = Archives()


@pytest.fixture(scope="session", autouse=True)
def _archives() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools, "java", ARCHIVES.java)
        yield


def install(kafka: LocalCluster, folder: Path, names: Iterable[str] = MAINS) -> dict[str, str]:
    """Writes the tools of a cluster's release into `folder`; returns the environment of programs that call them."""
    ARCHIVES.of(kafka.spec.version, kafka.bootstrap)
    for name in names:
        main = tools.main_class(kafka.spec.version, MAINS[name])
        java = tools.java(kafka.spec.version, main, heap_mb=96, home=folder)
        (folder / name).write_text(f'#!/bin/bash\nexec {shlex.join(java)} "$@"\n')
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "BOOTSTRAP": kafka.bootstrap}
