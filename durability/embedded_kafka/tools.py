"""Runs Java programs on Kafka's jars, in small JVMs: Kafka's nodes and its command-line tools."""

from __future__ import annotations

import functools
import re
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from durability.errors import AuditError, Refused
from durability.runtime import class_archive, jars

TOOL_SECONDS = 120

# One thread each of compiler and collector: a cluster here is many small JVMs on few cores.
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData", "-Djava.awt.headless=true")

_LOG4J2 = """status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""
_LOG4J1 = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.Target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


def java(version: str, main: str, *arguments: str, heap_mb: int, home: Path) -> list[str]:
    """The command that runs `main` of Kafka `version`.

    heap_mb: -Xmx. home: an existing folder, for the program's logging settings and temporary files.
    """
    if version.startswith("3."):
        settings, text, option = home / "log4j.properties", _LOG4J1, "-Dlog4j.configuration=file:"
    else:
        settings, text, option = home / "log4j2.properties", _LOG4J2, "-Dlog4j2.configurationFile="
    if not settings.exists():
        settings.write_text(text, encoding="utf-8")
    folder = jars.ensure(f"kafka-{version}")
    options = [f"-Xmx{heap_mb}m", f"-Djava.io.tmpdir={home}", f"{option}{settings}"]
    archive = class_archive.of(folder)
    if archive and archive.is_whole():
        options.append(archive.option)
    return [jars.java_command(), *_FLAGS, *options, "-cp", f"{folder}/*", main, *arguments]


def run(command: Sequence[str], *, env: Mapping[str, str], what: str) -> str:
    """Standard output of a command. AuditError with its output if it fails or takes longer than TOOL_SECONDS."""
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, env=dict(env), timeout=TOOL_SECONDS
        )
    except subprocess.TimeoutExpired as slow:
        raise AuditError(f"{what} took longer than {TOOL_SECONDS} s") from slow
    if done.returncode != 0:
        raise AuditError(
            f"{what} failed with exit status {done.returncode}: {(done.stdout + done.stderr).strip()[-2000:]}"
        )
    return done.stdout


@functools.cache
def main_class(version: str, name: str) -> str:
    """The full name of a tool's class. Tools moved from kafka.admin to org.apache.kafka.tools between releases.

    name: a simple class name ("TopicCommand") or a full one. Refused if no jar of Kafka's tools has the class.
    """
    if "." in name:
        return name
    folder = jars.ensure(f"kafka-{version}")
    for jar in (f"kafka-tools-{version}.jar", f"kafka_2.13-{version}.jar"):
        with zipfile.ZipFile(folder / jar) as classes:
            for entry in classes.namelist():
                if entry.endswith(f"/{name}.class"):
                    return entry.removesuffix(".class").replace("/", ".")
    raise Refused(f"Kafka {version} has no command-line tool of class {name!r}")


@dataclass(frozen=True)
class Described:
    """One line of `kafka-topics --describe`."""

    leader: int | None
    replicas: list[int]
    isr: list[int]
    adding: list[int]

    @property
    def meant(self) -> int:
        """The replication factor without a running reassignment's new replicas, as kafka-topics and KIP-427 count it."""
        return len(self.replicas) - len(self.adding)


def described(printed: str) -> dict[tuple[str, int], Described]:
    """What `kafka-topics --describe` printed, by topic and partition.

    >>> described("\\tTopic: t\\tPartition: 0\\tLeader: none\\tReplicas: 1,2\\tIsr: 2\\n")[("t", 0)]
    Described(leader=None, replicas=[1, 2], isr=[2], adding=[])
    """
    found = {}
    for line in printed.splitlines():
        cells = dict(re.findall(r"([A-Za-z ]+): ([^\t]*)", line))
        if "Partition" not in cells:
            continue
        ids = [
            [int(i) for i in cells.get(key, "").strip().split(",") if i]
            for key in ("Replicas", "Isr", "Adding Replicas")
        ]
        leader = None if cells["Leader"].strip() == "none" else int(cells["Leader"])
        found[cells["Topic"].strip(), int(cells["Partition"])] = Described(leader, *ids)
    return found
