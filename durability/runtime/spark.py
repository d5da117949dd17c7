"""Settings of the one Spark session of a run, by the size of what it judges."""

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
    # A stack trace for every expression that Python builds, thousands of them.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
TUNED_ALWAYS = {
    # What is aggregated, sorted and joined with fills pages, at least one each. Spark would make one 32 MB of a large run's
    # heap, for a few rows as well: a tenth of such a run went into clearing and moving them, and a quarter of its memory. A
    # task may hold 8,192 of them, 16 GB, before it must spill.
    "spark.buffer.pageSize": "2m",
    # Spark writes each plan down for its pages, which are off here: at its defaults a second of a large run.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
}
FOR_SMALL = {
    # The metaspace's first size spares full collections while thousands of classes are loaded, the heap's and its young
    # part's most of the fifty small ones while plans are made.
    DRIVER_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
    " -XX:ReservedCodeCacheSize=128m -Xms1g -Xmn500m",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    # A filter of eight million bits before a join of a hundred rows, copied into every task.
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    # Compiling a stage takes longer than running it over so few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    **TUNED_ALWAYS,
}
FOR_LARGE = {
    # Of the plans over millions of rows there are few, but each is wide: compiled Java for them costs more to make, and to
    # be compiled again by HotSpot, than interpreting them does. So does planning each again as its inputs' sizes get known:
    # joins of partitions say themselves which side is the small one. What lists unhealthy partitions, and what makes rows of
    # topics' verdicts, are compiled (`spark_jobs.scale.compiled`).
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # What interpreted expressions share is looked up in a cache that each row empties: computing it twice takes less.
    "spark.sql.subexpressionElimination.enabled": "false",
    # Two cores: HotSpot's best compiler would take one of them for half of the run, were it asked as early as usual. So
    # what it is asked for has been called twelve times as often as that, or its loops have gone round 25 times as often: a
    # stage's loop, compiled while it runs, is compiled again when it is next called. Nor is much of what is compiled
    # already compiled into its callers again: of expressions that call each other that is most of the compiler's time.
    DRIVER_OPTIONS: "-XX:+UseParallelGC -XX:MetaspaceSize=256m -XX:Tier4InvocationThreshold=60000"
    " -XX:Tier4MinInvocationThreshold=18000 -XX:Tier4CompileThreshold=180000 -XX:Tier4BackEdgeThreshold=1000000"
    " -XX:InlineSmallCode=1000",
    # What is gathered by key is a few values of a type each: thousands of keys fit into memory, sorting for them doesn't.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10000",
    **TUNED_ALWAYS,
}
HEAP = "2500m"
YOUNG = "700m"
"""Of HEAP, for what is short-lived."""
SHUFFLED = 8
"""Parts, at least, that rows are shuffled into; of larger fleets one for each million partitions."""
TUNED = {*FOR_SMALL, *FOR_LARGE}
"""What is set for speed alone, and may be set otherwise."""


def settings(partitions: int) -> dict[str, str]:
    """Spark properties for a run over so many partitions, the catalog's and the jars' aside.

    `DURABILITY_SPARK_MEMORY` (for instance 8g) is the driver's heap for large runs; HEAP where it isn't set.

    >>> settings(1000)["spark.driver.memory"], settings(7_000_000)["spark.driver.memory"]
    ('1g', '2500m')
    """
    archive = class_archive.option()
    if partitions < SMALL:
        return {**ALWAYS, **FOR_SMALL, DRIVER_OPTIONS: f"{FOR_SMALL[DRIVER_OPTIONS]} {archive}".rstrip()}
    asked = os.environ.get("DURABILITY_SPARK_MEMORY")
    # All of it from the start: a heap that grows is looked through as a whole each time.
    heap = f" -Xms{asked}" if asked else f" -Xms{HEAP} -Xmn{YOUNG}"
    by_size = {
        DRIVER_OPTIONS: f"{FOR_LARGE[DRIVER_OPTIONS]}{heap} {archive}".rstrip(),
        "spark.driver.memory": asked or HEAP,
        "spark.sql.shuffle.partitions": str(max(SHUFFLED, partitions // 1_000_000)),
    }
    return {**ALWAYS, **FOR_LARGE, **by_size}


def jars(lake: str = "") -> str:
    """The verified jars of a Spark session on this lake, as `--jars` wants them."""
    from durability.runtime import jars as runtime_jars

    sets = ("spark", "spark-s3") if lake.startswith("s3://") else ("spark",)
    return ",".join(str(path) for name in sets for path in sorted(runtime_jars.ensure(name).glob("*.jar")))


def spark_submit() -> str:
    """The program: this environment's, else the one inside pyspark's package, as where pip installed for one user alone."""
    from durability.runtime import jars as runtime_jars

    beside = Path(sys.executable).parent / "spark-submit"
    folder = runtime_jars.pyspark_folder()
    return str(beside if beside.exists() or folder is None else folder.parent / "bin" / "spark-submit")


def submit(properties: Path, *job: str, lake: str = "") -> list[str]:
    """The command that runs a job and its arguments on this machine, outside of Airflow; see `write_properties`."""
    return [spark_submit(), "--master", "local[*]", "--properties-file", str(properties), "--jars", jars(lake), *job]


def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """`base` with what such a command needs."""
    python = {name: sys.executable for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    return {**base, **python, "SPARK_LOCAL_IP": "127.0.0.1"}


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """A file for spark-submit's --properties-file that only its owner can read: a catalog's password may be in it.

    Given such a file, Spark leaves spark-defaults.conf unread. So what one below SPARK_CONF_DIR says stands in it too, and
    counts before what is TUNED here, after all else: of several lines about one thing Spark takes the last.
    """
    wanted = {"spark.driver.memory"} if os.environ.get("DURABILITY_SPARK_MEMORY") else set()
    tuned = {name: value for name, value in properties.items() if name in TUNED - wanted}
    rest = {name: value for name, value in properties.items() if name not in tuned}
    defaults = _defaults()
    if DRIVER_OPTIONS in tuned and re.search(r"^\s*spark\.driver\.memory[\s=:]", defaults, re.MULTILINE):
        # A heap of that size may be smaller than what it starts with here, which the JVM refuses.
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
    """The text of spark-defaults.conf below SPARK_CONF_DIR, if there is one, ended so that lines may follow."""
    folder = os.environ.get("SPARK_CONF_DIR")
    file = Path(folder, "spark-defaults.conf") if folder else None
    # An empty line ends a last one that a backslash continues.
    return file.read_text(encoding="utf-8") + "\n\n" if file and file.is_file() else ""
