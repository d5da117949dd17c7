"""Settings of a run's Spark session, by the number of partitions, and the command that submits a Spark job."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from durability.plan.plan import SMALL
from durability.runtime import class_archive

ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    # It would record a stack trace for each of the thousands of expressions that Python builds.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
TUNED_ALWAYS = {
    # Each aggregation, sort and join of a task fills at least one memory page. By default a page is 32 MB in a large run, even
    # for a few rows: clearing and moving pages took a tenth of the time, and pages took a quarter of the memory. A task may use
    # 8,192 pages, here 16 GB, before it must spill.
    "spark.buffer.pageSize": "2m",
    # Spark writes each plan as text for its web UI, which is off here. With the defaults that takes a second of a large run.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
    # Spark checks each plan after each rule that changed it: 1.5 of 16 CPU seconds of a small run, two of 82 at 7 million
    # partitions.
    "spark.sql.lightweightPlanChangeValidation": "false",
}
FOR_SMALL = {
    # A large initial metaspace avoids full garbage collections while thousands of classes are loaded. A large initial heap and
    # young generation avoid most of the fifty small collections during planning.
    DRIVER_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    " -XX:ReservedCodeCacheSize=128m -Xms1g -Xmn500m",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    # It would put a filter of eight million bits before a join of a hundred rows, and copy it into every task.
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    # Compiling a stage takes longer than running it over so few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The optimizer repeats its rules until a plan stays as it is, five times for these. Once is enough for so few rows, prunes
    # the same columns and files, and saves a tenth of the run's time.
    "spark.sql.optimizer.maxIterations": "1",
    **TUNED_ALWAYS,
}
FOR_LARGE = {
    # Few plans read millions of rows, and these plans are wide. Generating Java for them, which HotSpot then compiles, costs more
    # than interpreting them. One plan is compiled (`spark_jobs.scale.compiled`): the topics' verdicts. Adaptive execution would
    # plan again whenever an input's size becomes known, which costs more than it gains: joins with partitions have hints.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Interpreted expressions share results through a cache that is emptied for each row. Computing them twice takes less time.
    "spark.sql.subexpressionElimination.enabled": "false",
    # With HotSpot's default thresholds, its optimizing compiler (C2) takes one of two cores for half of the run. Here it compiles
    # a method after twelve times as many calls, or 25 times as many iterations of its loops: a stage's loop that is compiled
    # while it runs is compiled again at its next call. InlineSmallCode limits the inlining of methods that are compiled already.
    # For expressions that call each other, inlining is most of the compiler's time.
    DRIVER_OPTIONS: "-XX:+UseParallelGC -XX:MetaspaceSize=256m -XX:Tier4InvocationThreshold=60000"
    " -XX:Tier4MinInvocationThreshold=18000 -XX:Tier4CompileThreshold=180000 -XX:Tier4BackEdgeThreshold=1000000"
    " -XX:InlineSmallCode=1000",
    # The lists that are collected per key are short. Thousands of keys fit into memory, so Spark need not sort the rows instead.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10000",
    **TUNED_ALWAYS,
}
HEAP = "2000m"
YOUNG = "700m"
"""The part of HEAP for short-lived objects (the young generation)."""
SHUFFLED = 8
"""The smallest number of shuffle partitions in a large run. Larger fleets have one per million Kafka partitions."""
TUNED = {*FOR_SMALL, *FOR_LARGE}
"""Properties that are set for speed alone. `spark-defaults.conf` may override them."""


LOCAL = "local[*]"
LOOPBACK = "127.0.0.1"
AUTHENTICATE = "spark.authenticate"


def is_local(master: str) -> bool:
    """Whether a Spark master is threads of the driver on this host.

    >>> is_local("local[*]"), is_local("spark://local:7077")
    (True, False)
    """
    return master.partition("[")[0] == "local"


def network(master: str) -> dict[str, str]:
    """Properties that keep other processes from talking to the session.

    On one host, driver and block manager listen on loopback only. On YARN and Kubernetes, Spark generates a secret for each run
    and passes it to the run's executors. A standalone master doesn't support a secret per run. All its applications share the
    secret in `spark-defaults.conf`.

    >>> network("local[2]")
    {'spark.driver.bindAddress': '127.0.0.1', 'spark.driver.host': '127.0.0.1'}
    >>> network("yarn"), network("spark://master:7077")
    ({'spark.authenticate': 'true'}, {})
    """
    if is_local(master):
        return {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    return {AUTHENTICATE: "true"} if master.partition(":")[0] in ("yarn", "k8s") else {}


def exposed(master: str) -> str | None:
    """A warning if any host that reaches the driver can talk to it, else None."""
    if is_local(master) or AUTHENTICATE in network(master):
        return None
    if re.search(rf"^\s*{re.escape(AUTHENTICATE)}[\s=:]+true\s*$", _defaults(), re.MULTILINE):
        return None
    return (
        f"Spark's driver and executors on {master} don't authenticate each other: any host that reaches them can talk to them."
        f" Set {AUTHENTICATE} and {AUTHENTICATE}.secret in the spark-defaults.conf of the cluster and of SPARK_CONF_DIR"
    )


def settings(partitions: int, master: str = LOCAL) -> dict[str, str]:
    """Spark properties for a run over so many partitions on this master, without those of the catalog and the jars.

    `DURABILITY_SPARK_MEMORY` (for instance 8g) is the driver's heap for large runs. The default is HEAP.

    >>> settings(1000)["spark.driver.memory"], settings(7_000_000)["spark.driver.memory"]
    ('1g', '2000m')
    """
    archive = class_archive.option()
    if partitions < SMALL:
        return {
            **ALWAYS,
            **network(master),
            **FOR_SMALL,
            DRIVER_OPTIONS: f"{FOR_SMALL[DRIVER_OPTIONS]} {archive}".rstrip(),
        }
    configured = os.environ.get("DURABILITY_SPARK_MEMORY")
    # The heap has its full size from the start: each time it grows, the JVM does a full garbage collection.
    heap = f" -Xms{configured}" if configured else f" -Xms{HEAP} -Xmn{YOUNG}"
    by_size = {
        DRIVER_OPTIONS: f"{FOR_LARGE[DRIVER_OPTIONS]}{heap} {archive}".rstrip(),
        "spark.driver.memory": configured or HEAP,
        "spark.sql.shuffle.partitions": str(max(SHUFFLED, partitions // 1_000_000)),
    }
    return {**ALWAYS, **network(master), **FOR_LARGE, **by_size}


def jars(lake: str = "") -> str:
    """The verified jars of a Spark session on this lake, as spark-submit's `--jars` takes them."""
    from durability.runtime import jars as runtime_jars

    sets = ("spark", "spark-s3") if lake.startswith("s3://") else ("spark",)
    return ",".join(str(path) for name in sets for path in sorted(runtime_jars.ensure(name).glob("*.jar")))


