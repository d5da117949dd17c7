"""`python -m durability.launch classes`: makes the archive of Spark's classes, by judging the example as a large fleet is."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

from durability.errors import AuditError
from durability.launch import airflow_home, spark
from durability.launch.airflow_home import ROOT

EXAMPLE = ROOT / "docs" / "examples" / "eu-payments.json"
LOG = airflow_home.STATE / "classes.log"


def ensure() -> Path | None:
    """The archive (`durability.runtime.class_archive`), made if there is none; None where this Java makes none.

    AuditError, with the log's place, where Spark can't judge the example: then it can't judge anything.
    """
    from durability.runtime import class_archive, processes

    file = class_archive.place()
    if file is None or class_archive.option():
        return file
    with processes.Session("durability-classes-") as session:
        made = session.folder / "classes.jsa"
        LOG.parent.mkdir(parents=True, exist_ok=True)
        LOG.unlink(missing_ok=True)
        command, environment = _job(session.folder, made)
        status = session.popen(command, log=LOG, cwd=ROOT, env=environment).wait()
        if status:
            raise AuditError(f"Spark could not judge {EXAMPLE.relative_to(ROOT)}; its log is {LOG}")
        if not made.exists():
            return None
        class_archive.keep(made, file)
    return file


def _job(folder: Path, made: Path) -> tuple[list[str], dict[str, str]]:
    """What evaluates the example, with the settings of a large fleet, and leaves its classes in `made`; its environment."""
    from durability.lake import Lake
    from durability.policy import load_policy, load_waivers
    from durability.run import build_plan
    from durability.run.plan import SMALL

    lake = Lake.open(str(folder / "lake"))
    lake.ensure()
    plan = build_plan(
        lake,
        run_id="classes",
        result_id="classes:1",
        kind="nightly",
        policy=load_policy(ROOT / "policies" / "policy.yaml"),
        waivers=load_waivers(ROOT / "policies" / "waivers.yaml"),
        snapshots=_published(lake),
    )
    plan = replace(plan, partitions=SMALL, snapshots=[replace(s, partitions=SMALL) for s in plan.snapshots])
    properties = {**spark.settings(plan.partitions), **lake.spark_conf(), **lake.spark_secrets()}
    properties[spark.DRIVER_OPTIONS] += f' "-XX:ArchiveClassesAtExit={made}"'
    file = spark.write_properties(folder / "spark.properties", properties)
    job = ROOT / "spark_jobs" / "evaluate.py"
    command = spark.submit(file, str(job), "--plan", str(plan.write(folder / "plan.json")))
    # A folder with files on the class path, and the JVM makes none.
    elsewhere = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
    return command, spark.environment({name: value for name, value in os.environ.items() if name not in elsewhere})


def _published(lake) -> list[dict]:
    """The example's rows of `snapshots`."""
    from durability.topology import validate

    attempt = lake.stage(validate(json.loads(EXAMPLE.read_text(encoding="utf-8")), EXAMPLE.name))
    accepted = SimpleNamespace(attempt_id=attempt.attempt_id, cluster=attempt.cluster, accepted=True, reason=None)
    return [asdict(row) for row in lake.publish([attempt], [accepted])]
