"""Remedies pasted whole into bash, with Kafka's own tools, while producers with acks=all write to every partition: no
acknowledged record is lost, and no partition refuses writes that it accepted before.

One cluster goes through two stations: all brokers up and much misconfigured, until an audit has no command left; then half of
the brokers down.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import default_spec
from durability.findings import reassignments
from durability.remedies import plans
from durability.report.words import SEVERITIES, is_command, is_script
from tests.support.judge import Judge
from tests.support.kafka_states import Partition, reassign
from tests.support.pasting import Answer, Shell, Writers
from tests.support.policy import policy

POLICY = policy("""
tiers:
  standard: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, replica_racks: 3, unclean_leader_election: false}
  sites: {acked_racks: 2, write_headroom: 1}
  copies: {replication_factor: 3, min_insync_replicas: 2}
  nothing: {}
topics:
  - {match: {topic: "p-leaning"}, tier: sites}
  - {match: {topic: "o-above"}, tier: copies}
  - {match: {topic: "p-scratch.*"}, tier: nothing}
  - {tier: standard}
""")
MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
# Brokers 1 and 4 are in az1, 2 and 5 in az2, 3 and 6 in az3. The cluster's min.insync.replicas is 1, and unclean election is on.
TOPICS = {
    "p-alone": ([[1], [5]], {}),
    "p-alone-min2": ([[2]], {MIN_ISR: "2"}),
    "p-above": ([[2, 3]], {MIN_ISR: "3"}),
    "p-leaning": ([[1, 4, 2]], {MIN_ISR: "5"}),
    "p-crowded": ([[1, 4, 2], [3, 1, 2]], {MIN_ISR: "2"}),
    "p-tight": ([[4, 5, 6]], {MIN_ISR: "3"}),
    "p-mixed": ([[3], [1]], {MIN_ISR: "2"}),
    "p-plain": ([[1, 2, 3]], {}),
    "p-unclean": ([[1, 2, 3]], {MIN_ISR: "2", UNCLEAN: "true"}),
    "p-throttled": ([[1, 2, 6]], {MIN_ISR: "2", "leader.replication.throttled.replicas": "0:1,0:2"}),
    "p-scratch": ([[4, 6]], {}),
    "p-scratch-alone": ([[1]], {}),
}
# In the outage brokers 2, 5 (az2) and 6 are down.
OUTAGE = {
    "o-growing": ([[1]], {MIN_ISR: "1"}),
    "o-blocked": ([[3]], {MIN_ISR: "2"}),
    "o-adding": ([[2, 5]], {MIN_ISR: "1"}),
    "o-above": ([[1, 3]], {MIN_ISR: "3"}),
    "o-unclean": ([[3, 4, 1]], {MIN_ISR: "2", UNCLEAN: "true"}),
    "o-lagging": ([[1, 2, 3], [4, 5, 6]], {MIN_ISR: "1"}),
    "o-lost": ([[2, 5]], {MIN_ISR: "1"}),
    "o-eligible": ([[2, 5, 6]], {MIN_ISR: "2"}),
    "o-default": ([[1, 3, 6]], {}),
}
DEAD, LOST_RACK = 6, "az2"


def partitions_of(topics: dict) -> list[Partition]:
    return [(name, number) for name, (places, _) in topics.items() for number in range(len(places))]


@dataclass(frozen=True)
class Pasted:
    """A script as it was pasted. resource, control: of the findings that have it."""

    of: set[tuple[str, str]]
    script: str
    start: float
    status: int
    printed: str


@dataclass
class Round:
    """An audit, the scripts of its findings pasted one after the other, and what producers saw meanwhile."""

    failed: dict[tuple[str, str, str | None], str]
    accepted: set[Partition] = field(default_factory=set)
    pasted: list[Pasted] = field(default_factory=list)
    refused: dict[Partition, Answer] = field(default_factory=dict)
    silent: set[Partition] = field(default_factory=set)
    broken: list = field(default_factory=list)

    def harms(self) -> list[str]:
        """Each harm in words, for the message of a test."""
        said = [f"{p} refused ({a.said}) during or after:\n{self._script(a.sent)}" for p, a in self.refused.items()]
        said += [f"{p} accepts nothing any more" for p in self.silent]
        return said + [
            f"{p}: an idempotent producer failed with {a.said}:\n{self._script(a.sent)}" for p, a in self.broken
        ]

    def _script(self, at: float) -> str:
        return next((p.script for p in reversed(self.pasted) if p.start <= at), "no script")


class Clinic:
    """Audits the cluster and pastes what the findings print."""

    def __init__(self, kafka: LocalCluster, judge: Judge, shell: Shell, writers: Writers):
        self.kafka, self.judge, self.shell, self.writers = kafka, judge, shell, writers
        self.rounds: dict[str, Round] = {}

    def treat(self, name: str) -> Round:
        findings = self._audit(name)
        round_ = self.rounds[name] = Round(
            {(f["control"], f["resource"], f["category"]): f["remediation"] for f in findings}
        )
        before, start = self.writers.accepting(), time.monotonic()
        round_.accepted = before
        scripts: dict[tuple[str, ...], list[dict]] = defaultdict(list)
        for finding in findings:
            if is_script(finding["remediation"]):
                scripts[commands(finding["remediation"])].append(finding)
        for same in scripts.values():
            of = {(finding["control"], finding["resource"]) for finding in same}
            round_.pasted.append(self._paste(same[0]["remediation"], of))
        round_.silent = self.writers.silent(before, time.monotonic())
        round_.refused = {p: a for p, a in self.writers.refused(start).items() if p in before}
        round_.broken = [(p, a) for p, a in self.writers.failures if a.sent >= start and p in before]
        return round_

    def _audit(self, name: str) -> list[dict]:
        document = collect("pasted", {"bootstrap.servers": self.kafka.bootstrap}).document
        found = self.judge.run([document], POLICY, result=name)
        shutil.rmtree(self.shell.out / plans.FOLDER, ignore_errors=True)
        for made in reassignments.make(self.judge, self.judge.plan).made:
            file = self.shell.out / plans.FOLDER / plans.folder(made.cluster) / f"{made.topic}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(plans.written((made.topic, *move) for move in made.moves))
        failed = [f for f in found if f["outcome"] == "FAIL"]
        return sorted(failed, key=lambda f: (SEVERITIES.index(f["severity"]), f["control"], f["resource"]))

    def _paste(self, script: str, of: set) -> Pasted:
        start = time.monotonic()
        done = self.shell.paste(script)
        self._finish_reassignment(script)
        return Pasted(of, script, start, done.returncode, done.stdout + done.stderr)

    def _finish_reassignment(self, script: str) -> None:
        """Waits until the reassignment that a script started is complete, and repeats what the script says to repeat."""
        verify = [line for line in commands(script) if "--verify" in line]

        def complete() -> bool:
            with self.kafka.admin() as admin:
                return not admin.list_partition_reassignments()

        if verify and not complete():
            self.kafka.wait_until(complete, "the reassignment is complete")
            assert self.shell.paste("\n".join(verify)).returncode == 0


def commands(script: str) -> tuple[str, ...]:
    return tuple(line for line in script.splitlines() if is_command(line))


@pytest.fixture(scope="module")
def clinic(spark, tmp_path_factory):
    # With small fetches, a new replica takes a second to get in sync.
    slow = {"replica.fetch.max.bytes": "16384", "replica.fetch.response.max.bytes": "16384"}
    weak = {MIN_ISR: "1", UNCLEAN: "true"}
    spec = default_spec(features={"eligible.leader.replicas.version": 0}, configs=slow | weak)
    with LocalCluster(spec) as kafka:
        seed.create_topics(kafka, [seed.Topic(name, at, configs) for name, (at, configs) in TOPICS.items()])
        prepare(kafka)
        shell = Shell(kafka, tmp_path_factory.mktemp("bin"), tmp_path_factory.mktemp("out"))
        writers = Writers(kafka, partitions_of(TOPICS))
        try:
            clinic = Clinic(kafka, Judge(spark), shell, writers)
            for name in ("whole-1", "whole-2", "whole-3"):
                if not clinic.treat(name).pasted:
                    break
            damage(kafka, writers)
            clinic.treat("outage")
            kafka.restore()
            yield clinic
        finally:
            writers.close()


def prepare(kafka: LocalCluster) -> None:
    """Replicas that differ between partitions, throttles of brokers and of all brokers, and data to copy."""
    reassign(kafka, "p-mixed", [3, 1, 2])
    seed.set_broker_configs(kafka, (2, 3), {"leader.replication.throttled.rate": "10000000"})
    throttle = "follower.replication.throttled.rate=20000000"
    kafka.cli("ConfigCommand", "--alter", "--entity-type", "brokers", "--entity-default", "--add-config", throttle)
    for topic in ("p-leaning", "p-alone-min2"):
        seed.produce(kafka, topic, ["x" * 10_000] * 300)
    kafka.wait_for_full_isr()


def damage(kafka: LocalCluster, writers: Writers) -> None:
    """Broker 6 dead, reassignments that wait for it, then a rack dead: one partition's ISR is a replica being added."""
    seed.create_topics(kafka, [seed.Topic(name, at, configs) for name, (at, configs) in OUTAGE.items()])
    kafka.wait_for_full_isr()
    writers.add(partitions_of(OUTAGE))
    kafka.kill_broker(DEAD)
    reassign(kafka, "o-growing", [1, DEAD])
    reassign(kafka, "o-blocked", [3, DEAD])
    reassign(kafka, "o-adding", [1, DEAD])

    def added() -> bool:
        with kafka.admin() as admin:
            (topic,) = admin.describe_topics(["o-adding"])
            return 1 in topic["partitions"][0]["isr_nodes"]

    kafka.wait_until(added, "broker 1 has the data of o-adding")
    kafka.kill_rack(LOST_RACK)


