"""What the loss of any one broker and rack costs, and the smallest sets that break partitions. All clusters are one fleet in
one job: random ones, compared with a controller that is played, and small ones drawn as tables.
"""

from collections import Counter
from itertools import combinations

import pytest

from spark_jobs.assemble import loss_outcomes
from spark_jobs.assemble.failure_costs import IN_SETS, Losses
from spark_jobs.frames.loss_bits import BITS
from tests.support.losses import lake_of
from tests.support.played_losses import drawn
from tests.support.topology import document

CLUSTERS = {f"c{seed}": drawn(seed) for seed in range(20)}
RACKED = "1:az1 2:az2 3:az3 4:az1"
LARGE_IDS = """
    topic  replicas         isr              min
    small  1,2,3            1,2,3            2
    large  9000000,2,3      9000000,2,3      2
    many   1,2,3,4,9000000  1,2,3,4,9000000  1
"""
SUMS = """
    topic    partition leader replicas isr   min
    orders   0         1      1,2,3    1,2,3 2
    orders   1         2      2,3,1    2,3   2
    payments 0         1      1,3      1,3   2
    scratch  0         4      4        4     1
"""
NEAR = """
    topic    partition leader replicas isr   min
    orders   0         1      1,2,3    1,2,3 2
    orders   1         2      2,3,1    2,3   2
    orders   2         3      3,2,1    3     2
    scratch  0         4      4        4     1
    near     0         1      1,4,2    1,4,2 2
"""
UNREAD = """
    topic    leader replicas isr   min
    orders   1      1,2,3    1,2,3 2
    hidden   1      1,2,3    1,2,3 2
"""
SEVEN = "topic replicas min\nseven 1,2,3,4,5,6,7 1\nthree 1,2,3 1"
PAIR = "topic leader replicas isr min\nt 1 1,2 1,2 1"
DRAWN = [
    document(LARGE_IDS, cluster="large-ids", brokers="1:az1 2:az2 3:az3 4:az4 9000000:az5"),
    document(SEVEN, cluster="seven", brokers="1:az1 2:az1 3:az1 4:az2 5:az2 6:az2 7", quorum="101:az1"),
    document(SUMS, cluster="sums", brokers=RACKED, quorum="101:az1 102:az1 103:az3"),
    document(NEAR, cluster="near", brokers=RACKED, quorum="101:az1 102:az2 103:az3"),
    document(NEAR, cluster="near-without-racks", brokers="1 2 3 4", quorum="101 102 103"),
    document(UNREAD, cluster="unread", unreadable={"/topics/0/partitions/0/isr": "X", "/topics/1/partitions": "X"}),
    document(
        "topic leader replicas isr min\nt 1 1,2,4 1,2,4 3\nu 1 1,2 1,2 1",
        cluster="any-rack",
        brokers="1:az1 2:az2 3:az3 4",
    ),
    document(PAIR, cluster="hub", brokers="1:az1 2:az2", quorum="101:hub 102:hub 103:az1"),
    document(PAIR, cluster="unracked", brokers="1 2", quorum="101:hub 102:hub 103:az1"),
]


@pytest.fixture(scope="module")
def losses(spark):
    """By cluster, the rows of costs, sets and distances."""
    documents = [*(cluster.document for cluster in CLUSTERS.values()), *DRAWN]
    read, plan = lake_of(spark, documents)
    made = Losses(read("partitions"), *loss_outcomes.facts_of(read, plan), lambda frame: frame.localCheckpoint())
    tables = {"costs": made.costs(), "sets": made.sets(), "distances": made.distances()}
    found = {d["cluster"]["id"]: {name: [] for name in tables} for d in documents}
    for name, frame in tables.items():
        for row in frame.collect():
            found[row.cluster][name].append(row)
    return found


