"""Python values as constant columns."""

import json
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.catalogue import Requirement
from durability.policy import numbers
from durability.shapes import INT32

_TYPES = {"number": "double", "boolean": "boolean", "strings": "array<string>"}


def spark_type(requirement: Requirement) -> str:
    """The type (DDL) of a requirement of tiers.

    >>> spark_type(Requirement("a", "integer", max=9)), spark_type(Requirement("b", "integer"))
    ('int', 'bigint')
    """
    if requirement.kind == "integer":
        return "int" if requirement.max is not None and requirement.max <= INT32 else "bigint"
    return _TYPES[requirement.kind]


def literal(value: Any, schema: str) -> Column:
    """A Python value as a constant column of `schema` (DDL).

    >>> spark.range(1).select(literal({"a": [1, 2]}, "map<string,array<int>>").alias("m")).show()
    +-------------+
    |            m|
    +-------------+
    |{a -> [1, 2]}|
    +-------------+
    """
    return F.from_json(F.lit(json.dumps(value)), schema)


def requirements() -> str:
    """The Spark type (DDL) of a tier's requirements: a struct with the keys of `durability.policy.numbers`."""
    return f"struct<{','.join(f'{key}:{spark_type(r)}' for key, r in numbers.keys().items())}>"
