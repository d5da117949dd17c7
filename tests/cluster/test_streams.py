"""What the collector says of live Streams applications, held against the instances themselves and Kafka's own tools.

An instance says which process it is in its state folder, and which stateful tasks it holds, as active or standby, by the
RocksDB folders that its process has open; Kafka's tools tell the active tasks.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from durability.embedded_kafka.streams import INPUT, StreamsApplication
from tests.support.kafka_streams import create_topics, read, stop


def told(kafka, group: str) -> dict:
    """The group's entry of `streams[]`; empty if there is none."""
    return next((entry for entry in read(kafka)["streams"] if entry["group"] == group), {})


def process_of(application: StreamsApplication, zone: str) -> str:
    return json.loads((application.state_folder(zone) / "kafka-streams-process-metadata").read_text())["processId"]


def held(application: StreamsApplication, zone: str) -> set[str]:
    """The tasks whose RocksDB the instance's process has open."""
    folder = Path(f"/proc/{application.pids[zone]}/fd")
    opened = set()
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # the process has closed it since
            opened.add(str(file.readlink()))
    state = re.escape(str(application.state_folder(zone)))
    return {m[1] for path in opened if (m := re.match(rf"{state}/(\d+_\d+)/rocksdb/", path))}


def held_as_told(kafka, application: StreamsApplication, stateful: Collection[str] = ()) -> dict | None:
    """The group's entry once it is settled and every instance holds the stateful tasks that it names.

    `stateful`: those it has, where nothing tells the collector yet (no instance has offsets, none is a standby).
    """
    entry = told(kafka, application.group)
    if not entry or entry["in_transition"] or len(entry["clients"]) != len(application.pids):
        return None
    stateful = set(stateful or entry["stateful_tasks"])
    by_process = {c["process"]: stateful & {*c["active"], *c["standby"]} for c in entry["clients"]}
    says = {process_of(application, zone): held(application, zone) for zone in application.pids}
    return entry if by_process == says else None


def by_zone(application: StreamsApplication, entry: dict, *later: str) -> dict[str, dict]:
    """The entry's clients by the zone whose instance says it is that process; their tags have to name that zone."""
    processes = {c["process"]: c for c in entry["clients"]}
    found = {zone: processes[process_of(application, zone)] for zone in (*application.zones, *later)}
    assert {zone: client["tags"] for zone, client in found.items()} == {zone: {"zone": zone} for zone in found}
    return found


def actives_by_tool(kafka, application: StreamsApplication) -> dict[str, set[str]]:
    """Zone -> active tasks by `kafka-consumer-groups`: the input's partitions are subtopology 0, the repartition topic's 1."""
    printed = kafka.cli("ConsumerGroupCommand", "--describe", "--group", application.group, "--members", "--verbose")
    subtopology = {INPUT: 0, application.internal_topics[1]: 1}
    found: dict[str, set[str]] = {}
    for zone, partitions in re.findall(
        rf"{application.group}-(\w+)-StreamThread-1-consumer +\d+ +- +(\S+:\S+)", printed
    ):
        pairs = [part.rsplit(":", 1) for part in partitions.split(";")]
        found[zone] = {f"{subtopology[topic]}_{n}" for topic, numbers in pairs for n in numbers.split(",")}
    return found


def test_a_classic_application(kafka):
    create_topics(kafka)
    application = StreamsApplication(kafka, group="s-classic").start()
    try:
        entry = kafka.wait_until(lambda: held_as_told(kafka, application), "instances hold what is told", 120)
        actives = actives_by_tool(kafka, application)
        raw = next(g for g in read(kafka)["groups"] if g["group"] == application.group)
    finally:
        stop(application)
    clients = by_zone(application, entry)
    assert {zone: set(client["active"]) for zone, client in clients.items()} == actives
    assert (entry["type"], entry["state"], entry["in_transition"]) == ("classic", "Stable", False)
    tasks = sorted(task for zone in actives.values() for task in zone if task.startswith("1_"))
    assert entry["stateful_tasks"] == tasks == sorted(task for c in clients.values() for task in c["standby"])
    assert (entry["subscription_version"], entry["assignment_version"]) == (11, 11)
    assert_members_keep_their_bytes(raw)


