"""What was collected, as frames the rules can read: one row a cluster, one a topic, one a partition.

Nothing is judged here; a fact that could not be read stays NULL.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import settings
from spark_jobs.frames.effective_min_isr import caps_min_isr
from spark_jobs.frames.racks import layout

Read = Callable[[str], DataFrame]
"""Gives a fact table's rows, those of the judged attempts only."""

MIN_ISR = "min.insync.replicas"
MIN_RACKS = "min.insync.racks"
UNCLEAN = "unclean.leader.election.enable"
DEFAULT_RF = "default.replication.factor"
AUTO_CREATE = "auto.create.topics.enable"
BROKER_THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
TOPIC_THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def config(configs: Column, key: str) -> Column:
    """A setting's value as stated; NULL where it isn't stated or the configs could not be read."""
    return F.try_element_at(configs, F.lit(key))


def setting(configs: Column, unreadable: Column, key: str, default: str) -> Column:
    """A setting as it applies: stated, else Kafka's default; NULL where it could not be read."""
    readable = configs.isNotNull() & ~F.coalesce(F.array_contains(unreadable, key), F.lit(False))
    return F.when(readable, F.coalesce(config(configs, key), F.lit(default)))


def _copies(value: Column) -> Column:
    """A min.insync.replicas as Kafka takes it, from 1 on; else NULL."""
    number = value.try_cast("int")
    return F.when(number >= 1, number)


def _wrong(configs: Column, key: str, meaning: Callable[[Column], Column]) -> Column:
    """A setting's value where it is stated and has no `meaning`; else NULL. Only a document can hold one."""
    stated = config(configs, key)
    return F.when(stated.isNotNull() & meaning(stated).isNull(), F.substring(stated, 1, 60))


def _throttles(configs: Column, keys: tuple[str, ...]) -> Column:
    # Long.MAX is what a removed rate reads as; an empty list of replicas is none.
    stated = [F.when(~config(configs, k).isin("", "9223372036854775807"), F.lit(k)) for k in keys]
    return F.array_compact(F.array(*stated))


def _readable(configs: Column, unreadable: Column, keys: tuple[str, ...]) -> Column:
    """Could all of `keys` be read, stated or not?"""
    unread = F.coalesce(F.arrays_overlap(unreadable, F.array(*map(F.lit, keys))), F.lit(False))
    return configs.isNotNull() & ~unread


def brokers_by_cluster(brokers: DataFrame) -> DataFrame:
    """cluster -> `brokers`, an array of structs sorted by id, and `racks`, the names known.

    `down`: the cause that a broker's absence has, "rack:az2 down" where a rack of two or more is gone as a whole;
    `lag_cause`: the one it has while the broker is up.
    """
    key = ("configs", "unreadable_configs")
    columns = brokers.select(
        "cluster",
        F.struct(
            "broker",
            "rack",
            "rack_state",
            "live",
            "offline_log_dirs",
            "kafka_version",
            "described",
            caps_min_isr(F.col("max_metadata_version"), F.col("kafka_version")).alias("caps"),
            F.col("configs").isNotNull().alias("configs_known"),
            _copies(setting(*map(F.col, key), MIN_ISR, "1")).alias("min_isr"),
            F.when(config(F.col("configs"), MIN_ISR).isNull(), "default")
            .otherwise(F.coalesce(config(F.col("config_sources"), MIN_ISR), F.lit("broker")))
            .alias("min_isr_source"),
            config(F.col("configs"), MIN_RACKS).try_cast("int").alias("min_racks"),
            setting(*map(F.col, key), MIN_RACKS, "1").try_cast("int").isNotNull().alias("min_racks_known"),
            config(F.col("config_sources"), MIN_RACKS).alias("min_racks_source"),
            setting(*map(F.col, key), DEFAULT_RF, "1").try_cast("int").alias("default_rf"),
            setting(*map(F.col, key), AUTO_CREATE, "true").try_cast("boolean").alias("auto_create"),
            setting(*map(F.col, key), UNCLEAN, "false").try_cast("boolean").alias("unclean"),
            config(F.col("config_sources"), UNCLEAN).alias("unclean_source"),
            _throttles(F.col("configs"), BROKER_THROTTLES).alias("throttles"),
            _readable(*map(F.col, key), BROKER_THROTTLES).alias("throttles_known"),
            *(column.alias(name) for name, column in settings.of_broker().items()),
        ).alias("b"),
    )
    return (
        columns.groupBy("cluster")
        .agg(F.array_sort(F.collect_list("b")).alias("brokers"))
        .withColumn(
            "brokers",
            F.transform("brokers", lambda b: b.withField("down", _down(b)).withField("lag_cause", _lag_cause(b))),
        )
    )


