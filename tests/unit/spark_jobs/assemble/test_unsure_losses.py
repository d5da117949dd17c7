"""Losses that depend on voters or racks that are unknown: small clusters drawn as tables, and random ones, whose controller is
played. Each loss is that of a cluster of its own, and one job predicts all of them.
"""

import pytest

from durability.report.data.losses import serves
from tests.support.losses import Lost, answers, lost, outcomes_of
from tests.support.played_losses import drawn
from tests.support.topology import document

BROKERS = "1:az1 2:az1 3:az2 4:az2 5:az3"
EITHER_WAY = """
    topic  leader replicas isr   min
    gone   1      1,2      1     1
    follow 3      1,3,4    3,4   2
    held   3      1,3,4    1,3,4 2
    led    1      1,3,4    1,3,4 2
"""
UNPLACED = """
    topic    leader replicas isr   adding removing min
    breaks   1      1,4      1,4   -      -        2
    holds    3      3,4,5    3,4,5 -      -        1
    depends  1      1,3,4    1,3,4 -      -        2
    led      3      3,4      3,4   -      -        1
    moves    3      3,4,1,2  3,4   1,2    3,4      2
"""
UNSURE = [
    lost(document(EITHER_WAY, cluster="either-way", brokers=BROKERS, unreadable={"/cluster/quorum": "X"}), [1]),
    *(
        lost(
            document(UNPLACED, cluster=name, brokers="1:az1 2:az2 3:az3 4 5:az2", quorum="101:az1 102 103:az2"),
            *([1], [101]),
            {"brokers": [4], "controllers": voters},
        )
        for name, voters in {"unplaced": [], "unplaced-with-voter": [102]}.items()
    ),
]
UNCLEAN = "topic leader replicas isr min\nt 1 1,2 1 1"
MAY_DELETE = {
    # With both controllers in az1, nobody elects an unclean leader.
    "controllers": lost(
        document(
            UNCLEAN,
            cluster="controllers",
            brokers="1:az1 2:az2",
            quorum="101:az1 102 103",
            configs=(ON := {"t": {"unclean.leader.election.enable": "true"}}),
        ),
        [1],
        [101],
        {"controllers": [102, 103]},
    ),
    # With broker 1 alone in az1, broker 2 is elected; with controller 102 too, nobody is.
    "both": lost(
        document(UNCLEAN, cluster="both", brokers="1 2:az2", quorum="101:az1 102 103:az2", configs=ON),
        [],
        [101],
        {"brokers": [1], "controllers": [102]},
    ),
    "broker": lost(
        document(UNCLEAN, cluster="broker", brokers="1:az1 2:az2 3", quorum="101:az1 102:az2 103:az2", configs=ON),
        [1],
        [101],
        {"brokers": [3]},
    ),
    "nothing": lost(
        document(UNCLEAN, cluster="nothing", brokers="1:az2 2", quorum="101:az1 102 103:az2", configs=ON),
        [],
        [101],
        {"brokers": [2], "controllers": [102]},
    ),
}
CLUSTERS = {f"c{seed}": drawn(seed) for seed in range(20)}
OF = {
    name: {place: [*cluster.losses()][n] for place, n in (("broker", 0), ("rack", -1))}
    for name, cluster in CLUSTERS.items()
}


def stated(name, place) -> Lost:
    """The loss of a random cluster's first broker or last rack."""
    cluster, loss = CLUSTERS[name], OF[name][place]
    more, nodes = loss.more
    made = cluster.document
    return lost(
        made | {"cluster": made["cluster"] | {"id": f"{name}-{place}"}},
        sorted(loss.brokers),
        sorted(loss.nodes & cluster.voters.keys()),
        {
            "brokers": sorted(more - loss.brokers),
            "controllers": sorted((nodes - loss.nodes) & cluster.voters.keys()),
        },
    )


CLUSTERS_LOST = {name: {place: stated(name, place) for place in OF[name]} for name in CLUSTERS}


@pytest.fixture(scope="module")
def unsure(spark):
    """By cluster and topic, the rows of `loss_outcomes`."""
    return outcomes_of(
        spark, [*UNSURE, *MAY_DELETE.values(), *(loss for losses in CLUSTERS_LOST.values() for loss in losses.values())]
    )


def test_without_facts_about_the_quorum_what_holds_either_way_is_known(unsure):
    assert answers(unsure["either-way"]) == {
        "gone": ("LEADER_NOT_AVAILABLE", None),
        "follow": ("NONE", 3),
        # Its leader stays either way.
        "held": (None, 3),
        "led": (None, None),
    }


def test_what_depends_on_brokers_without_a_rack_is_unknown(unsure):
    rows = unsure["unplaced"]
    seen = {topic: (r["now"], r["structural"], r["data_worst"]) for topic, r in rows.items()}
    assert seen == {
        "breaks": ("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS", None),
        "holds": ("NONE", "NONE", None),
        "depends": (None, None, None),
        "led": ("NONE", "NONE", None),
        # Of the placement after the reassignment, broker 1 alone is enough.
        "moves": (None, "NOT_ENOUGH_REPLICAS", None),
    }
    with_voter = unsure["unplaced-with-voter"]
    assert {r["quorum"]["kept"] for r in with_voter.values()} == {None}
    assert with_voter["breaks"]["now"] == "NOT_ENOUGH_REPLICAS"
    assert with_voter["depends"]["now"] is None


def test_an_unclean_leader_deletes_records_for_certain_only_with_a_majority(unsure):
    """Which controllers are lost is unknown, or which brokers are, or both."""
    seen = {name: unsure[name]["t"]["deleted"] for name in MAY_DELETE}
    assert seen == {"controllers": None, "both": None, "broker": True, "nothing": False}


@pytest.mark.parametrize("place", ["broker", "rack"])
def test_a_stated_loss_does_what_a_played_controller_says(unsure, place):
    wrong = []
    found = {(name, topic): row for name in CLUSTERS for topic, row in unsure[f"{name}-{place}"].items()}
    assert len(found) == sum(len(cluster.partitions) for cluster in CLUSTERS.values())
    for (name, topic), row in found.items():
        cluster, loss = CLUSTERS[name], OF[name][place]
        least = cluster.outcomes(cluster.partitions[topic], loss.brokers, loss.nodes)
        every = least + cluster.outcomes(cluster.partitions[topic], *loss.more)
        before, now = {one.before for one in least}, {serves(one.now) for one in least}
        data = ["now_data" in one.breaks for one in least], ["now_data" in one.breaks for one in every]
        expected = {
            "before": before.pop() if len(before) == 1 else None,
            # What breaks without the nodes of unknown racks breaks.
            "now": now.pop()
            if len(now) == 1 and (now != {"accepts"} or {serves(o.now) for o in every} == now)
            else "unknown",
            "data": True if all(data[0]) else None if any(data[1]) else False,
        }
        flags = (row["at_risk"], row["deleted"])
        seen = {
            "before": row["before"],
            "now": serves(row["now"]),
            "data": True if any(flags) else None if None in flags else False,
        }
        if len({(one.now, one.leader) for one in every}) == 1:
            expected |= {"answer": every[0].now, "leader": every[0].leader}
            seen |= {"answer": row["now"], "leader": row["leader_after"]}
        if seen != expected:
            wrong.append((name, topic, seen, expected))
    assert not wrong, f"{len(wrong)} wrong, for instance\n" + "\n".join(map(repr, wrong[:5]))
