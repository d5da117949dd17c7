"""One Spark session for every test and doctest of a test session, on the lake's jars."""

import logging
import os
import sys

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local session; a test that needs a lake adds its catalog's settings to a session of its own."""
    from pyspark.sql import SparkSession

    from durability.runtime import jars
    from spark_jobs.session import remember_classes

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    folder = tmp_path_factory.mktemp("spark")
    jar_files = ",".join(sorted(str(p) for name in ("spark", "spark-s3") for p in jars.ensure(name).glob("*.jar")))
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.jars", jar_files)
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.default.parallelism", "1")
        .config("spark.ui.enabled", "false")
        # As small runs do: compiling so many plans takes longer than interpreting them.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.optimizer.runtime.bloomFilter.enabled", "false")
        .config("spark.sql.ui.explainMode", "simple")
        .config("spark.sql.debug.maxToStringFields", "1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.legacy.sizeOfNull", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    remember_classes(session)
    # It says goodbye when the interpreter ends, to streams that pytest has closed.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace, request):
    """Doctests of spark_jobs find the session as `spark`, and Spark's functions as `F`."""
    item = request.node
    if "spark_jobs" in str(item.path) and type(item).__name__ == "DoctestItem":
        from pyspark.sql import functions

        doctest_namespace["spark"] = request.getfixturevalue("spark")
        doctest_namespace["F"] = functions
