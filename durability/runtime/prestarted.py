"""A Spark session that starts early: while Airflow starts, or while clusters are read.

Starting Spark takes about as long as the steps before the evaluation, and both use one core. So the program that starts a run
also starts the Spark job, and sets VARIABLE in the environment. The evaluate step uses the session when its plan is ready.
If the run is too large for the session's settings, the step ends the session and submits its own job. It also submits its
own job if the session has died.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from durability.plain import plain
from durability.runtime import spark, watchdog

if TYPE_CHECKING:
    from durability.lake.catalog import Place
    from durability.runtime.processes import Session

VARIABLE = "DURABILITY_PRESTARTED"
"""The environment variable with the folder of the prestarted session; unset if there is none."""
PLAN, STATUS, LEADER, LOG, PROPERTIES = "plan", "status", "leader", "spark.log", "spark.properties"
POLL_SECONDS = 0.1
# The waiting process isn't the job's parent, so it reads the job's exit status from a file. A complete file gets its final name.
SAVING_STATUS = '"$@"; echo $? > "$0.partial" && mv "$0.partial" "$0"'


def start(session: Session, lake: str, job: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Start `job --awaited` as a process of `session`, for a small run on this lake.

    environment: the variables that spark-submit needs.
    Returns variables for the process that will use the session.
    Raises AuditError if the lake's address or the jars can't be used. Raises OSError if no named pipe can be made or
    spark-defaults.conf can't be read.
    """
    from durability.lake import catalog

    folder = session.folder / "prestarted"
    folder.mkdir()
    plan = folder / PLAN
    os.mkfifo(plan, 0o600)
    properties = spark.write_properties(folder / PROPERTIES, _properties(catalog.place(lake), partitions=0))
    command = spark.submit(properties, str(job), "--awaited", str(plan), lake=lake)
    saving = ["/bin/sh", "-c", SAVING_STATUS, str(folder / STATUS), *command]
    child = session.popen(saving, log=folder / LOG, env=environment)
    (folder / LEADER).write_text(str(child.pid))
    return {VARIABLE: str(folder)}


def _properties(place: Place, partitions: int) -> dict[str, str]:
    from durability.errors import AuditError
    from durability.lake import catalog
    from durability.lake.tables import NAMESPACE

    namespace = NAMESPACE
    if place.catalog is not None:
        from durability.lake import namespaces

        # A lake that can't be used is reported by the step that opens it.
        with suppress(AuditError):
            catalog.prepare(place)
            namespace = namespaces.namespace(place)
    return {**spark.settings(partitions), **catalog.spark_conf(place, namespace)}


def take(lake: str, partitions: int) -> PrestartedSession | None:
    """The prestarted session for a run of this size on this lake, or None. Later calls return None.

    A session with other settings is ended first.
    """
    from durability.lake import catalog

    folder = os.environ.pop(VARIABLE, None)
    if folder is None:
        return None
    session = PrestartedSession(Path(folder))
    if session.is_for(_properties(catalog.place(lake), partitions)):
        return session
    session.give("")
    session.wait(lambda line: None)
    return None


class PrestartedSession:
    """A job that starts its Spark session and then waits for a plan."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._leader = int((folder / LEADER).read_text())
        self._log = (folder / LOG).open(encoding="utf-8", errors="replace")
        self._line = ""

    def is_for(self, properties: Mapping[str, str]) -> bool:
        """Whether the session has these properties."""
        wanted = spark.write_properties(self._folder / "wanted", properties)
        try:
            return wanted.read_text() == (self._folder / PROPERTIES).read_text()
        finally:
            wanted.unlink()

    def give(self, plan: str) -> bool:
        """Waits until the job reads its pipe, then writes a plan to it. Returns False if the job has ended.

        plan: JSON text; empty: the job ends.
        """
        while self._alive():
            try:
                descriptor = os.open(self._folder / PLAN, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                time.sleep(POLL_SECONDS)  # its session is still being started
                continue
            os.set_blocking(descriptor, True)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
                    pipe.write(plan)
            except BrokenPipeError:
                return False
            return True
        return False

    def wait(self, log: Callable[[str], None]) -> int | None:
        """Wait for the job's end; return its exit status, or None if it was killed. `log` receives Spark's lines."""
        while self._alive():
            self._forward(log, whole=True)
            time.sleep(POLL_SECONDS)
        self._forward(log, whole=False)
        self._log.close()
        with suppress(FileNotFoundError, ValueError):
            return int((self._folder / STATUS).read_text())
        return None

    def stop(self) -> None:
        """Sends SIGTERM to the job's processes."""
        for pid in watchdog.family(self._leader):
            watchdog.send(pid, signal.SIGTERM)

    def _alive(self) -> bool:
        return bool(watchdog.family(self._leader))

    def _forward(self, log: Callable[[str], None], whole: bool) -> None:
        """Pass new lines to `log`. whole: pass complete lines only; later calls pass the rest."""
        *lines, self._line = (self._line + self._log.read()).split("\n")
        if not whole and self._line:
            lines, self._line = [*lines, self._line], ""
        for line in lines:
            log(plain(line.replace("\t", "    ")))