def assert_members_keep_their_bytes(group: dict) -> None:
    from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

    assert (group["type"], group["protocol"], group["state"], len(group["members"])) == (
        "classic",
        "stream",
        "Stable",
        3,
    )
    for member in group["members"]:
        subscription = ConsumerProtocolSubscription.decode(base64.b64decode(member["metadata"]))
        assignment = ConsumerProtocolAssignment.decode(base64.b64decode(member["assignment"]))
        assert INPUT in subscription.topics
        assert subscription.user_data[:4] == assignment.user_data[:4] == (11).to_bytes(4, "big")


def test_an_application_of_type_streams(kafka):
    """KIP-1071: StreamsGroupDescribe, held against `kafka-streams-groups --members --verbose`."""
    create_topics(kafka)
    application = StreamsApplication(kafka, ("z1", "z2"), "s-kip1071", settings={"group.protocol": "streams"}).start()
    try:
        entry = kafka.wait_until(lambda: held_as_told(kafka, application), "instances hold what is told", 120)
        tool = ("org.apache.kafka.tools.streams.StreamsGroupCommand", "--describe", "--group", application.group)
        printed = kafka.cli(*tool, "--members", "--verbose")
    finally:
        stop(application)
    actives = {}
    for process, listed in re.findall(r" ([0-9a-f-]{36}) .* ACTIVE: (.*?) TARGET-ACTIVE", printed):
        pairs = re.findall(r"(\d+):\[([\d,]+)\]", listed)
        actives[process] = {f"{subtopology}_{n}" for subtopology, numbers in pairs for n in numbers.split(",")}
    assert {c["process"]: set(c["active"]) for c in entry["clients"]} == actives and len(actives) == 2
    by_zone(application, entry)
    assert (entry["type"], entry["state"], entry["in_transition"]) == ("streams", "Stable", False)
    assert set(entry["stateful_tasks"]) == {task for tasks in actives.values() for task in tasks if task[0] == "1"}
    assert entry["internal_topics"] == sorted(application.internal_topics)


def test_warm_ups_are_a_transition(kafka):
    """A second instance has none of the state, and no lag is acceptable: it warms up, until the next probing rebalance."""
    from kafka import KafkaProducer

    create_topics(kafka)
    # What it restores comes late: caught up by the rebalance that follows its joining, it would have its tasks at once.
    slowly = {"restore.consumer.fetch.min.bytes": "50000000", "restore.consumer.fetch.max.wait.ms": "20000"}
    settings = {"acceptable.recovery.lag": "0", "commit.interval.ms": "100", **slowly}
    tasks = {"1_0", "1_1", "1_2"}
    # One instance first: of two the one that joins later may be warming up itself, with all the warm-ups there may be.
    application = StreamsApplication(kafka, ("w1",), "s-warm", standbys=0, settings=settings).start()
    try:
        kafka.wait_until(lambda: held_as_told(kafka, application, tasks), "one instance holds all", 120)
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
        for number in range(300):
            producer.send(INPUT, f"word{number} again".encode())
        producer.close()
        changelog = application.internal_topics[0]
        kafka.wait_until(lambda: grown(kafka, changelog), "its changelog has records", 120)
        application.start_instance("w2")
        # Stable first with tasks given up for it, it may be, and then with its warm-ups.
        entry = kafka.wait_until(lambda: warming_up(kafka, application, "w2"), "it warms up", 120)
    finally:
        stop(application)
    assert entry["in_transition"] is True
    clients = by_zone(application, entry, "w2")
    assert tasks <= set(clients["w1"]["active"])
    assert set(clients["w2"]["standby"]) < tasks  # no standby is asked for: these are warm-ups, two at most


def warming_up(kafka, application: StreamsApplication, zone: str) -> dict | None:
    """The group's entry once the instance of this zone is told with standbys."""
    entry = told(kafka, application.group)
    joined = entry and len(entry["clients"]) == len(application.pids)
    return entry if joined and by_zone(application, entry, zone)[zone]["standby"] else None


def grown(kafka, topic: str) -> bool:
    """Does every partition of the topic have records?"""
    ends = [int(line.rsplit(":", 1)[1]) for line in kafka.cli("GetOffsetShell", "--topic", topic).split()]
    return bool(ends) and all(ends)
