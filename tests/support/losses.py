"""Predictions of losses by the Spark rules alone: no lake, all documents as one fleet in one job."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from durability.lake import rows, tables
from durability.topology import validate
from tests.support.judge import plan_of, resolved
from tests.support.policy import shipped


def predicted(spark, documents, lose) -> dict[tuple[str, str, int], dict]:
    """The rows of `loss_outcomes`, one per partition, by cluster, topic and partition."""
    from spark_jobs.assemble import loss_outcomes

    read, plan = lake_of(spark, documents)
    found = loss_outcomes.outcomes(read, plan, lose).toArrow().to_pylist()
    return {(r["cluster"], r["topic"], p): r for r in found for p in r["partitions"]}


def lake_of(spark, documents):
    """What reads the documents' tables, and the plan of their run."""
    policy = shipped()
    topologies = [validate(d, f"{d['cluster']['id']}.json") for d in documents]
    plan = plan_of(topologies, policy, [])
    facts: dict[str, list[pa.Table]] = {}
    for topology, part in zip(topologies, plan.snapshots, strict=True):
        for name, table in rows.build(topology, part.snapshot_id, part.attempt_id, provider="self").items():
            facts.setdefault(name, []).append(table)
    facts["resolved_policy"] = [
        pa.Table.from_pylist(resolved(topologies, plan, policy, []), tables.RESOLVED_POLICY.arrow)
    ]
    frames = {name: spark.createDataFrame(pa.concat_tables(parts).combine_chunks()) for name, parts in facts.items()}
    return (lambda name: frames[name]), plan


class Lost(NamedTuple):
    """A cluster's document, and what is lost of it: ids of `brokers` and `controllers`, and those that may be."""

    document: dict
    ids: dict

    @property
    def cluster(self) -> str:
        return self.document["cluster"]["id"]


def lost(made: dict, brokers, controllers=(), unplaced=None) -> Lost:
    """unplaced: by kind, those that may be lost, because they may be in a lost rack."""
    ids = {"brokers": list(brokers), "controllers": list(controllers)}
    return Lost(made, ids | {f"unplaced_{kind}": list(those) for kind, those in (unplaced or {}).items()})


def outcomes_of(spark, losses: list[Lost]) -> dict[str, dict[str, dict]]:
    """By cluster and topic, the row of `loss_outcomes`, for topics of one partition. All losses are predicted in one job."""
    lose = {one.cluster: one.ids for one in losses}
    assert len(lose) == len(losses), "two losses of one cluster"
    found: dict[str, dict[str, dict]] = {}
    for (cluster, topic, _), row in predicted(spark, [one.document for one in losses], lose).items():
        found.setdefault(cluster, {})[topic] = row
    return found


def answers(of_cluster):
    """What acks=all writes to each topic are answered after the loss, and who leads."""
    return {topic: (row["now"], row["leader_after"]) for topic, row in of_cluster.items()}
