"""The Spark session of a run. Settings come from spark-submit (see the operator); here what every run needs, and
what two plans of a large one do otherwise.
"""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from durability.lake.tables import CATALOG, NAMESPACE

REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    # A NULL array has no size: -1 would be a fact nobody collected.
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.ansi.enabled": "true",
    # What Spark concludes of a row's fields, to filter earlier, doubles with each field that is taken from a struct: it would
    # never be done.
    "spark.sql.constraintPropagation.enabled": "false",
}


def start(name: str) -> SparkSession:
    """The session, with the settings that the rules rely on."""
    builder = SparkSession.builder.appName(name)
    for key, value in REQUIRED.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    remember_classes(spark)
    # It warns, with all columns of a row, of structs that its optimizer knows never to be NULL. Then it doesn't know such a
    # frame's size either, and won't broadcast it unasked.
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.spark.sql.execution.LogicalRDD", log4j.Level.ERROR)
    return spark


def checkpointed(frame: DataFrame, level: StorageLevel | None = None) -> DataFrame:
    """`frame`, computed and kept, without the plan that led to it.

    What is read several times is computed once, and Spark need not analyse its whole plan again for every use: for small
    fleets that took several times as long as computing it.
    """
    return frame.localCheckpoint(eager=True, storageLevel=level)


def remember_classes(spark: SparkSession) -> None:
    """Ask the JVM once for the classes, and their methods, that every Column expression goes through.

    py4j asks anew each time one is named, which was a third of all round trips while rules are built.
    """
    jvm = spark.sparkContext._jvm
    for name in ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils"):
        setattr(jvm, name, _Remembered(getattr(jvm, name)))


class _Remembered:
    """A Java class whose static methods are looked up once."""

    def __init__(self, java_class):
        self._java_class = java_class

    def __getattr__(self, name):
        # Only for what isn't there yet: from now on it is.
        member = self.__dict__[name] = getattr(self._java_class, name)
        return member


def table(name: str, catalog: str = CATALOG) -> str:
    """A lake table's name in Spark."""
    return f"{catalog}.{NAMESPACE}.{name}"
