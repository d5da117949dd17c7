"""The scripts of a plan of change, run with Kafka's own tools: they reach the planned topology, and their undo the one before."""

from __future__ import annotations

import json
import subprocess

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.remedies.change import draft
from durability.remedies.change.describe import before, numbers
from durability.remedies.change.model import Limits
from durability.remedies.change.proof import Proof
from durability.remedies.cluster import ClusterFacts
from durability.report import change as report
from durability.topology import versions
from tests.support import kafka_tools
from tests.support.pasting import with_short_pauses
from tests.unit.remedies.test_change import inputs

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
NAMES = ("loner", "pair")
TOPICS = [
    seed.Topic("loner", [[1], [2]], {"min.insync.replicas": "2"}),
    seed.Topic("pair", [[1, 2], [2, 1], [1, 2]], {}),
]


def state(kafka: LocalCluster) -> dict:
    """Replicas of each partition that are all in sync, and overrides, as a cluster answers."""
    found = collect("c", {"bootstrap.servers": kafka.bootstrap}).document
    topics = [topic for topic in found["topics"] if topic["name"] in NAMES]
    assert all(sorted(p["isr"]) == sorted(p["replicas"]) for t in topics for p in t["partitions"])
    replicas = {(t["name"], p["partition"]): p["replicas"] for t in topics for p in t["partitions"]}
    own = {
        (t["name"], name): t["configs"][name]
        for t in topics
        for name, source in t["config_sources"].items()
        if source == "topic"
    }
    return {"document": found, "replicas": replicas, "own": own}


def test_the_scripts_reach_the_plan_and_their_undo_the_state_before(tmp_path):
    version = "4.3.1"
    with LocalCluster(ClusterSpec(RACKS, {1: "a"}, version=version)) as kafka:
        seed.create_topics(kafka, TOPICS)
        seed.produce(kafka, "loner", ["one", "two"])
        kafka.wait_for_full_isr()
        earlier = state(kafka)
        facts = ClusterFacts(versions.parse(version), versions.parse(version), kraft=True, led=True, elr=False)
        made = draft.draft(inputs(earlier["document"], {"loner": (3, 2), "pair": (3, 2)}, facts, Limits(partitions=3)))
        head = {
            "id": "p",
            "cluster": "c",
            "captured_at": "2026-11-21T12:00:00Z",
            "made_at": "2026-11-21T12:05:00Z",
            "policy": {"name": "default"},
            "targets": [],
            "undoes": None,
            "notes": [],
            "waves": {"before": 1, "after": 1},
        }
        whole = report.Made({**head, **numbers(made)}, made.change, Proof(offered=True), before(made.change))
        place = report.write(whole, facts, tmp_path / "out")

        tools = tmp_path / "tools"
        tools.mkdir()
        with_short_pauses(tools)
        environment = kafka_tools.install(kafka, tools)
        ids = [step.id for step in made.change.steps]
        assert {step.kind for step in made.change.steps} >= {"lower-min-isr", "reassign", "raise-min-isr"}
        moves = next(step.id for step in made.change.steps if step.moves)
        # The step before isn't complete: its topics are printed as they are.
        ran = subprocess.run(
            ["bash", f"steps/{moves}.sh"], cwd=place, env=environment, capture_output=True, text=True, timeout=240
        )
        assert ran.returncode != 0 and "Topic: loner" in ran.stdout
        assert state(kafka)["replicas"] == earlier["replicas"]
        # A batch that is complete can be run again.
        for folder, order in (("steps", [id for id in ids for _ in range(1 + (id == moves))]), ("undo", reversed(ids))):
            for id in order:
                script = str(place / folder / f"{id}.sh")
                ran = subprocess.run(
                    ["bash", script], cwd=place, env=environment, capture_output=True, text=True, timeout=240
                )
                assert ran.returncode == 0, (id, ran.stdout, ran.stderr)
            if folder == "steps":
                reached = state(kafka)
                planned = json.loads((place / "planned.json").read_text())
                wanted = {
                    (t["name"], p["partition"]): (p["replicas"], p["leader"])
                    for t in planned["topics"]
                    for p in t["partitions"]
                    if t["name"] in NAMES
                }
                assert reached["replicas"] == {name: replicas for name, (replicas, _) in wanted.items()}
                led = {
                    (t["name"], p["partition"]): p["leader"]
                    for t in reached["document"]["topics"]
                    for p in t["partitions"]
                    if t["name"] in NAMES
                }
                assert led == {name: leader for name, (_, leader) in wanted.items()}
                assert reached["own"]["loner", "min.insync.replicas"] == "2"
        after = state(kafka)
        assert (after["replicas"], after["own"]) == (earlier["replicas"], earlier["own"])
        # A topic that was deleted and created again is another topic.
        kafka.cli("TopicCommand", "--delete", "--topic", "pair")
        seed.create_topics(kafka, TOPICS[1:])
        [other] = [topic["id"] for topic in state(kafka)["document"]["topics"] if topic["name"] == "pair"]
        for folder in ("steps", "undo"):
            ran = subprocess.run(
                ["bash", f"{folder}/{moves}.sh"],
                cwd=place,
                env=environment,
                capture_output=True,
                text=True,
                timeout=240,
            )
            assert (ran.returncode, ran.stdout) == (1, f"Topic: pair\tTopicId: {other}\n"), ran
        left = kafka.cli("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", "2")
        assert "throttled" not in left + str(after["own"])
