"""Every shape of a remedy's command, run by the real tools of two releases against a cluster of the same release."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from durability.collect import collect
from durability.embedded_kafka import seed, tools
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.remedies import commands
from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import (
    DYNAMIC_OF_BROKERS,
    LOG_DIRS,
    OVERRIDES,
    RUNNING,
    TOPICS,
    UNAVAILABLE,
    UNDER_REPLICATED,
    Cancel,
    Config,
    Elect,
    ElectListed,
    Feature,
    Reassign,
    Show,
    Unregister,
    Verify,
    broker_setting,
    cluster_setting,
    topic_setting,
)
from durability.remedies.plans import written
from durability.runtime.processes import free_port
from durability.topology import versions
from tests.support import kafka_tools

MIN_ISR = "min.insync.replicas"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
SHAPES = [
    [UNDER_REPLICATED],
    [UNAVAILABLE],
    [Show(LOG_DIRS, "1")],
    [Elect("t", 1)],
    [ElectListed("elect.json")],
    [TOPICS, DYNAMIC_OF_BROKERS, Show(OVERRIDES, "set"), Show(OVERRIDES)],
    [Verify("plans/c/t.json"), Cancel("plans/c/t.json")],
    [topic_setting("set", MIN_ISR, 1), topic_setting("set", MIN_ISR, None)],
    [cluster_setting(MIN_ISR, 1), Feature("eligible.leader.replicas.version", 1)],
    [broker_setting(1, RATES[0], 1000), Config("brokers", "1", ((RATES[0], None),))],
    [RUNNING, Reassign("t", "plans/c/t.json", 50_000_000)],
]
"""Commands that run one after the other. The lists but the last one run at the same time."""


@pytest.fixture(scope="module", params=["3.6.2", "4.3.1"])
def cluster(request):
    features = {"eligible.leader.replicas.version": 0} if request.param == "4.3.1" else {}
    spec = ClusterSpec({1: "a", 2: "b"}, {1: "a"}, version=request.param, features=features, log_dirs={2: 2})
    with LocalCluster(spec) as kafka:
        topics = [seed.Topic("t", [[1], [1]], {}), seed.Topic("set", [[1, 2]], {}), seed.Topic("moved", [[2]], {})]
        seed.create_topics(kafka, topics)
        yield kafka


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with a plan."""
    folder = tmp_path_factory.mktemp("tools")
    (folder / "plans" / "c").mkdir(parents=True)
    (folder / "plans" / "c" / "t.json").write_text(written([("t", 0, [1, 2])]))
    (folder / "elect.json").write_text('{"partitions": [{"topic": "t", "partition": 1}]}')
    return folder


def test_the_tools_take_every_command(cluster, folder):
    facts = ClusterFacts(versions.parse(cluster.spec.version))
    environment = kafka_tools.install(cluster, folder)
    known = [[c for c in shape if not isinstance(c, Feature) or not facts.before(4, 0)] for shape in SHAPES]

    def bash(shape) -> subprocess.CompletedProcess:
        text = "\n".join(line for command in shape for line in commands.lines(command, facts))
        until = time.monotonic() + 60
        while True:
            ran = subprocess.run(
                ["bash", "-e"], input=text, text=True, capture_output=True, env=environment, cwd=folder, timeout=120
            )
            # A broker that hasn't learnt yet what was set a moment ago has nothing to delete.
            if "Invalid config(s)" not in ran.stderr or time.monotonic() > until:
                return ran

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(bash, known[:-1]))
    # Its --verify deletes throttles, whoever set them.
    done.append(bash(known[-1]))
    failed = [(shape, ran.stdout, ran.stderr) for shape, ran in zip(known, done, strict=True) if ran.returncode]
    assert not failed
    assert "is completed" in done[-1].stdout and "in progress" not in done[-1].stdout
    assert "t-1" in done[3].stdout
    left = cluster.cli("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", "1")
    assert "throttled" not in left


