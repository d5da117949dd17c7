"""Losses found by groups of equal partitions are those of each partition by itself."""

from __future__ import annotations

import random

import pytest

from durability.lake import partition_groups
from tests.support.losses import lake_of
from tests.support.topology import document

pytestmark = pytest.mark.slow
QUORUMS = ("101:az1 102:az2 103:az3", "1:az1 3:az2 5:az3", "101:az1 102:az1 103:az2")
"""The second one's voters are brokers, so a broker's loss may cost the majority. No group tells which brokers vote."""


def fleet(seed: int) -> dict:
    """A cluster whose topics put partitions at few placements: some are whole, others short, offline or being moved."""
    draw = random.Random(seed)
    lines, unclean = [], {}
    for name in (f"t{n}" for n in range(6)):
        unclean[name] = draw.random() < 0.3
        least = draw.randint(1, 3)
        placements = []
        for _ in range(4):
            replicas = draw.sample(range(1, 7), draw.randint(1, 4))
            isr = replicas if draw.random() < 0.6 else draw.sample(replicas, draw.randint(1, len(replicas)))
            leader = draw.choice(isr) if draw.random() < 0.9 else "-"
            adding = replicas[-1:] if len(replicas) > 1 and draw.random() < 0.1 else []
            lists = [",".join(map(str, ids)) or "-" for ids in (replicas, isr, adding)]
            placements.append(" ".join([str(leader), *lists]))
        lines += [f"{name} {draw.choice(placements)} {least}" for _ in range(12)]
    made = document(
        "topic leader replicas isr adding min\n" + "\n".join(lines),
        brokers=draw.choice(["1:az1 2:az1 3:az2 4:az2 5:az3 6:az3", "1:az1 2:az1 3:az2 4:az2! 5:az3 6"]),
        quorum=QUORUMS[seed % len(QUORUMS)],
        cluster=f"fleet-{seed}",
    )
    for topic in made["topics"]:
        topic["configs"]["unclean.leader.election.enable"] = str(unclean[topic["name"]]).lower()
        topic["config_sources"]["unclean.leader.election.enable"] = "topic"
    return made


@pytest.fixture(scope="module")
def lake(spark):
    """What reads the fleet's tables, the topics, the clusters, and the groups of all clusters but the last."""
    from spark_jobs.assemble import loss_outcomes
    from spark_jobs.scale import groups, loss_groups

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_groups, "FROM", 1)
        read, plan = lake_of(spark, [fleet(seed) for seed in range(6)])
    topics, clusters = loss_outcomes.facts_of(read, plan)
    attempts = [str(snapshot.attempt_id) for snapshot in plan.judged]
    rows = groups.numbered(groups.representatives(read, attempts, attempts[:-1])).localCheckpoint()
    return read("partitions"), topics, clusters, loss_groups.Groups(rows, attempts[-1:])


def found(lake, grouped: bool) -> dict[str, list[str]]:
    from spark_jobs.assemble.failure_costs import Losses

    partitions, topics, clusters, groups = lake
    losses = Losses(partitions, topics, clusters, lambda f: f.localCheckpoint(), groups=groups if grouped else None)
    frames = {"costs": losses.costs(), "sets": losses.sets(), "topics": losses.of_topics(), "near": losses.distances()}
    # Lists of ids have no order.
    ordered = {
        name: [_ordered(row.asDict(recursive=True)) for row in frame.collect()] for name, frame in frames.items()
    }
    return {name: sorted(map(repr, rows)) for name, rows in ordered.items()}


def _ordered(row: dict) -> dict:
    ids = ("broker_partitions", "rack_partitions")
    return {name: sorted(value) if name in ids and value else value for name, value in sorted(row.items())}


def test_losses_by_groups_are_those_of_each_partition(lake):
    grouped, alone = found(lake, True), found(lake, False)
    assert {name: len(rows) for name, rows in grouped.items()} == {name: len(rows) for name, rows in alone.items()}
    for name, rows in alone.items():
        assert rows and grouped[name] == rows, name


def test_groups_are_fewer_than_partitions_and_cover_them_once_however_they_are_joined(lake, monkeypatch):
    from pyspark.sql import functions as F

    from spark_jobs.scale import loss_groups
    from spark_jobs.scale import loss_patterns as patterns

    rows, topics, clusters, groups = lake
    coded = patterns.codes(clusters).clusters.localCheckpoint()
    numbered = patterns.numbered_topics(topics, clusters)
    keyed = loss_groups.keyed(
        rows, groups, numbered, coded, lambda frame: frame.localCheckpoint(), lambda frame, whole=True: frame
    )
    of_groups, alone = keyed.groups, keyed.alone.count()
    in_groups = of_groups.select(F.explode("ids")).count()
    assert in_groups + alone == rows.count()
    assert 0 < of_groups.count() < in_groups / 2 and alone > 0
    numbers = keyed.patterns.withColumn("pattern", F.xxhash64(*patterns.KEY)).localCheckpoint()
    both = []
    for most in (loss_groups.MOST, 0):
        monkeypatch.setattr(loss_groups, "MOST", most)
        both.append(sorted((r.tid, *r.replicas, r.pattern) for r in keyed.numbered(numbers).collect()))
    described = rows.count() - keyed.undescribed().count()
    assert both[0] == both[1] and len(both[0]) == described
