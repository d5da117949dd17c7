"""Collected facts as frames that rules read: one row per cluster, and one per topic.

Nothing is evaluated here. A fact that could not be read is NULL.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from durability.catalogue.model import CONTRADICTED, DISKLESS
from durability.topology import diskless, observers
from spark_jobs.frames import configs, quorum, settings
from spark_jobs.frames.columns import certain, live_brokers, possible, struct
from spark_jobs.frames.effective_min_isr import (
    FIRST_ELR_METADATA_VERSION,
    FIRST_ELR_RELEASE,
    caps_min_isr,
    release_number,
)
from spark_jobs.frames.observers import asks_for_observers
from spark_jobs.frames.racks import layout, named_racks

Read = Callable[[str], DataFrame]
"""Takes the name of a fact table, returns its rows of the evaluated attempts."""

MIN_ISR = "min.insync.replicas"
MIN_RACKS = "min.insync.racks"
UNCLEAN = "unclean.leader.election.enable"
FIRST_UNCLEAN_KRAFT = 3009
"""The first release whose KRaft controllers elect unclean leaders by themselves (KAFKA-12670)."""
DEFAULT_RF = "default.replication.factor"
INTERNAL = {
    "offsets.topic.replication.factor": "__consumer_offsets",
    "transaction.state.log.replication.factor": "__transaction_state",
    "share.coordinator.state.topic.replication.factor": "__share_group_state",
}
"""Kafka's own topics, by the setting with which a broker creates them when they are first needed."""
AUTO_CREATE = "auto.create.topics.enable"
LOG_DIRS_THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
BROKER_THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate", LOG_DIRS_THROTTLE)
TOPIC_THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
ANY_NUMBER = 1_000_000


# Brokers and controllers.


def brokers_by_cluster(brokers: DataFrame) -> DataFrame:
    """cluster, and `brokers`, an array of structs sorted by id. `clusters` adds what depends on the cluster's features.

    `down`: the cause if the broker is down, or "rack:az2 down" if all brokers of a rack of two or more are.
    `lag_cause`: the cause if it is live and its replicas are out of sync.
    `disks_online`: whether its replicas can lead, as far as its disks decide (`_disks_online`).
    """
    fields = {
        **{name: F.col(name) for name in ("broker", "rack", "rack_state", "live", "offline_log_dirs", "kafka_version")},
        "future_replicas": F.col("future_replicas"),
        "max_metadata_version": F.col("max_metadata_version"),
        "release": release_number(F.col("kafka_version")),
        "min_isr": configs.minimum(configs.applies(MIN_ISR, "1")),
        "min_isr_source": F.when(configs.stated(MIN_ISR).isNull(), "default").otherwise(
            F.coalesce(configs.source(MIN_ISR), F.lit("broker"))
        ),
        "min_racks": configs.integer(configs.stated(MIN_RACKS)),
        "min_racks_known": configs.integer(configs.proposed(MIN_RACKS, "1")).isNotNull(),
        "min_racks_source": configs.source(MIN_RACKS),
        "default_rf": configs.integer(configs.applies(DEFAULT_RF, "1")),
        # Only what is stated counts: a document may leave these out.
        "internal_rfs": F.array(*(configs.integer(configs.stated(key)) for key in INTERNAL)),
        "auto_create": configs.boolean(configs.applies(AUTO_CREATE, "true")),
        "unclean": configs.boolean(configs.applies(UNCLEAN, configs.unclean_by_release())),
        "unclean_by_default": configs.readable(UNCLEAN) & configs.stated(UNCLEAN).isNull() & ~settings.answered(),
        "unclean_source": configs.source(UNCLEAN),
        "throttles": configs.throttles(BROKER_THROTTLES),
        # kafka-configs can't delete what a broker's file states.
        "throttles_in_file": F.filter(F.array(*map(F.lit, BROKER_THROTTLES)), lambda key: configs.in_file(key)),
        "default_throttles": configs.throttles(BROKER_THROTTLES, of_default=True),
        "throttles_known": configs.readable(*BROKER_THROTTLES),
        "observers": certain(asks_for_observers(configs.stated(observers.DEFAULT))),
        **settings.of_broker(),
    }

    def with_others(b: Column) -> Column:
        caused = b.withField("down", _down(b)).withField("lag_cause", _lag_cause(b))
        return _with_min_isr(caused).withField("disks_online", _disks_online(b))

    with_causes = F.transform("brokers", with_others)
    return (
        brokers.select("cluster", struct(fields).alias("b"))
        .groupBy("cluster")
        .agg(F.array_sort(F.collect_list("b")).alias("brokers"))
        .withColumn("brokers", with_causes)
    )