def _down(broker: Column) -> Column:
    rack_mates = F.filter("brokers", lambda other: other["rack"] == broker["rack"])
    whole_rack = (F.size(rack_mates) > 1) & F.forall(rack_mates, lambda other: ~F.coalesce(other["live"], F.lit(True)))
    name = F.concat(F.lit("broker:"), broker["broker"].cast("string"), F.lit(" down"))
    return F.when(
        ~broker["live"],
        F.when(whole_rack, F.concat(F.lit("rack:"), broker["rack"], F.lit(" down"))).otherwise(name),
    )


REPLICA_SIDE = (
    "struct<broker:int,rack:string,rack_state:string,live:boolean,caps:boolean,min_isr:int,min_isr_source:string,"
    "down:string,lag_cause:string>"
)
ANY_NUMBER = 1_000_000


def _replica_side(broker: Column) -> Column:
    """What a partition needs of a broker that holds its replica."""
    names = [field.split(":")[0] for field in REPLICA_SIDE[len("struct<") : -1].split(",")]
    return F.struct(*(broker[n].alias(n) for n in names)).cast(REPLICA_SIDE)


def unlisted(id: Column) -> Column:
    """The broker of a replica that no list names: all of it but its id is unknown."""
    none = F.lit(None)
    return F.struct(id, none, F.lit("unknown"), none, none, none, none, none, none).cast(REPLICA_SIDE)


def _lag_cause(broker: Column) -> Column:
    """The cause of a replica being out of sync on a broker that is up."""
    offline = F.when(broker["offline_log_dirs"] > 0, " disk-offline").otherwise(" lagging")
    return F.concat(F.lit("broker:"), broker["broker"].cast("string"), offline)


def controllers_by_cluster(controllers: DataFrame) -> DataFrame:
    """cluster -> `controllers`, an array of structs sorted by id."""
    configs = F.col("configs")
    none = F.lit(None).cast("array<string>")
    return controllers.groupBy("cluster").agg(
        F.array_sort(
            F.collect_list(
                F.struct(
                    "controller",
                    "role",
                    "leader",
                    "rack",
                    "lag_ms",
                    configs.isNotNull().alias("configs_known"),
                    _copies(setting(configs, none, MIN_ISR, "1")).alias("min_isr"),
                    setting(configs, none, DEFAULT_RF, "1").try_cast("int").alias("default_rf"),
                    setting(configs, none, UNCLEAN, "false").try_cast("boolean").alias("unclean"),
                    config(configs, MIN_ISR).isNotNull().alias("min_isr_stated"),
                )
            )
        ).alias("controllers")
    )


