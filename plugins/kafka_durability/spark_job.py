"""A Spark job on the lake, through the Connection `spark`: secrets in a file that only this task's user can read."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Context

from durability.resources import spark_job
from durability.runtime import spark

if TYPE_CHECKING:
    from durability.lake import Lake


class SparkJob(SparkSubmitOperator):
    """Submits a module of `spark_jobs`; subclasses say which, and with what arguments."""

    def __init__(self, *, job: str, **kwargs: Any):
        super().__init__(application=str(spark_job(job)), name="kafka-durability", **kwargs)

    def submit(
        self, lake: Lake, partitions: int, arguments: Callable[[Path], list[str]], context: Mapping[str, Any]
    ) -> None:
        """Runs the job; partitions: how many it is about. arguments: writes its input into a folder
        and returns its arguments.

        Spark reads input and catalog settings from a folder that is this task's alone and goes with it.
        """
        with tempfile.TemporaryDirectory(prefix="durability-spark-") as folder:
            properties = {**spark.settings(partitions), **lake.spark_conf()}
            self.properties_file = str(spark.write_properties(Path(folder) / "spark.properties", properties))
            self.application_args = arguments(Path(folder))
            self.jars = spark.jars(lake.location)
            self.env_vars = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
            super().execute(cast(Context, context))
