"""The session that other tests use in place of spark-submit: what fails there fails here."""

from __future__ import annotations

import subprocess

import pytest

from durability.resources import spark_job
from durability.runtime import spark


@pytest.mark.usefixtures("warm_spark")
def test_a_job_that_fails_ends_with_its_reason(tmp_path):
    properties = spark.write_properties(tmp_path / "spark.properties", {"spark.sql.shuffle.partitions": "1"})
    command = spark.submit(properties, str(spark_job("evaluate.py")), "--plan", str(tmp_path / "none.json"))
    done = subprocess.run(command, env=spark.environment(), capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert f"{tmp_path / 'none.json'}: can't be read: No such file or directory" in done.stderr
