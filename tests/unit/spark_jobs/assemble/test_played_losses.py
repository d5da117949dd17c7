"""Losses of random clusters, against a controller that is played."""

import pytest

from durability.report.data.losses import serves
from spark_jobs.assemble import failure_costs
from spark_jobs.frames.loss_bits import BITS
from tests.support.losses import lake_of, predicted
from tests.support.played_losses import drawn

CLUSTERS = {f"c{seed}": drawn(seed) for seed in range(20)}


def test_what_each_loss_breaks_is_what_a_played_controller_says(spark):
    found = {}
    documents = [cluster.document for cluster in CLUSTERS.values()]
    for row in failure_costs.of_plan(*lake_of(spark, documents)).costs().collect():
        counts = {name: row[name].partitions for name in BITS} | {"unknown": row.unknown}
        found[row.cluster, row.kind, row.name] = {name: count for name, count in counts.items() if count}
    expected = {
        (name, *loss): dict(counts) for name, cluster in CLUSTERS.items() for loss, counts in cluster.costs().items()
    }
    wrong = {key: (found.get(key), counts) for key, counts in expected.items() if found.get(key) != counts}
    assert not wrong and set(found) == set(expected), f"{len(wrong)} wrong: {list(wrong.items())[:3]}"
    assert sum("unknown" in counts for key, counts in expected.items() if key[1] == "rack") > 20


@pytest.mark.parametrize("place", [0, -1], ids=["broker", "rack"])
def test_a_stated_loss_does_what_a_played_controller_says(spark, place):
    documents, lose, wrong = [], {}, []
    of = {name: [*cluster.losses()][place] for name, cluster in CLUSTERS.items()}
    for name, cluster in CLUSTERS.items():
        loss, (more, nodes) = of[name], of[name].more
        documents.append(cluster.document)
        lose[name] = {
            "brokers": sorted(loss.brokers),
            "controllers": sorted(loss.nodes & cluster.voters.keys()),
            "unplaced_brokers": sorted(more - loss.brokers),
            "unplaced_controllers": sorted((nodes - loss.nodes) & cluster.voters.keys()),
        }
    for (name, topic, _), row in predicted(spark, documents, lose).items():
        cluster, loss = CLUSTERS[name], of[name]
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
