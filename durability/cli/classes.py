"""`python -m durability.cli classes`: creates the archive of Spark's classes by evaluating an example as a large fleet."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from durability.errors import AuditError
from durability.resources import shipped, spark_job, state_folder
from durability.runtime import spark

if TYPE_CHECKING:
    from durability.lake import Lake

EXAMPLE = shipped("docs", "examples", "eu-payments.json")
LOG = state_folder() / "classes.log"
ELSEWHERE = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
"""If one of these variables puts a folder of files on the class path, the JVM makes no archive."""


def ensure() -> Path | None:
    """The archive (`durability.runtime.class_archive`), created if missing; None if this Java can't create one.

    Raises AuditError with the log's path if Spark can't evaluate the example.
    """
    from durability.runtime import class_archive, processes

    place = class_archive.place()
    if place is None:
        return None
    with place.locked():
        if place.is_whole():
            return place.file
        made = place.file.with_suffix(".made")
        made.unlink(missing_ok=True)
        LOG.parent.mkdir(parents=True, exist_ok=True)
        LOG.unlink(missing_ok=True)
        with processes.Session("durability-classes-") as session:
            command = _job(session.folder, made)
            environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
            child = session.popen(command, log=LOG, env=spark.environment(environment))
            if child.wait():
                raise AuditError(f"Spark could not evaluate {EXAMPLE}; its log is {LOG}")
        if not made.exists():
            return None
        place.keep(made)
    return place.file


def _job(folder: Path, made: Path) -> list[str]:
    """The command that evaluates the example in a lake below `folder`, as a large fleet, and writes the archive `made`."""
    from durability.lake import Lake, catalog
    from durability.plan import build_plan
    from durability.plan.plan import SMALL
    from durability.policy import load_policy, load_waivers

    # Don't use the catalog in the environment: it belongs to a real lake.
    where = catalog.place(str(folder / "lake"), {})
    catalog.prepare(where)
    lake = Lake(where)
    lake.ensure()
    plan = build_plan(
        lake,
        run_id="classes",
        result_id="classes:1",
        kind="nightly",
        policy=load_policy(shipped("policies", "policy.yaml")),
        waivers=load_waivers(shipped("policies", "waivers.yaml")),
        snapshots=_published(lake),
    )
    plan = replace(plan, partitions=SMALL, snapshots=[replace(s, partitions=SMALL) for s in plan.snapshots])
    # A machine for small fleets may have less memory than a large run uses.
    small = {"spark.driver.memory": "1g", spark.DRIVER_OPTIONS: f'-XX:+UseSerialGC "-XX:ArchiveClassesAtExit={made}"'}
    properties = {**spark.settings(plan.partitions), **lake.spark_conf(), **small}
    file = spark.write_properties(folder / "spark.properties", properties)
    return spark.submit(file, str(spark_job("evaluate.py")), "--plan", str(plan.write(folder / "plan.json")))


def _published(lake: Lake) -> list[dict]:
    """The example's rows of `snapshots`."""
    from durability.topology import validate

    attempt = lake.stage(validate(json.loads(EXAMPLE.read_text(encoding="utf-8")), EXAMPLE.name))
    accepted = SimpleNamespace(attempt_id=attempt.attempt_id, cluster=attempt.cluster, accepted=True, reason=None)
    return lake.publish([attempt], [accepted])