def _with_min_isr(broker: Column) -> Column:
    """The broker with its min.insync.replicas, if it is down and states none while those of live brokers are stated or unknown.

    A cluster-wide value applies to it, too. Otherwise its value is unknown, because a dead broker can't be asked.
    """
    stating = F.filter("brokers", lambda b: certain(b["live"]) & (b["min_isr_source"] != "default"))
    cluster_wide = F.filter(stating, lambda b: b["min_isr_source"] == "cluster-default")
    # A live broker's answer may leave it out, or could not be read.
    unknown = F.exists("brokers", lambda b: certain(b["live"]) & b["min_isr"].isNull())
    others = (F.size(stating) > 0) | unknown
    silent = certain(~broker["live"]) & (broker["min_isr_source"] == "default") & others
    value = F.when(silent, F.try_element_at(cluster_wide, F.lit(1))["min_isr"]).otherwise(broker["min_isr"])
    source = F.when(silent, F.when(F.size(cluster_wide) > 0, "cluster-default").otherwise("broker"))
    return broker.withField("min_isr", value).withField("min_isr_source", F.coalesce(source, broker["min_isr_source"]))


def _down(broker: Column) -> Column:
    in_rack = F.filter("brokers", lambda other: other["rack"] == broker["rack"])
    whole_rack = (F.size(in_rack) > 1) & F.forall(in_rack, lambda other: ~possible(other["live"]))
    rack_down = F.concat(F.lit("rack:"), broker["rack"], F.lit(" down"))
    broker_down = F.concat(F.lit("broker:"), broker["broker"].cast("string"), F.lit(" down"))
    return F.when(~broker["live"], F.when(whole_rack, rack_down).otherwise(broker_down))


def _disks_online(broker: Column) -> Column:
    """True if all log dirs of the broker are online, or if no broker states any; else NULL.

    Nothing states which replicas are in a log dir that is offline.
    """
    unstated = F.forall("brokers", lambda b: b["offline_log_dirs"].isNull())
    return F.when((broker["offline_log_dirs"] == 0) | unstated, True)


def _lag_cause(broker: Column) -> Column:
    state = F.when(broker["offline_log_dirs"] > 0, " disk-offline").otherwise(" lagging")
    return F.concat(F.lit("broker:"), broker["broker"].cast("string"), state)


REPLICA_FIELDS = {
    "broker": "int",
    "rack": "string",
    "rack_state": "string",
    "live": "boolean",
    "disks_online": "boolean",
    "caps": "boolean",
    "min_isr": "int",
    "min_isr_source": "string",
    "down": "string",
    "lag_cause": "string",
}
"""Fields of a broker that are needed for each of its replicas."""


def unlisted(id: Column) -> Column:
    """The broker of a replica that isn't among the cluster's brokers. Only its id is known."""
    known = {"broker": id, "rack_state": F.lit("unknown")}
    return struct({name: known.get(name, F.lit(None)).cast(kind) for name, kind in REPLICA_FIELDS.items()})


def controllers_by_cluster(controllers: DataFrame) -> DataFrame:
    """cluster, and `controllers`, an array of structs sorted by id."""
    known = F.col("configs").isNotNull()
    fields = {
        **{name: F.col(name) for name in ("controller", "role", "leader", "rack", "lag_ms", "live")},
        # Earlier versions of the lake don't have it.
        "caught_up": F.when(F.col("lag_ms").isNotNull(), True).otherwise(F.col("caught_up")),
        "configs_known": known,
        "min_isr": F.when(
            known & ~configs.left_out(MIN_ISR), configs.minimum(F.coalesce(configs.stated(MIN_ISR), F.lit("1")))
        ),
        "default_rf": F.when(
            known & ~configs.left_out(DEFAULT_RF), configs.integer(F.coalesce(configs.stated(DEFAULT_RF), F.lit("1")))
        ),
        "unclean": F.when(
            known & ~configs.left_out(UNCLEAN), configs.boolean(F.coalesce(configs.stated(UNCLEAN), F.lit("false")))
        ),
        "unclean_source": configs.source(UNCLEAN),
        "min_isr_stated": configs.stated(MIN_ISR).isNotNull(),
    }
    listed = F.array_sort(F.collect_list(struct(fields)))
    return controllers.groupBy("cluster").agg(listed.alias("controllers"))


