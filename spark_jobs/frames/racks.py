"""How many racks a set of brokers spans, when some brokers have no rack and some racks are unknown.

A rack has three states (see `durability.lake.tables.BROKERS`): a name (also carried over from an earlier snapshot), none
(no broker.rack) and unknown. An unknown rack may be any rack, so a count is an interval: from `least` to `most`.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def named_racks(brokers: Column) -> Column:
    """The distinct names among `brokers`, an array of structs with `rack` and `rack_state`."""
    return F.array_distinct(F.transform(F.filter(brokers, lambda b: b["rack"].isNotNull()), lambda b: b["rack"]))


def layout(brokers: Column) -> Column:
    """Replicas by rack: struct<size, racks, unracked, unknown>.

    brokers: array of structs with `rack` and `rack_state`. `racks`: replicas in each named rack, most first; `unracked`:
    on brokers without broker.rack; `unknown`: on brokers whose rack is unknown. NULL for a NULL array.

    >>> df = spark.createDataFrame([([("az1", "named"), ("az2", "named"), ("az2", "carried"), (None, "none")],),
    ...     ([(None, "unknown"), ("az1", "named")],)], "brokers array<struct<rack: string, rack_state: string>>")
    >>> df.select(layout(F.col("brokers")).alias("l")).select("l.*").show()
    +----+------+--------+-------+
    |size| racks|unracked|unknown|
    +----+------+--------+-------+
    |   4|[2, 1]|       1|      0|
    |   2|   [1]|       0|      1|
    +----+------+--------+-------+
    """
    racks = F.transform(named_racks(brokers), lambda rack: F.size(F.filter(brokers, lambda b: b["rack"] == rack)))
    return F.when(
        brokers.isNotNull(),
        F.struct(
            F.size(brokers).alias("size"),
            F.sort_array(racks, asc=False).alias("racks"),
            F.size(F.filter(brokers, lambda b: b["rack"].isNull() & (b["rack_state"] == "none"))).alias("unracked"),
            F.size(
                F.filter(brokers, lambda b: b["rack"].isNull() & ~F.coalesce(b["rack_state"] == "none", F.lit(False)))
            ).alias("unknown"),
        ),
    )


def beside(layout: Column, racks: Column) -> tuple[Column, Column]:
    """Brokers outside the `racks` - 1 racks that have most: those of known racks, and with those of unknown ones.

    layout: of a cluster's brokers. Of all choices of replicas, one on every broker with a rack leaves most there; acked
    racks ask for a min ISR above what those racks hold, so what is to be lost on top must stand outside them (KIP-1290).

    >>> df = spark.createDataFrame([([("az1", "named"), ("az1", "named"), ("az2", "named"), (None, "unknown")],)],
    ...     "brokers array<struct<rack: string, rack_state: string>>")
    >>> df.select(*beside(layout(F.col("brokers")), F.lit(2))).collect()[0][:]
    (1, 2)
    """
    others = F.slice(layout["racks"], F.greatest(racks, F.lit(1)), F.lit(1_000_000))
    known = F.aggregate(others, F.lit(0), lambda total, held: total + held)
    return known, known + layout["unknown"]


def most_held(layout: Column, replicas: Column, racks: Column) -> Column:
    """Replicas that some `racks` racks hold together when `replicas` stand as evenly over a cluster's racks as its brokers
    allow; NULL: there are fewer brokers with a rack than that.

    layout: of a cluster's brokers, see `layout`. Evenly: no rack holds more than one replica above another that has a
    broker left.

    >>> df = spark.createDataFrame([([4, 1],), ([2, 2, 2],), ([1, 1],)], "racks array<int>")
    >>> df.select("*", *(most_held(F.struct("racks"), F.lit(n), F.lit(1)).alias(str(n)) for n in (2, 3, 5))).show()
    +---------+---+----+----+
    |    racks|  2|   3|   5|
    +---------+---+----+----+
    |   [4, 1]|  1|   2|   4|
    |[2, 2, 2]|  1|   1|   2|
    |   [1, 1]|  1|NULL|NULL|
    +---------+---+----+----+
    """

    def held(level: Column, sizes: Column = layout["racks"]) -> Column:
        return F.aggregate(sizes, F.lit(0), lambda total, size: total + F.least(size, level))

    # Racks filled to `level` - 1 each, as far as they go, and one more in as many of the larger ones as are left over.
    level = F.try_element_at(F.filter(F.sequence(F.lit(1), replicas), lambda n: held(n) >= replicas), F.lit(1))
    fullest = held(level - 1, F.slice(layout["racks"], F.lit(1), racks))
    return F.when(level.isNotNull(), fullest + F.least(racks, replicas - held(level - 1)))


def rack_span(layout: Column) -> Column:
    """Racks that replicas span, as struct<least, most>: an unracked broker adds none, since it may stand in any.

    layout: of the replicas, see `layout`.

    >>> df = spark.createDataFrame([([("az1", "named"), ("az2", "named")],), ([("az1", "named"), (None, "none")],),
    ...     ([("az1", "named"), (None, "unknown")],)], "brokers array<struct<rack: string, rack_state: string>>")
    >>> df.select(rack_span(layout(F.col("brokers"))).alias("span")).select("span.*").show()
    +-----+----+
    |least|most|
    +-----+----+
    |    2|   2|
    |    1|   1|
    |    1|   2|
    +-----+----+
    """
    least = F.size(layout["racks"])
    return F.when(layout.isNotNull(), F.struct(least.alias("least"), (least + layout["unknown"]).alias("most")))


def kip_1290_rack_span(layout: Column) -> Column:
    """Racks as KIP-1290 counts an ISR's, as struct<least, most>: all brokers without broker.rack share the rack "".

    layout: of the replicas, see `layout`.

    >>> df = spark.createDataFrame([([("az1", "named"), (None, "none"), (None, "none")],),
    ...     ([(None, "unknown"), (None, "unknown")],), ([],)], "brokers array<struct<rack: string, rack_state: string>>")
    >>> df.select(kip_1290_rack_span(layout(F.col("brokers"))).alias("span")).select("span.*").show()
    +-----+----+
    |least|most|
    +-----+----+
    |    2|   2|
    |    1|   2|
    |    0|   0|
    +-----+----+
    """
    certain = F.size(layout["racks"]) + F.least(layout["unracked"], F.lit(1))
    unknown = layout["unknown"]
    # Unknown brokers alone still stand in some rack, the unnamed one at least.
    least = F.when((certain == 0) & (unknown > 0), F.lit(1)).otherwise(certain)
    return F.when(layout.isNotNull(), F.struct(least.alias("least"), (certain + unknown).alias("most")))


def against(span: Column, required: Column) -> Column:
    """The one number that decides `span` against `required`: the most if that is too few, the least if that is enough.

    NULL where it could be either: then the verdict is UNKNOWN.

    >>> df = spark.createDataFrame([((1, 1), 2), ((2, 3), 2), ((1, 2), 2)], "span struct<least: int, most: int>, required int")
    >>> df.select("*", against(F.col("span"), F.col("required")).alias("racks")).show()
    +------+--------+-----+
    |  span|required|racks|
    +------+--------+-----+
    |{1, 1}|       2|    1|
    |{2, 3}|       2|    2|
    |{1, 2}|       2| NULL|
    +------+--------+-----+
    """
    return F.when(span["most"] < required, span["most"]).when(span["least"] >= required, span["least"])
