"""A rack lost and back on a running cluster: the counts of each broker against its own metrics, read through JMX, and the
printed commands followed with Kafka's own kafka-configs, writes before and after.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pytest

from durability.collect import collect
from durability.embedded_kafka import seed, tools
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.errors import AuditError
from durability.report.data.health import METRICS, Health
from durability.report.data.outages import Outages
from durability.runtime import processes
from tests.support.judge import Judge
from tests.support.kafka_states import answers
from tests.support.policy import policy

RACKS = {1: "az1", 2: "az2", 3: "az2", 4: "az3"}
TOPICS = {  # replicas by partition, and the topic's own min.insync.replicas; the brokers' is 2
    "r-stated": ([[1, 2, 3], [2, 3, 4]], "2"),
    "r-inherits": ([[1, 3, 2]], None),
    "r-spread": ([[1, 2, 4], [4, 3, 1], [2, 4, 1]], "1"),
}
POLICY = policy("""
tiers: {racks: {min_insync_racks: 2}}
topics: [{tier: racks}]
""")
ENFORCED = [name for name in METRICS.values() if "Rack" not in name]  # what today's brokers count
BEAN = "kafka.server:type=ReplicaManager,name="


@dataclass(frozen=True)
class Night:
    counted: dict[int, dict[str, int]]  # by broker, as judged
    metrics: dict[int, dict[str, int]]  # by broker, as it says itself
    steps: dict[tuple[str, str], dict]  # first topic, setting -> the report's group
    answered: dict


def metrics_of(kafka: LocalCluster, broker: int, ports: dict[int, int]) -> dict[str, int]:
    """A broker's own counts: its JVM is asked for a JMX port once, then Kafka's JmxTool reads it."""
    pid = kafka.pids()[broker]
    if pid not in ports:
        ports[pid] = processes.free_port()
        start = f"ManagementAgent.start jmxremote.port={ports[pid]} jmxremote.authenticate=false jmxremote.ssl=false"
        subprocess.run(["jcmd", str(pid), *start.split()], check=True, capture_output=True, timeout=60)
    names = [part for metric in ENFORCED for part in ("--object-name", BEAN + metric)]
    url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{ports[pid]}/jmxrmi"
    arguments = ("--jmx-url", url, "--one-time", "--report-format", "properties", *names)
    home = kafka.program_home("jmx")
    command = tools.java(kafka.spec.version, "org.apache.kafka.tools.JmxTool", *arguments, heap_mb=64, home=home)
    printed = tools.run(command, env=os.environ, what=f"JmxTool of broker {broker}")
    return {m: int(re.search(rf"name={m}:Value=(\d+)", printed)[1]) for m in ENFORCED}


class Watch:
    """Audits one cluster night after night, as the report would show it."""

    def __init__(self, kafka: LocalCluster, judge: Judge, policy):
        self.kafka, self.judge, self.policy, self.last, self.ports = kafka, judge, policy, None, {}

    def __call__(self, result: str, living: tuple[int, ...]) -> Night:
        document = self._settled()
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(metrics_of, self.kafka, b, self.ports) for b in living]
            answering = pool.submit(self.answers, document)
            self.judge.run([document], self.policy, findings=False, result=result, previous=self.last)
            metrics, answered = [of_broker.result() for of_broker in asked], answering.result()
        self.last = self.judge.plan
        health = Health(self.judge.latest["partition_health"], self.judge.latest["health_counters"])
        posture = self.judge.latest["topic_posture"]
        rows = pa.Table.from_pylist(posture.select(["cluster", "topic", "tier", "rack_outage"]).to_pylist())
        clusters = Outages(rows, health.lost_racks(), {}, self.last.policy.tiers).clusters()
        steps = {(s["topics"][0], s["setting"]): s for c in clusters for s in c["steps"]}
        counted = {b["broker"]: {m: b[m] for m in METRICS.values()} for b in health.brokers()}
        return Night(counted, dict(zip(living, metrics, strict=True)), steps, answered)

    def answers(self, document: dict) -> dict:
        topics = [topic for topic in document["topics"] if topic["name"] in TOPICS]
        led = [(t["name"], p["partition"]) for t in topics for p in t["partitions"] if p["leader"] is not None]
        return answers(self.kafka, led, "all", b"x")

    def _settled(self) -> dict:
        """The cluster as collected, once two looks at the partitions, a second apart, are the same."""
        before, document = None, self.collected()
        while before != document["topics"]:
            before = document["topics"]
            time.sleep(1)
            document = self.collected()
        return document

    def collected(self) -> dict:
        return collect("racks", {"bootstrap.servers": self.kafka.bootstrap}).document

    def follow(self, command: str) -> None:
        """Runs what the report prints, once for each topic of its loop."""
        command = "\n".join(line for line in command.splitlines() if not line.startswith("#"))
        loop = re.fullmatch(r"for topic in (.+); do (.+); done", command)
        for topic in loop[1].split() if loop else [""]:
            words = shlex.split((loop[2] if loop else command).replace("$topic", topic))
            assert words[:3] == ["kafka-configs", "--bootstrap-server", "$BOOTSTRAP"]
            self.kafka.cli("ConfigCommand", *words[3:])

    def own(self, topic: str) -> str | None:
        """The topic's own min.insync.replicas, as kafka-configs describes it."""
        printed = self.kafka.cli("ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", topic)
        stated = re.search(r"min.insync.replicas=(\d+) ", printed)
        return stated and stated[1]