def test_what_each_loss_breaks_is_what_a_played_controller_says(losses):
    found = {}
    for row in (row for name in CLUSTERS for row in losses[name]["costs"]):
        counts = {name: row[name].partitions for name in BITS} | {"unknown": row.unknown}
        found[row.cluster, row.kind, row.name] = {name: count for name, count in counts.items() if count}
    expected = {
        (name, *loss): dict(counts) for name, cluster in CLUSTERS.items() for loss, counts in cluster.costs().items()
    }
    wrong = {key: (found.get(key), counts) for key, counts in expected.items() if found.get(key) != counts}
    assert not wrong and set(found) == set(expected), f"{len(wrong)} wrong: {list(wrong.items())[:3]}"
    assert sum("unknown" in counts for key, counts in expected.items() if key[1] == "rack") > 20


def test_the_smallest_sets_are_those_of_every_set(losses):
    clusters = {name: cluster for name, cluster in [*CLUSTERS.items()][:12] if cluster.kept() == {True}}
    expected = Counter()
    for name, cluster in clusters.items():
        racks = cluster.racks
        for partition in cluster.partitions.values():
            replicas = sorted(partition.played.replicas)
            every = [lost for size in range(1, len(replicas) + 1) for lost in combinations(replicas, size)]
            found = {
                lost: partition.outcome({*lost}, kept=True, kept_before=True, kept_if_up=True).breaks for lost in every
            }
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
        for row in (row for cluster in clusters for row in losses[cluster]["sets"])
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
    rows = [row for row in losses["large-ids"]["sets"] if row.structural_writes]
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
    costs = {(r.kind, r.name): r for r in losses["sums"]["costs"]}
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


def test_a_rack_has_a_partition_once_whatever_its_replicas(losses):
    """No pattern describes seven replicas."""
    held = {(row.kind, row.name): (row.held, row.led) for row in losses["seven"]["costs"] if row.kind != "already"}
    assert held == {
        **{("broker", str(id)): (2 if id <= 3 else 1, 2 if id == 1 else 0) for id in range(1, 8)},
        **{("rack", "az1"): (2, 2), ("rack", "az2"): (1, 0)},
    }


def test_distances_count_what_one_loss_would_break_or_is_broken(losses):
    of = ("near", "near-without-racks")
    found = [{r.topic: tuple(r)[2:] for r in losses[cluster]["distances"]} for cluster in of]
    assert found[0] == {"orders": (2, 1, 2, 1, 0), "scratch": (1, 1, 1, 1, 0), "near": (0, 0, 1, 0, 0)}
    assert found[1] == {"orders": (2, 1, 3, 3, 0), "scratch": (1, 1, 1, 1, 0), "near": (0, 0, 1, 1, 0)}


def test_distances_of_what_could_not_be_read_are_unknown(losses):
    found = {r.topic: r.one_failure_unknown for r in losses["unread"]["distances"]}
    assert found == {"orders": 1, "hidden": 1}


def test_a_broker_without_a_rack_may_stand_in_any(losses):
    """Writes stop if az1 or az2 is lost, and may stop if az3 is: broker 4 may stand there. Nothing depends on broker 3."""
    rows = {row.name: row for row in losses["any-rack"]["costs"] if row.kind == "rack"}
    assert {name: (row.now_writes.partitions, row.unknown, row.held) for name, row in rows.items()} == {
        "az1": (1, 0, 2),
        "az2": (1, 0, 2),
        "az3": (0, 1, 0),
    }


def test_a_rack_of_controllers_alone_is_a_rack_that_may_be_lost(losses):
    """If no broker has a rack, nothing is known of the loss of any."""
    rows = [row for name in ("hub", "unracked") for row in losses[name]["costs"] if row.kind == "rack"]
    assert {(row.cluster, row.name): (row.held, row.quorum, row.now_availability.partitions) for row in rows} == {
        ("hub", "az1"): (1, "kept", 0),
        ("hub", "az2"): (1, "kept", 0),
        ("hub", "hub"): (0, "lost", 0),
    }
