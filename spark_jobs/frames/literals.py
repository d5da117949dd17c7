"""Python values as constant columns."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F


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
