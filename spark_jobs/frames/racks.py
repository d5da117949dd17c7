"""Counts the racks that a set of brokers spans. Some brokers have no rack, and some racks are unknown.

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

    brokers: of a cluster or of a partition's replicas; an array of structs with `rack` and `rack_state`.

    - `racks`: the number in each named rack, the largest first.
    - `unracked`: the number without broker.rack.
    - `unknown`: the number whose rack is unknown.

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
    """The number of brokers outside the `racks` - 1 largest racks: those in known racks, and with those of unknown racks.

    To guarantee acknowledged racks, min.insync.replicas must be above the number of replicas in those largest racks. Headroom
    beyond that needs brokers outside them (KIP-1290).

    layout: of a cluster's brokers.

    >>> df = spark.createDataFrame([([("az1", "named"), ("az1", "named"), ("az2", "named"), (None, "unknown")],)],
    ...     "brokers array<struct<rack: string, rack_state: string>>")
    >>> df.select(*beside(layout(F.col("brokers")), F.lit(2))).collect()[0][:]
    (1, 2)
    """
    others = F.slice(layout["racks"], F.greatest(racks, F.lit(1)), F.lit(1_000_000))
    known = F.aggregate(others, F.lit(0), lambda total, size: total + size)
    return known, known + layout["unknown"]


def most_held(layout: Column, replicas: Column, racks: Column) -> Column:
    """The number of replicas in the `racks` fullest racks after spreading `replicas` evenly over the cluster's racks.

    NULL if fewer brokers than replicas have a rack. Evenly means that a rack has at most one replica more than any other rack
    with a free broker.

    layout: of a cluster's brokers.

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

    sizes = layout["racks"]
    # Fill racks up to `level` - 1 replicas each, as far as possible. Each remaining replica goes to one of the larger racks.
    level = _level(replicas, sizes)
    fullest = _held(level - 1, F.slice(sizes, F.lit(1), racks))
    return F.when(level.isNotNull(), fullest + F.least(racks, replicas - _held(level - 1, sizes)))


def losses(layout: Column) -> Column:
    """What the loss of each named rack leaves of a partition's replicas: array<struct<left, replicas>>, each once.

    layout: of the replicas. A replica without a known rack is left, whichever rack is lost.

    >>> df = spark.createDataFrame([((5, [3, 2]),), ((4, [2, 2]),)], "layout struct<size: int, racks: array<int>>")
    >>> df.select(losses(F.col("layout")).alias("losses")).show()
    +----------------+
    |          losses|
    +----------------+
    |[{2, 5}, {3, 5}]|
    |        [{2, 4}]|
    +----------------+
    """
    left = F.transform(
        layout["racks"], lambda held: struct({"left": layout["size"] - held, "replicas": layout["size"]})
    )
    return F.array_distinct(left)


def losses_if_even(layout: Column, replicas: Column) -> Column:
    """The same for `replicas` spread evenly over the cluster's racks; NULL if fewer brokers have a rack.

    layout: of a cluster's brokers.

    >>> df = spark.createDataFrame([([3, 3],), ([4, 1],), ([1, 1],)], "racks array<int>")
    >>> df.select("racks", losses_if_even(F.struct("racks"), F.lit(5)).alias("losses")).show()
    +------+----------------+
    | racks|          losses|
    +------+----------------+
    |[3, 3]|[{2, 5}, {3, 5}]|
    |[4, 1]|[{1, 5}, {4, 5}]|
    |[1, 1]|            NULL|
    +------+----------------+
    """
    sizes = F.array_sort(layout["racks"])
    level = _level(replicas, sizes)
    # The remaining replicas go to the racks with most brokers, which are the last ones.
    first = F.size(sizes) - (replicas - _held(level - 1, sizes))
    held = F.transform(sizes, lambda size, place: F.least(size, level - 1) + F.when(place >= first, 1).otherwise(0))
    laid_out = struct({"size": replicas, "racks": F.sort_array(held, asc=False)})
    return F.when(level.isNotNull(), losses(laid_out))


