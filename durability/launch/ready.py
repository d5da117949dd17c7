"""A Spark session that starts while Airflow does: by the time `make audit` has a plan, what judges it stands and waits.

Starting Airflow keeps one core busy, starting Spark another, and each takes as long. The launcher starts the job and tells
the run of it by VARIABLE; whoever has the plan takes it, once. A run that is too large for its settings calls it off.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING

from durability.launch import spark

if TYPE_CHECKING:
    from durability.lake.catalog import Place
    from durability.runtime.processes import Session

VARIABLE = "DURABILITY_READY"
"""Names the folder of a session that waits; unset outside of `make audit`."""
PLAN, STATUS, LOG, PROPERTIES = "plan", "status", "spark.log", "spark.properties"
POLL_SECONDS = 0.05


def start(session: Session, lake: str, job: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Starts `job --awaited`, for a small run on this lake, as a part of `session`; what its taker's environment needs.

    Raises AuditError where the lake's address or the jars can't be used.
    """
    from durability.lake import catalog

    folder = session.folder / "ready"
    folder.mkdir()
    plan = folder / PLAN
    os.mkfifo(plan, 0o600)
    properties = spark.write_properties(folder / PROPERTIES, _properties(catalog.place(lake), partitions=0))
    command = spark.submit(properties, str(job), "--awaited", str(plan), lake=lake)
    child = session.popen(command, log=folder / LOG, cwd=job.parent.parent, env=spark.environment(environment))
    threading.Thread(target=_tell, args=(child, folder), daemon=True).start()
    return {VARIABLE: str(folder)}


def _tell(child: Popen, folder: Path) -> None:
    """Leaves the job's exit status where the one who waits for it looks."""
    status = child.wait()
    # With its session's end the folder goes as well, and nobody asks any more.
    with suppress(FileNotFoundError):
        (folder / "ended").write_text(str(status))
        (folder / "ended").replace(folder / STATUS)


def _properties(place: Place, partitions: int) -> dict[str, str]:
    from durability.lake import catalog

    return {**spark.settings(partitions), **catalog.spark_conf(place), **catalog.spark_secrets(place)}


def taken(lake: str, partitions: int) -> Waiting | None:
    """The session that waits for a run of so many partitions on this lake, from now on the caller's; None if there is none.

    One that has other settings than the run wants is told that it isn't needed.
    """
    from durability.lake import catalog

    folder = os.environ.pop(VARIABLE, None)
    if folder is None:
        return None
    waiting, place = Waiting(Path(folder)), catalog.place(lake)
    if waiting.is_for(_properties(place, partitions)):
        return waiting
    waiting.give("")
    return None


class Waiting:
    """A job that has its session, and is to be told what to judge."""

    def __init__(self, folder: Path):
        self._folder = folder

    def is_for(self, properties: Mapping[str, str]) -> bool:
        """Whether the session has these properties."""
        wanted = self._folder / "wanted"
        try:
            return spark.write_properties(wanted, properties).read_text() == (self._folder / PROPERTIES).read_text()
        finally:
            wanted.unlink()

    def judge(self, plan: str, log: Callable[[str], None]) -> int:
        """Hands over a plan, as JSON, and waits for the job's end; its exit status. `log` gets each line that Spark says."""
        self.give(plan)
        with (self._folder / LOG).open(encoding="utf-8", errors="replace") as said:
            while (status := self._status()) is None:
                time.sleep(POLL_SECONDS)
                _forward(said, log)
            _forward(said, log)
        return status

    def give(self, plan: str) -> None:
        """Writes a plan as soon as the job reads; nothing is written if it has ended."""
        while self._status() is None:
            try:
                descriptor = os.open(self._folder / PLAN, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                time.sleep(POLL_SECONDS)  # nobody reads yet: its session is being started
                continue
            os.set_blocking(descriptor, True)
            with suppress(BrokenPipeError), os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
                pipe.write(plan)
            return

    def _status(self) -> int | None:
        """The job's exit status; None while it runs."""
        with suppress(FileNotFoundError):
            return int((self._folder / STATUS).read_text())
        return None


def _forward(said, log: Callable[[str], None]) -> None:
    for line in said:
        log(line.rstrip())
