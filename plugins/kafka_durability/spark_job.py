"""Runs a Spark job on the lake through the Connection `spark`.

Secrets are in a file that only this task's user can read. No process outlives the task.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook, Context
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from durability.resources import spark_job
from durability.runtime import spark, watchdog
from durability.runtime.folders import OwnedFolder
from durability.steps.evaluate import job_failed

if TYPE_CHECKING:
    from durability.lake import Lake


HERE = "kafka_durability_spark_here"
"""A Connection of this process alone: Spark without a cluster."""


class GuardedHook(SparkSubmitHook):
    """spark-submit whose processes end with this task, even after SIGKILL or the end of its supervisor."""

    guard: Sequence[str] = ()
    lake = ""

    def _get_spark_binary_path(self) -> list[str]:
        return [*self.guard, *super()._get_spark_binary_path()]

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Raises JobFailed if the job fails: the provider's error begins with the whole command, and ends with the reason."""
        try:
            return super().submit(application, **kwargs)
        except AirflowException as error:
            status = self._submit_sp.returncode if self._submit_sp else 0
            if not status:  # another reason, which the error states
                raise
            raise job_failed(status, str(error).splitlines()[1:], self.lake) from None


class SparkJob(SparkSubmitOperator):
    """Submits a module of `spark_jobs`. Subclasses say which one, and its arguments."""

    _guard: Sequence[str] = ()
    _lake = ""

    def __init__(self, *, job: str, **kwargs: Any):
        super().__init__(application=str(spark_job(job)), name="kafka-durability", **kwargs)
        self._stated_conn_id = self._conn_id

    def submit(
        self,
        lake: Lake,
        partitions: int,
        arguments: Callable[[Path], list[str]],
        context: Mapping[str, Any],
        *,
        here: bool = False,
    ) -> None:
        """Run the job.

        Spark reads its input and the catalog's settings from a private folder, which is removed at the end.

        partitions: how many the job processes.
        arguments: writes the job's input into a folder and returns the job's arguments.
        here: run it on this host alone, whatever the Connection says.
        """
        if here:
            os.environ[f"AIRFLOW_CONN_{HERE.upper()}"] = json.dumps({"conn_type": "spark", "host": spark.LOCAL})
        self._conn_id = HERE if here else self._stated_conn_id
        self._hook = None  # a second job of this task has its own arguments
        master = self._master()
        if warning := spark.exposed(master):
            self.log.warning("%s", warning)
        with OwnedFolder("durability-spark-") as folder:
            properties = {**spark.settings(partitions, master), **lake.spark_conf()}
            self.properties_file = str(spark.write_properties(folder / "spark.properties", properties))
            self.application_args = arguments(folder)
            self.jars = spark.jars(lake.location)
            self.env_vars = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
            if spark.is_local(master):
                self.env_vars["SPARK_LOCAL_IP"] = spark.LOOPBACK
            self._guard, self._lake = watchdog.guarded(str(folder)), lake.location
            super().execute(cast(Context, context))

    def _master(self) -> str:
        """The Connection's master as the provider's hook reads it, or YARN if there is no Connection."""
        try:
            stated = BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            return "yarn"
        host = stated.host or ""
        whole = stated.conn_type == "spark" and ("://" in host or not stated.port)
        return host if whole and host else f"{stated.conn_type}://{host}"

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        # The provider creates the hook, because its arguments change with its releases.
        hook.__class__ = GuardedHook
        guarded = cast(GuardedHook, hook)
        guarded.guard, guarded.lake = self._guard, self._lake
        return hook
