"""What every operator of an audit shares: its settings, its lines in the journal, and how errors reach people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from durability.errors import AuditError, Unreachable
from durability.launch import journal


@dataclass(frozen=True)
class Settings:
    """A DAG run's params: paths as the user gave them, `lake` a folder or an s3:// address.

    `topology` None: the clusters of the file `clusters` are read over the wire.
    """

    policy: Path
    waivers: Path
    clusters: Path
    out: Path
    lake: str
    topology: Path | None

    @classmethod
    def of(cls, context: Mapping[str, Any]) -> Settings:
        params = context["params"]
        paths = {k: Path(params[k]) for k in ("policy", "waivers", "clusters", "out")}
        return cls(**paths, lake=params["lake"], topology=Path(params["topology"]) if params["topology"] else None)


@dataclass
class Notes:
    """What a step has to say about itself, shown beside its name."""

    text: str = ""
    problems: list[str] = field(default_factory=list)


@contextmanager
def told(name: str) -> Iterator[Notes]:
    """Write the step's start, end and seconds to the journal, and turn an AuditError into a failed task.

    What a user caused isn't cured by trying again, so it fails at once; a service that didn't answer is retried.
    """
    started, notes = time.monotonic(), Notes()
    journal.write("step", name=name, state="started")
    try:
        yield notes
    except AuditError as error:
        journal.write("problem", name=name, text=str(error))
        if isinstance(error, Unreachable):
            raise
        raise AirflowFailException(str(error)) from error
    finally:
        for problem in notes.problems:
            journal.write("problem", name=name, text=problem)
        seconds = round(time.monotonic() - started, 1)
        journal.write("step", name=name, state="done", seconds=seconds, note=notes.text)


class Step(BaseOperator):
    """An operator that says what it does; subclasses implement `work`."""

    def execute(self, context: Mapping[str, Any]) -> Any:
        with told(self.task_id) as notes:
            return self.work(Settings.of(context), context, notes)

    def work(self, settings: Settings, context: Mapping[str, Any], notes: Notes) -> Any:
        """The step itself; returns what the next steps need: small, JSON, without secrets."""
        raise TypeError(f"{type(self).__name__} does no work")
