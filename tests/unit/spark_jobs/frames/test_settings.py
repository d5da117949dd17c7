"""Settings as rules read them: whose value applies, where it comes from, and what isn't known."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from durability.catalogue import settings as declared
from durability.lake import rows, tables
from durability.topology import validate
from spark_jobs.frames import facts, settings
from tests.support.topology import document

RETENTION, RATIO, THROTTLED = "retention.ms", "min.cleanable.dirty.ratio", "follower.replication.throttled.replicas"
FETCHERS, VENDOR = "num.replica.fetchers", "vendor.tier.enable"
OF_TOPICS = {RETENTION: "604800000", RATIO: "0.5", THROTTLED: "", VENDOR: None}
OF_BROKERS = {FETCHERS: "1", "log.retention.ms": "604800000"}
WEEK, DAY, HOUR = 604_800_000, 86_400_000, 3_600_000

TOPICS = """
    topic       replicas
    plain       1,2,3
    own         1,2,3
    forever     1,2,3
    nonsense    1,2,3
    unread      1,2,3
    one-unread  1,2,3
    answered    1,2,3
    dynamic     1,2,3
    not-asked   1,2,3
"""


def cluster(name: str, brokers: dict[int, dict] | None = None, **options) -> dict:
    """brokers: further members by id."""
    stated = {
        **{"own": {RETENTION: str(DAY), RATIO: "0.1"}, "forever": {RETENTION: "-1"}, "nonsense": {RETENTION: "long"}},
        **{
            "answered": {RETENTION: str(HOUR)},
            "dynamic": {RETENTION: str(DAY)},
            "not-asked": {"cleanup.policy": "delete"},
        },
    }
    unreadable = {
        "/topics/unread/configs": "TOPIC_AUTHORIZATION_FAILED",
        f"/topics/one-unread/configs/{RETENTION}": "TIMEOUT",
        **options.pop("unreadable", {}),
    }
    sources = {
        "answered": {RETENTION: "broker"},
        "dynamic": {RETENTION: "cluster-default"},
        "not-asked": {"cleanup.policy": "default"},
    }
    return document(
        TOPICS, cluster=name, configs=stated, sources=sources, unreadable=unreadable, each_broker=brokers, **options
    )


FLEET = [
    cluster("silent"),
    cluster("hours", {2: {"configs": {"log.retention.hours": "24", "log.cleaner.min.cleanable.ratio": "0.9"}}}),
    cluster(
        "everywhere",
        {
            n: {
                "configs": {"log.retention.minutes": "60"},
                "config_sources": {"log.retention.minutes": "cluster-default"},
            }
            for n in (1, 2, 3)
        },
    ),
    cluster(
        "unreadable", {1: {"configs": {"log.retention.ms": str(HOUR)}}}, unreadable={"/brokers/3/configs": "DENIED"}
    ),
    cluster("down", unreadable={"/brokers/3/configs": "down"}),
    cluster(
        "asked",
        {n: {"configs": {"num.io.threads": "8"}, "config_sources": {"num.io.threads": "default"}} for n in (1, 2, 3)},
    ),
    cluster("unlisted", unreadable={"/brokers": "DENIED"}),
    cluster(
        "overridden",
        {
            n: {"configs": {"log.retention.ms": str(value)}, "config_sources": {"log.retention.ms": source}}
            for n, value, source in (
                (1, DAY, "cluster-default"),
                (2, HOUR, "broker-dynamic"),
                (3, DAY, "cluster-default"),
            )
        },
    ),
]
FLEET[4]["brokers"][2]["live"] = False
FLEET[2]["brokers"][0]["configs"][FETCHERS] = "4"


@pytest.fixture(scope="module")
def frames(spark):
    """Rows of clusters, and of topics, with settings that no control here declares."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(declared, "of_topics", lambda: OF_TOPICS)
        patch.setattr(declared, "of_brokers", lambda: OF_BROKERS)
        built = [rows.build(validate(d, f"{d['cluster']['id']}.json"), "s", "a", provider="self") for d in FLEET]

        def read(name: str):
            found = [row for tables_ in built for row in tables_[name].to_pylist()]
            return spark.createDataFrame(pa.Table.from_pylist(found, tables.TABLES[name].arrow))

        clusters = facts.clusters(read).localCheckpoint()
        resolved = spark.createDataFrame(
            [],
            "cluster string, resource_type string, resource string, tier string, undecided array<string>, waivers int",
        )
        tiers = F.lit(None).cast("map<string,struct<min_insync_racks:int>>")
        yield clusters, facts.topics(read, resolved, clusters, tiers).localCheckpoint()


@pytest.fixture(scope="module")
def of_topics(frames):
    """(cluster, topic) -> (least, most, source, known) of a setting of topics."""

    def of(name: str, kind: str, **options) -> dict:
        seen = settings.topic_setting(name, kind, **options)
        found = frames[1].select("cluster", "topic", *seen[1:]).collect()
        return {(row[0], row[1]): tuple(row[2:]) for row in found}

    return of


