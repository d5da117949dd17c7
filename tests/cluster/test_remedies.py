"""The remedies of misconfigured topics followed on a running cluster, with Kafka's own tools, as a user would paste them:
the next audits find nothing more to mend.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import Counter

import pytest

from durability.collect import collect
from durability.embedded_kafka import seed, tools
from durability.remedies import plans
from durability.report.words import is_script
from tests.support.judge import Judge, pick
from tests.support.pasting import with_short_pauses
from tests.support.policy import policy

POLICY = policy("""
tiers:
  standard: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, replica_racks: 3, acked_racks: 2}
  nothing: {}
topics:
  - {match: {topic: "m-.*"}, tier: standard}
  - {tier: nothing}
""")
TOPICS = {  # brokers 1 and 4 stand in az1, 2 and 5 in az2, 3 and 6 in az3
    "m-alone": ([[1], [5]], "1"),
    "m-above": ([[2, 3]], "3"),
    "m-crowded": ([[1, 4, 2], [3, 1, 2]], "2"),
    "m-tight": ([[4, 5, 6]], "3"),
    "m-good": ([[1, 2, 3]], "2"),
}
WANTED = {"replication-factor", "min-insync-replicas", "min-isr-within-replication-factor", "write-headroom"}
WANTED |= {"replica-rack-spread", "acked-durability"}
TOOLS = {"kafka-configs": "ConfigCommand", "kafka-reassign-partitions": "ReassignPartitionsCommand"}


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A folder with Kafka's tools under the names that its distribution gives them."""
    folder = tmp_path_factory.mktemp("bin")
    with_short_pauses(folder)
    for name, main in TOOLS.items():
        java = tools.java("4.3.1", tools.main_class("4.3.1", main), heap_mb=96, home=folder)
        (folder / name).write_text(f'#!/bin/bash\nexec {shlex.join(java)} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def write_plans(judge: Judge, document: dict, out) -> None:
    """What the report writes for the topics that a plan leads on."""
    brokers = [plans.Broker(b["id"], b["rack"], b["live"]) for b in document["brokers"]]
    partitions = {t["name"]: [(p["partition"], p["replicas"], []) for p in t["partitions"]] for t in document["topics"]}
    placement = plans.Placement(brokers, Counter(r for rows in partitions.values() for _, ids, _ in rows for r in ids))
    for row in judge.posture():
        if row["reassign"]:
            moves, why = plans.moved(placement, partitions[row["topic"]], row)
            assert why is None, row
            file = out / "plans" / plans.folder(row["cluster"]) / f"{row['topic']}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(plans.written(row["topic"], moves))


def follow(kafka, shell, out, script: str) -> None:
    """Runs a remedy as it stands; what it says to repeat is repeated until it is complete."""
    environment = {**os.environ, "PATH": f"{shell}:{os.environ['PATH']}", "BOOTSTRAP": kafka.bootstrap}

    def bash(text: str) -> str:
        done = subprocess.run(["bash", "-e"], input=text, text=True, capture_output=True, env=environment, cwd=out)
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        return done.stdout

    bash(script)
    for line in script.splitlines():
        if "--verify" in line:
            kafka.wait_until(lambda again=line: "in progress" not in bash(again), "the reassignment is complete")


def test_followed_remedies_leave_nothing_to_mend(kafka, shell, spark, tmp_path):
    judge = Judge(spark)
    seed.create_topics(
        kafka, [seed.Topic(name, at, {"min.insync.replicas": least}) for name, (at, least) in TOPICS.items()]
    )
    kafka.wait_for_full_isr()
    rounds = []
    while len(rounds) < 4:
        document = collect("mended", {"bootstrap.servers": kafka.bootstrap}).document
        found = judge.run([document], POLICY, result=f"r{len(rounds)}")
        failed = [f for f in pick(found, outcome="FAIL") if f["control"] in WANTED and f["resource"] in TOPICS]
        rounds.append({f["resource"] for f in failed})
        if not failed:
            break
        write_plans(judge, document, tmp_path)
        for script in dict.fromkeys(f["remediation"] for f in failed):
            assert is_script(script), script
            follow(kafka, shell, tmp_path, script)
        kafka.wait_for_full_isr()
    assert rounds[0] == TOPICS.keys() - {"m-good"}
    assert rounds[-1] == set(), rounds
    judged = [f for f in found if f["control"] in WANTED and f["resource"] in TOPICS]
    assert {f["outcome"] for f in judged} <= {"PASS", "NOT_APPLICABLE"} and len(judged) >= len(TOPICS) * 5
    # The throttle goes with the last --verify; and those already placed well keep their preferred leaders.
    assert not kafka_throttles(kafka)
    last = {t["name"]: [p["replicas"] for p in t["partitions"]] for t in document["topics"] if t["name"] in TOPICS}
    assert [ids[0] for ids in last["m-alone"]] == [1, 5]
    assert last["m-good"] == [[1, 2, 3]] and last["m-crowded"][1] == [3, 1, 2]


def kafka_throttles(kafka) -> list[str]:
    """Throttles as kafka-configs lists them: of brokers and of the topics."""
    said = kafka.cli("ConfigCommand", "--describe", "--entity-type", "brokers")
    for name in TOPICS:
        said += kafka.cli("ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", name)
    return re.findall(r"(?:leader|follower)\.replication\.throttled\.\w+", said)
