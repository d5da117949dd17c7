"""What the loss of any one broker and rack costs, and the smallest sets that break partitions."""

from collections import Counter
from itertools import combinations

import pytest

from spark_jobs.assemble.failure_costs import IN_SETS
from spark_jobs.frames.loss_bits import BITS
from tests.support.losses import lake_of
from tests.support.played_losses import drawn
from tests.support.topology import document


@pytest.fixture(scope="module")
def losses(spark):
    """Makes `Losses` of documents, with the plan's clusters and topics by name."""
    from spark_jobs.assemble import failure_costs

    def made(documents):
        read, plan = lake_of(spark, documents)
        return failure_costs.of_plan(read, plan)

    return made


def test_the_smallest_sets_are_those_of_every_set(losses):
    clusters = [cluster for cluster in map(drawn, range(12)) if cluster.kept() == {True}]
    expected = Counter()
    for cluster in clusters:
        name, racks = cluster.document["cluster"]["id"], cluster.racks
        for partition in cluster.partitions.values():
            replicas = sorted(partition.played.replicas)
            every = [lost for size in range(1, len(replicas) + 1) for lost in combinations(replicas, size)]
            found = {lost: partition.outcome({*lost}, kept=True, kept_before=True).breaks for lost in every}
            # A set of racks has all replicas there.
            of_racks = {}
            for lost, breaks in found.items():
                named = {racks[broker] for broker in lost}
                if None not in named and {b for b in replicas if racks[b] in named} == {*lost}:
                    of_racks[tuple(sorted(named))] = breaks
            for of in IN_SETS:
                for kind, sets in (("broker", found), ("rack", of_racks)):
                    for one in smallest(sets, of):
                        expected[name, kind, tuple(map(str, one)), of] += 1
    seen = {
        (row.cluster, row.kind, tuple(row.members), name): row[name]
        for row in losses([cluster.document for cluster in clusters]).sets().collect()
        for name in IN_SETS
        if row[name]
    }
    assert seen == dict(expected) and len(clusters) > 5
    assert {len(members) for _, kind, members, _ in seen if kind == "broker"} >= {1, 2, 3, 4}


def smallest(found, name):
    bad = [{*lost} for lost, breaks in found.items() if name in breaks]
    return [tuple(sorted(one)) for one in bad if not any(other < one for other in bad)]


def test_sets_of_large_ids_and_of_many_nodes(losses):
    """Sets of up to three small ids are counted as numbers, all others as arrays."""
    table = """
        topic  replicas         isr              min
        small  1,2,3            1,2,3            2
        large  9000000,2,3      9000000,2,3      2
        many   1,2,3,4,9000000  1,2,3,4,9000000  1
    """
    brokers = "1:az1 2:az2 3:az3 4:az4 9000000:az5"
    rows = [row for row in losses([document(table, brokers=brokers)]).sets().collect() if row.structural_writes]
    seen = {(row.kind, tuple(row.members)): row.structural_writes for row in rows}
    every = ("1", "2", "3", "4", "9000000")
    of_three = {("1", "2"): 1, ("1", "3"): 1, ("2", "3"): 2, ("2", "9000000"): 1, ("3", "9000000"): 1}
    of_racks = {tuple(f"az{every.index(id) + 1}" for id in ids): n for ids, n in of_three.items()}
    assert seen == {
        **{("broker", ids): n for ids, n in of_three.items()},
        **{("rack", racks): n for racks, n in of_racks.items()},
        **{("broker", every): 1, ("rack", ("az1", "az2", "az3", "az4", "az5")): 1},
    }


