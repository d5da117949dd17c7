"""What `whatif`, `restart-plan` and `plan` share: snapshots, taken now or the newest in the lake, and Spark jobs over them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.cli import audit, exit_status, inputs, job_log
from durability.cli.console import Console
from durability.cli.inputs import Input
from durability.cli.options import Options
from durability.errors import AuditError, NotOfCluster, Refused

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.runtime.processes import Session
    from durability.steps.audit import Check
    from durability.steps.settings import Settings


@dataclass(frozen=True)
class Work:
    """A row of `snapshots`, the settings of steps, and what runs a Spark job: `submit(lake, plan, job, *arguments)`.

    log: of what it runs. Files of the run are in the session's folder, which is private.
    others: the rows of all accepted snapshots that the command is about, if it is about several.
    """

    settings: Settings
    snapshot: dict[str, Any]
    submit: Callable[..., None]
    console: Console
    session: Session
    log: Path
    others: Sequence[Mapping[str, Any]] = ()


def run(
    options: Options,
    name: str,
    work: Callable[[Work], int | None],
    environ: Mapping[str, str] = os.environ,
    *,
    every: bool = False,
    of_one: str | None = None,
    check: Check | None = None,
    then: Callable[[Work], int | None] | None = None,
) -> int:
    """Runs `work` on the snapshot that the options name; returns what it returns (None: 0), or 2 if it failed. name: of the log.

    every: if the options name no cluster, run it on the newest snapshot of each. What fails for one costs that one alone.
    A cluster for which it raises NotOfCluster is skipped; if all are, the first error is raised. of_one: what makes sense for one
    cluster only, as a message names it: several clusters are refused then.
    then: what follows for a cluster, when `work` was done for all of them.
    Raises AuditError for what a user can fix.
    """
    from durability.runtime import jars, out_lock, processes, run_lock, spark
    from durability.steps import whatif

    console = Console()
    jars.java_command()
    log = options.out / "logs" / f"{name}.log"
    with (
        out_lock.held([options.out]),
        run_lock.held(options.lake),
        processes.Session(f"durability-{name}-") as session,
        session.adopting(),
    ):
        environment = spark.environment(environ)

        def submit(lake: Lake, plan: Plan, job: str, *arguments: str) -> None:
            audit.submit(session, log, environment, lake, plan, job, *arguments)

        def on_snapshots() -> int:
            settings, snapshots = _snapshots(options, session, console, environ, every, check)
            others = [row for row in snapshots if row["status"] == "accepted"] if len(snapshots) > 1 else []
            works = [Work(settings, snapshot, submit, console, session, log, others) for snapshot in snapshots]
            if len(snapshots) == 1:
                whatif.check_accepted(works[0].snapshot)
                done = work(works[0]) or exit_status.DONE
                return done if then is None else max(done, then(works[0]) or exit_status.DONE)
            if of_one:
                names = ", ".join(one.snapshot["cluster"] for one in works)
                raise Refused(f"{of_one} means one cluster, and there are several; name one with --cluster: {names}")
            skipped: dict[str, NotOfCluster] = {}
            status = {one.snapshot["cluster"]: _alone(one, work, skipped) for one in works}
            if len(skipped) == len(works):
                raise next(iter(skipped.values()))
            if then is not None:
                for one in works:
                    cluster = one.snapshot["cluster"]
                    if cluster not in skipped and status[cluster] != exit_status.INCOMPLETE:
                        status[cluster] = max(status[cluster], _alone(one, then, skipped))
            return max(status.values())

        status = job_log.logged(log, console, on_snapshots)
    return exit_status.INCOMPLETE if status is None else status


def _alone(one: Work, work: Callable[[Work], int | None], skipped: dict[str, NotOfCluster]) -> int:
    """Runs `work` on one of several snapshots. An error is said, and is that cluster's alone. skipped: gets NotOfCluster."""
    from durability.steps import whatif
    from durability.steps.evaluate import JobFailed

    cluster = one.snapshot["cluster"]
    one.console.line(f"Cluster {cluster}")
    try:
        whatif.check_accepted(one.snapshot)
        return work(one) or exit_status.DONE
    except NotOfCluster as error:
        one.console.line(f"Skipped: {error}")
        skipped[cluster] = error
        return exit_status.DONE
    except (AuditError, JobFailed) as error:
        logging.getLogger("spark").error("%s: %s", cluster, error)
        one.console.error(str(error) if str(error).startswith(f"{cluster}: ") else f"{cluster}: {error}")
        return exit_status.INCOMPLETE
    finally:
        one.console.line()


def _snapshots(
    options: Options,
    session: Session,
    console: Console,
    environ: Mapping[str, str],
    every: bool,
    check: Check | None,
) -> tuple[Settings, list[dict[str, Any]]]:
    from durability.steps import audit as steps
    from durability.steps import whatif

    what = _input(options, session, environ)
    every = every and options.cluster is None
    if what is None:
        settings = inputs.documents_or_fleet(options).settings(options)
        return settings, whatif.every(settings) if every else [whatif.newest(settings, options.cluster)]
    settings = what.settings(options)
    with console.running():
        rows, _ = steps.snapshots(settings, lambda name: what.connect(name, environ), console, check=check)
    if not every or len(rows) < 2:
        return settings, [whatif.chosen(rows, options.cluster)]
    return settings, sorted(rows, key=lambda row: row["cluster"])


def _input(options: Options, session: Session, environ: Mapping[str, str]) -> Input | None:
    """What is read now; None: nothing, the newest snapshot in the lake counts."""
    if options.source == "topology":
        return inputs.documents_or_fleet(options)
    if options.bootstrap:
        security = inputs.security(options, environ)
        return inputs.cluster(session.folder, options.bootstrap, options.cluster or options.bootstrap, security)
    return None