def clusters(read: Read) -> DataFrame:
    """One row per cluster with its brokers and controllers, and `broker`, a map from id to REPLICA_FIELDS."""
    frame = (
        read("clusters")
        .join(brokers_by_cluster(read("brokers")), "cluster", "left")
        .join(controllers_by_cluster(read("controllers")), "cluster", "left")
        .withColumn("brokers", F.coalesce("brokers", F.array()))
        .withColumn("controllers", F.coalesce("controllers", F.array()))
        .withColumn("finalized", F.try_element_at("features", F.lit("metadata.version")))
        .withColumn("brokers", F.transform("brokers", _with_features))
    )

    def by_id(broker: Column) -> Column:
        return F.struct(broker["broker"], struct({name: broker[name] for name in REPLICA_FIELDS}))

    unknown = F.filter("brokers", lambda b: F.coalesce(b["rack_state"], F.lit("unknown")) == "unknown")
    elr_level = F.coalesce(F.try_element_at("features", F.lit("eligible.leader.replicas.version")), F.lit(0))
    with_facts = frame.withColumns(
        {
            "broker": F.map_from_entries(F.transform("brokers", by_id)),
            "racks": F.array_sort(named_racks(F.col("brokers"))),
            "rack_layout": layout(F.col("brokers")),
            "unracked_brokers": F.filter("brokers", lambda b: b["rack_state"] == "none")["broker"],
            # Brokers that could not be listed may be in any number of racks.
            "unknown_racks": F.when(F.col("brokers_known"), F.size(unknown)).otherwise(ANY_NUMBER),
            # A feature that isn't listed is off. If features could not be read, NULL.
            "elr_on": F.when(F.col("features").isNotNull(), elr_level > 0),
            # The highest value among brokers and controllers, which may all create topics.
            "default_rf": F.greatest(
                F.array_max(live_brokers()["default_rf"]), F.array_max(F.col("controllers")["default_rf"])
            ),
            "unclean_default": _unclean_default(),
            "unclean_brokers": F.array_intersect(_unclean_nodes(), F.col("brokers")["broker"]),
            "unclean_controllers": F.array_except(_unclean_nodes(), F.col("brokers")["broker"]),
            "unclean_default_source": F.when(F.exists(_dynamic_unclean(), lambda b: b["unclean"]), "cluster-default")
            .when(F.size(_unclean_nodes()) > 0, "broker-dynamic")
            .when(F.size(_dynamic_unclean()) > 0, "cluster-default")
            .when(_brokers_decide(), "broker")
            .otherwise("controller"),
            "release": F.coalesce(
                release_number(F.col("kafka_version")),
                F.when(F.col("finalized") >= FIRST_ELR_METADATA_VERSION, FIRST_ELR_RELEASE),
            ),
            # A file that doesn't state the value has Kafka's default of 1, which is recorded, too.
            "recorded_min_isr": F.array_distinct(F.filter("controllers", lambda c: c["configs_known"])["min_isr"]),
            "unclean_by_default": _brokers_decide()
            & (F.col("brokers_known") & (F.size(live_brokers()) > 0))
            & F.forall(live_brokers(), lambda b: b["unclean_by_default"]),
        }
    )
    # NULL where it is unknown whether controllers of a release before that elect.
    kraft = F.coalesce(F.col("quorum_mode") == "kraft", F.when(F.col("finalized").isNotNull(), True))
    ignores_unclean = kraft & (F.col("release") < FIRST_UNCLEAN_KRAFT)
    return quorum.with_voters(with_facts.withColumns({"lost_racks": _lost_racks(), "ignores_unclean": ignores_unclean}))


def _with_features(broker: Column) -> Column:
    """A broker with `caps`, and `unclean` for a text that names no release. Kafka has features and KRaft since 2.7 and 2.8."""
    kraft = F.col("finalized").isNotNull() | certain(F.col("quorum_mode") == "kraft")
    caps = caps_min_isr(broker["max_metadata_version"], F.col("finalized"), broker["release"])
    unclean = F.coalesce(broker["unclean"], F.when(broker["unclean_by_default"] & kraft, False))
    return broker.withField("caps", caps).withField("unclean", unclean)


