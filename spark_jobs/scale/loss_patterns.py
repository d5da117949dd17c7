"""Judges the losses of equal partitions once.

What a loss does to a partition depends on the states of its replicas, on which of them share a rack, and on its topic's settings.
It doesn't depend on which brokers they are. So partitions are numbered by pattern, and the rules for losses judge each pattern.
A pattern packs the first WIDTH replicas. Partitions that don't fit are judged by themselves.

Of 7 million partitions placed as Kafka places them, 190,824 groups are left (`loss_groups`), 3,989 patterns, and 869 that differ
in more than their racks. The rules take 26 CPU seconds.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import quorum
from spark_jobs.frames.columns import certain, struct
from spark_jobs.frames.facts import REPLICA_FIELDS
from spark_jobs.frames.single_losses import KEPT, LOST, LOST_NOW, UNSURE, possible_after

WIDTH = 6
"""The most replicas of a packed pattern."""
PLACES = range(WIDTH)
MOST_STATES = 255
BY_ID = 1_000_000
"""Broker ids below this are looked up by place in an array."""
OF_KIND = ("live", "disks_online", "caps", "min_isr", "min_isr_source")
"""What rules for losses read of a broker."""
SETTINGS = ("min_isr_readable", "own_min_isr", "own_min_isr_source", "has_observers", "elr_on", "elects_unclean")
OF_CLUSTER = ("recorded_min_isr", "reassignments_known", "quorum_before")
MEMBERS = ("isr", "elr", "adding", "removing")
PLACED = ("states", "racks", "quorums", "members")
"""The parts of KEY that a partition has from its replicas and their brokers."""
KEY = ("settings", *PLACED)
BY_PLACE = ("settings", "states", "members")
"""The parts of KEY that decide what a set of replicas breaks if it is lost. The others decide which sets a loss takes."""
QUORUMS = ("own", "of_rack", "of_rack_with", "elsewhere")
"""What a broker's code has of quorums after losses, two bits each (`single_losses.broken`)."""


class Codes(NamedTuple):
    """clusters: a row per cluster. kinds: one row with the array `kinds`, of distinct states of brokers."""

    clusters: DataFrame
    kinds: DataFrame


# Clusters and topics, as numbers.


def codes(clusters: DataFrame) -> Codes:
    """clusters: `facts.clusters`. Adds `code_at` and `code_of`: by broker id its kind, rack and quorum codes, in one number.

    - `rack_quorum`, `rack_quorum_with`: by place in `racks`, the quorum after the loss of that rack, and with the nodes that may
      be in it.
    - `rack_outnumbers`: by place, whether the voters of other racks are no majority, even if all of them are up.
    - `racks`: the brokers' racks, then those that have controllers alone. Empty if no broker has a rack: then nothing is known of
      the loss of one.
    - `unplaced`, `unplaced_voters`: the brokers and voters without a known rack.
    """
    of_voters = F.filter(F.col("voting")["racks"], lambda rack: rack != "")
    clusters = clusters.withColumn("racks", F.when(F.size("racks") > 0, of_voters).otherwise(F.col("racks")))
    state = struct({name: F.col("b")[name] for name in OF_KIND})
    every = clusters.select(F.explode(F.map_values("broker")).alias("b")).select(state.alias("state"))
    text = F.to_json("state", {"ignoreNullFields": "false"}).alias("text")
    kinds = (
        every.select(text, "state")
        .distinct()
        .agg(F.array_sort(F.collect_list(F.struct("text", "state"))).alias("kinds"))
    )
    racks_of = {
        "rack_quorum": F.transform("racks", lambda rack: _quorum_code(_in_rack(rack))),
        "rack_quorum_with": F.transform("racks", lambda rack: _quorum_code(_in_rack(rack, with_unplaced=True))),
        "rack_outnumbers": F.transform("racks", lambda rack: quorum.outnumbers(_in_rack(rack))),
    }
    nowhere = {
        "unplaced": F.filter("brokers", lambda b: ~_placed(b["rack"]))["broker"],
        "unplaced_voters": F.filter("voters", _unplaced_controller)["controller"],
    }
    with_racks = clusters.withColumns({**nowhere, **racks_of}).crossJoin(F.broadcast(kinds))
    coded = with_racks.withColumn("code_of", F.map_from_entries(F.transform("brokers", _coded)))
    most = F.array_max(F.map_keys("code_of"))
    by_id = F.transform(F.sequence(F.lit(0), F.least(most, F.lit(BY_ID))), lambda id: F.try_element_at("code_of", id))
    return Codes(coded.withColumn("code_at", by_id).drop("kinds"), kinds)


