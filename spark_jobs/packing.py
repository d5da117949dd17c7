"""Wide rows carried as a few structs: every step of an interpreted plan copies its columns one by one, a struct as a whole.

A row a topic has some hundred and thirty columns, and a dozen steps. Rules name columns as ever: `flat` and `beside` say in
which struct each stands, and Spark takes a field from its struct where it is asked for, unless its pruning of nested fields
makes a column of each again (`durability.launch.spark` turns that off for large runs). Small runs, which spend their time
planning, carry columns as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs import session

_PART = "_part_"


def packed(frame: DataFrame, name: str, *keys: str) -> DataFrame:
    """`frame` with its columns but `keys` in one part; name: the part's, unlike those of parts that it will stand beside."""
    rest = [column for column in frame.columns if column not in keys]
    return frame.select(*keys, F.struct(*rest).alias(_PART + name))


def beside(packed: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """`packed` with `columns` as one more part; they may name whatever stands in the others. A frame without parts gets them
    as columns."""
    present = packed.columns
    fields = _fields(present)
    if not fields:
        return packed.withColumns(dict(columns))
    more = F.struct(*(column.alias(name) for name, column in columns.items()))
    name = next(name for n in itertools.count() if (name := f"{_PART}{n}") not in present)
    return packed.select("*", *fields).select(*present, more.alias(name))


def flat(packed: DataFrame) -> DataFrame:
    """Each column of `packed` by its name, those of parts too.

    >>> frame = packed(spark.range(3), "own")
    >>> flat(beside(frame, {"twice": F.col("id") * 2})).show()
    +---+-----+
    | id|twice|
    +---+-----+
    |  0|    0|
    |  1|    2|
    |  2|    4|
    +---+-----+
    """
    present = packed.columns
    plain = [column for column in present if not column.startswith(_PART)]
    return packed.select(*plain, *_fields(present))


def settled(frame: DataFrame, level: StorageLevel | None = None) -> DataFrame:
    """`session.settled`, for large fleets: rows of many columns of which each use reads a few."""
    return flat(session.settled(packed(frame, "row"), level))


def _fields(columns: Iterable[str]) -> list[str]:
    return [f"{column}.*" for column in columns if column.startswith(_PART)]
