"""What the loss of any one broker and of any one rack would newly break: by topic, broker and rack.

The rules are those of every prediction (`spark_jobs.frames.single_losses`). `spark_jobs.scale.loss_patterns` applies them once to
partitions that lose alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.assemble import loss_names
from spark_jobs.frames import base, loss_verdicts, partitions, quorum, single_losses, target
from spark_jobs.frames.columns import certain, struct
from spark_jobs.frames.loss_bits import BITS, has
from spark_jobs.scale import loss_groups, packed_sets
from spark_jobs.scale import loss_patterns as patterns
from spark_jobs.scale.compiled import compiled
from spark_jobs.scale.planned import planned

FOUND = (
    *("losses", "elsewhere", "already", "already_unsure"),
    *("of_broker", "of_broker_unsure", "of_broker_kept", "of_rack", "of_rack_unsure", "of_rack_kept"),
)
"""The columns of `single_losses.broken`."""
IN_SETS = tuple(name for name in BITS if not name.startswith("worst_"))
KINDS = {"broker": False, "rack": True}
OF_PARTITION = ("tid", "cluster", "partition", "replicas")


class Losses:
    """The losses of a run's partitions. Frames that are read several times are checkpointed."""

    def __init__(
        self,
        rows: DataFrame,
        topics: DataFrame,
        clusters: DataFrame,
        checkpointed: Callable[[DataFrame], DataFrame],
        by_name: bool = True,
        large: bool = False,
        groups: loss_groups.Groups | None = None,
    ):
        """rows: the facts of partitions, a row each. topics, clusters: `facts.topics`, `facts.clusters`, checkpointed.

        by_name: prepare `costs`, `sets` and `of_topics` too. `distances` needs none of it.
        large: compile plans to Java. For few rows that takes longer than to interpret them.
        groups: partitions that rules can't tell apart, if the lake has such groups.
        """
        self._checkpointed, self._large = checkpointed, large
        self._planned = partial(planned, small=not large)
        self._listed = topics.select("cluster", "topic", "partitions_known")
        self._asking = topics.where(target.survives()).select("cluster", "topic")
        coded = patterns.codes(clusters)
        self.clusters = checkpointed(coded.clusters)
        self.topics = patterns.numbered_topics(topics, clusters)
        keyed = loss_groups.keyed(rows, groups, self.topics, self.clusters, checkpointed, self._compiled)
        numbers = checkpointed(keyed.patterns.withColumn("pattern", F.monotonically_increasing_id()))
        # Partitions that no pattern describes are few, or none.
        alone = checkpointed(keyed.undescribed())
        facts = partitions.facts(
            _by_itself(rows.join(F.broadcast(alone), ["cluster", "topic", "partition"])), topics, clusters
        )
        of_patterns = patterns.facts_of(numbers.select(*patterns.KEY), self.topics, coded.kinds, facts)
        of_places = patterns.BY_PLACE if large else ()
        prepared = partial(self._compiled, whole=False)
        judged = single_losses.broken(of_patterns, patterns.KEY, prepared, of_places, self._planned)
        self._patterns = checkpointed(judged.join(numbers, [*patterns.KEY]))
        self._alone = None if alone.isEmpty() else checkpointed(self._judged_alone(facts, topics))
        self._ids = keyed.listed(numbers)
        same = self._ids.groupBy("tid", "pattern")
        self._counted = checkpointed(same.agg(F.sum(F.size("ids").cast("long")).alias("partitions")))
        if by_name:
            self._numbered = checkpointed(keyed.numbered(numbers))
            alike = self._compiled(self._numbered).groupBy("cluster", "replicas", "pattern")
            self._placements = checkpointed(alike.agg(F.count("*").alias("n")))
            self.by_loss = checkpointed(self._by_loss())

    def _compiled(self, frame: DataFrame, whole: bool = True) -> DataFrame:
        return compiled(frame, whole) if self._large else frame

    def _judged_alone(self, facts: DataFrame, topics: DataFrame) -> DataFrame:
        """OF_PARTITION and FOUND of partitions that no pattern describes."""
        unclean = topics.select("cluster", "topic", "elects_unclean")
        numbers = self.topics.select("cluster", "topic", "tid")
        joined = facts.join(F.broadcast(unclean), ["cluster", "topic"]).join(F.broadcast(numbers), ["cluster", "topic"])
        codes = F.transform("replicas", patterns.code)
        of_clusters = self.clusters.select("cluster", "code_at", "code_of", quorum.before().alias("quorum_before"))
        with_codes = joined.join(F.broadcast(of_clusters), "cluster").withColumn("codes", codes)
        with_places = with_codes.withColumn("places", patterns.places_of(F.col("codes")))
        key = ("tid", "partition")
        found = single_losses.broken(with_places.drop("codes", "code_at", "code_of"), key, planned=self._planned)
        return found.join(joined.select(*OF_PARTITION, "leader"), [*key])

    def _with_alone(
        self, packed: DataFrame, of_alone: Callable[[DataFrame], DataFrame], columns: Sequence[str]
    ) -> DataFrame:
        """`columns` of both, if there are partitions that were judged by themselves."""
        chosen = packed.select(*columns)
        return chosen if self._alone is None else chosen.unionByName(of_alone(self._alone).select(*columns))

    def by_topic(self) -> DataFrame:
        """`tid`, and its partitions by what any loss breaks, for every topic: sums over patterns and odd partitions."""
        of_patterns = self._compiled(self._counted).join(F.broadcast(self._patterns), "pattern")
        one = F.lit(1).cast("long")
        return self._with_alone(
            of_patterns, lambda alone: alone.withColumn("partitions", one), ("tid", "partitions", *FOUND[2:])
        )

    def distances(self) -> DataFrame:
        """cluster, topic and tables.ONE_FAILURE: how many partitions one loss would break now, or are broken already.

        In a cluster that names no rack, all brokers may be in one. Topics without a number above 0 have no row.
        """
        named = self.clusters.select("cluster", (F.size("racks") > 0).alias("named"))
        numbered = self.topics.select("tid", "cluster", "topic").join(F.broadcast(named), "cluster")
        of_now = {"refusing": BITS["now_writes"], "losing": BITS["now_data"]}
        both = sum(of_now.values())
        partitions, in_racks = F.col("partitions"), F.col("named")
        unsure = F.col("of_broker_unsure").bitwiseOR(F.when(in_racks, F.col("of_rack_unsure")).otherwise(0))
        undecided = unsure.bitwiseOR(F.col("already_unsure")).bitwiseAND(F.bitwise_not("already"))
        counted = {}
        for kind in KINDS:
            for harm, bit in of_now.items():
                near = has(f"of_{kind}", bit) | has("already", bit)
                if kind == "rack":
                    near = near | ~in_racks
                counted[f"one_{kind}_from_{harm}"] = F.sum(F.when(near, partitions).otherwise(0))
        counted["one_failure_unknown"] = F.sum(F.when(has(undecided, both), partitions).otherwise(0))
        rows = self.by_topic().join(numbered, "tid").groupBy("cluster", "topic")
        near_harm = rows.agg(*(number.alias(name) for name, number in counted.items()))
        near_harm = near_harm.where(reduce(Column.__or__, (F.col(name) > 0 for name in counted)))
        unlisted = self._listed.where(~certain("partitions_known")).select(
            "cluster",
            "topic",
            *(F.lit(int(name == "one_failure_unknown")).cast("long").alias(name) for name in counted),
        )
        known = near_harm.join(F.broadcast(unlisted.select("cluster", "topic")), ["cluster", "topic"], "left_anti")
        return known.unionByName(unlisted)

    def _by_loss(self) -> DataFrame:
        """A row per topic and loss that breaks partitions of it, or may: tid, rack (is it one?), number, BITS as counts, unknown.

        number: the broker's id, or the rack's place in the cluster's `racks`, from 1; NULL for what any of them may break, and
            `loss_names.elsewhere` for what any rack with such a quorum may break.
        unknown: the partitions that it may break, less those that any such rack may break and this one breaks or leaves whole.
        """
        loss = F.col("loss")
        unsure = (loss["unsure"] != 0).cast("int")
        breaks = {
            "rack": loss["rack"],
            "breaks": loss["breaks"],
            # What any rack may break is counted once.
            "unsure": F.when(loss["anywhere"], unsure - 1).otherwise(unsure),
        }
        columns = [column.alias(name) for name, column in breaks.items()]
        every = F.explode(loss_names.with_elsewhere()).alias("loss")
        losses = self._patterns.select("pattern", every)
        of_patterns = F.broadcast(losses.select("pattern", loss["place"].alias("place"), *columns))
        placed = self._compiled(self._numbered).join(of_patterns, "pattern")
        packed = placed.withColumns({"id": loss_names.id_at(F.col("place")), "n": F.lit(1).cast("long")})

        def of_alone(alone: DataFrame) -> DataFrame:
            exploded = alone.select("tid", "replicas", every)
            id = loss_names.id_at(loss["place"]).alias("id")
            return exploded.select("tid", id, F.lit(1).cast("long").alias("n"), *columns)

        each = self._with_alone(packed, of_alone, ("tid", "id", "n", *breaks))
        # Millions of partitions become few rows before brokers are looked up.
        each = each.groupBy("tid", "id", *breaks).agg(F.sum("n").alias("n"))
        placed = each.join(F.broadcast(self.topics.select("tid", "cluster")), "tid")
        placed = placed.join(F.broadcast(self._codes()), "cluster")
        rack, id = patterns.rack_of(patterns.code(F.col("id"))), F.col("id")
        number = F.when(id.isNull() | (id < 0) | ~F.col("rack"), id).otherwise(rack).alias("number")
        # Few different flags of many partitions are counted first.
        counted = placed.groupBy("tid", "rack", number, "breaks", "unsure").agg(F.sum("n").alias("n"))
        return counted.groupBy("tid", "rack", "number").agg(
            *(F.sum(F.when(has("breaks", bit), F.col("n")).otherwise(0)).alias(name) for name, bit in BITS.items()),
            F.sum(F.col("unsure") * F.col("n")).alias("unknown"),
        )

    def costs(self) -> DataFrame:
        """The rows of `failure_costs`."""
        numbered = self.topics.select("tid", "cluster")
        per_name = (
            self._compiled(self.by_loss)
            .join(F.broadcast(numbered), "tid")
            .groupBy("cluster", "rack", "number")
            .agg(F.sum("unknown").alias("unknown"), *(_with_topics(F.col(name)).alias(name) for name in BITS))
        )
        names = loss_names.names(self.clusters).join(self._held(), ["cluster", "rack", "number"], "left")
        # The leftmost frame decides whether a plan is compiled.
        per_name = self._checkpointed(per_name)
        # What any broker or rack may break, by number.
        listed = F.collect_list(F.struct(F.coalesce("number", F.lit(0)), "unknown"))
        any_of_kind = per_name.where(F.col("number").isNull() | (F.col("number") < 0)).groupBy("cluster", "rack")
        of_any = any_of_kind.agg(F.map_from_entries(listed).alias("of_any"))
        joined = names.join(F.broadcast(per_name), ["cluster", "rack", "number"], "left")
        joined = joined.join(F.broadcast(of_any), ["cluster", "rack"], "left")
        zero = F.lit(0).cast("long")
        may = [F.try_element_at("of_any", place) for place in (F.lit(0), F.col("elsewhere"))]
        nothing = F.struct(zero.alias("partitions"), zero.alias("topics"))
        rows = joined.select(
            *base.SNAPSHOT,
            F.when(F.col("rack"), "rack").otherwise("broker").alias("kind"),
            "name",
            *(F.coalesce(n, zero).alias(n) for n in ("held", "led")),
            reduce(Column.__add__, (F.coalesce(n, zero) for n in (F.col("unknown"), *may))).alias("unknown"),
            "quorum",
            *(F.coalesce(name, nothing).alias(name) for name in BITS),
        )
        return rows.unionByName(self._already(), allowMissingColumns=True)

    def _held(self) -> DataFrame:
        """By cluster, rack and number: the partitions with a replica there (`held`), and those led there (`led`)."""
        of_patterns = F.broadcast(self._patterns.select("pattern", "racks", patterns.leader_place().alias("leads")))
        placed = self._compiled(self._placements).join(of_patterns, "pattern")
        places = placed.select("cluster", "n", "racks", "leads", F.posexplode("replicas").alias("place", "id"))
        first = F.when(patterns.is_first_in_rack(F.col("place")), F.col("n")).otherwise(0)
        led = F.when(F.col("leads") == F.col("place") + 1, F.col("n")).otherwise(0)
        packed = places.withColumns({"first": first, "led": led})

        def of_alone(alone: DataFrame) -> DataFrame:
            one, leads = F.lit(1).cast("long"), (F.col("leader") == F.col("id")).cast("long")
            racks = F.transform("replicas", lambda id: patterns.rack_of(patterns.code(id)))
            with_racks = alone.join(F.broadcast(self._codes()), "cluster").withColumn("racks", racks)
            each = with_racks.select("cluster", "leader", "racks", F.posexplode("replicas").alias("place", "id"))
            is_first = F.array_position("racks", F.get("racks", "place")) == F.col("place") + 1
            return each.withColumns({"n": one, "first": is_first.cast("long"), "led": leads})

        each = self._with_alone(packed, of_alone, ("cluster", "id", "n", "led", "first"))
        of_brokers = self._checkpointed(
            each.groupBy("cluster", F.col("id").alias("number")).agg(
                *(F.sum(n).alias(name) for n, name in (("n", "held"), ("led", "led"), ("first", "first")))
            )
        )
        rack = patterns.rack_of(patterns.code(F.col("number"))).alias("number")
        by_rack = of_brokers.join(F.broadcast(self._codes()), "cluster").groupBy("cluster", rack)
        of_racks = by_rack.agg(F.sum("first").alias("held"), F.sum("led").alias("led")).withColumn("rack", F.lit(True))
        of_brokers = of_brokers.drop("first").withColumn("rack", F.lit(False))
        return of_brokers.unionByName(of_racks)

    def _codes(self) -> DataFrame:
        return self.clusters.select("cluster", "code_at", "code_of")

    def sets(self) -> DataFrame:
        """The rows of `loss_sets`."""
        sets = self._patterns.select("pattern", F.explode("sets").alias("found")).select("pattern", "found.*")
        of_brokers, of_racks = (F.broadcast(sets.where(F.col("rack") == rack)) for rack in KINDS.values())
        placements = self._compiled(self._placements)
        # Few partitions differ in the racks of their replicas.
        with_codes = placements.join(F.broadcast(self._codes()), "cluster")
        in_racks = with_codes.groupBy("cluster", "pattern", patterns.racks_of_replicas().alias("replicas"))
        rows = placements.join(of_brokers, "pattern").unionByName(
            in_racks.agg(F.sum("n").alias("n")).join(of_racks, "pattern")
        )

        def of_alone(alone: DataFrame) -> DataFrame:
            each = alone.select("cluster", "replicas", F.explode("sets").alias("found")).select("*", "found.*")
            racks = F.transform("replicas", lambda id: patterns.rack_of(patterns.code(id)))
            numbers = F.when(F.col("rack"), racks).otherwise(F.col("replicas"))
            named = each.join(F.broadcast(self._codes()), "cluster").withColumn("replicas", numbers)
            return named.withColumn("n", F.lit(1).cast("long"))

        found = self._with_alone(rows, of_alone, ("cluster", "replicas", "n", "rack", "places", "breaks"))
        sums = {name: F.sum(F.when(has("breaks", BITS[name]), F.col("n")).otherwise(0)) for name in IN_SETS}
        counted = packed_sets.counted(found, ("cluster", "rack", "n", "breaks"), sums)
        of_clusters = self.clusters.select(*base.SNAPSHOT, F.col("racks").alias("names"))
        members = F.transform(
            "numbers", lambda i: F.when(F.col("rack"), F.get("names", i - 1)).otherwise(i.cast("string"))
        )
        return counted.join(F.broadcast(of_clusters), "cluster").select(
            *base.SNAPSHOT,
            F.when(F.col("rack"), "rack").otherwise("broker").alias("kind"),
            members.alias("members"),
            *IN_SETS,
        )

    def of_topics(self) -> DataFrame:
        """A row per topic, for `loss_verdicts`: FOUND over all of it, and by kind of loss, as in `broker_losses`:

        - `_losses`: what each one breaks, the worst first.
        - `_breaks`: by BITS, the partitions that any of them breaks.
        - `_partitions`: those with the worst harm, of topics that must survive losses.
        - `_quorum_unsure`: is the quorum after some of them unknown?

        And of its cluster: `unplaced`, `unplaced_voters`, and `majority`, what the verdicts say of the quorum without a loss.
        """
        names = loss_names.names(self.clusters).select("cluster", "rack", "number", "name", *loss_names.STATES)
        of_loss = self._compiled(self.by_loss).join(F.broadcast(self.topics.select("tid", "cluster")), "tid")
        named = of_loss.join(F.broadcast(names), ["cluster", "rack", "number"])
        entry = F.struct(*loss_verdicts.ORDER, "name", *loss_names.STATES, *BITS)
        ordered = named.withColumns(loss_verdicts.order())
        losses = ordered.groupBy("tid").agg(
            *(
                F.array_sort(F.collect_list(F.when(F.col("rack") == rack, entry))).alias(f"{kind}_losses")
                for kind, rack in KINDS.items()
            )
        )
        totals = self._checkpointed(
            self.by_topic()
            .groupBy("tid")
            .agg(
                *(F.bit_or(name).alias(name) for name in FOUND[2:]),
                *(number_with("already", BITS[name]).alias(f"already_{name}") for name in loss_verdicts.ALREADY),
                *(
                    F.struct(*(number_with(f"of_{kind}", bit).alias(name) for name, bit in BITS.items())).alias(
                        f"{kind}_breaks"
                    )
                    for kind in KINDS
                ),
            )
        )
        # The leftmost frame decides whether a plan is compiled.
        parts = (self._checkpointed(losses), self._checkpointed(self._in_worst_class(totals)))
        joined = reduce(lambda rows, part: rows.join(part, "tid", "left"), parts, totals)
        unsure = [
            F.bool_or((F.col("rack") == rack) & (F.col("quorum") == "unknown")).alias(f"{kind}_quorum_unsure")
            for kind, rack in KINDS.items()
        ]
        majority = struct(quorum.majority_of_cluster()).alias("majority")
        of_clusters = self.clusters.select("cluster", "unplaced", "unplaced_voters", majority)
        of_clusters = F.broadcast(of_clusters.join(names.groupBy("cluster").agg(*unsure), "cluster", "left"))
        return (
            self.topics.select("tid", "cluster", "topic").join(joined, "tid").drop("tid").join(of_clusters, "cluster")
        )

    def _in_worst_class(self, totals: DataFrame) -> DataFrame:
        """`tid`, and for each kind of loss the partitions with the worst harm: `broker_partitions`, `rack_partitions`.

        Of topics that must survive losses alone. totals: `tid`, and what losses break in the topic.
        """
        asking = self.topics.join(self._asking, ["cluster", "topic"]).select("tid")
        worst_class = {f"worst_class_{kind}": loss_verdicts.worst_class_bits(F.col(f"of_{kind}")) for kind in KINDS}
        of_topics = totals.join(asking, "tid").select(
            "tid", *(column.alias(name) for name, column in worst_class.items())
        )
        broken = [f"of_{kind}" for kind in KINDS]
        harmful = self._patterns.where(reduce(Column.__or__, (F.col(name) != 0 for name in broken)))
        listed = self._compiled(self._ids).join(F.broadcast(harmful.select("pattern", *broken)), "pattern")
        each = self._with_alone(
            listed, lambda alone: alone.withColumn("ids", F.array("partition")), ("tid", "ids", *broken)
        )
        mine = {kind: F.col(f"of_{kind}").bitwiseAND(F.col(f"worst_class_{kind}")) != 0 for kind in KINDS}
        harmed = each.join(F.broadcast(of_topics), "tid").where(reduce(Column.__or__, mine.values()))
        return harmed.groupBy("tid").agg(
            *(
                F.flatten(F.collect_list(F.when(of, F.col("ids")))).alias(f"{kind}_partitions")
                for kind, of in mine.items()
            )
        )

    def _already(self) -> DataFrame:
        """A row per cluster of kind `already`."""
        counted = self.by_topic().join(F.broadcast(self.topics.select("tid", "cluster")), "tid")
        per_topic = counted.groupBy("cluster", "tid").agg(
            *(number_with("already", bit).alias(name) for name, bit in BITS.items()),
            F.sum(F.when(F.col("already_unsure") != 0, F.col("partitions")).otherwise(0)).alias("unknown"),
        )
        rows = per_topic.groupBy("cluster").agg(
            F.sum("unknown").alias("unknown"), *(_with_topics(F.col(name)).alias(name) for name in BITS)
        )
        of_clusters = self.clusters.select(*base.SNAPSHOT)
        return of_clusters.join(F.broadcast(rows), "cluster").select(
            *base.SNAPSHOT, F.lit("already").alias("kind"), "unknown", *BITS
        )


def number_with(column: str, bit: int) -> Column:
    """The number of `partitions` with this bit."""
    return F.sum(F.when(has(column, bit), F.col("partitions")).otherwise(0))


def _with_topics(partitions: Column) -> Column:
    return F.struct(F.sum(partitions).alias("partitions"), F.sum((partitions > 0).cast("long")).alias("topics"))


def _by_itself(rows: DataFrame) -> DataFrame:
    """Rows of partitions as `partitions.facts` reads them, each of which represents itself."""
    none = {"partition_group": F.lit(None).cast("int"), "unchanged_reassignment": F.lit(False)}
    return rows.withColumns({"ids": F.array("partition"), "leaders": F.array("leader"), **none})
