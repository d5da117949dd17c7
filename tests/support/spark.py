"""One Spark session for every test and doctest of a test session, on the lake's jars."""

import logging
import os
import sys

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A local session; a test that needs a lake adds its catalog's settings to a session of its own."""
    session = start(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def start(folder):
    """A local session with `folder` for its tables."""
    from pyspark.sql import SparkSession

    from durability.runtime import class_archive, jars
    from durability.runtime.spark import DRIVER_OPTIONS, settings
    from spark_jobs.session import REQUIRED, remember_classes

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jar_files = ",".join(sorted(str(p) for name in ("spark", "spark-s3") for p in jars.ensure(name).glob("*.jar")))
    own = {
        "spark.jars": jar_files,
        # As in small runs. HotSpot's optimizing compiler (C2) took a third of this JVM's time, and gained less in a dozen runs.
        DRIVER_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=256m"
        f" {class_archive.option()}".rstrip(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder),
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in {**settings(partitions=1), **REQUIRED, **own}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    remember_classes(session)
    # It says goodbye when the interpreter ends, to streams that pytest has closed.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    return session


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace, request):
    """Doctests of spark_jobs find the session as `spark`, and Spark's functions as `F`."""
    item = request.node
    if "spark_jobs" in str(item.path) and type(item).__name__ == "DoctestItem":
        from pyspark.sql import functions

        doctest_namespace["spark"] = request.getfixturevalue("spark")
        doctest_namespace["F"] = functions