def _level(replicas: Column, sizes: Column) -> Column:
    """The replicas in the fullest rack after spreading them evenly; NULL if racks of `sizes` brokers don't hold them."""
    return F.try_element_at(F.filter(F.sequence(F.lit(1), replicas), lambda n: _held(n, sizes) >= replicas), F.lit(1))


def _held(level: Column, sizes: Column) -> Column:
    """The replicas in racks of `sizes` brokers with at most `level` replicas each."""
    return F.aggregate(sizes, F.lit(0), lambda total, size: total + F.least(size, level))


def rack_span(layout: Column) -> Column:
    """The racks that replicas span, as struct<least, most>. A broker without broker.rack adds none, as it may be in any rack.

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


def own_racks(ends: Column, below: Column) -> Column:
    """Compares the racks of replicas with the number of replicas minus `below`: struct<racks, required>.

    ends: layouts of the replicas. The first and the last are before and after a reassignment. The worse of these two counts.
    racks: the number of racks that decides (`against`); NULL if it depends on unknown racks.

    >>> df = spark.createDataFrame([([(3, [1, 1, 1], 0, 0)],), ([(3, [2, 1], 0, 0)],), ([(3, [1, 1], 0, 1)],),
    ...     ([(3, [2], 0, 1)],), ([(3, [2, 1], 0, 0), (2, [1, 1], 0, 0)],)],
    ...     "ends array<struct<size: int, racks: array<int>, unracked: int, unknown: int>>")
    >>> df.select(own_racks(F.col("ends"), F.lit(0)).alias("own")).select("own.*").show()
    +-----+--------+
    |racks|required|
    +-----+--------+
    |    3|       3|
    |    2|       3|
    | NULL|       3|
    |    2|       3|
    |    2|       3|
    +-----+--------+
    """

    def of_end(end: Column) -> Column:
        span, required = rack_span(end), F.greatest(F.lit(1), end["size"] - below)
        short = {"least": required - span["most"], "most": required - span["least"]}
        return struct({**short, "required": required, "span": span})

    worse = F.array_max(F.transform(F.array(F.element_at(ends, 1), F.element_at(ends, -1)), of_end))
    racks = F.when(worse["least"] > 0, worse["span"]["most"]).when(worse["most"] <= 0, worse["span"]["least"])
    return F.when(ends.isNotNull(), struct({"racks": racks, "required": worse["required"]}))


def balance(ends: Column, racks: Column, unknown: Column) -> Column:
    """Are replicas spread evenly over a cluster's racks? Then no rack has two more than another: struct<uneven, difference>.

    ends: as in `own_racks`. Both must be even.
    racks: the number of the cluster's known racks.
    unknown: the number of its brokers with an unknown rack. Each may be in one more rack.

    - `uneven`: NULL if unknown. A replica on a broker without broker.rack makes it True.
    - `difference`: between the known racks with the most and the fewest replicas.

    >>> df = spark.createDataFrame([((3, [1, 1, 1], 0, 0), 3, 0), ((4, [2, 1, 1], 0, 0), 3, 0), ((3, [2, 1], 0, 0), 3, 0),
    ...     ((3, [2, 1], 0, 0), 2, 0), ((3, [2, 1], 0, 0), 2, 1), ((3, [1, 1], 0, 1), 2, 1), ((4, [3], 0, 1), 3, 1),
    ...     ((2, [1], 1, 0), 3, 0), ((1, [], 0, 1), 3, 1), ((2, [1, 1], 0, 0), 3, 9)],
    ...     "end struct<size: int, racks: array<int>, unracked: int, unknown: int>, racks int, unknown int")
    >>> df.select("*", balance(F.array("end"), F.col("racks"), F.col("unknown")).alias("b")).select("*", "b.*").drop("b").show()
    +--------------------+-----+-------+------+----------+
    |                 end|racks|unknown|uneven|difference|
    +--------------------+-----+-------+------+----------+
    |{3, [1, 1, 1], 0, 0}|    3|      0| false|         0|
    |{4, [2, 1, 1], 0, 0}|    3|      0| false|         1|
    |   {3, [2, 1], 0, 0}|    3|      0|  true|         2|
    |   {3, [2, 1], 0, 0}|    2|      0| false|         1|
    |   {3, [2, 1], 0, 0}|    2|      1|  NULL|         1|
    |   {3, [1, 1], 0, 1}|    2|      1|  NULL|         0|
    |      {4, [3], 0, 1}|    3|      1|  true|         3|
    |      {2, [1], 1, 0}|    3|      0|  true|         1|
    |       {1, [], 0, 1}|    3|      1|  NULL|         0|
    |   {2, [1, 1], 0, 0}|    3|      9| false|         1|
    +--------------------+-----+-------+------+----------+
    """

    def of_end(end: Column) -> Column:
        sizes = end["racks"]
        most = F.coalesce(F.array_max(sizes), F.lit(0))
        least = F.when(F.size(sizes) >= racks, F.coalesce(F.array_min(sizes), F.lit(0))).otherwise(0)
        # The number of replicas missing until no rack has two fewer than the fullest one.
        level = F.greatest(most - 1, F.lit(0))
        missing = F.aggregate(sizes, F.lit(0), lambda total, size: total + F.greatest(level - size, F.lit(0)))
        missing += F.greatest(racks - F.size(sizes), F.lit(0)) * level
        uneven = (end["unracked"] > 0) | (missing > end["unknown"])
        # An unknown rack may also be none, or one more without replicas.
        even = (end["unknown"] == 0) & ((unknown == 0) | (most <= 1))
        return struct({"uneven": F.when(uneven, True).when(even, False), "difference": most - least})

    both = F.transform(F.array(F.element_at(ends, 1), F.element_at(ends, -1)), of_end)
    uneven = F.exists(both, lambda end: end["uneven"])
    return F.when(ends.isNotNull(), struct({"uneven": uneven, "difference": F.array_max(both["difference"])}))


def evenly_possible(layout: Column, replicas: Column) -> Column:
    """Can so many replicas be spread evenly over a cluster's known racks? layout: of the cluster's brokers.

    >>> df = spark.createDataFrame([([4, 1], 2), ([4, 1], 3), ([4, 1], 4), ([2, 2, 1], 5), ([2, 2, 1], 6), ([], 1)],
    ...     "racks array<int>, replicas int")
    >>> df.select("*", evenly_possible(F.struct("racks"), F.col("replicas")).alias("possible")).show()
    +---------+--------+--------+
    |    racks|replicas|possible|
    +---------+--------+--------+
    |   [4, 1]|       2|    true|
    |   [4, 1]|       3|    true|
    |   [4, 1]|       4|   false|
    |[2, 2, 1]|       5|    true|
    |[2, 2, 1]|       6|   false|
    |       []|       1|   false|
    +---------+--------+--------+
    """
    racks, count = layout["racks"], F.size(layout["racks"])
    in_each = F.floor(replicas / F.when(count > 0, count)).cast("int")
    room = F.aggregate(racks, F.lit(0), lambda total, size: total + F.least(size, in_each + 1))
    return certain((F.array_min(racks) >= in_each) & (room >= replicas))


def kip_1290_rack_span(layout: Column) -> Column:
    """The racks that an ISR spans, as KIP-1290 counts them, as struct<least, most>. Brokers without broker.rack share one rack.

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
    # Even if all racks are unknown, the brokers are in at least one rack, possibly the unnamed one.
    least = F.when((certain == 0) & (unknown > 0), F.lit(1)).otherwise(certain)
    return F.when(layout.isNotNull(), F.struct(least.alias("least"), (certain + unknown).alias("most")))


def against(span: Column, required: Column) -> Column:
    """The number of racks that decides: `most` if that is too few, `least` if that is enough, else NULL.

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
