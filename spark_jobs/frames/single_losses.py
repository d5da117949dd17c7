"""What the loss of any one broker, and of any one rack, breaks in a partition.

Classes and views are those of `durability.lake.loss_tables.VIEWS`, a bit each (BITS). A loss breaks only what isn't broken
without it. Brokers whose rack is unknown may be in any rack, so each rack is lost twice: without them, and with all of them.
"""

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import loss_sets, loss_views, losses
from spark_jobs.frames.columns import certain, possible, struct
from spark_jobs.frames.loss_bits import ALL, BITS
from spark_jobs.frames.rack_health import NO_ERROR, NO_LEADER

NOTHING, BROKER, RACK, RACK_WITH, ELSEWHERE, SET = "nothing", "broker", "rack", "rack-with", "elsewhere", "set"
"""Losses: none; one broker; the brokers of one rack; these and all without a known rack; the latter alone; any set of brokers,
while the quorum keeps its majority."""
KEPT, LOST, UNSURE, LOST_NOW = 0, 1, 2, 3
"""The quorum after a loss. LOST_NOW: it is lost because brokers are down, whose controllers vote once they are up."""


def broken(
    facts: DataFrame,
    key: tuple[str, ...],
    prepared: Callable[[DataFrame], DataFrame] = lambda frame: frame,
    alike: tuple[str, ...] = (),
    planned: Callable[[DataFrame], DataFrame] = lambda frame: frame,
) -> DataFrame:
    """One row per `key` of `facts`: what breaks.

    prepared: makes the frame of which all plans start, for instance one that is compiled.
    alike: some columns of the key. Rows that are equal in them differ in `places` alone, so their losses are judged together.
    planned: makes a frame's plan, if that gains time (`spark_jobs.scale.planned`).

    facts: `partitions.facts` with `elects_unclean`, and `places`, per replica: its number from 1 (`id`), that of the first
        replica in its rack (`rack`, 0 without a known rack), and the quorum (KEPT, LOST, UNSURE, LOST_NOW) after the loss of
        the broker (`own`), of its rack (`of_rack`), and of its rack with the nodes of unknown racks (`of_rack_with`).
        `elsewhere`: the quorums that are possible after the loss of some rack of the cluster with the nodes of unknown racks, a
        bit each (`possible_after`).

    - `losses`: array<struct<rack, place, breaks, kept, unsure, anywhere>>, for each loss that breaks something or may. place: the
      number of the broker, or of the first replica in the rack; NULL if the replicas are unknown. breaks, unsure: BITS. kept:
      those of `breaks` that break although the quorum keeps its majority. anywhere: would the loss of a rack with the same
      quorum be in `elsewhere` if no replica stood there?
    - `sets`: array<struct<rack, places, breaks>>: the smallest sets of brokers, and of racks, that break something. breaks: of
      `loss_sets.COUNTED`.
    - `elsewhere`: struct<kept, lost>, BITS that the loss of a rack may break although no replica is known to be there, with
      the quorum kept and without it.
    - `of_broker`, `of_broker_unsure`, `of_rack`, `of_rack_unsure`: BITS that any such loss breaks, or may break.
    - `of_broker_kept`, `of_rack_kept`: BITS that any such loss breaks although the quorum keeps its majority.
    - `already`, `already_unsure`: BITS that are broken without a loss.
    """
    different = F.array_distinct(F.flatten(F.transform("slots", _readings)))
    listed = losses.before(facts).withColumn("slots", _slots()).withColumn("different", different).localCheckpoint()
    once = _once(listed, key, alike) if alike else listed
    answered = planned(_answers(once, alike or key, prepared))
    racks = F.transform("places", lambda p: p["rack"]).alias("racks_of_places")
    with_bits = listed.select(*key, "slots", "places", racks).join(answered, [*(alike or key)])
    with_bits = with_bits.withColumn("each", F.transform(F.slice("slots", 2, F.size("slots")), _of_slot))
    of_sets = F.filter("each", lambda o: o["kind"] == SET)
    sets = loss_sets.smallest(of_sets, F.col("racks_of_places"))
    columns = {"losses": _losses(), "sets": sets, "elsewhere": _elsewhere(), **_already()}
    found = with_bits.select(*key, *(column.alias(name) for name, column in columns.items()))
    return found.select("*", *(column.alias(name) for name, column in _of_any().items()))