def test_whose_value_applies_to_a_topic(of_topics):
    found = of_topics(RETENTION, "long", unlimited="-1")
    greatest = 2**63 - 1
    assert {topic: found["silent", topic] for topic in ("plain", "own", "forever", "dynamic")} == {
        "plain": (WEEK, WEEK, "default", True),
        "own": (DAY, DAY, "topic", True),
        "forever": (greatest, greatest, "topic", True),
        "dynamic": (DAY, DAY, "cluster-default", True),
    }
    assert found["hours", "plain"] == (DAY, WEEK, "broker", True), "brokers differ"
    assert found["hours", "own"] == (DAY, DAY, "topic", True)
    assert found["everywhere", "plain"] == (HOUR, HOUR, "cluster-default", True)
    assert found["hours", "answered"] == (HOUR, WEEK, "broker", True), "what a broker answered is its own value"
    assert found["overridden", "dynamic"] == (HOUR, DAY, "broker", True), "a broker's own value wins there"
    assert found["overridden", "own"] == (DAY, DAY, "topic", True)
    assert found["down", "plain"] == (WEEK, WEEK, "default", True), "who is down answers nothing"


def test_what_is_not_known_of_a_topic(of_topics):
    found = of_topics(RETENTION, "long")
    unknown = {topic for (cluster, topic), (*_, known) in found.items() if cluster == "silent" and not known}
    assert unknown == {"nonsense", "unread", "one-unread", "not-asked"}
    assert found["silent", "unread"] == (None, None, None, False)
    least, _, _, known = found["unreadable", "plain"]
    assert (least, known) == (HOUR, False), "one broker's value is known, another's isn't"
    assert found["unreadable", "own"][-1] and not found["unlisted", "plain"][-1]
    assert not found["asked", "plain"][-1], "an answer states defaults: what it lacks was never asked"


def test_kinds_of_settings(of_topics):
    assert of_topics(RATIO, "double")["hours", "plain"][:2] == (0.5, 0.9)
    assert of_topics(RATIO, "double")["silent", "own"][:2] == (0.1, 0.1)
    # No broker has it for topics.
    assert of_topics(THROTTLED, "string")["silent", "plain"] == ("", "", "default", True)
    assert of_topics(VENDOR, "boolean")["silent", "plain"][-1] is False, "no default is declared"


def test_a_setting_that_nobody_states_is_told_from_one_that_is_not_read(frames):
    def unstated(name: str, kind: str) -> set[str]:
        rows = frames[1].where(settings.topic_setting(name, kind).unstated).select("cluster", "topic").collect()
        return {row.topic for row in rows if row.cluster == "silent"}

    assert unstated(VENDOR, "boolean") >= {"plain", "own"}
    assert not unstated(VENDOR, "boolean") & {"unread"}
    assert not unstated(RETENTION, "long") & {"plain", "own", "nonsense", "unread", "one-unread"}


def test_settings_of_brokers_and_of_clusters(frames):
    clusters, _ = frames
    seen = settings.broker_setting(FETCHERS, "int")
    by_broker = clusters.withColumn("b", F.explode("brokers")).select("cluster", "b.broker", *seen[1:]).collect()
    found = {(row[0], row[1]): tuple(row[2:]) for row in by_broker}
    assert found["silent", 1] == (1, 1, "default", True) and found["everywhere", 1] == (4, 4, "broker", True)
    assert found["unreadable", 3] == (None, None, None, False) and found["asked", 1][0] is None
    retention = settings.broker_setting("log.retention.ms", "long")
    hours = clusters.where("cluster = 'hours'").withColumn("b", F.explode("brokers")).select(retention.value).collect()
    assert [row[0] for row in hours] == [WEEK, DAY, WEEK]
    everywhere = settings.cluster_setting(FETCHERS, "int")
    by_cluster = {
        row[0]: tuple(row[1:]) for row in clusters.select("cluster", *everywhere[1:], everywhere.value).collect()
    }
    assert by_cluster["everywhere"] == (1, 4, "broker", True, None) and by_cluster["silent"][-1] == 1
    assert by_cluster["unreadable"][3] is False


@pytest.mark.parametrize("setting, of", [(settings.topic_setting, "topics"), (settings.broker_setting, "brokers")])
def test_a_setting_that_nobody_declares_says_what_to_do(spark, setting, of):
    with pytest.raises(
        ValueError, match=rf"no control on {of} declares made.up with .*`reads: {{made.up: <default>}}`"
    ):
        setting("made.up", "int")


def test_a_kind_that_is_none_says_which_there_are(frames):
    with pytest.raises(
        ValueError, match=r"'integer' is no kind of setting; num\.replica\.fetchers needs one of int, long"
    ):
        settings.broker_setting(FETCHERS, "integer")
