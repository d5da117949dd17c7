"""How many racks a set of brokers spans, where some brokers have no rack and some racks are unknown.

A rack has one of three states (see `durability.lake.tables.BROKERS`): a name, possibly carried over from an earlier snapshot;
none (no broker.rack); unknown. An unknown rack may be any rack, so a number of racks is an interval from `least` to `most`.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain, struct


def named_racks(brokers: Column) -> Column:
    """The distinct names among `brokers`, an array of structs with `rack` and `rack_state`."""
    return F.array_distinct(F.array_compact(brokers["rack"]))


def layout(brokers: Column) -> Column:
    """The number of brokers by rack: struct<size, racks, unracked, unknown>. NULL for a NULL array.

    brokers: of a cluster, or of a partition's replicas; an array of structs with `rack` and `rack_state`. `racks`: how many are
    in each named rack, the largest first. `unracked`: those without broker.rack. `unknown`: those whose rack is unknown.

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
    unracked = F.filter(brokers, lambda b: b["rack"].isNull() & (b["rack_state"] == "none"))
    unknown = F.filter(brokers, lambda b: b["rack"].isNull() & ~certain(b["rack_state"] == "none"))
    counts = {
        "size": F.size(brokers),
        "racks": F.sort_array(racks, asc=False),
        "unracked": F.size(unracked),
        "unknown": F.size(unknown),
    }
    return F.when(brokers.isNotNull(), struct(counts))


def beside(layout: Column, racks: Column) -> tuple[Column, Column]:
    """The number of brokers outside the `racks` - 1 largest racks: in known racks, and with those of unknown racks.

    layout: of a cluster's brokers. To guarantee acknowledged racks, min.insync.replicas must be above the number of replicas in
    those largest racks. Headroom on top of it needs brokers outside them (KIP-1290).

    >>> df = spark.createDataFrame([([("az1", "named"), ("az1", "named"), ("az2", "named"), (None, "unknown")],)],
    ...     "brokers array<struct<rack: string, rack_state: string>>")
    >>> df.select(*beside(layout(F.col("brokers")), F.lit(2))).collect()[0][:]
    (1, 2)
    """
    others = F.slice(layout["racks"], F.greatest(racks, F.lit(1)), F.lit(1_000_000))
    known = F.aggregate(others, F.lit(0), lambda total, size: total + size)
    return known, known + layout["unknown"]


def most_held(layout: Column, replicas: Column, racks: Column) -> Column:
    """The number of replicas in the `racks` fullest racks, if `replicas` are spread over a cluster's racks as evenly as its
    brokers allow. NULL where fewer brokers than replicas have a rack.

    layout: of a cluster's brokers. Evenly: a rack has at most one replica more than any other rack with a broker left.

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
    """The racks that replicas span, as struct<least, most>. A broker without broker.rack adds none: it may be in any.

    layout: of the replicas.

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
    """The racks that an ISR spans, as KIP-1290 counts them, as struct<least, most>. All brokers without broker.rack share one
    unnamed rack.

    layout: of the replicas in sync.

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
    # Even if all racks are unknown the brokers are in one, at least in the unnamed one.
    least = F.when((certain == 0) & (unknown > 0), F.lit(1)).otherwise(certain)
    return F.when(layout.isNotNull(), F.struct(least.alias("least"), (certain + unknown).alias("most")))


def against(span: Column, required: Column) -> Column:
    """The number of racks that decides: `most` if that is too few, `least` if that is enough, NULL where it is undecided.

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
