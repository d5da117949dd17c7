"""A cluster in an outage, or one that never rests, is read within bounded time and judged where it can be."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka.admin import NewTopic

from durability.collect import Limits, collect
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import DEFAULTS, ClusterSpec
from tests.support.topology import unread

LIMITS = Limits(deadline=30.0, connect_timeout=1.0, request_timeout=5.0, controller_timeout=2.0)
"""What hasn't been read by the deadline is unreadable, and these tests fail."""
SESSION_TIMEOUT = int(DEFAULTS["broker.session.timeout.ms"]) / 1000


def read(kafka: LocalCluster) -> dict:
    return collect("outage", {"bootstrap.servers": kafka.bootstrap}, limits=LIMITS).document


@pytest.fixture(scope="module")
def kafka():
    racks = {1: "az1", 2: "az1", 3: "az2", 4: "az3"}
    spec = ClusterSpec(brokers=racks, controllers={n: racks[n] for n in (1, 2, 3)})
    with LocalCluster(spec) as cluster:
        topics = [
            seed.Topic("led", ((3, 4),), {}),
            seed.Topic("hanging", ((3, 4, 1),), {}),
            seed.Topic("gone", ((1, 2),), {}),
            seed.Topic("again", ((3,), (4,)), {"min.insync.replicas": "1"}),
        ]
        seed.create_topics(cluster, topics)
        with cluster.admin() as admin:
            admin.delete_topics(["again"])
        seed.create_topics(cluster, [seed.Topic("again", ((3,), (4,)), {})])
        cluster.wait_for_full_isr()
        yield cluster


def test_topics_that_come_and_go_cost_nothing_but_themselves(kafka):
    """Runs first: the other test leaves no controller."""
    stop = threading.Event()

    def churn() -> int:
        turns = 0
        with kafka.admin() as admin:
            while not stop.is_set():
                names = [f"scratch-{turns}-{n}" for n in range(5)]
                admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=2) for name in names])
                admin.delete_topics(names)
                turns += 1
        return turns

    with ThreadPoolExecutor(1) as background:
        turns = background.submit(churn)
        try:
            documents = [read(kafka) for _ in range(5)]
        finally:
            stop.set()
        assert turns.result() > 1
    for document in documents:
        assert document["cluster"]["consistent"] is True
        whole = {topic["name"]: topic for topic in document["topics"]}
        assert whole["led"]["partitions"][0]["isr"] == [3, 4]
        places = [path for path in unread(document) if path.startswith("/topics/")]
        changing = [n for n, topic in enumerate(document["topics"]) if topic["name"].startswith("scratch-")]
        assert all(int(path.split("/")[2]) in changing for path in places)
        assert document["cluster"]["declared"]["topics"] == len(whole)


def test_a_broker_that_died_a_moment_ago_is_not_called_live(kafka):
    os.kill(kafka.pids()[4], signal.SIGKILL)
    document = read(kafka)
    kafka.restart_broker(4)
    kafka.wait_for_full_isr()
    assert {b["id"]: b["live"] for b in document["brokers"]} == {1: True, 2: True, 3: True, 4: False}
    assert next(t for t in document["topics"] if t["name"] == "led")["partitions"][0]["isr"] == [3]


def test_a_broker_that_starts_may_keep_settings_of_a_topic_that_was_deleted(kafka):
    """Broker 4 has started again in the test before this one. It enforces what the deleted topic had."""
    document = read(kafka)
    again = [t["name"] for t in document["topics"]].index("again")
    differs = "brokers differ: the topic's own value is {} on broker {}, and {} on another broker. Set it again"
    assert unread(document).get(f"/topics/{again}/configs/min.insync.replicas") in (
        differs.format("1", 4, "none"),
        differs.format("none", 3, "1"),
    )


def test_a_broker_that_hangs_is_not_called_live_while_no_controller_fences_it(kafka):
    """A broker whose disk hangs sends heartbeats for ever."""
    at_once = Limits(
        deadline=30.0, connect_timeout=0.5, request_timeout=0.5, controller_timeout=2.0, session_timeout=0.1
    )
    pid = kafka.pids()[4]
    os.kill(pid, signal.SIGSTOP)
    try:
        document = collect("outage", {"bootstrap.servers": kafka.bootstrap}, limits=at_once).document
    finally:
        os.kill(pid, signal.SIGCONT)
    reasons = unread(document)
    assert [
        b["id"] for n, b in enumerate(document["brokers"]) if b["live"] and f"/brokers/{n}/live" not in reasons
    ] == [1, 2, 3]
    kafka.wait_for_full_isr()


def test_brokers_that_hang_with_the_majority_of_the_controllers_are_not_called_live(kafka):
    """The quorum has its leader when the reading begins. Nobody fences the brokers, since the leader gives up leading."""
    hanging = [kafka.pids()[node] for node in (1, 2)]
    for pid in hanging:
        os.kill(pid, signal.SIGSTOP)
    try:
        document = read(kafka)
    finally:
        for pid in hanging:
            os.kill(pid, signal.SIGCONT)
    assert document["cluster"]["quorum"]["leader"] is None
    assert {b["id"]: b["live"] for b in document["brokers"]} == {1: False, 2: False, 3: True, 4: True}
    # A leader that was stopped fences brokers whose sessions ended meanwhile, so ISRs may still shrink now.
    time.sleep(SESSION_TIMEOUT + 1)
    kafka.wait_for_full_isr()