def _placed(rack: Column) -> Column:
    # A controller may be in a rack without brokers.
    return certain(rack != "")


def _coded(broker: Column) -> Column:
    """An entry of `code_of`: the number of the broker's state, its rack's place in `racks` (0: none), and quorums."""
    state = struct({name: broker[name] for name in OF_KIND})
    kind = F.array_position(F.col("kinds")["text"], F.to_json(state, {"ignoreNullFields": "false"}))
    rack = F.coalesce(F.array_position("racks", broker["rack"]), F.lit(0))
    of_rack = [F.coalesce(F.get(name, rack - 1), F.lit(KEPT)) for name in ("rack_quorum", "rack_quorum_with")]
    # A rack without a replica of the partition may be lost with the nodes of unknown racks.
    elsewhere = F.aggregate("rack_quorum_with", F.lit(0), lambda bits, code: bits.bitwiseOR(possible_after(code)))
    of_rack.append(elsewhere)
    own = _quorum_code(F.array(broker["broker"]))
    fields = zip((kind, rack, own, *of_rack), (0, 16, 32, 34, 36, 38), strict=True)
    return F.struct(broker["broker"], _joined(fields))


def _quorum_code(lost: Column) -> Column:
    kept = quorum.left(lost)["kept"]
    return F.when(kept, KEPT).when(~kept, F.when(quorum.kept_once_up(lost), LOST_NOW).otherwise(LOST)).otherwise(UNSURE)


def _unplaced_controller(controller: Column) -> Column:
    # The rack of a combined node may be stated for its broker alone.
    placed = F.filter("brokers", lambda b: _placed(b["rack"]))["broker"]
    return ~_placed(controller["rack"]) & ~F.array_contains(placed, controller["controller"])


def _in_rack(rack: Column, with_unplaced: bool = False) -> Column:
    """The ids of the rack's brokers and controllers, and of those that may be there."""

    def gone(node: Column, unplaced: Column) -> Column:
        there = certain(node["rack"] == rack)
        return there | unplaced if with_unplaced else there

    brokers = F.filter("brokers", lambda b: gone(b, ~_placed(b["rack"])))["broker"]
    return F.concat(brokers, F.filter("controllers", lambda c: gone(c, _unplaced_controller(c)))["controller"])


def numbered_topics(topics: DataFrame, clusters: DataFrame) -> DataFrame:
    """Columns cluster, topic, `tid`, and the number `settings` of the topic's settings, with the settings as `of_settings`.

    Checkpointed, since other frames refer to the numbers. Diskless topics are left out: their replicas have no meaning.
    """
    of_clusters = clusters.withColumn("quorum_before", quorum.before()).select("cluster", *OF_CLUSTER)
    replicated = topics.where(~certain("diskless")).select("cluster", "topic", *SETTINGS)
    joined = replicated.join(F.broadcast(of_clusters), "cluster")
    of_settings = F.struct(*SETTINGS, *OF_CLUSTER)
    same = joined.groupBy(of_settings.alias("of_settings")).agg(
        F.collect_list(F.struct("cluster", "topic")).alias("named")
    )
    listed = same.withColumn("settings", F.monotonically_increasing_id()).select(
        "settings", "of_settings", F.explode("named").alias("t")
    )
    named = listed.select("settings", "of_settings", "t.cluster", "t.topic")
    return named.withColumn("tid", F.monotonically_increasing_id()).localCheckpoint()


# Partitions.


def alike_without_brokers() -> Column:
    """Do partitions of a cluster have one pattern if they differ only in which brokers of equal state they are on?

    A pattern has the quorums after losses, too, and no more than MOST_STATES states. Reads `codes`.
    """
    quorums = F.transform(F.map_values("code_of"), lambda code: F.shiftright(code, 32))
    few = F.forall(F.map_values("code_of"), lambda code: code.bitwiseAND(F.lit(65535)) <= MOST_STATES)
    return certain((F.size(F.array_distinct(quorums)) <= 1) & few)


