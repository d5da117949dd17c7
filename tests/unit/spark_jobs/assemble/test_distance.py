"""Partitions one failure away in `health_counters`: what is not counted is unknown, and a tier has all of its partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from durability.lake.tables import ONE_FAILURE
from tests.support.judge import Judge
from tests.support.policy import policy
from tests.support.topology import document

POLICY = policy("""
tiers: {critical: {}, scratch: {}}
topics:
  - {match: {topic: 'tmp.*'}, tier: scratch}
  - {match: {topic: '[a-y].*'}, tier: critical}
""")
TABLE = """
    topic  replicas isr
    orders 1,2,3    1,2,3
    orders 1,2,3    1,2,3
    payed  1,2,3    1,2,3
    tmp-1  1        1
    zone   2        2
"""


def distances(spark, *rows):
    """Rows of cluster, topic and the numbers of ONE_FAILURE."""
    names = f"cluster string, topic string, {', '.join(f'{name} bigint' for name in ONE_FAILURE)}"
    return spark.createDataFrame(list(rows), names)


def test_a_topic_without_a_row_has_none_and_nothing_computed_is_unknown(spark):
    from spark_jobs.assemble.distance import with_distance

    topics = spark.createDataFrame([("eu", "a", 4), ("eu", "b", 2)], "cluster string, topic string, partitions int")
    found = with_distance(topics, distances(spark, ("eu", "a", 1, 0, 2, 0, 3), ("us", "b", 9, 9, 9, 9, 9)))
    assert sorted(map(tuple, found.collect())) == [("eu", "a", 4, 1, 0, 2, 0, 3), ("eu", "b", 2, 0, 0, 0, 0, 0)]
    unknown = with_distance(topics, None)
    assert unknown.dtypes == found.dtypes
    assert sorted(map(tuple, unknown.collect())) == [("eu", "a", 4, *[None] * 5), ("eu", "b", 2, *[None] * 5)]


def test_a_tier_has_all_its_partitions_and_none_where_no_run_resolved_it(spark):
    from spark_jobs.assemble.distance import by_tier, with_distance, with_tier

    rows = [("eu", "a", 4), ("eu", "b", 2), ("eu", "new", 7), ("eu", "unlisted", 0), ("first", "a", 3)]
    topics = spark.createDataFrame(rows, "cluster string, topic string, partitions int").selectExpr("*", "'x' AS tier")
    last = [("eu", "a", "gold"), ("eu", "b", "gold"), ("eu", "unlisted", "lead"), ("eu", "gone", "gold")]
    tiers = spark.createDataFrame(last, "cluster string, topic string, tier string")
    near = distances(spark, ("eu", "a", 1, 0, 2, 0, 0), ("eu", "new", 7, 0, 0, 0, 0), ("eu", "unlisted", 0, 0, 0, 0, 1))
    found = {r.cluster: r.tiers for r in by_tier(with_tier(with_distance(topics, near), tiers)).collect()}
    assert found.keys() == {"eu", "first"} and found["first"] is None
    assert [tuple(t) for t in found["eu"]] == [
        (None, 7, 7, 0, 0, 0, 0),
        ("gold", 6, 1, 0, 2, 0, 0),
        ("lead", 1, 0, 0, 0, 0, 1),
    ]


@pytest.fixture(scope="module")
def counted(spark):
    """Counts documents with these distances; returns the rows of `health_counters` by cluster and topic."""
    from spark_jobs.assemble import evaluation

    judge, written = Judge(spark), evaluation.write_measures

    def count(documents, near, resolved=None, **options):
        def with_near(made, write):
            made.losses.distances = lambda: near
            of = resolved or {}
            parts = [replace(part, resolved_result_id=of.get(part.cluster)) for part in made.plan.snapshots]
            made.plan = replace(made.plan, snapshots=parts)
            written(made, write)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(evaluation, "write_measures", with_near)
            judge.run(documents, POLICY, findings=False, losses=False, **options)
        return {(r["cluster"], r["topic"]): r for r in judge.latest["health_counters"].to_pylist()}

    return count


@pytest.fixture(scope="module")
def night(spark, counted):
    near = distances(spark, ("eu", "orders", 1, 0, 2, 0, 0), ("eu", "tmp-1", 1, 1, 1, 1, 0))
    documents = [document(TABLE, cluster="eu"), document(TABLE, cluster="us"), document("", cluster="empty")]
    return counted(documents, near, result="night")


def numbers(row) -> tuple:
    return tuple(row[name] for name in ONE_FAILURE)


def of_tiers(row) -> dict:
    return {t.pop("tier"): tuple(t.values()) for t in row["tiers"]}


def test_the_rows_of_topics_and_clusters_have_the_distances(night):
    rows = night
    assert numbers(rows["eu", "orders"]) == (1, 0, 2, 0, 0) and rows["eu", "orders"]["offline"] == 0
    assert numbers(rows["eu", "zone"]) == (0, 0, 0, 0, 0)  # its row is about other counts
    assert ("eu", "payed") not in rows
    assert numbers(rows["eu", None]) == (2, 1, 3, 1, 0)
    zone = {None: (1, 0, 0, 0, 0, 0)}
    assert of_tiers(rows["eu", None]) == {"critical": (3, 1, 0, 2, 0, 0), "scratch": (1, 1, 1, 1, 1, 0), **zone}
    assert (numbers(rows["empty", None]), rows["empty", None]["tiers"]) == ((0, 0, 0, 0, 0), [])
    assert rows["eu", "orders"]["tiers"] is None


def test_a_pulse_has_the_tiers_of_the_last_nightly_run_and_without_one_it_knows_none(spark, counted, night):
    near = distances(spark, ("eu", "orders", 1, 0, 2, 0, 0), ("first", "orders", 1, 0, 2, 0, 0))
    documents = [document(TABLE + "    anew 1 1\n", cluster="eu"), document(TABLE, cluster="first")]
    rows = counted(documents, near, {"eu": "night"}, kind="pulse", result="pulse")
    assert numbers(rows["first", None]) == (1, 0, 2, 0, 0) and rows["first", None]["tiers"] is None
    found = of_tiers(rows["eu", None])
    assert found.pop(None) == (2, 0, 0, 0, 0, 0)  # zone, and anew, which the night doesn't know
    assert found == {"critical": (3, 1, 0, 2, 0, 0), "scratch": (1, 0, 0, 0, 0, 0)}


def test_nothing_is_counted_where_nothing_was_computed(spark):
    from spark_jobs.assemble.distance import with_distance

    topics = spark.createDataFrame([("eu", "orders")], "cluster string, topic string")
    assert {numbers(row) for row in with_distance(topics, None).collect()} == {(None,) * 5}
