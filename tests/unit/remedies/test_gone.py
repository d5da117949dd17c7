"""A plan for brokers that never come back: as many replicas, over no fewer racks, and only where a live leader is in sync."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import replace

import pytest

from durability.remedies import gone, replicas, throttles
from durability.remedies.cluster import ClusterFacts, Gone
from durability.remedies.plans import Broker, Placement
from durability.remedies.replicas import bring_back
from durability.remedies.steps import render

DRAWN = {1: "a", 2: "b", 3: "c", 4: "c", 5: "a"}
KRAFT = ClusterFacts((4, 3), kraft=True)
ONE = Gone("plans/c/brokers+gone.sh", (3,), (("t", 0, [1, 2, 4]), ("u", 1, [4, 5])), 0)


def replaced(replicas, isr, leader, down=(3,), drawn=None, failed=()):
    racks = drawn or DRAWN
    brokers = [Broker(b, r, b not in down, room=b not in failed, failed=b in failed) for b, r in racks.items()]
    return gone.replaced(Placement(brokers, Counter()), replicas, isr, leader)


def test_a_live_broker_of_the_same_rack_takes_the_place():
    assert replaced([1, 2, 3], [1, 2], 1) == [1, 2, 4]
    assert replaced([3, 2, 1], [2, 1, 3], 2) == [2, 1, 4]
    # The id of a broker that no one describes is down too.
    assert replaced([1, 2, 9], [1, 2], 1) == [1, 2, 4]


@pytest.mark.parametrize(
    ("replicas", "isr", "leader", "down"),
    [
        ([3, 1], [3], None, (3,)),  # the only copy in sync is down
        ([3, 1], [3], 3, (3,)),
        ([1, 3], [3], 1, (3,)),
        ([1, 2, 3], [1, 2], 1, (3, 4)),  # two racks are left
        ([1, 2, 3], [1], 1, (2, 3, 4, 5)),  # one broker is left
    ],
)
def test_what_stays(replicas, isr, leader, down):
    assert replaced(replicas, isr, leader, down) is None


def test_a_replica_on_a_failed_disk_is_replaced_too_if_it_is_out_of_sync():
    drawn = {1: "a", 2: "b", 3: "c", 4: "c", 5: "a", 6: "b"}
    assert replaced([1, 2, 3], [1], 1, drawn=drawn, failed=[2]) == [1, 4, 6]
    assert replaced([1, 2, 3], [1, 2], 1, drawn=drawn, failed=[2]) == [1, 2, 4], "it is on a disk that works"


def test_an_unknown_rack_is_no_rack_to_keep():
    assert replaced([1, 2, 3], [1, 2], 1, drawn={1: "a", 2: "b", 3: None, 4: "b"}) == [1, 2, 4]


@pytest.mark.parametrize(
    ("facts", "unregisters", "server"),
    [
        (ClusterFacts((4, 3), kraft=True), True, "--bootstrap-server"),
        (ClusterFacts((3, 6), kraft=False), False, "--bootstrap-server"),
        (ClusterFacts((1, 0), kraft=False), False, "--zookeeper"),
    ],
)
def test_the_script(facts, unregisters, server, tmp_path):
    text = gone.script(ONE, facts)
    checked = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert ("kafka-cluster unregister" in text) is unregisters
    assert f"kafka-reassign-partitions {server}" in text and "--throttle" not in text
    assert "for topic in t u; do kafka-configs" in text and "for broker in 1 2 4 5; do kafka-configs" in text
    assert f"--add-config {','.join(f'{rate}={throttles.RATE}' for rate in gone.RATES)}" in text
    assert json.loads(gone.written(ONE))["partitions"][1] == {"topic": "u", "partition": 1, "replicas": [4, 5]}


@pytest.mark.parametrize(("described", "unregistered"), [("Replicas: 1,2\tIsr", True), ("Replicas: 1,3\tIsr", False)])
def test_a_broker_with_replicas_stays_registered(tmp_path, described, unregistered):
    done, ran = run(tmp_path, described, "No partition reassignments found.")
    assert (done.returncode == 0) is unregistered
    assert ("kafka-cluster" in ran) is unregistered


@pytest.mark.parametrize(
    ("acls", "status"),
    [
        ("Current ACLs for resource", 0),
        (f"principal=User:{gone.NO_AUTHORIZER}", 0),
        ("ClusterAuthorizationException", 1),
        ("command not found", 127),
    ],
)
def test_a_broker_stays_registered_while_topics_may_be_hidden(tmp_path, acls, status):
    done, ran = run(tmp_path, "Replicas: 1,2\tIsr", "No partition reassignments found.", acls=(acls, status))
    assert done.returncode == 0 and "kafka-cluster" not in ran.split()
    last = done.stdout.splitlines()[-1].strip()
    assert last == 'kafka-cluster unregister --bootstrap-server "$BOOTSTRAP" --id 3'


def test_the_script_changes_nothing_beside_another_reassignment(tmp_path):
    done, ran = run(tmp_path, "Replicas: 1,2\tIsr", "Current partition reassignments:\nt-0: replicas: 1,2.")
    assert done.returncode == 1 and "another reassignment runs" in done.stdout
    assert "one that an earlier run of this script began" in done.stdout  # its throttles stay until the next run
    assert ran.split() == ["kafka-broker-api-versions", "kafka-reassign-partitions"]


@pytest.mark.parametrize(
    ("up", "status"),
    [
        ("b:9092 (id: 3 rack: a) -> (", 1),
        ("b:9092 (id: 3 rack: a isFenced: false) -> (", 1),
        ("b:9092 (id: 3 rack: a isFenced: true) -> (", 0),
        ("b:9092 (id: 33 rack: a) -> (", 0),
    ],
)
def test_the_script_does_nothing_about_a_broker_that_is_back(tmp_path, up, status):
    done, ran = run(tmp_path, "Replicas: 1,2\tIsr", "No partition reassignments found.", up=up)
    assert done.returncode == status and ("kafka-configs" in ran) is not bool(status)
    assert ("is up again" in done.stdout) is bool(status)


def test_a_broker_that_came_back_while_replicas_moved_stays_registered(tmp_path):
    done, ran = run(tmp_path, "Replicas: 1,2\tIsr", "No partition reassignments found.", up="(id: 3 rack: a)", down=1)
    assert done.returncode == 1 and "kafka-reassign-partitions" in ran and "kafka-cluster" not in ran.split()
    assert done.stdout.endswith("The moves are complete. A broker is up again, so the brokers stay registered.\n")


@pytest.mark.parametrize(
    ("rates", "described", "status"),
    [
        ("leader.replication.throttled.rate=7777777", "Replicas: 1,2", 1),
        (f"follower.replication.throttled.rate={throttles.RATE}", "Replicas: 1,2", 0),
        ("", "Replicas: 1,2 leader.replication.throttled.replicas=*", 1),
    ],
)
def test_the_script_deletes_no_throttle_of_others(tmp_path, rates, described, status):
    done, ran = run(tmp_path, described, "No partition reassignments found.", rates=rates)
    assert done.returncode == status and ("kafka-cluster" in ran.split()) is not bool(status)
    assert (throttles.FOREIGN in done.stdout) is bool(status)


@pytest.mark.parametrize(
    ("shown", "moves"),
    [
        ("Connecting to z:2181\\n\\n[delete_topics]", True),
        ("Connecting to z:2181\\n\\n[delete_topics, reassign_partitions]", False),
        ("Connecting to z:2181\\n\\nNode does not exist: /admin", False),
        ("", False),
    ],
)
def test_before_2_6_the_script_looks_for_a_reassignment_in_zookeeper(tmp_path, shown, moves):
    done, ran = run(tmp_path, "Replicas: 1,2\tIsr", shown, ClusterFacts((2, 5), kraft=False))
    assert ran.split()[1] == "zookeeper-shell" and ("kafka-configs" in ran) is moves
    assert (done.returncode == 0) is moves and ("another reassignment runs" in done.stdout) is not moves


@pytest.mark.parametrize(
    ("fails", "verified", "said"),
    [
        ("--execute", "is completed", "the plan was not started"),
        ("--verify", "is completed", "not complete, or unknown"),
        ("--entity-type brokers", "is completed", ""),
        (None, "is something else", "not complete, or unknown"),
    ],
)
def test_a_script_that_ends_early_names_the_throttles_that_stay(tmp_path, fails, verified, said):
    done, ran = run(tmp_path, "Replicas: 1,2\tIsr", "No partition reassignments found.", fails=fails, verified=verified)
    assert done.returncode == 1 and said in done.stdout and "unbound" not in done.stderr
    rates = "leader.replication.throttled.rate, follower.replication.throttled.rate of brokers 1 2 4 5."
    assert f"throttled.replicas of topics t u, {rates}" in done.stdout
    deletes = [line for line in done.stdout.splitlines() if line.endswith("; done")]
    assert [line.split("--delete-config ")[1] for line in deletes] == [
        "follower.replication.throttled.replicas; done",
        "leader.replication.throttled.rate,follower.replication.throttled.rate; done",
    ]
    assert "kafka-cluster" not in ran


def test_a_partition_whose_replicas_are_others_than_planned_is_not_complete(tmp_path):
    mixed = "is completed.\nThere is no active reassignment of partition u-0, but replica set is 4,3 rather than 4,5"
    done, ran = run(tmp_path, "Replicas: 1,2\tIsr", "No partition reassignments found.", verified=mixed)
    assert done.returncode == 1 and "not complete, or unknown" in done.stdout and "kafka-cluster" not in ran


def test_brokers_that_may_come_back_are_not_unregistered(tmp_path):
    for options, unregisters in (((), True), (("--keep",), False)):
        done, ran = run(tmp_path, "Replicas: 1,2\tIsr", "No partition reassignments found.", options=options)
        assert done.returncode == 0 and ("kafka-cluster" in ran) is unregisters
        assert "kafka-reassign-partitions" in ran
        (tmp_path / "ran").unlink()


def test_a_script_that_completes_says_nothing_of_throttles(tmp_path):
    done, _ = run(tmp_path, "Replicas: 1,2\tIsr", "No partition reassignments found.")
    assert done.returncode == 0 and "throttle" not in done.stdout


def run(
    folder,
    described: str,
    listed: str,
    facts=KRAFT,
    fails=None,
    verified="is completed",
    acls=(gone.NO_AUTHORIZER, 1),
    options=(),
    up="b:9092 (id: 1 rack: a) -> (",
    down=0,
    rates="",
) -> tuple[subprocess.CompletedProcess, str]:
    """The script with tools that note that they ran. described: the replicas of one partition; listed: reassignments.

    fails: words of the commands that fail. verified: what --verify says of the partition.
    acls: what kafka-acls says, and its status. up: what kafka-broker-api-versions says, after it says nothing `down` times.
    rates: throttles of brokers.
    """
    tools = ("broker-api-versions", "topics", "configs", "reassign-partitions", "cluster", "acls")
    for tool in (*(f"kafka-{name}" for name in tools), "zookeeper-shell"):
        (folder / tool).write_text(
            f"#!/bin/bash\necho {tool} >> ran\n"
            f'[[ $0 = *kafka-acls ]] && {{ echo "{acls[0]}"; exit {acls[1]}; }}\n'
            f'[[ $0 = *api-versions ]] && {{ (( $(grep -c api-versions ran) <= {down} )) || echo "{up}"; exit; }}\n'
            f'[[ "$*" = *"--describe --entity-type brokers"* ]] && {{ echo "{rates}"; exit; }}\n'
            f'[[ "$*" = *--list* || $0 = *zookeeper-shell ]] && {{ printf "{listed}\\n"; exit; }}\n'
            f'[[ "$*" = *"{fails}"* ]] && exit 1\n'
            f'[[ "$*" = *--verify* ]] && {{ echo "Reassignment of partition t-0 {verified}."; exit; }}\n'
            f'printf "Topic: t\\tPartition: 0\\t{described}: 1\\n"\n'
        )
        (folder / tool).chmod(0o755)
    (folder / "sleep").write_text("#!/bin/bash\n")
    (folder / "sleep").chmod(0o755)
    (folder / gone.SCRIPT).write_text(gone.script(ONE, facts))
    environment = {"PATH": f"{folder}:/bin:/usr/bin", "BOOTSTRAP": "b:9092", "ZOOKEEPER": "z:2181"}
    done = subprocess.run(
        ["bash", str(folder / gone.SCRIPT), *options], capture_output=True, text=True, env=environment
    )
    return done, (folder / "ran").read_text()


@pytest.mark.parametrize(
    ("causes", "start"),
    [
        ("broker:5 down", f"Start broker 5. {replicas.RUNS} {replicas.THEN_NONE}"),
        ("broker:5 down, broker:7 down", "Start brokers 5, 7. If"),
        ("rack:az 2 down", "Start the brokers of rack az 2. If"),
        ("rack:a, b down", "Start the brokers that are down (rack:a, b down). If"),
    ],
)
def test_what_to_start(causes, start):
    assert render(bring_back(causes, ClusterFacts()), ClusterFacts()).startswith(f"# {start}")


def test_it_stands_beside_starting_them():
    text = render(bring_back("broker:3 down", ClusterFacts(gone=ONE)), ClusterFacts(gone=ONE))
    first, command, last = text.splitlines()
    assert first == f"# Start broker 3. {replicas.RUNS} {replicas.THEN_NONE}" and command.startswith("kafka-topics")
    assert last.startswith("# If broker 3 is gone for good, don't wait. plans/c/brokers+gone.sh moves 2 partitions")
    assert "brokers+gone" not in render(bring_back("broker:3 down", ClusterFacts()), ClusterFacts())


def test_it_waits_for_reassignments_that_run():
    assert "being reassigned" not in gone.advice(ONE)
    assert "It can't start while 1 partition is being reassigned: first let" in gone.advice(replace(ONE, running=1))
    assert "It can't start while 5 partitions are being reassigned: first let" in gone.advice(replace(ONE, running=5))


@pytest.mark.parametrize(
    ("causes", "start"),
    [
        ("broker:3 down", True),
        ("broker:3 log dir offline, rack:az1 down", True),
        ("no leader elected", False),
        ("replicas lagging", False),
    ],
)
def test_without_a_controller_there_is_no_command_and_no_restart(causes, start):
    """kafka-topics --describe fails after a minute then: it asks the controller for reassignments (seen on 4.3.1)."""
    halted = ClusterFacts(gone=ONE, led=False)
    text = render(bring_back(causes, halted), halted)
    assert text.startswith("First restore the controller quorum") and "kafka-" not in text
    assert ("Then start" in text, "restart" in text) == (start, False)