def keyed(rows: DataFrame, clusters: DataFrame, keep: Sequence[str]) -> DataFrame:
    """The columns `keep` of partitions, and PLACED, all NULL for those that don't fit.

    rows: the facts of partitions. clusters: `codes`.
    """
    joined = rows.join(F.broadcast(clusters.select("cluster", "code_at", "code_of")), "cluster")
    own = tuple(dict.fromkeys([*keep, "leader", "replicas"]))
    # Each step selects from the step before, so that Spark computes shared expressions once.
    ids = [F.get("replicas", F.lit(i)).alias(f"id_{i}") for i in PLACES]
    with_ids = joined.select(*own, *MEMBERS, "unreadable", "code_at", "code_of", *ids)
    known = [F.when(F.col(f"id_{i}").isNotNull(), code(F.col(f"id_{i}"))).alias(f"code_{i}") for i in PLACES]
    with_codes = with_ids.select(*(c for c in with_ids.columns if c not in ("code_at", "code_of")), *known)
    masks = [
        _sum(_flag(F.array_contains(name, F.col(f"id_{i}")), 1 << i) for i in PLACES).alias(f"in_{name}")
        for name in MEMBERS
    ]
    racks = [rack_of(F.col(f"code_{i}")).alias(f"rack_{i}") for i in PLACES]
    with_masks = with_codes.select("*", *masks, *racks)
    return with_masks.select(*keep, *(F.when(_fits(), value).alias(name) for name, value in _placed_key().items()))


def code(id: Column) -> Column:
    """A broker's number in `code_of`. Reads `code_at`, too."""
    by_place = F.when((id >= 0) & (id <= BY_ID), F.get("code_at", id))
    # A broker that isn't listed has the code 0.
    return F.coalesce(by_place, F.when(id > BY_ID, F.try_element_at("code_of", id)), F.lit(0)).cast("long")


def rack_of(code: Column) -> Column:
    """The place of a broker's rack in `racks`, from 1; 0 without a known rack."""
    return F.shiftright(code, 16).bitwiseAND(F.lit(65535)).cast("int")


def racks_of_replicas() -> Column:
    """The racks of a packed partition's replicas, as `rack_of`. Reads `replicas` and `code_at`."""
    # Without a lambda, Spark compiles it.
    return F.array(*(rack_of(code(F.get("replicas", F.lit(i)))) for i in PLACES))


def is_first_in_rack(place: Column) -> Column:
    """Is the replica at this place, from 0, the first one of its partition in its rack?"""
    return _byte("racks", place + 1, 4) == place + 1


def leader_place() -> Column:
    """The leader's place, from 1; 0 without a leader, 15 if the leader is unknown. Reads KEY."""
    return F.shiftright("members", 32).bitwiseAND(F.lit(15))


def _flag(condition: Column, number: int) -> Column:
    return F.when(condition, number).otherwise(0).cast("long")


def _sum(numbers: Iterable[Column]) -> Column:
    return reduce(Column.__add__, numbers)


def _joined(fields: Iterable[tuple[Column, int]]) -> Column:
    """Small numbers in one, each from its bit on. NULL counts as 0."""
    return _sum(F.shiftleft(F.coalesce(number.cast("long"), F.lit(0).cast("long")), bit) for number, bit in fields)


def _placed_key() -> dict[str, Column]:
    """PLACED, by name."""
    each = [(i, F.col(f"code_{i}")) for i in PLACES]
    return {
        "states": _joined((code.bitwiseAND(F.lit(MOST_STATES)), 8 * i) for i, code in each),
        "racks": _joined((_same_rack(i), 4 * i) for i in PLACES),
        "quorums": _joined((F.shiftright(code, 32), 8 * i) for i, code in each),
        "members": _members(),
    }


def _same_rack(i: int) -> Column:
    """The first place, from 1, of a replica in the rack of the one at place i, from 0; 0 without a known rack."""
    rack = F.col(f"rack_{i}")
    found = F.when(rack == 0, 0)
    for j in range(i):
        found = found.when(F.col(f"rack_{j}") == rack, j + 1)
    return found.when(rack.isNotNull(), i + 1)


def _members() -> Column:
    """The places of MEMBERS in a byte each, then the leader's place, what is unread, and the number of replicas.

    The leader's place counts from 1. It is 0 without a leader, and 15 if the leader could not be read.
    """
    leads = _sum(_flag(F.col("leader") == F.col(f"id_{i}"), i + 1) for i in PLACES)
    leader = F.when(certain(F.array_contains("unreadable", "leader")), 15).otherwise(leads)
    unread = _sum(_flag(F.col(name).isNull(), 1 << i) for i, name in enumerate(MEMBERS))
    masks = [F.col(f"in_{name}") for name in MEMBERS]
    return _joined(zip((*masks, leader, unread, F.size("replicas")), (0, 8, 16, 24, 32, 36, 40), strict=True))