def spark_submit() -> str:
    """The program's path: this environment's, else the one in pyspark's package, which `pip install --user` needs."""
    from durability.runtime import jars as runtime_jars

    beside = Path(sys.executable).parent / "spark-submit"
    folder = runtime_jars.pyspark_folder()
    return str(beside if beside.exists() or folder is None else folder.parent / "bin" / "spark-submit")


def submit(properties: Path, *job: str, lake: str = "") -> list[str]:
    """The command that runs a job with its arguments on this machine, without Airflow. properties: see `write_properties`."""
    return [spark_submit(), "--master", LOCAL, "--properties-file", str(properties), "--jars", jars(lake), *job]


def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`base` with the variables that the command of `submit` needs."""
    python = {name: sys.executable for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    return {**base, **python, "SPARK_LOCAL_IP": LOOPBACK}


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Writes a file for spark-submit's --properties-file. Only its owner can read it, because it may have a catalog's password.

    With such a file, Spark doesn't read spark-defaults.conf, so the file includes the one in SPARK_CONF_DIR. The last line for a
    property applies: spark-defaults.conf overrides TUNED properties and AUTHENTICATE, others override the file.
    """
    wanted = {"spark.driver.memory"} if os.environ.get("DURABILITY_SPARK_MEMORY") else set()
    tuned = {name: value for name, value in properties.items() if name in TUNED - wanted or name == AUTHENTICATE}
    rest = {name: value for name, value in properties.items() if name not in tuned}
    defaults = _defaults()
    if DRIVER_OPTIONS in tuned and re.search(r"^\s*spark\.driver\.memory[\s=:]", defaults, re.MULTILINE):
        # The JVM doesn't start if the initial heap is larger than the configured one.
        tuned[DRIVER_OPTIONS] = re.sub(r" ?-Xm[sn]\w+", "", tuned[DRIVER_OPTIONS])
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines((*_lines(tuned), defaults, *_lines(rest)))
    return path


def _lines(properties: Mapping[str, str]) -> Iterator[str]:
    for key, value in sorted(properties.items()):
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        yield f"{key} {escaped}\n"


def _defaults() -> str:
    """The text of spark-defaults.conf in SPARK_CONF_DIR, if there is one, with an end that allows more lines."""
    folder = os.environ.get("SPARK_CONF_DIR")
    file = Path(folder, "spark-defaults.conf") if folder else None
    # If the last line ends with a backslash, the empty line ends it.
    return file.read_text(encoding="utf-8") + "\n\n" if file and file.is_file() else ""