def clusters(read: Read) -> DataFrame:
    """One row a cluster with its brokers and controllers, and what each broker id stands for (`broker`, a map)."""
    frame = (
        read("clusters")
        .join(brokers_by_cluster(read("brokers")), "cluster", "left")
        .join(controllers_by_cluster(read("controllers")), "cluster", "left")
        .withColumn("brokers", F.coalesce("brokers", F.array()))
        .withColumn("controllers", F.coalesce("controllers", F.array()))
    )
    return frame.withColumns(
        {
            "broker": F.map_from_entries(F.transform("brokers", lambda b: F.struct(b["broker"], _replica_side(b)))),
            "racks": F.array_sort(
                F.array_distinct(F.transform(F.filter("brokers", lambda b: b["rack"].isNotNull()), lambda b: b["rack"]))
            ),
            "rack_layout": layout(F.col("brokers")),
            "unracked_brokers": F.transform(
                F.filter("brokers", lambda b: b["rack_state"] == "none"), lambda b: b["broker"]
            ),
            # Brokers that could not be listed may stand in any number of racks.
            "unknown_racks": F.when(
                F.col("brokers_known"),
                F.size(F.filter("brokers", lambda b: F.coalesce(b["rack_state"], F.lit("unknown")) == "unknown")),
            ).otherwise(ANY_NUMBER),
            # ELR off is a fact; features that could not be read may mean on.
            "elr_on": F.when(
                F.col("features").isNotNull(),
                F.coalesce(F.try_element_at("features", F.lit("eligible.leader.replicas.version")), F.lit(0)) > 0,
            ),
            "unclean_default": _unclean_default(),
            "recorded_min_isr": F.array_distinct(
                F.transform(F.filter("controllers", lambda c: c["min_isr_stated"]), lambda c: c["min_isr"])
            ),
        }
    ).withColumn("lost_racks", _lost_racks())


def _lost_racks() -> Column:
    """Racks all of whose brokers are down, as array<struct<rack, brokers>>; one whose state is unknown isn't."""

    def of(rack: Column) -> Column:
        return F.filter("brokers", lambda b: b["rack"] == rack)

    lost = F.filter("racks", lambda r: F.forall(of(r), lambda b: ~F.coalesce(b["live"], F.lit(True))))
    return F.transform(
        lost, lambda r: F.struct(r.alias("rack"), F.transform(of(r), lambda b: b["broker"]).alias("brokers"))
    )


def _unclean_default() -> Column:
    """unclean.leader.election.enable where no topic override says otherwise; NULL: unknown.

    Cluster-wide dynamic, then the controllers' static value: theirs decides, brokers may say true and mean nothing.
    Without a KRaft quorum, and in a document that says nothing of controllers, the brokers' value.
    """
    dynamic = F.filter("brokers", lambda b: b["unclean_source"] == "cluster-default")
    asked = F.filter("controllers", lambda c: c["configs_known"])
    active = F.filter("controllers", lambda c: F.coalesce(c["leader"], F.lit(False)))
    # Any of them may be the active one tomorrow, so one that says true is enough; else the active one's word is.
    by_controller = F.when(F.exists(asked, lambda c: c["unclean"]), True).when(
        F.when(F.size(active) > 0, F.forall(active, lambda c: c["configs_known"])).otherwise(
            F.col("controllers_known") & (F.size(asked) > 0)
        ),
        False,
    )
    by_broker = F.when(F.exists("brokers", lambda b: b["unclean"]), True).when(
        F.col("brokers_known")
        & F.exists("brokers", lambda b: b["unclean"].isNotNull())
        & F.forall("brokers", lambda b: b["unclean"].isNotNull() | ~F.coalesce(b["live"], F.lit(True))),
        False,
    )
    asks_brokers = ~F.col("controllers_stated") | ((F.col("quorum_mode") == "zookeeper") & (F.size(asked) == 0))
    return (
        F.when(F.size(dynamic) > 0, F.exists(dynamic, lambda b: b["unclean"]))
        .when(asks_brokers, by_broker)
        .otherwise(by_controller)
    )


