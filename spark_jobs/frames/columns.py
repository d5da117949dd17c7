"""Expressions that facts and rules share. A fact that could not be read is NULL, and a condition on it is NULL too."""

from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F


def certain(condition: Column | str) -> Column:
    """Is the condition known to hold? False where it is unknown.

    >>> df = spark.createDataFrame([(True,), (False,), (None,)], "fact boolean")
    >>> df.select("fact", certain("fact").alias("certain"), possible("fact").alias("possible")).show()
    +-----+-------+--------+
    | fact|certain|possible|
    +-----+-------+--------+
    | true|   true|    true|
    |false|  false|   false|
    | NULL|  false|    true|
    +-----+-------+--------+
    """
    return F.coalesce(condition, F.lit(False))


def possible(condition: Column | str) -> Column:
    """Can the condition hold? True where it is unknown."""
    return F.coalesce(condition, F.lit(True))


def struct(fields: Mapping[str, Column]) -> Column:
    """A struct of these fields, in this order."""
    return F.struct(*(value.alias(name) for name, value in fields.items()))


def live_brokers() -> Column:
    """The `brokers` of a cluster without those that are known to be down."""
    return F.filter("brokers", lambda b: possible(b["live"]))


def let(value: Column, then: Callable[[Column], Column]) -> Column:
    """`then(value)`, with `value` computed once.

    A Python variable would put the whole expression in each place that reads it, and Spark would analyse and compute each one.

    >>> spark.range(3).select(let(F.col("id") + 1, lambda n: n * n).alias("square")).show()
    +------+
    |square|
    +------+
    |     1|
    |     4|
    |     9|
    +------+
    """
    return F.get(F.transform(F.array(value), then), 0)