def _once(listed: DataFrame, key: tuple[str, ...], alike: tuple[str, ...]) -> DataFrame:
    """A row for all that are equal in `alike`, with all their losses."""
    every = F.array_distinct(F.flatten(F.collect_list("different"))).alias("every")
    first = F.min(F.struct(*key)).alias("first")
    together = listed.groupBy(*alike).agg(every, first).select("every", "first.*")
    return listed.join(together, [*key]).withColumn("different", F.col("every")).drop("every")


def _answers(facts: DataFrame, key: tuple[str, ...], prepared: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """One row per `key`: `different`, `nothing` (what holds before a loss), and `answers`: BITS of each one of `different`.

    facts: with `different`, the losses as array<struct<lost, quorum>>, the first of which is NOTHING.
    """
    one = facts.select("*", F.posexplode("different").alias("number", "loss"))
    replicas, after = F.transform("loss.lost", lambda i: F.get("replicas", i - 1)), F.col("loss")["quorum"]
    columns = {"lost": replicas, "quorum_kept": after == KEPT, "quorum_kept_if_up": after.isin(KEPT, LOST_NOW)}
    with_loss = one.withColumns(columns).drop("slots", "different", "loss", "places")
    with_loss = prepared(with_loss.localCheckpoint())
    each, is_nothing = (*key, "number"), F.col("number") == 0
    placed, sure = F.col("replicas").isNotNull().alias("placed"), F.size(losses.sure("listed_isr")).alias("sure")
    data = (column.alias(name) for name, column in losses.data().items())
    harm = with_loss.select(
        *each, "elects_unclean", loss_views.lost_replicas().alias("lost_replicas"), sure, placed, *data
    )
    # What holds before a loss is judged once.
    of_now = F.when(is_nothing, loss_views.BEFORE).otherwise(loss_views.NOW)
    views = F.concat(F.array(of_now), loss_views.placements())
    answered = loss_views.in_views(with_loss, each, views).withColumn("structural", loss_views.structural_answer())
    judged = answered.join(harm, [*each])
    of_nothing = F.struct("before_answer", "min_isr_before", "structural", "sure", "placed")
    answers = F.struct("number", *(name for name in judged.columns if name not in each))
    together = judged.groupBy(*key).agg(
        F.first(F.when(is_nothing, of_nothing), ignorenulls=True).alias("nothing"),
        F.array_sort(F.collect_list(answers)).alias("answers"),
    )
    with_bits = together.withColumn("answers", F.transform("answers", _with_bits))
    return with_bits.join(facts.select(*key, "different"), [*key])


def _of_any() -> dict[str, Column]:
    """What any loss of a kind breaks. What may break isn't listed where it breaks."""

    def any_of(rack: bool, field: str, start: Column) -> Column:
        of_kind = F.filter("losses", lambda o: o["rack"] == rack)
        return F.aggregate(of_kind, start, lambda so_far, o: so_far.bitwiseOR(o[field]))

    columns: dict[str, Column] = {}
    elsewhere = F.col("elsewhere")["kept"].bitwiseOR(F.col("elsewhere")["lost"])
    for name, rack, more in (("of_broker", False, F.lit(0)), ("of_rack", True, elsewhere)):
        breaks = any_of(rack, "breaks", F.lit(0))
        columns |= {name: breaks, f"{name}_unsure": any_of(rack, "unsure", more).bitwiseAND(F.bitwise_not(breaks))}
        columns[f"{name}_kept"] = any_of(rack, "kept", F.lit(0))
    return columns


def possible_after(quorum: Column) -> Column:
    """The quorums that are possible, a bit each: 1 << KEPT, 1 << LOST."""
    return F.when(quorum == KEPT, 1).when(quorum.isin(LOST, LOST_NOW), 2).otherwise(3)


def _readings(slot: Column) -> Column:
    """The losses that decide what a slot breaks, as array<struct<lost, quorum>>: both, if the quorum is unknown."""

    def loss(quorum: Column | int) -> Column:
        return struct({"lost": slot["lost"], "quorum": F.lit(quorum)})

    unsure = slot["quorum"] == UNSURE
    return F.when(unsure, F.array(loss(KEPT), loss(LOST))).otherwise(F.array(loss(slot["quorum"])))


def _slots() -> Column:
    """The losses of a partition, NOTHING first, as array<struct<kind, place, lost, quorum>>. lost: numbers of replicas."""

    def numbers(test: Callable[[Column], Column]) -> Column:
        return F.filter("places", test)["id"]

    def slot(kind: str, place: Column, lost: Column, quorum: Column) -> Column:
        return struct({"kind": F.lit(kind), "place": place, "lost": F.array_sort(lost), "quorum": quorum})

    none = F.array().cast("array<int>")
    firsts = F.filter("places", lambda p: p["rack"] == p["id"])
    unplaced = numbers(lambda p: p["rack"] == 0)
    more = (F.size(unplaced) > 0) | F.exists("places", lambda p: p["of_rack"] != p["of_rack_with"])

    def in_rack(place: Column) -> Column:
        return numbers(lambda p: p["rack"] == place["id"])

    nothing = F.array(slot(NOTHING, F.lit(0), none, F.lit(KEPT)))
    brokers = F.transform("places", lambda p: slot(BROKER, p["id"], F.array(p["id"]), p["own"]))
    racks = F.transform(firsts, lambda p: slot(RACK, p["id"], in_rack(p), p["of_rack"]))
    with_unplaced = F.transform(
        firsts, lambda p: slot(RACK_WITH, p["id"], F.concat(in_rack(p), unplaced), p["of_rack_with"])
    )
    # Nothing is known of a replica whose broker isn't listed.
    possible_quorums = F.greatest(F.array_max(F.col("places")["elsewhere"]), F.lit(1))
    quorums = F.filter(F.array(F.lit(KEPT), F.lit(LOST)), lambda q: F.getbit(possible_quorums, q) == 1)
    without = F.transform(quorums, lambda q: slot(ELSEWHERE, q, unplaced, q))
    elsewhere = F.when(F.size(unplaced) > 0, without)
    sets = F.transform(loss_sets.masks(), lambda mask: slot(SET, mask, loss_sets.members(mask), F.lit(KEPT)))
    listed = F.concat(
        nothing,
        brokers,
        racks,
        sets,
        F.when(more, with_unplaced).otherwise(F.slice(with_unplaced, 1, 0)),
        F.coalesce(elsewhere, F.slice(nothing, 1, 0)),
    )
    return F.coalesce(listed, nothing)


def _conditions(one: Column) -> dict[str, Column]:
    """By view and class: does this loss break it? NULL if unknown."""
    before, placed = F.col("nothing")["before_answer"], F.col("nothing")["structural"]
    worst = one["data_worst"] | loss_views.worst_case(F.col("nothing")["min_isr_before"], one["lost_replicas"])
    return {
        "now_data": one["at_risk"] | one["deleted"],
        "now_availability": (one["now_answer"] == NO_LEADER) & (before != NO_LEADER),
        "now_writes": (one["now_answer"] != NO_ERROR) & (before == NO_ERROR),
        "structural_data": one["all_lost"],
        "structural_availability": (one["structural"] == NO_LEADER) & (placed != NO_LEADER),
        "structural_writes": (one["structural"] != NO_ERROR) & (placed == NO_ERROR),
        "worst_data": worst,
        "worst_availability": worst & ~one["elects_unclean"],
    }


def _bits(conditions: dict[str, Column], test: Callable[[Column], Column]) -> Column:
    return reduce(Column.__add__, (F.when(test(c), BITS[name]).otherwise(0) for name, c in conditions.items()))


def _with_bits(one: Column) -> Column:
    found = _conditions(one)
    breaks, may = _bits(found, certain), _bits(found, possible)
    return struct({"breaks": breaks, "may": may})


def _of_slot(slot: Column) -> Column:
    """A loss, with what it breaks. If the quorum is unknown, it breaks what both readings break, and may break what one does."""
    kept, lost, lost_now = (_answer(slot["lost"], F.lit(quorum)) for quorum in (KEPT, LOST, LOST_NOW))
    quorum = slot["quorum"]

    def of(field: str, both: Callable[[Column, Column], Column]) -> Column:
        known = F.when(quorum == KEPT, kept[field]).when(quorum == LOST, lost[field])
        known = known.when(quorum == LOST_NOW, lost_now[field])
        return known.otherwise(both(kept[field], lost[field]))

    breaks = of("breaks", Column.bitwiseAND)
    found = {
        "breaks": breaks,
        # Among the sets that are lost is each broker, and each rack.
        "kept": breaks.bitwiseAND(F.coalesce(kept["breaks"], breaks)),
        "may": of("may", Column.bitwiseOR),
    }
    return struct({**{name: slot[name] for name in ("kind", "place")}, **found})


def _answer(lost: Column, quorum: Column) -> Column:
    """The element of `answers` for this loss; NULL if it wasn't judged."""
    number = F.array_position("different", struct({"lost": lost, "quorum": quorum}))
    return F.when(number > 0, F.get("answers", number.cast("int") - 1))


def _losses() -> Column:
    """A rack breaks what it breaks without the brokers of unknown racks, and may break what it breaks with them."""

    def with_unplaced(one: Column) -> Column:
        same = F.filter("each", lambda o: (o["kind"] == RACK_WITH) & (o["place"] == one["place"]))
        return F.coalesce(F.get(same, 0)["may"], F.lit(0))

    def found(one: Column) -> Column:
        is_rack = one["kind"] == RACK
        may = one["may"].bitwiseOR(F.when(is_rack, with_unplaced(one)).otherwise(0))
        unsure = may.bitwiseAND(F.bitwise_not(one["breaks"]))
        found = {"rack": is_rack, **{n: one[n] for n in ("place", "breaks", "kept")}, "unsure": unsure}
        return struct({**found, "anywhere": F.when(is_rack, anywhere(one)).otherwise(False)})

    def anywhere(one: Column) -> Column:
        possible_quorums = possible_after(F.get("places", one["place"] - 1)["of_rack_with"])
        same = F.filter("each", lambda o: (o["kind"] == ELSEWHERE) & (F.getbit(possible_quorums, o["place"]) == 1))
        return F.exists(same, lambda o: o["may"] != 0)

    listed = F.transform(F.filter("each", lambda o: o["kind"].isin(BROKER, RACK)), found)
    anything = F.filter(listed, lambda o: (o["breaks"] != 0) | (o["unsure"] != 0))
    any_loss = F.array(*(F.struct(F.lit(rack).alias("rack"), *_unknown()) for rack in (False, True)))
    return F.when(F.col("nothing")["placed"], anything).otherwise(any_loss)


def _unknown() -> list[Column]:
    none, nothing = F.lit(None).cast("int"), F.lit(0)
    unsure = [F.lit(ALL).alias("unsure"), F.lit(False).alias("anywhere")]
    return [none.alias("place"), nothing.alias("breaks"), nothing.alias("kept"), *unsure]


def _elsewhere() -> Column:
    def of(quorum: int) -> Column:
        found = F.filter("each", lambda o: (o["kind"] == ELSEWHERE) & (o["place"] == quorum))
        return F.coalesce(F.get(found, 0)["may"], F.lit(0))

    return struct({"kept": of(KEPT), "lost": of(LOST)})


def _already() -> dict[str, Column]:
    nothing = F.col("nothing")
    of_now, placed = nothing["before_answer"], nothing["structural"]
    conditions = {
        "now_data": nothing["sure"] == 0,
        "now_availability": of_now == NO_LEADER,
        "now_writes": of_now != NO_ERROR,
        "structural_availability": placed == NO_LEADER,
        "structural_writes": placed != NO_ERROR,
    }
    yes, may = _bits(conditions, certain), _bits(conditions, possible)
    return {"already": yes, "already_unsure": may.bitwiseAND(F.bitwise_not(yes))}
