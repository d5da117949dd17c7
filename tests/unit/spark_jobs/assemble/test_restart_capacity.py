"""What partitions can spare while brokers restart."""

import pytest

from tests.support.losses import lake_of
from tests.support.topology import document

TABLE = """
    topic   leader replicas    isr   adding removing min
    still   1      1,2,3       1,2   -      -        2
    still   2      3,2,1       1,2   -      -        2
    moving  1      4,5,6,1,2,3 1,2,3 4,5,6  1,2,3    2
    growing 1      1,2,3       1,2   3      -        3
"""

OF_BROKERS = """
    topic   leader replicas isr     min
    differs 1      1,2,3    1,2,3   -
    same    1      1,3,4    1,3,4   -
    own     1      1,2,3    1,2,3   1
    old     1      1,5      1,5     3
    down    1      1,3,6    1,3     -
"""
"""The brokers' own values are 1, but 3 for broker 2. Broker 5 doesn't cap."""
OF_EACH = {id: {"configs": {"min.insync.replicas": "3" if id == 2 else "1"}} for id in range(1, 6)}


@pytest.fixture(scope="module")
def capacities(spark):
    """By cluster, the rows of topics: replicas, ISR, minimum and partitions. Of `unread`, reassignments could not be read."""
    from spark_jobs.assemble.restart_capacity import capacities

    documents = [
        document(TABLE, cluster="read"),
        document(TABLE, cluster="unread", unreadable={"/cluster/reassignments": "X"}),
        document(
            OF_BROKERS,
            cluster="of-brokers",
            brokers="1:az1 2:az2 3:az3 4:az1 5:az2 6:az3!",
            each_broker={**OF_EACH, 5: {**OF_EACH[5], "kafka_version": "3.6"}},
            version="3.7",
        ),
    ]
    found = {d["cluster"]["id"]: [] for d in documents}
    for r in capacities(*lake_of(spark, documents)).toArrow().to_pylist():
        found[r["cluster"]].append((r["topic"], r["replicas"], r["isr"], r["minimum"], r["partitions"]))
    return {cluster: sorted(rows) for cluster, rows in found.items()}


def test_a_reassignment_limits_waves_by_what_it_leaves_and_by_what_there_was(capacities):
    assert capacities["read"] == [
        ("growing", [1, 2], [1, 2], 2, 0),
        ("growing", [1, 2, 3], [1, 2], 3, 1),
        ("moving", [1, 2, 3], [1, 2, 3], 2, 0),
        ("moving", [4, 5, 6], [], 2, 1),
        ("still", [1, 2, 3], [1, 2], 2, 2),
    ]


def test_where_a_reassignment_may_run_the_minimum_of_what_it_leaves_is_unknown(capacities):
    assert {minimum for _, _, _, minimum, _ in capacities["unread"]} == {None}


def test_the_minimum_is_the_largest_of_all_brokers_that_may_lead(capacities):
    """Broker 2 rejects writes with less than 3 in sync once it leads, and broker 5 with any number below 3."""
    assert {topic: minimum for topic, _, _, minimum, _ in capacities["of-brokers"]} == {
        "differs": 3,
        "same": 1,
        "own": 1,
        "old": 3,
        "down": 1,
    }