def test_every_script_runs_to_its_end(clinic):
    failed = [(p.of, p.script, p.printed) for r in clinic.rounds.values() for p in r.pasted if p.status]
    assert failed == []


def test_commands_of_each_kind_were_pasted(clinic):
    lines = [line for r in clinic.rounds.values() for p in r.pasted for line in commands(p.script)]
    tools = {re.search(r"kafka-[a-z-]+", line)[0] for line in lines}
    assert tools == {"kafka-configs", "kafka-features", "kafka-reassign-partitions", "kafka-topics"}
    of = {control for r in clinic.rounds.values() for p in r.pasted for control, _ in p.of}
    assert of >= {"broker-defaults", "eligible-leader-replicas", "reassignment-leftovers", "unclean-leader-election"}


def test_no_partition_refuses_what_it_accepted(clinic):
    assert {name: harms for name, r in clinic.rounds.items() if (harms := r.harms())} == {}


def test_remedies_cost_other_topics_no_headroom(clinic):
    """A topic of two replicas, of which nothing is required, accepts writes on one: no remedy has raised its minimum."""
    assert {("p-scratch", 0), ("p-scratch-alone", 0)} <= clinic.rounds["outage"].accepted


def test_what_was_pasted_is_fixed(clinic):
    last = [name for name in clinic.rounds if name.startswith("whole")][-1]
    assert {key for key, text in clinic.rounds[last].failed.items() if is_script(text)} == set()


def test_every_acknowledged_record_is_readable(clinic):
    clinic.writers.close()
    assert sum(map(len, clinic.writers.acknowledged.values())) > 1000
    assert clinic.writers.lost() == {}
