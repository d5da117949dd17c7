"""What partitions can spare while brokers restart."""

from tests.support.losses import lake_of
from tests.support.topology import document

TABLE = """
    topic   leader replicas    isr   adding removing min
    still   1      1,2,3       1,2   -      -        2
    still   2      3,2,1       1,2   -      -        2
    moving  1      4,5,6,1,2,3 1,2,3 4,5,6  1,2,3    2
    growing 1      1,2,3       1,2   3      -        3
"""


def capacities(spark, **parts):
    from spark_jobs.assemble.restart_capacity import capacities

    rows = capacities(*lake_of(spark, [document(TABLE, **parts)])).toArrow().to_pylist()
    return sorted((r["topic"], r["replicas"], r["isr"], r["minimum"], r["partitions"]) for r in rows)


def test_a_reassignment_limits_waves_by_what_it_leaves_and_by_what_there_was(spark):
    assert capacities(spark) == [
        ("growing", [1, 2], [1, 2], 2, 0),
        ("growing", [1, 2, 3], [1, 2], 3, 1),
        ("moving", [1, 2, 3], [1, 2, 3], 2, 0),
        ("moving", [4, 5, 6], [], 2, 1),
        ("still", [1, 2, 3], [1, 2], 2, 2),
    ]


def test_where_a_reassignment_may_run_the_minimum_of_what_it_leaves_is_unknown(spark):
    found = capacities(spark, unreadable={"/cluster/reassignments": "X"})
    assert {minimum for _, _, _, minimum, _ in found} == {None}