def _fits() -> Column:
    """Does its pattern describe the partition?"""
    inside = [F.coalesce(F.bit_count(f"in_{name}") == F.size(name), F.lit(True)) for name in MEMBERS]
    led = [certain(F.col("leader") == F.col(f"id_{i}")) for i in PLACES]
    few = [F.coalesce(F.col(f"code_{i}").bitwiseAND(F.lit(65535)) <= MOST_STATES, F.lit(True)) for i in PLACES]
    sized = certain(F.size("replicas") <= WIDTH)
    return sized & (F.col("leader").isNull() | reduce(Column.__or__, led)) & reduce(Column.__and__, (*inside, *few))


# Patterns, as facts that rules read.


def facts_of(patterns: DataFrame, topics: DataFrame, kinds: DataFrame, like: DataFrame) -> DataFrame:
    """Each pattern as a row of `partitions.facts`, with KEY and what `single_losses.broken` reads.

    Brokers are numbered by place, from 1.

    like: a frame with the columns of `partitions.facts`. Columns that rules for losses don't read are NULL.
    """
    of_settings = topics.select("settings", "of_settings").dropDuplicates(["settings"])
    joined = (
        patterns.join(F.broadcast(of_settings), "settings").crossJoin(F.broadcast(kinds)).select("*", "of_settings.*")
    )
    replicas = F.sequence(F.lit(1), F.shiftright("members", 40).cast("int"))
    sized = joined.withColumn(
        "replicas", F.when(F.shiftright("members", 40) > 0, replicas).otherwise(F.array().cast("array<int>"))
    )
    led = leader_place().cast("int")
    known = {
        name: F.when(F.getbit(F.col("members"), F.lit(36 + i)) == 0, _mask(8 * i)) for i, name in enumerate(MEMBERS)
    }
    known |= {name: F.when(F.col("reassignments_known"), known[name]) for name in ("adding", "removing")}
    known |= {
        "leader": F.when((led > 0) & (led < 15), led),
        "leader_known": led != 15,
        "brokers": F.transform("replicas", _broker),
        "diskless": F.lit(False),
    }
    with_facts = sized.withColumns(known)
    with_facts = with_facts.withColumn("leading", F.try_element_at("brokers", F.col("leader")))
    own = {*KEY, *with_facts.columns}
    absent = [F.lit(None).cast(f.dataType).alias(f.name) for f in like.schema.fields if f.name not in own]
    present = [name for name in like.columns if name in with_facts.columns]
    places = F.transform("replicas", _place).alias("places")
    return with_facts.select(
        *(k for k in KEY if k not in present), *present, "elects_unclean", "quorum_before", places, *absent
    )


def _mask(first: int) -> Column:
    return F.filter("replicas", lambda i: F.getbit(F.col("members"), F.lit(first) + i - 1) == 1)


def _byte(column: str, i: Column, bits: int, first: int = 0, size: int | None = None) -> Column:
    """`size` bits of a packed number with so many `bits` by place, for a place from 1. first: the first bit."""
    shifted = F.call_function("shiftright", F.col(column), (i - 1) * bits + first)
    return shifted.bitwiseAND(F.lit((1 << (size or bits)) - 1)).cast("int")


def _broker(i: Column) -> Column:
    state = F.try_element_at("kinds", F.nullif(_byte("states", i, 8), F.lit(0)))["state"]
    given = {"broker": i, **{name: state[name] for name in OF_KIND}}
    return struct({name: given.get(name, F.lit(None)).cast(kind) for name, kind in REPLICA_FIELDS.items()})


def _place(i: Column) -> Column:
    quorums = {name: _byte("quorums", i, 8, 2 * bit, 2) for bit, name in enumerate(QUORUMS)}
    return struct({"id": i, "rack": _byte("racks", i, 4), **quorums})


def places_of(codes: Column) -> Column:
    """`places` of a partition that is judged by itself. codes: of all its replicas."""

    def place(code: Column, index: Column) -> Column:
        rack = rack_of(code)
        same = F.filter(F.sequence(F.lit(1), F.size(codes)), lambda i: rack_of(F.get(codes, i - 1)) == rack)
        quorums = {n: F.shiftright(code, 32 + 2 * i).bitwiseAND(F.lit(3)).cast("int") for i, n in enumerate(QUORUMS)}
        first = F.when(rack == 0, 0).otherwise(F.element_at(same, 1))
        return struct({"id": index + 1, "rack": first, **quorums})

    return F.transform(codes, place)