def test_what_a_loss_costs_is_the_sum_over_topics(losses):
    table = """
        topic    partition leader replicas isr   min
        orders   0         1      1,2,3    1,2,3 2
        orders   1         2      2,3,1    2,3   2
        payments 0         1      1,3      1,3   2
        scratch  0         4      4        4     1
    """
    found = losses([document(table, brokers="1:az1 2:az2 3:az3 4:az1", quorum="101:az1 102:az1 103:az3")])
    costs = {(r.kind, r.name): r for r in found.costs().collect()}
    assert set(costs) == {
        *(("broker", str(b)) for b in range(1, 5)),
        *(("rack", f"az{r}") for r in (1, 2, 3)),
        ("already", None),
    }

    def numbers(kind, name):
        row = costs[kind, name]
        return {n: tuple(row[n]) for n in BITS if tuple(row[n]) != (0, 0)}

    assert (costs["broker", "1"].held, costs["broker", "1"].led, costs["broker", "1"].quorum) == (3, 2, "kept")
    assert (costs["rack", "az1"].held, costs["rack", "az1"].led, costs["rack", "az1"].quorum) == (4, 3, "lost")
    assert numbers("broker", "2") == {"now_writes": (1, 1)}
    assert numbers("broker", "3") == {"now_writes": (2, 2), "structural_writes": (1, 1)}
    assert numbers("broker", "4")["now_data"] == numbers("broker", "4")["worst_availability"] == (1, 1)
    # Without a quorum, the leader waits for the lost member of the ISR.
    assert numbers("rack", "az1")["now_writes"] == (3, 3)
    assert numbers("rack", "az1")["now_availability"] == (3, 3)


def test_distances_count_what_one_loss_would_break_or_is_broken(losses):
    table = """
        topic    partition leader replicas isr   min
        orders   0         1      1,2,3    1,2,3 2
        orders   1         2      2,3,1    2,3   2
        orders   2         3      3,2,1    3     2
        scratch  0         4      4        4     1
        near     0         1      1,4,2    1,4,2 2
    """
    racks = losses([document(table, brokers="1:az1 2:az2 3:az3 4:az1", quorum="101:az1 102:az2 103:az3")])
    none = losses([document(table, brokers="1 2 3 4", quorum="101 102 103")])
    found = [{r.topic: tuple(r)[2:] for r in one.distances().collect()} for one in (racks, none)]
    assert found[0] == {"orders": (2, 1, 2, 1, 0), "scratch": (1, 1, 1, 1, 0), "near": (0, 0, 1, 0, 0)}
    assert found[1] == {"orders": (2, 1, 3, 3, 0), "scratch": (1, 1, 1, 1, 0), "near": (0, 0, 1, 1, 0)}


def test_distances_of_what_could_not_be_read_are_unknown(losses):
    table = """
        topic    leader replicas isr   min
        orders   1      1,2,3    1,2,3 2
        hidden   1      1,2,3    1,2,3 2
    """
    made = document(table, unreadable={"/topics/0/partitions/0/isr": "X", "/topics/1/partitions": "X"})
    found = {r.topic: r.one_failure_unknown for r in losses([made]).distances().collect()}
    assert found == {"orders": 1, "hidden": 1}


def test_a_broker_without_a_rack_may_stand_in_any(losses):
    """Writes stop if az1 or az2 is lost, and may stop if az3 is: broker 4 may stand there. Nothing depends on broker 3."""
    made = document(
        "topic leader replicas isr min\nt 1 1,2,4 1,2,4 3\nu 1 1,2 1,2 1",
        brokers="1:az1 2:az2 3:az3 4",
    )
    rows = {row.name: row for row in losses([made]).costs().collect() if row.kind == "rack"}
    assert {name: (row.now_writes.partitions, row.unknown, row.held) for name, row in rows.items()} == {
        "az1": (1, 0, 2),
        "az2": (1, 0, 2),
        "az3": (0, 1, 0),
    }


def test_a_rack_of_controllers_alone_is_a_rack_that_may_be_lost(losses):
    """If no broker has a rack, nothing is known of the loss of any."""
    table = "topic leader replicas isr min\nt 1 1,2 1,2 1"
    hub = document(table, cluster="hub", brokers="1:az1 2:az2", quorum="101:hub 102:hub 103:az1")
    unracked = document(table, cluster="unracked", brokers="1 2", quorum="101:hub 102:hub 103:az1")
    rows = [row for row in losses([hub, unracked]).costs().collect() if row.kind == "rack"]
    assert {(row.cluster, row.name): (row.held, row.quorum, row.now_availability.partitions) for row in rows} == {
        ("hub", "az1"): (1, "kept", 0),
        ("hub", "az2"): (1, "kept", 0),
        ("hub", "hub"): (0, "lost", 0),
    }
