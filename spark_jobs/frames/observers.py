"""Observers of Confluent Server, as `durability.topology.observers` finds them, for columns."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.topology import observers
from spark_jobs.frames.columns import possible


def asks_for_observers(constraints: Column) -> Column:
    """Do placement constraints ask for observers (`observers.constrained`)? NULL where there are no constraints.

    >>> texts = ['{"observers":[{"count":1}]}', '{"observers":[{"count":0}]}', '{"observers":[]}', '{"observers":[{}]}',
    ...          '{"observers": null}', '{"observers":[{', "", None]
    >>> df = spark.createDataFrame([(text,) for text in texts], "constraints string")
    >>> [found for (found,) in df.select(asks_for_observers(F.col("constraints"))).collect()]
    [True, False, False, True, False, True, False, None]
    >>> [observers.constrained(text) for text in texts]
    [True, False, False, True, False, True, False, False]
    """
    groups = F.from_json(constraints, "observers array<struct<count:string>>")["observers"]
    named = F.regexp_replace(constraints, observers.NONE, "").contains(observers.NAME)
    return F.when(groups.isNotNull(), F.exists(groups, lambda group: possible(group["count"] != "0"))).otherwise(named)
