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


@pytest.fixture(scope="module")
def capacities(spark):
    """By cluster, the rows of topics: replicas, ISR, minimum and partitions. Of `unread`, reassignments could not be read."""
    from spark_jobs.assemble.restart_capacity import capacities

    documents = [
        document(TABLE, cluster="read"),
        document(TABLE, cluster="unread", unreadable={"/cluster/reassignments": "X"}),
    ]
    found = {"read": [], "unread": []}
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