@dataclass(frozen=True)
class Outage:
    nights: dict[str, Night]
    lowered: dict  # what producers were answered after the commands that lower
    refused: str  # what brokers say to the command of min.insync.racks
    restored: dict[str, str | None]


@pytest.fixture(scope="module")
def outage(spark) -> Outage:
    """Eligible leader replicas off, so that lowering is safe: all up, broker 3 lost, its rack lost, lowered, back."""
    spec = ClusterSpec(
        brokers=RACKS, controllers={n: RACKS[n] for n in (1, 2, 4)}, features={"eligible.leader.replicas.version": 0}
    )
    nights = {}
    with LocalCluster(spec) as kafka:
        topics = [seed.Topic(t, p, {"min.insync.replicas": m} if m else {}) for t, (p, m) in TOPICS.items()]
        seed.create_topics(kafka, topics)
        kafka.wait_for_full_isr()
        watch = Watch(kafka, Judge(spark), POLICY)
        nights["up"] = watch("r1", (1, 2, 3, 4))
        kafka.kill_broker(3)
        nights["broker-down"] = watch("r2", (1, 2, 4))
        kafka.kill_rack("az2")
        nights["rack-down"] = watch("r3", (1, 4))
        for topic in ("r-stated", "r-inherits"):
            watch.follow(nights["rack-down"].steps[topic, "min.insync.replicas"]["lower"])
        lowered = watch.answers(watch.collected())
        with pytest.raises(AuditError) as refused:
            watch.follow(nights["rack-down"].steps["r-inherits", "min.insync.racks"]["lower"])
        nights["lowered"] = watch("r4", (1, 4))
        kafka.restore()
        nights["back"] = watch("r5", (1, 2, 3, 4))
        for topic in ("r-stated", "r-inherits"):
            watch.follow(nights["back"].steps[topic, "min.insync.replicas"]["restore"])
        restored = {topic: watch.own(topic) for topic in TOPICS}
        nights["restored"] = watch("r6", (1, 2, 3, 4))
    return Outage(nights, lowered, str(refused.value), restored)


@pytest.mark.parametrize("night", ["up", "broker-down", "rack-down", "lowered", "back", "restored"])
def test_a_brokers_counts_are_its_own_metrics(outage, night):
    seen = outage.nights[night]
    none = dict.fromkeys(METRICS.values(), 0)
    judged = {broker: {m: seen.counted.get(broker, none)[m] for m in ENFORCED} for broker in seen.metrics}
    assert judged == seen.metrics


def test_the_metrics_had_something_to_say(outage):
    said = {m for night in outage.nights.values() for counts in night.metrics.values() for m, n in counts.items() if n}
    assert said == set(ENFORCED)


def test_lowering_makes_writes_accepted_again(outage):
    down = outage.nights["rack-down"].answered
    stopped = {k for k, said in down.items() if said == "NotEnoughReplicasError"}
    assert {t for t, _ in stopped} == {"r-stated", "r-inherits"}
    assert set(outage.lowered) == set(down) and set(outage.lowered.values()) == {"accepted"}


def test_brokers_refuse_min_insync_racks_as_the_report_says(outage):
    assert "min.insync.racks" in outage.refused
    assert (
        "reject it as a topic's setting" in outage.nights["rack-down"].steps["r-inherits", "min.insync.racks"]["words"]
    )


def test_the_old_values_are_remembered_and_restored(outage):
    steps = {night: {k[0]: s["step"] for k, s in seen.steps.items() if k[1] == "min.insync.replicas"}
             for night, seen in outage.nights.items()}  # fmt: skip
    assert steps["up"] == steps["broker-down"] == steps["restored"] == {}
    assert steps["rack-down"] == {"r-stated": "lower", "r-inherits": "lower"}
    assert steps["lowered"] == {"r-stated": "hold", "r-inherits": "hold"}
    assert steps["back"] == {"r-stated": "restore", "r-inherits": "restore"}
    assert outage.restored == {"r-stated": "2", "r-inherits": None, "r-spread": "1"}