def _lost_racks() -> Column:
    """The racks whose brokers are all known to be down, as array<struct<rack, brokers>>."""

    def members(rack: Column) -> Column:
        return F.filter("brokers", lambda b: b["rack"] == rack)

    lost = F.filter("racks", lambda rack: F.forall(members(rack), lambda b: ~possible(b["live"])))
    return F.transform(lost, lambda rack: struct({"rack": rack, "brokers": members(rack)["broker"]}))


def _unclean_default() -> Column:
    """unclean.leader.election.enable of topics without an override; NULL if unknown.

    The cluster-wide dynamic value applies, else the static value of the controllers. They elect leaders, so a broker's static
    value has no effect. Without a KRaft quorum, and in a document without controllers, the brokers' value applies. A node's own
    dynamic value overrides the cluster-wide one while that node is the active controller.
    """
    dynamic = _dynamic_unclean()
    read = F.filter("controllers", lambda c: c["configs_known"])
    active = F.filter("controllers", lambda c: certain(c["leader"]))
    # Any controller may become the active one, so one that says true is enough. False needs the active one's value.
    all_read = F.when(F.size(active) > 0, F.forall(active, lambda c: c["unclean"].isNotNull())).otherwise(
        F.col("controllers_known") & (F.size(read) > 0) & F.forall(read, lambda c: c["unclean"].isNotNull())
    )
    by_controller = F.when(F.exists(read, lambda c: c["unclean"]), True).when(all_read, False)
    by_broker = F.when(F.exists("brokers", lambda b: b["unclean"]), True).when(
        F.col("brokers_known")
        & F.exists("brokers", lambda b: b["unclean"].isNotNull())
        & F.forall("brokers", lambda b: b["unclean"].isNotNull() | ~possible(b["live"])),
        False,
    )
    return (
        F.when(F.size(_unclean_nodes()) > 0, True)
        .when(F.size(dynamic) > 0, F.exists(dynamic, lambda b: b["unclean"]))
        .when(_brokers_decide(), by_broker)
        .otherwise(by_controller)
    )


def _dynamic_unclean() -> Column:
    """The brokers that state a cluster-wide dynamic unclean.leader.election.enable."""
    return F.filter("brokers", lambda b: b["unclean_source"] == "cluster-default")


def _unclean_nodes() -> Column:
    """The ids of nodes that may be the active controller and have unclean leader election on by a dynamic value of their own."""

    def own(nodes: Column, id: str) -> Column:
        return F.filter(nodes, lambda n: certain(n["unclean"] & (n["unclean_source"] == "broker-dynamic")))[id]

    return F.when(_brokers_decide(), own(F.col("brokers"), "broker")).otherwise(
        own(F.filter("controllers", lambda c: c["configs_known"]), "controller")
    )


def _brokers_decide() -> Column:
    """Do the brokers' values of unclean.leader.election.enable apply? There are no controllers, or none is described."""
    read = F.filter("controllers", lambda c: c["configs_known"])
    return ~F.col("controllers_stated") | ((F.col("quorum_mode") == "zookeeper") & (F.size(read) == 0))


# Topics.


def _own_settings(topics: DataFrame) -> DataFrame:
    """The settings that each topic states itself, and which of them could be read."""
    unclean_source = F.coalesce(configs.source(UNCLEAN), F.lit("topic"))
    wrong_unclean = configs.wrong(UNCLEAN, configs.boolean)
    own_unclean = F.when(unclean_source.isin("topic", "cluster-default"), configs.boolean(configs.stated(UNCLEAN)))
    own_min_isr_source = F.when(
        configs.stated(MIN_ISR).isNotNull(), F.coalesce(configs.source(MIN_ISR), F.lit("topic"))
    )
    wrong = {
        "min_isr": configs.wrong(MIN_ISR, configs.minimum),
        "min_racks": configs.wrong(MIN_RACKS, configs.integer),
        "unclean": wrong_unclean,
    }
    is_diskless = certain(F.greatest(*(configs.boolean(configs.stated(name)) for name in diskless.SETTINGS)))
    return topics.select(
        "cluster",
        "topic",
        "internal",
        "partitions_known",
        (configs.readable(MIN_ISR) & ~configs.left_out(MIN_ISR)).alias("min_isr_readable"),
        configs.minimum(configs.stated(MIN_ISR)).alias("own_min_isr"),
        own_min_isr_source.alias("own_min_isr_source"),
        configs.integer(configs.stated(MIN_RACKS)).alias("own_min_racks"),
        F.coalesce(configs.source(MIN_RACKS), F.lit("topic")).alias("own_min_racks_source"),
        configs.integer(configs.proposed(MIN_RACKS, "1")).isNotNull().alias("own_min_racks_known"),
        struct(wrong).alias("wrong"),
        (configs.readable(UNCLEAN) & ~configs.left_out(UNCLEAN) & wrong_unclean.isNull()).alias("unclean_readable"),
        own_unclean.alias("own_unclean"),
        F.when(configs.stated(UNCLEAN).isNotNull(), unclean_source).alias("unclean_source"),
        certain(asks_for_observers(configs.stated(observers.SETTING))).alias("own_observers"),
        # Of topics whose configs could not be read, it is unknown whether they inherit.
        (F.col("configs").isNotNull() & configs.stated(observers.SETTING).isNull()).alias("inherits_observers"),
        is_diskless.alias("diskless"),
        configs.throttles(TOPIC_THROTTLES).alias("throttles"),
        configs.readable(*TOPIC_THROTTLES).alias("throttles_known"),
        *settings.own(),
    )


