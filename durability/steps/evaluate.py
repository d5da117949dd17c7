"""Step evaluate: makes the run's plan and runs one Spark job for the whole fleet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from durability.plain import plural
from durability.runtime import prestarted
from durability.runtime.prestarted import PrestartedSession
from durability.steps.settings import PULSE, Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Attempt, Lake
    from durability.plan import Plan


TAIL = 200


class JobFailed(Exception):
    """The Spark job ended without results. The log has its output, `lines` the last lines of it. places: folders it writes to."""

    def __init__(self, message: str, lines: Iterable[str] = (), places: Iterable[str] = ()):
        super().__init__(message)
        self.lines, self.places = list(lines), list(places)


def job_failed(status: int | None, lines: Iterable[str], lake: str) -> JobFailed:
    """status: of the job's process. If it was killed: negative, above 128 from a shell, or None. lake: its address."""
    killed = status is None or status < 0 or status > 128
    how = "was killed, by a signal or for lack of memory" if killed else f"failed, exit status {status}"
    return JobFailed(f"Spark's job {how}; its log is above", lines, [] if "://" in lake else [lake])


def plan_evaluation(
    settings: Settings,
    kind: str,
    run_id: str,
    result_id: str,
    published: Sequence[Mapping[str, Any]],
    attempts: Sequence[Attempt],
    started_at: datetime | None = None,
    *,
    inventories: bool = False,
) -> Plan:
    """The plan of one evaluation; see `durability.plan.build_plan`.

    published: the rows that `publish` returned.
    attempts: all attempts after the gate. Used for a pulse, whose facts stay staged.
    inventories: compare the fleet with the inventories of its clusters file. Only a nightly run does: its results count.
    """
    from durability.collect import inventory
    from durability.plan import build_plan
    from durability.policy import fleet_name, load_clusters, load_inventory, load_policy, load_waivers

    compared = inventories and kind != PULSE and settings.has_fleet
    return build_plan(
        settings.open_lake(),
        run_id=run_id,
        result_id=result_id,
        kind=kind,
        policy=load_policy(settings.policy),
        waivers=load_waivers(settings.waivers),
        snapshots=published,
        clusters=[] if settings.topology else load_clusters(settings.clusters),
        attempts=attempts if kind == PULSE else [],
        started_at=started_at,
        inventory=inventory.read(load_inventory(settings.clusters)) if compared else None,
        fleet=fleet_name(settings.clusters) if compared else None,
    )


class SparkEvaluation:
    """Runs `spark_jobs/evaluate.py` over a plan, in a prestarted session if there is one, else with `submit`.

    submit: submits the job for a plan and waits for its end. It raises an error if the job fails.
    log: receives Spark's log lines.
    """

    def __init__(self, submit: Callable[[Lake, Plan], None], log: Callable[[str], None]):
        self._submit = submit
        self._lines: deque[str] = deque(maxlen=TAIL)
        self._to_log = log
        self._session: PrestartedSession | None = None

    def run(self, lake: Lake, plan: Plan, summary: StepSummary) -> None:
        """Evaluate the plan. All results are written when this returns.

        Raises AuditError with the file's name if an input is damaged, else JobFailed or an error of `submit`.
        """
        try:
            if not self._in_prestarted_session(lake, plan):
                self._submit(lake, plan)
        except Exception:
            from durability.plan import inputs

            # Spark doesn't name a damaged file clearly, so look for one. Other errors are raised unchanged.
            inputs.check(lake, plan)
            raise
        summary.text = (
            f"{len(plan.judged)} of {plural(len(plan.snapshots), 'cluster')}, {plural(plan.partitions, 'partition')}"
        )

    def _log(self, line: str) -> None:
        self._lines.append(line)
        self._to_log(line)

    def stop(self) -> bool:
        """End the prestarted session that evaluates the plan. False if there is none."""
        if self._session is None:
            return False
        self._session.stop()
        return True

    def _in_prestarted_session(self, lake: Lake, plan: Plan) -> bool:
        self._session = prestarted.take(lake.location, plan.partitions)
        if self._session is None:
            return False
        if self._session.give(plan.to_json()):
            if (status := self._session.wait(self._log)) != 0:
                raise job_failed(status, self._lines, lake.location)
            return True
        self._session.wait(self._log)
        self._session = None
        self._log("The prestarted Spark session has ended, see above; another one is started.")
        return False
