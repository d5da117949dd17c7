"""The smallest sets of replicas of a partition whose loss breaks it, while the quorum keeps its majority.

A set is a number with a bit per replica. The bits of what breaks are those of `loss_bits`.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.lake.loss_tables import WHOLE_SETS
from spark_jobs.frames.columns import struct
from spark_jobs.frames.loss_bits import BITS

MOST = 30
"""The most replicas of which sets are lost: all sets of up to WHOLE_SETS, else any three replicas or racks."""
COUNTED = sum(bit for name, bit in BITS.items() if not name.startswith("worst_"))
"""The bits for which sets are counted. In the worst case, any min.insync.replicas replicas are such a set."""


def _bit(id: Column) -> Column:
    return F.call_function("shiftleft", F.lit(1), id - 1)


def _together(ids: Column) -> Column:
    return F.aggregate(ids, F.lit(0), lambda mask, id: mask.bitwiseOR(_bit(id)))


def masks() -> Column:
    """The sets that are lost. Reads `places` (`single_losses.broken`)."""
    count, none = F.size("places"), F.array().cast("array<int>")

    def in_rack(place: Column) -> Column:
        same = F.filter("places", lambda p: (p["rack"] == place["rack"]) & (p["rack"] > 0))
        return _together(same["id"])

    def joined(one: Column, other: Column) -> Column:
        return F.array_distinct(F.flatten(F.transform(one, lambda a: F.transform(other, lambda b: a.bitwiseOR(b)))))

    alone = F.transform("places", lambda p: _bit(p["id"]))
    units = F.array_distinct(F.concat(alone, F.filter(F.transform("places", in_rack), lambda mask: mask > 0)))
    few = count.between(1, WHOLE_SETS)
    every = F.sequence(F.lit(1), F.when(few, F.call_function("shiftleft", F.lit(1), count) - 1).otherwise(1))
    return F.when(few, every).when(count.between(1, MOST), joined(joined(units, units), units)).otherwise(none)


def members(mask: Column) -> Column:
    """The numbers of the replicas in a set, from 1. Reads `places`."""
    return F.filter("places", lambda p: F.getbit(mask, p["id"] - 1) == 1)["id"]


def smallest(found: Column, racks: Column) -> Column:
    """The smallest sets that break something, as array<struct<rack, places, breaks>>. A set of racks has all their replicas.

    found: array<struct<place, breaks>>, by set, in the order of `masks`.
    racks: by replica the number of the first one in its rack; 0 if unknown.
    """
    numbers = F.sequence(F.lit(1), F.greatest(F.size(racks), F.lit(1)))

    def places(mask: Column) -> Column:
        return F.filter(numbers, lambda i: F.getbit(mask, i - 1) == 1)

    def firsts(mask: Column) -> Column:
        return F.filter(places(mask), lambda i: F.get(racks, i - 1) == i)

    def of_racks(mask: Column) -> Column:
        """Does the set consist of whole racks?"""
        outside = F.filter(numbers, lambda i: F.getbit(mask, i - 1) == 0)
        named = F.transform(places(mask), lambda i: F.get(racks, i - 1))
        return ~F.array_contains(named, 0) & ~F.exists(outside, lambda i: F.array_contains(named, F.get(racks, i - 1)))

    # By replica the set of all in its rack.
    units = F.transform(
        numbers, lambda i: _together(F.filter(numbers, lambda j: F.get(racks, j - 1) == F.get(racks, i - 1)))
    )

    def without_one(one: Column, rack: bool) -> Column:
        """What the largest parts of a set break, if all sets are there. A set breaks all that its parts break."""
        mask = one["place"]

        def rest(i: Column) -> Column:
            return mask.bitwiseAND(F.bitwise_not(F.get(units, i - 1) if rack else _bit(i)))

        parts = F.transform(firsts(mask) if rack else places(mask), lambda i: F.get(found, rest(i) - 1)["breaks"])
        return F.aggregate(parts, F.lit(0), lambda bits, part: bits.bitwiseOR(F.coalesce(part, F.lit(0))))

    def among(sets: Column, rack: bool) -> Column:
        def smaller(one: Column) -> Column:
            return F.filter(
                sets,
                lambda o: (o["place"] != one["place"]) & (o["place"].bitwiseAND(one["place"]) == o["place"]),
            )

        def own(one: Column) -> Column:
            any_part = F.aggregate(smaller(one), F.lit(0), lambda bits, o: bits.bitwiseOR(o["breaks"]))
            parts = F.when(F.size(racks) <= WHOLE_SETS, without_one(one, rack)).otherwise(any_part)
            breaks = one["breaks"].bitwiseAND(F.lit(COUNTED)).bitwiseAND(F.bitwise_not(parts))
            inside = firsts(one["place"]) if rack else places(one["place"])
            return struct({"rack": F.lit(rack), "places": inside, "breaks": breaks})

        # Most sets break nothing.
        harmful = F.filter(sets, lambda o: o["breaks"].bitwiseAND(F.lit(COUNTED)) != 0)
        return F.filter(F.transform(harmful, own), lambda o: o["breaks"] != 0)

    return F.concat(among(found, False), among(F.filter(found, lambda o: of_racks(o["place"])), True))
