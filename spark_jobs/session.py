"""The Spark session of a run, with the settings that the rules rely on. `durability.runtime.spark` sets the others."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from durability.lake.tables import CATALOG, NAMESPACE

REQUIRED = {
    "spark.sql.session.timeZone": "UTC",
    # The size of a NULL array is NULL. Spark's older -1 would look like a collected number.
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.ansi.enabled": "true",
    # Spark derives constraints on columns, to filter earlier. Their number doubles with each field that is read from a struct, so
    # planning would never end.
    "spark.sql.constraintPropagation.enabled": "false",
}


def start(name: str) -> SparkSession:
    """The session, with the settings that the rules rely on."""
    builder = SparkSession.builder.appName(name)
    for key, value in REQUIRED.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    remember_classes(spark)
    # LogicalRDD warns, listing all columns, when the optimizer finds that a struct of a checkpointed frame is never NULL. Spark
    # then doesn't know the frame's size, and broadcasts it only with a hint.
    log4j = jvm(spark).org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.spark.sql.execution.LogicalRDD", log4j.Level.ERROR)
    return spark


def jvm(spark: SparkSession) -> Any:
    """Spark's JVM: Java packages and classes by name (py4j's JVMView)."""
    return spark.sparkContext._jvm


def checkpointed(frame: DataFrame, level: StorageLevel | None = None) -> DataFrame:
    """`frame`, computed and stored, without its plan.

    A frame that is read several times is computed once, and Spark analyses its plan once. In small fleets, analysing the whole
    plan for each use took several times as long as computing it.
    """
    return frame.localCheckpoint(eager=True, storageLevel=level)


def remember_classes(spark: SparkSession) -> None:
    """Look up once the Java classes and methods that every Column expression uses.

    By default py4j looks them up at each use. That was a third of all round trips while rules are built.
    """
    packages = jvm(spark)
    for name in ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils"):
        setattr(packages, name, _Remembered(getattr(packages, name)))


class _Remembered:
    """A Java class whose static methods are looked up once."""

    def __init__(self, java_class: Any):
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        # Python calls this for missing attributes only, so once per method.
        member = self.__dict__[name] = getattr(self._java_class, name)
        return member


def table(spark: SparkSession, name: str) -> str:
    """A lake table's name in Spark."""
    return f"{CATALOG}.{namespace(spark)}.{name}"


def namespace(spark: SparkSession) -> str:
    """The namespace of this lake's tables. A catalog may have several lakes (`durability.lake.namespaces`)."""
    return str(spark.conf.get(f"spark.sql.catalog.{CATALOG}.default-namespace", NAMESPACE))
