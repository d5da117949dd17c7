"""Kafka's tools for tests, as scripts on PATH."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from durability.embedded_kafka import tools
from durability.embedded_kafka.cluster import LocalCluster
from tests.support import tool_jvm

MAINS = {
    "kafka-acls": "AclCommand",
    "kafka-broker-api-versions": "BrokerApiVersionsCommand",
    "kafka-cluster": "ClusterTool",
    "kafka-configs": "ConfigCommand",
    "kafka-features": "FeatureCommand",
    "kafka-leader-election": "LeaderElectionCommand",
    "kafka-log-dirs": "LogDirsCommand",
    "kafka-reassign-partitions": "ReassignPartitionsCommand",
    "kafka-topics": "TopicCommand",
}
"""The tools under the names of Kafka's distribution."""


def install(kafka: LocalCluster, folder: Path) -> dict[str, str]:
    """Writes the tools of a cluster's release into `folder`; returns the environment of programs that call them."""
    version = kafka.spec.version
    for name, main in MAINS.items():
        (folder / name).write_text(tool_jvm.client(version, tools.main_class(version, main), sys.executable))
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "BOOTSTRAP": kafka.bootstrap}