def test_a_move_between_log_dirs_uses_its_throttle(cluster, tmp_path):
    """The throttle is no leftover (`reassignment-leftovers`), and the command that deletes leftovers spares it."""
    facts = ClusterFacts(versions.parse(cluster.spec.version))
    # With this throttle, a fetch of a megabyte passes every 11 s.
    seed.produce(cluster, "moved", ["x" * 500_000] * 20)
    with cluster.admin() as admin:
        [two] = admin.describe_log_dirs(brokers=[2])
    dirs = {d["log_dir"]: {t["name"] for t in d["topics"]} for d in two["log_dirs"]}
    [other] = [path for path, names in dirs.items() if "moved" not in names]
    plan = tmp_path / "moved.json"
    move = {"topic": "moved", "partition": 0, "replicas": [2], "log_dirs": [other]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    throttle = ("--replica-alter-log-dirs-throttle", "1")
    cluster.cli("ReassignPartitionsCommand", "--reassignment-json-file", str(plan), "--execute", *throttle)

    def two_of_document() -> dict:
        return collect("c", {"bootstrap.servers": cluster.bootstrap}).document["brokers"][1]

    seen = two_of_document()
    assert (seen["future_replicas"], seen["configs"][LOG_DIRS_RATE]) == (1, "1")
    shell = "\n".join(commands.lines(Config("brokers", "2", ((LOG_DIRS_RATE, None),), idle=True), facts))

    def deleted() -> str:
        environment = kafka_tools.install(cluster, tmp_path)
        return subprocess.run(["bash", "-e", "-c", shell], text=True, capture_output=True, env=environment).stdout

    assert "replicas move between log dirs" in deleted()
    assert two_of_document()["configs"][LOG_DIRS_RATE] == "1"
    cluster.cli(
        "ConfigCommand",
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-name",
        "2",
        "--add-config",
        f"{LOG_DIRS_RATE}=9999999",
    )
    cluster.wait_until(lambda: two_of_document()["future_replicas"] == 0, "the move ends")
    assert "replicas move" not in deleted()
    cluster.wait_until(lambda: two_of_document()["configs"].get(LOG_DIRS_RATE) != "9999999", "the throttle is deleted")


@pytest.fixture
def zookeeper(tmp_path):
    """A ZooKeeper server of Kafka 3.6.2, and its shell as bash runs it: takes a command and gives what it prints."""
    server, port = "org.apache.zookeeper.server.ZooKeeperServerMain", str(free_port())
    command = tools.java("3.6.2", server, port, str(tmp_path / "data"), heap_mb=64, home=tmp_path)
    main = "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka"
    java = tools.java("3.6.2", main, "-server", heap_mb=64, home=tmp_path)
    (tmp_path / "zookeeper-shell").write_text(f'#!/bin/bash\nexec {shlex.join(java)} "$@"\n')
    (tmp_path / "zookeeper-shell").chmod(0o755)
    given = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "ZOOKEEPER": f"127.0.0.1:{port}"}

    def shell(text: str) -> str:
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True, env=given, timeout=120).stdout

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            until = time.monotonic() + 120
            while "zookeeper" not in shell('zookeeper-shell "$ZOOKEEPER" ls / | tail -1'):
                assert time.monotonic() < until and running.poll() is None, "ZooKeeper doesn't answer"
            yield shell
        finally:
            running.kill()


def test_zookeepers_shell_shows_a_running_reassignment(zookeeper):
    """The script for brokers that are gone looks for these names (`durability.remedies.gone`)."""
    assert "delete_topics" not in zookeeper(commands.ADMIN)
    for node in ("/admin", "/admin/delete_topics"):
        assert "Created" in zookeeper(f'zookeeper-shell "$ZOOKEEPER" create {node} x 2>&1')
    assert "delete_topics" in (idle := zookeeper(commands.ADMIN)) and "reassign_partitions" not in idle
    assert "Created" in zookeeper('zookeeper-shell "$ZOOKEEPER" create /admin/reassign_partitions x 2>&1')
    assert "reassign_partitions" in zookeeper(commands.ADMIN)


def test_every_kind_of_command_is_tried():
    tried = {type(command) for shape in SHAPES for command in shape}
    # A broker is unregistered in test_gone.py.
    assert tried | {Unregister} == set(commands.Command.__args__)
