"""Losses of brokers, against a controller that is played in every order in which the lost brokers are fenced."""

import random
from itertools import combinations

import pyarrow as pa
import pytest

from durability.lake import rows, tables
from durability.topology import validate
from spark_jobs.assemble import loss_outcomes
from tests.support import controller
from tests.support.judge import plan_of, resolved
from tests.support.policy import shipped
from tests.support.topology import document

BROKERS = "1:az1 2:az1 3:az2 4:az2 5:az3"
ANSWERS = ("NONE", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "LEADER_NOT_AVAILABLE")


def predicted(spark, documents, lose):
    """The rows of `loss_outcomes`, one per partition, by cluster, topic and partition."""
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
    found = loss_outcomes.outcomes(lambda name: frames[name], plan, lose).toArrow().to_pylist()
    return {(r["cluster"], r["topic"], p): r for r in found for p in r["partitions"]}


def drawn(seed, elr_on):
    """A cluster with random partitions, some with dead brokers, as a document."""
    random.seed(seed)
    down = {random.choice([0, 0, 1, 5])} - {0}
    lines, unclean, elrs = [], {}, {}
    for n in range(40):
        replicas = random.sample(range(1, 6), random.randint(1, 4))
        m = random.randint(1, 3)
        live = [b for b in replicas if b not in down]
        isr = random.sample(live, random.randint(0, len(live))) if live else []
        elr = []
        effective = min(m, len(replicas))
        if elr_on and len(isr) < effective:
            others = [b for b in replicas if b not in isr and (isr or b in down)]
            elr = random.sample(others, min(len(others), effective - len(isr)))
        if not isr and not elr_on:
            isr = [b for b in replicas if b in down][:1] or live[:1]
        leads = [b for b in isr if b in live]
        unclean[f"t{n}"] = bool(leads) and random.random() < 0.3
        leader = random.choice(leads) if leads else None
        cells = [",".join(map(str, ids)) or "-" for ids in (replicas, isr, elr)]
        lines.append(f"t{n} {leader or '-'} {cells[0]} {cells[1]} {cells[2]} {m}")
        elrs[f"t{n}"] = elr
    table = "topic leader replicas isr elr min\n" + "\n".join(lines)
    brokers = " ".join(b + "!" if int(b[0]) in down else b for b in BROKERS.split())
    made = document(table, brokers=brokers, version="4.3", features={"eligible.leader.replicas.version": int(elr_on)})
    for topic in made["topics"]:
        topic["configs"]["unclean.leader.election.enable"] = str(unclean[topic["name"]]).lower()
        topic["config_sources"]["unclean.leader.election.enable"] = "topic"
    return made, down


@pytest.mark.parametrize("elr_on", [True, False])
def test_losses_are_what_a_played_controller_does(spark, elr_on):
    documents, lose, expected = [], {}, {}
    for seed in range(6):
        for lost in [(b,) for b in range(1, 6)] + list(combinations(range(1, 6), 2)) + [(1, 3, 5), (1, 2, 3, 4)]:
            made, down = drawn(seed, elr_on)
            name = f"c{seed}-{'-'.join(map(str, lost))}"
            made["cluster"]["id"] = name
            documents.append(made)
            lose[name] = {"brokers": lost, "controllers": []}
            for topic in made["topics"]:
                [p] = topic["partitions"]
                m = min(int(topic["configs"]["min.insync.replicas"]), len(p["replicas"]))
                unclean = topic["configs"]["unclean.leader.election.enable"] == "true"
                played = controller.Played(
                    *(p["replicas"], p["leader"], p["isr"], p["elr"] if elr_on else [], m, elr_on, unclean),
                    live={1, 2, 3, 4, 5} - down,
                    full={*p["isr"], *(p["elr"] if elr_on else [])},
                )
                expected[name, topic["name"], 0] = (*controller.after(played, lost), p)
    found = predicted(spark, documents, lose)
    wrong = []
    assert len(found) == len(expected)
    for key, (outcomes, deleted, p) in expected.items():
        row = found[key]
        sure = {*p["isr"], *(p["elr"] if elr_on else [])}
        at_risk = bool(sure) and sure <= set(lose[key[0]]["brokers"])
        seen = (row["now"], row["leader_after"])
        if outcomes != {seen} or row["deleted"] != deleted or row["at_risk"] != at_risk:
            wrong.append((key, p, sorted(outcomes, key=str), deleted, at_risk, seen, row["deleted"], row["at_risk"]))
    assert not wrong, f"{len(wrong)} wrong, for instance\n" + "\n".join(map(repr, wrong[:3]))
    assert {r["now"] for r in found.values()} == {"NONE", "NOT_ENOUGH_REPLICAS", "LEADER_NOT_AVAILABLE"}
    assert any(r["deleted"] for r in found.values())