def test_without_a_majority_of_controllers_the_rest_is_read(kafka):
    # Brokers that hung a moment ago may have lost their leaderships to others.
    leaders = {topic["name"]: topic["partitions"][0]["leader"] for topic in read(kafka)["topics"]}
    assert leaders["gone"] in (1, 2)
    pids = kafka.pids()
    for node in (1, 2):  # at once: a leader with a majority fences a dead broker
        os.kill(pids[node], signal.SIGKILL)
    # The last controller gives up leading when it has missed the others' fetches for some seconds.
    document = next((d for _ in range(20) if (d := read(kafka))["cluster"]["quorum"]["leader"] is None), read(kafka))
    cluster, reasons = document["cluster"], unread(document)
    assert cluster["quorum"]["leader"] is None
    assert [voter["id"] for voter in cluster["quorum"]["voters"]] == [1, 2, 3]
    assert "connection refused" in reasons["/cluster/quorum/voters/0/lag_ms"]
    assert "no controller leads" in reasons["/cluster/quorum/voters/2/lag_ms"]
    # No controller fences them, so the metadata still calls them live.
    assert {b["id"]: b["live"] for b in document["brokers"]} == {1: False, 2: False, 3: True, 4: True}
    rows = {topic["name"]: topic["partitions"][0] for topic in document["topics"]}
    assert {name: row["leader"] for name, row in rows.items()} == leaders
    assert sorted(rows["hanging"]["isr"]) == [1, 3, 4]
    assert all("configs" in topic for topic in document["topics"])
    assert all("configs" in broker for broker in document["brokers"] if broker["live"])
    assert "no broker reaches a controller" in reasons["/cluster/reassignments"]
    assert cluster["consistent"] is True


def test_without_a_majority_of_dedicated_controllers_those_that_are_gone_are_named():
    spec = ClusterSpec(brokers={1: "az1"}, controllers={101: "az1", 102: "az2", 103: "az3"})
    with LocalCluster(spec) as kafka:
        whole = lost = read(kafka)
        for node in (101, 102):
            os.kill(kafka.pids()[node], signal.SIGKILL)
        # A leader resigns some seconds after it lost its majority. Until then the others were seen a moment ago.
        until = time.monotonic() + 60
        while lost["cluster"]["quorum"]["leader"] is not None and time.monotonic() < until:
            time.sleep(0.2)
            lost = read(kafka)
    assert lost["cluster"]["quorum"]["leader"] is None
    live = [{voter["id"]: voter.get("live") for voter in d["cluster"]["quorum"]["voters"]} for d in (whole, lost)]
    assert live == [{101: True, 102: True, 103: True}, {101: False, 102: False, 103: True}]


@pytest.fixture(scope="module")
def changing():
    """A cluster whose controllers can join and leave the quorum, so that brokers don't state its voters (KIP-853)."""
    spec = ClusterSpec(
        brokers={1: "az1", 2: "az2"}, controllers={101: "az1", 102: "az2", 103: "az3"}, changing_voters=True
    )
    with LocalCluster(spec) as cluster:
        yield cluster


def voters(document: dict) -> dict[int, tuple[int | None, bool | None]]:
    return {v["id"]: (v["lag_ms"], v.get("live")) for v in document["cluster"]["quorum"]["voters"]}


def test_voters_that_brokers_do_not_state_are_read_while_their_leader_hangs(changing):
    leader = read(changing)["cluster"]["quorum"]["leader"]
    pid = changing.pids()[leader]
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(4)  # the others elect another leader, and the brokers still wait for the one that hangs
        document = read(changing)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert document["cluster"]["quorum"]["leader"] in {101, 102, 103} - {leader}
    assert "/cluster/reassignments" not in unread(document)


def test_a_voter_whose_disk_was_replaced_has_no_vote(changing):
    """Its successor observes, though it has the same id. Without another controller, nobody leads."""
    leader = read(changing)["cluster"]["quorum"]["leader"]
    replaced, other = sorted({101, 102, 103} - {leader})
    changing.replace_disks(replaced)
    changing.wait_until(lambda: voters(read(changing))[replaced][0] is None, "the voter never caught up")
    assert voters(read(changing))[leader] == (0, True)

    os.kill(changing.pids()[other], signal.SIGKILL)
    document = next((d for _ in range(20) if (d := read(changing))["cluster"]["quorum"]["leader"] is None), None)
    assert document is not None, "one of three votes is left"
    assert voters(document) == {leader: (None, True), replaced: (None, True), other: (None, False)}

    for node in (leader, replaced):
        os.kill(changing.pids()[node], signal.SIGKILL)
    cluster = read(changing)["cluster"]
    assert (cluster["quorum"]["leader"], cluster["quorum"]["voters"]) == (None, []), (
        "no controller says which there are"
    )
