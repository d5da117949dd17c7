"""The archive of the classes that a node of a Kafka release loads, made by a node that starts and stops once."""

from __future__ import annotations

import signal
from pathlib import Path

from durability.embedded_kafka.cluster import NODE, LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.runtime import class_archive, jars, processes

SECONDS = 120.0
"""A node may take so long to write its classes: it writes about 50 MB, beside other programs on few cores."""
IN_ORDER = 128 + signal.SIGTERM
"""The exit status of a JVM that was asked to end. A JVM that was killed leaves part of an archive."""


def ensure(version: str) -> Path | None:
    """The release's archive, created if missing; None if this Java can't create one.

    With it, a node starts in 60 % of the CPU time, and Kafka's command-line tools in 65 %.
    """
    place = class_archive.of(jars.ensure(f"kafka-{version}"))
    if place is None:
        return None
    with place.locked():
        if not place.is_whole():
            made = place.file.with_suffix(".made")
            made.unlink(missing_ok=True)
            with _Archiving(version, made) as cluster:
                status = cluster.end()
            if status != IN_ORDER or not made.exists():
                return None
            place.keep(made)
    return place.file


class _Archiving(LocalCluster):
    """A cluster of one node, which writes its classes to the file `made` when it ends."""

    def __init__(self, version: str, made: Path):
        super().__init__(ClusterSpec({1: None}, {1: None}, version=version))
        self._made = made

    def end(self) -> int:
        """Ends the node in order and returns its exit status."""
        (node,) = self._nodes.values()
        node.expected_down = True
        assert node.process is not None
        return processes.stop(node.process, SECONDS)

    def _java(self, main: str, *arguments: str, home: Path, heap_mb: int) -> list[str]:
        java, *rest = super()._java(main, *arguments, home=home, heap_mb=heap_mb)
        return [java, *([f"-XX:ArchiveClassesAtExit={self._made}"] if main == NODE else []), *rest]