def _own_settings(topics: DataFrame) -> DataFrame:
    """What a topic itself says, and which of it could be read."""
    configs, sources = F.col("configs"), F.col("config_sources")
    readable = configs.isNotNull() & ~F.coalesce(F.array_contains("unreadable_configs", MIN_ISR), F.lit(False))
    unclean_readable = configs.isNotNull() & ~F.coalesce(F.array_contains("unreadable_configs", UNCLEAN), F.lit(False))
    wrong_unclean = _wrong(configs, UNCLEAN, lambda v: v.try_cast("boolean"))
    unclean_readable &= wrong_unclean.isNull()
    unclean_source = F.coalesce(config(sources, UNCLEAN), F.lit("topic"))
    return topics.select(
        "cluster",
        "topic",
        "internal",
        "partitions_known",
        "declared_partitions",
        readable.alias("min_isr_readable"),
        _copies(config(configs, MIN_ISR)).alias("own_min_isr"),
        F.when(config(configs, MIN_ISR).isNotNull(), F.coalesce(config(sources, MIN_ISR), F.lit("topic"))).alias(
            "own_min_isr_source"
        ),
        config(configs, MIN_RACKS).try_cast("int").alias("own_min_racks"),
        F.coalesce(config(sources, MIN_RACKS), F.lit("topic")).alias("own_min_racks_source"),
        setting(configs, F.col("unreadable_configs"), MIN_RACKS, "1")
        .try_cast("int")
        .isNotNull()
        .alias("own_min_racks_known"),
        F.struct(
            _wrong(configs, MIN_ISR, _copies).alias("min_isr"),
            _wrong(configs, MIN_RACKS, lambda v: v.try_cast("int")).alias("min_racks"),
            wrong_unclean.alias("unclean"),
        ).alias("wrong"),
        unclean_readable.alias("unclean_readable"),
        F.when(unclean_source.isin("topic", "cluster-default"), config(configs, UNCLEAN).try_cast("boolean")).alias(
            "own_unclean"
        ),
        F.when(config(configs, UNCLEAN).isNotNull(), unclean_source).alias("unclean_source"),
        F.coalesce(config(configs, "confluent.placement.constraints").contains("observers"), F.lit(False)).alias(
            "has_observers"
        ),
        _throttles(configs, TOPIC_THROTTLES).alias("throttles"),
        _readable(configs, F.col("unreadable_configs"), TOPIC_THROTTLES).alias("throttles_known"),
        *settings.own(),
    )


def with_wants(clusters: DataFrame, topics: DataFrame) -> DataFrame:
    """`clusters` with what their topics want of them: `racks_wanted`, the most that any wants in its ISR, and `tiers_used`."""
    wants = topics.groupBy("cluster").agg(
        F.max("min_racks").alias("racks_wanted"), F.sort_array(F.collect_set("tier")).alias("tiers_used")
    )
    return clusters.join(wants, "cluster", "left")


def topics(read: Read, resolved: DataFrame, clusters: DataFrame, tiers: Column) -> DataFrame:
    """One row a topic: its settings with their sources, its tier and the tier's requirements (`required`, a struct).

    resolved: cluster, resource, tier of the topics; tiers: map of tier name to requirements.
    """
    tier = resolved.where(F.col("resource_type") == "topic").select(
        "cluster", F.col("resource").alias("topic"), "tier", F.col("waivers").alias("waiver_candidates")
    )
    facts = clusters.select(
        "cluster",
        "captured_at",
        "snapshot_id",
        "provider",
        "unclean_default",
        "elr_on",
        "racks",
        "unknown_racks",
        "unracked_brokers",
        "rack_layout",
        F.array_max(F.transform("brokers", lambda b: b["min_racks"])).alias("cluster_min_racks"),
        F.forall("brokers", lambda b: b["min_racks_known"] | ~F.coalesce(b["live"], F.lit(True))).alias(
            "cluster_min_racks_known"
        ),
        "brokers_known",
        F.size("brokers").alias("broker_count"),
        *settings.inherited(),
    )
    return (
        _own_settings(read("topics"))
        .join(tier, ["cluster", "topic"], "left")
        .join(F.broadcast(facts), "cluster")
        .withColumn("required", F.try_element_at(tiers, F.coalesce("tier", F.lit(""))))
        .withColumns(
            {
                "unclean": F.when(F.col("unclean_readable"), F.coalesce("own_unclean", "unclean_default")),
                # What an operator wants of KIP-1290: the stricter of the setting and the policy.
                "min_racks_configured": F.coalesce("own_min_racks", "cluster_min_racks"),
                "min_racks_known": F.col("own_min_racks_known")
                & (F.col("own_min_racks").isNotNull() | (F.col("cluster_min_racks_known") & F.col("brokers_known"))),
                "min_racks": F.greatest(
                    F.coalesce("own_min_racks", "cluster_min_racks"), F.col("required")["min_insync_racks"]
                ),
                **settings.of_topic(),
            }
        )
        .drop(settings.OWN, settings.INHERITED)
    )