def with_wants(clusters: DataFrame, topics: DataFrame) -> DataFrame:
    """`clusters` with the requirements of their topics: `racks_wanted`, the largest `min_racks`, and `tiers_used`."""
    wants = topics.groupBy("cluster").agg(
        F.max("min_racks").alias("racks_wanted"), F.sort_array(F.collect_set("tier")).alias("tiers_used")
    )
    return clusters.join(wants, "cluster", "left")


def topics(read: Read, resolved: DataFrame, clusters: DataFrame, tiers: Column) -> DataFrame:
    """One row per topic: its settings and their sources, its tier, and `required`, the tier's requirements as a struct.

    resolved: cluster, resource_type, resource, tier, undecided.
    tiers: a map from a tier's name to its requirements.
    """
    of_topics = resolved.where(F.col("resource_type") == "topic")
    tier = of_topics.select("cluster", F.col("resource").alias("topic"), "tier", "undecided")
    min_racks_known = F.forall("brokers", lambda b: b["min_racks_known"] | ~possible(b["live"]))
    of_cluster = clusters.select(
        *("cluster", "captured_at", "snapshot_id", "provider", "unclean_default", "elr_on", "racks", "unknown_racks"),
        *("unracked_brokers", "rack_layout", "brokers_known", "unclean_by_default", "default_rf"),
        *("unclean_default_source", "unclean_brokers", "unclean_controllers", "ignores_unclean"),
        F.size("brokers").alias("broker_count"),
        F.array_max(F.col("brokers")["min_racks"]).alias("cluster_min_racks"),
        min_racks_known.alias("cluster_min_racks_known"),
        F.exists("brokers", lambda b: b["observers"]).alias("default_observers"),
        *settings.inherited(),
    )
    configured = F.coalesce("own_min_racks", "cluster_min_racks")
    # A diskless topic has its own platform, independent of the cluster's.
    platform = F.when(F.col("diskless") & ~certain(F.col("provider") == CONTRADICTED), DISKLESS)
    inherited_known = F.col("cluster_min_racks_known") & F.col("brokers_known")
    # Where a broker answers with the cluster-wide value, a node may override it by a value of its own.
    overridden = (F.size("unclean_brokers") > 0) | (F.size("unclean_controllers") > 0)
    inherits = ~certain(F.col("unclean_source") == "topic")
    unclean = F.when(inherits & overridden, True).otherwise(F.coalesce("own_unclean", "unclean_default"))
    return (
        _own_settings(read("topics"))
        .join(tier, ["cluster", "topic"], "left")
        .join(F.broadcast(of_cluster), "cluster")
        .withColumn("required", F.try_element_at(tiers, F.coalesce("tier", F.lit(""))))
        .withColumns(
            {
                "provider": F.coalesce(platform, "provider"),
                "has_observers": F.col("own_observers") | (F.col("inherits_observers") & F.col("default_observers")),
                "unclean": F.when(F.col("unclean_readable"), unclean),
                "elects_unclean": F.col("unclean") & ~F.col("ignores_unclean"),
                "min_racks_configured": configured,
                "min_racks_known": F.col("own_min_racks_known")
                & (F.col("own_min_racks").isNotNull() | inherited_known),
                # An operator of KIP-1290 wants the stricter of the setting and the policy.
                "min_racks": F.greatest(configured, F.col("required")["min_insync_racks"]),
                **settings.of_topic(),
            }
        )
        .drop(settings.OWN, settings.INHERITED)
    )
