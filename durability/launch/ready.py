"""A Spark session that starts while Airflow does: by the time `make audit` has a plan, what judges it stands and waits.

Starting Airflow keeps one core busy, starting Spark another, and each takes as long. The launcher starts the job and tells
the run of it by VARIABLE; whoever has the plan takes it, once. A run that is too large for its settings calls it off, and one
that can't have it, since it has died, submits its job as ever.
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

from durability.launch import spark
from durability.runtime import watchdog

if TYPE_CHECKING:
    from durability.lake.catalog import Place
    from durability.runtime.processes import Session

VARIABLE = "DURABILITY_READY"
"""Names the folder of a session that waits; unset outside of `make audit`."""
PLAN, STATUS, LEADER, LOG, PROPERTIES = "plan", "status", "leader", "spark.log", "spark.properties"
POLL_SECONDS = 0.1
# Who waits isn't the job's parent: its exit status is left in a file, whole.
KEEPING_STATUS = '"$@"; echo $? > "$0.partial" && mv "$0.partial" "$0"'


def start(session: Session, lake: str, job: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Starts `job --awaited`, for a small run on this lake, as a part of `session`; what its taker's environment needs.

    environment: as spark-submit needs it. Raises AuditError where the lake's address or the jars can't be used, OSError where
    there can be no named pipe or spark-defaults.conf can't be read.
    """
    from durability.lake import catalog

    folder = session.folder / "ready"
    folder.mkdir()
    plan = folder / PLAN
    os.mkfifo(plan, 0o600)
    properties = spark.write_properties(folder / PROPERTIES, _properties(catalog.place(lake), partitions=0))
    command = spark.submit(properties, str(job), "--awaited", str(plan), lake=lake)
    kept = ["/bin/sh", "-c", KEEPING_STATUS, str(folder / STATUS), *command]
    child = session.popen(kept, log=folder / LOG, cwd=job.parent.parent, env=environment)
    (folder / LEADER).write_text(str(child.pid))
    return {VARIABLE: str(folder)}


def _properties(place: Place, partitions: int) -> dict[str, str]:
    from durability.lake import catalog

    return {**spark.settings(partitions), **catalog.spark_conf(place), **catalog.spark_secrets(place)}


def taken(lake: str, partitions: int) -> Waiting | None:
    """The session that waits for a run of so many partitions on this lake, from now on the caller's; None if there is none.

    One that has other settings than the run wants is called off, and has ended.
    """
    from durability.lake import catalog

    folder = os.environ.pop(VARIABLE, None)
    if folder is None:
        return None
    waiting = Waiting(Path(folder))
    if waiting.is_for(_properties(catalog.place(lake), partitions)):
        return waiting
    waiting.give("")
    waiting.ended(lambda line: None)
    return None


class Waiting:
    """A job that has its session, and is to be told what to judge."""

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
        """Hands over a plan, as JSON, once the job reads; False if it has ended before."""
        while self._alive():
            try:
                descriptor = os.open(self._folder / PLAN, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                time.sleep(POLL_SECONDS)  # nobody reads yet: its session is being started
                continue
            os.set_blocking(descriptor, True)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
                    pipe.write(plan)
            except BrokenPipeError:
                return False
            return True
        return False

    def ended(self, log: Callable[[str], None]) -> int | None:
        """Waits for the job's end, which may have come; its exit status, None if it could leave none. `log` gets what Spark
        says, line by line, meanwhile."""
        while self._alive():
            self._forward(log, whole=True)
            time.sleep(POLL_SECONDS)
        self._forward(log, whole=False)
        self._log.close()
        with suppress(FileNotFoundError, ValueError):
            return int((self._folder / STATUS).read_text())
        return None

    def stop(self) -> None:
        """Ends the job, in order."""
        for pid in watchdog.family(self._leader):
            watchdog.tell(pid, signal.SIGTERM)

    def _alive(self) -> bool:
        return bool(watchdog.family(self._leader))

    def _forward(self, log: Callable[[str], None], whole: bool) -> None:
        """whole: leaves a line that is still being written for the next time."""
        *lines, self._line = (self._line + self._log.read()).split("\n")
        if not whole and self._line:
            lines, self._line = [*lines, self._line], ""
        for line in lines:
            log(line)
