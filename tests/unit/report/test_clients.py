"""Which clients a loss stops, from rows of `loss_outcomes` and of `groups`."""

import random
import string

import pytest

from durability.report import clients as words
from durability.report.data.clients import LISTED, Known, coordinator_partition, stopped
from durability.report.data.losses import Counts
from tests.unit.report.test_whatif import row
from tests.unit.streams.test_cold import client, group

GONE = {"now": "LEADER_NOT_AVAILABLE", "leader_after": None}
SHORT = {"now": "NOT_ENOUGH_REPLICAS"}


def counted(*rows):
    counts = Counts()
    for one in rows:
        counts.add(one)
    return counts


def consumers(*names, **changed):
    return [
        {"group": name, "type": "classic", "state": "Stable", "protocol_type": "consumer", **changed} for name in names
    ]


def offsets(size, gone=(), short=()):
    rest = [p for p in range(size) if p not in (*gone, *short)]
    parts = [(rest, {}), (list(gone), GONE), (list(short), SHORT)]
    return [row("__consumer_offsets", part, **changed) for part, changed in parts if part]


def java_hash(text):
    """String.hashCode as its documentation has it: s[0]*31^(n-1) + ... + s[n-1], over UTF-16 units."""
    data = text.encode("utf-16-be")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    value = sum(unit * 31 ** (len(units) - 1 - at) for at, unit in enumerate(units)) % 2**32
    return value - 2**32 if value >= 2**31 else value


@pytest.mark.parametrize("drawn", range(20))
def test_the_coordinator_is_by_the_absolute_value_of_javas_hash(drawn):
    draw = random.Random(drawn)
    name = "".join(draw.choices(string.printable + "äß漢😀", k=draw.randint(0, 40)))
    assert coordinator_partition(name, 50) == abs(java_hash(name)) % 50


@pytest.mark.parametrize(
    "name, partition",
    [
        *[("orders", 31), ("pay-eu", 43), ("payments", 13), ("billing-service", 39), ("connect-cluster", 13)],
        *[("😀", 49), ("ÄÖ漢", 40), ("", 0), ("polygenelubricants", 0)],
    ],
)
def test_kafkas_own_classes_agree(name, partition):
    # As Utils.abs of kafka-clients 4.3.1 has it. The hashes of the first two are negative, that of the last is the smallest int.
    assert coordinator_partition(name, 50) == partition


def test_groups_of_partitions_that_stop_are_named_worst_first():
    names = [f"g{n}" for n in range(200)]
    at = {name: coordinator_partition(name, 10) for name in names}
    found = stopped(counted(*offsets(10, gone=[3], short=[4])), Known(consumers(*names)), [])["consumer groups"]
    expected = [name for p in (3, 4) for name in sorted(names) if at[name] == p]
    assert [entry["group"] for entry in found["groups"]] == expected[:LISTED]
    assert found["groups_count"] == len(expected) > LISTED
    assert (found["offline"], found["rejects"], found["of"]) == (1, 1, 10)
    [said, known] = words.sentences({"consumer groups": found})
    assert "of 10 partitions of __consumer_offsets 1 offline, 1 accepting no writes" in said and "join" in said
    assert known.startswith(f"{len(expected)} known groups there: {expected[0]}, ")
    assert known.endswith(f"and {len(expected) - 5} more.")


def test_groups_with_members_come_before_idle_ones():
    known = Known([*consumers("a", state="Empty"), *consumers("b")])
    found = stopped(counted(*offsets(1, gone=[0])), known, [])
    assert [entry["group"] for entry in found["consumer groups"]["groups"]] == ["b", "a"]


def test_where_the_number_of_partitions_is_unknown_no_group_is_named():
    counts = counted(*offsets(3, gone=[0, 1, 2]))
    found = stopped(counts, Known(consumers("a"), unread=frozenset(["__consumer_offsets"])), [])["consumer groups"]
    assert (found["groups"], found["groups_count"], found["all_groups_known"]) == ([], None, False)
    assert "unknown" in words.sentences({"consumer groups": found})[1]


def test_groups_that_could_not_be_listed_are_said():
    found = stopped(counted(*offsets(3, gone=[0])), Known(all_groups=False), [])
    assert words.sentences(found)[1:] == ["No known group is there.", "Not all groups could be listed."]


def test_partitions_that_were_offline_before_stop_nobody_now():
    counts = counted(row("__consumer_offsets", [0], before="LEADER_NOT_AVAILABLE", **GONE))
    assert stopped(counts, Known(consumers("a")), []) == {}


def test_transactions_and_tools_are_said_by_their_topics():
    counts = counted(
        *[row("__transaction_state", [0, 1], **GONE), row("__transaction_state", range(2, 50))],
        *[row("connect-status", [0], **SHORT), row("connect-offsets", [0], **SHORT), row("connect-x", [0])],
        *[row("__share_group_state", [0], now=None), row("_schemas", [0], **SHORT)],
        row("__remote_log_metadata", [0], **SHORT),
    )
    found = stopped(counts, Known(), [])
    said = " ".join(words.sentences(found))
    assert found["transactions"] == {"offline": 2, "of": 50, "topics": ["__transaction_state"], "topics_count": 1}
    assert found["Kafka Connect"]["topics"] == ["connect-offsets", "connect-status"]
    assert "read_committed consumers" in said and "of 2 partitions of connect-offsets, connect-status" in said
    assert "it is unknown whether their share groups" in said
    assert "local storage fills" in said and "no schema can be registered" in said


def test_streams_applications_are_told_by_racks_and_changelogs():
    app = group(client("p1", "az1", active=["0_0", "0_1"]), client("p2", "az2", standby=["0_1"]))
    untold = group(client("p1", None, active=["0_0"], cell="blue"), group="dark")
    known = Known([app, untold, *consumers("plain")], racks=frozenset(["az1", "az2"]))
    counts = counted(row("app-store-changelog", [0], **GONE), row("app-store-changelog", [1]))
    found = stopped(counts, known, ["az1"])["Kafka Streams"]
    assert [entry["application"] for entry in found["applications"]] == ["app", "dark"]
    assert (found["applications"][0]["cold"], found["applications"][0]["tasks"]) == (1, ["0_0"])
    assert found["applications"][0]["changelogs"] == {"offline": 1}
    said = words.sentences({"Kafka Streams": found})
    assert "1 task loses its active and all standbys with the rack" in said[1] and said[1].endswith("changelog: 0_0.")
    assert "1 changelog partition of app offline" in said[2]
    assert "can't be told" in said[3] and "dark" in said[3]


def test_the_loss_of_a_broker_says_nothing_about_clients_of_its_rack():
    known = Known([group(client("p1", "az1", active=["0_0"]))], racks=frozenset(["az1"]))
    assert stopped(counted(row("t", [0])), known, []) == {}
