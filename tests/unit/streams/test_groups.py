"""Classic Streams groups: members' bytes -> `streams[]`, rows of `groups`, and what stays unknown with its reason."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.lake import rows
from durability.streams import classic
from durability.streams.groups import classic_entries, completed
from durability.topology import validate
from tests.support.streams import group, member, published, recorded, settled
from tests.support.topology import document, unread

TABLE = "topic replicas\n orders 1,2"


def bytes_of(what: str, version: int, index: int = 0) -> bytes:
    return bytes.fromhex(published(what, version)[index]["hex"])


def facts_of(what: str, version: int, index: int = 0) -> dict:
    return published(what, version)[index]["facts"]


def thread(version: int, index: int = 0, *, tasks: int | None = None) -> dict:
    """A member whose subscription and assignment are published ones of this version; `tasks`: the assignment's index."""
    assignment = bytes_of("AssignmentInfo", version, index if tasks is None else tasks)
    return member(bytes_of("SubscriptionInfo", version, index), settled(assignment) if version >= 7 else assignment)


def groups_of(doc: dict) -> dict[str, dict]:
    built = rows.build(validate(doc, "x.json"), "s", "a")["groups"].to_pylist()
    return {row["group"]: row for row in built}


def test_a_recorded_group():
    """Active tasks as `kafka-consumer-groups --members --verbose` told then, process ids as the state folders do."""
    decoded = classic.decode(recorded())
    assert decoded.unread == {}
    assert decoded.entry == {
        "group": "classic-app",
        "type": "classic",
        "state": "Stable",
        "in_transition": False,
        "stateful_tasks": ["1_0", "1_1", "1_2"],
        "clients": [
            client("084834bb-2375-4b7d-9a63-587d5c157426", "az2", "0_2 1_2", ""),
            client("9865a9f5-151a-4ca1-b241-07166387095e", "az1", "0_0 1_0", "1_1 1_2"),
            client("fc711bc9-fbaf-45ff-b237-660e548c946c", "az3", "0_1 1_1", "1_0"),
        ],
        "subscription_version": 11,
        "assignment_version": 11,
    }


def client(process: str, zone: str, active: str, standby: str) -> dict:
    return {"process": process, "tags": {"zone": zone}, "active": active.split(), "standby": standby.split()}


@pytest.mark.parametrize("version", range(6, 12))
def test_versions_that_are_read(version):
    decoded = classic.decode(group(thread(version)))
    subscription, assignment = facts_of("SubscriptionInfo", version), facts_of("AssignmentInfo", version)
    (only,) = decoded.entry["clients"]
    assert (only["process"], only["tags"]) == (subscription["process"], subscription["tags"])
    assert sorted(only["active"]) == sorted(assignment["active"])
    assert sorted(only["standby"]) == sorted(assignment["standby"])
    assert (decoded.entry["subscription_version"], decoded.entry["assignment_version"]) == (version, version)
    why = {place: reason for place, reason in decoded.unread.items() if "tags" in place}
    if version < 11:
        says = f"SubscriptionInfo: version {version} has no client tags; those from 11 on have"
        assert why == {("clients", 0, "tags"): says}
    else:
        assert why == {}


@pytest.mark.parametrize("version", range(1, 6))
def test_older_versions_are_unknown_and_named(version):
    decoded = classic.decode(group(thread(11), thread(version)))
    says = f"SubscriptionInfo: version {version} is older than 6, the oldest that is read (member 2 of 2)"
    assert decoded.unread == {(): says}
    mixed = member(bytes_of("SubscriptionInfo", 11), bytes_of("AssignmentInfo", version))
    says = f"AssignmentInfo: version {version} is older than 6, the oldest that is read (member 1 of 1)"
    assert classic.decode(group(mixed)).unread == {(): says}


def test_newer_versions_are_unknown_and_named():
    newer = member((12).to_bytes(4, "big") + bytes_of("SubscriptionInfo", 11)[4:], bytes_of("AssignmentInfo", 11))
    says = "SubscriptionInfo: version 12 isn't known; 6 to 11 are (member 1 of 1)"
    assert classic.decode(group(newer)).unread == {(): says}


def test_threads_of_a_process_are_one_client():
    decoded = classic.decode(group(thread(11), thread(11, tasks=1), thread(10, 1)))
    own, other = facts_of("SubscriptionInfo", 11), facts_of("SubscriptionInfo", 10, 1)
    clients = {c["process"]: c for c in decoded.entry["clients"]}
    assert clients.keys() == {own["process"], other["process"]}
    given_to = [facts_of("AssignmentInfo", 11, n) for n in (0, 1)]
    for kind in ("active", "standby"):
        assert set(clients[own["process"]][kind]) == {task for a in given_to for task in a[kind]}
    index = list(clients).index(other["process"])
    assert decoded.unread.keys() == {("clients", index, "tags")}
    assert decoded.entry["subscription_version"] == 10


def test_threads_of_a_process_that_disagree_about_their_tags():
    data = bytes_of("SubscriptionInfo", 11)
    other = data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]
    tasks = settled(bytes_of("AssignmentInfo", 11))
    decoded = classic.decode(group(member(data, tasks), member(other, tasks)))
    assert decoded.unread["clients", 0, "tags"] == "the threads of one process state different client tags"


def test_a_probing_rebalance_on_any_member_is_a_transition():
    calm = recorded()
    data = base64.b64decode(calm["members"][1]["assignment"])
    moving = {**calm["members"][1], "assignment": base64.b64encode(data[:-8] + (1).to_bytes(8, "big")).decode()}
    failed = {**calm["members"][1], "assignment": base64.b64encode(data[:-9] + b"\2" + data[-8:]).decode()}
    first, _, last = calm["members"]
    for other, transition in ((calm["members"][1], False), (moving, True), (failed, True)):
        assert classic.decode({**calm, "members": [first, other, last]}).entry["in_transition"] is transition


def test_without_evidence_nothing_is_said_to_be_stateful():
    empty = bytes(4)
    subscription = (11).to_bytes(4, "big") * 2 + bytes(16) + empty + empty + bytes(1) + bytes(4) + empty
    active = (11).to_bytes(4, "big") * 2 + (1).to_bytes(4, "big") + bytes(12)
    assignment = settled(active + empty + empty * 3 + bytes(12))
    decoded = classic.decode(group(member(subscription, assignment)))
    assert decoded.entry["clients"][0]["active"] == ["0_0"]
    assert decoded.unread == {("stateful_tasks",): classic.NO_EVIDENCE}
    assert groups_of(document(TABLE, groups=[group(member(subscription, assignment))]))["app"]["stateful_tasks"] is None


def test_what_is_seen_of_a_subtopology_holds_for_its_tasks():
    """1_0 alone has a standby: 1_1 and 1_2 have state too, 0_n needn't."""
    calm = recorded()
    decoded = classic.decode({**calm, "members": [m for m in calm["members"] if "az3" in m["client_id"]]})
    assert decoded.entry["clients"][0]["active"] == ["0_1", "1_1"]
    assert decoded.entry["stateful_tasks"] == ["1_0", "1_1"]


@pytest.mark.parametrize(
    ("changes", "internal", "streams"),
    [
        ({}, (), True),
        ({"protocol": "range"}, ("t",), False),
        ({"type": "consumer", "protocol": None, "protocol_type": "consumer"}, ("t",), False),
        ({"type": "share", "protocol": None}, ("t",), False),
        ({"protocol_type": "connect", "protocol": None, "state": "Empty"}, ("t",), False),
        ({"protocol": None, "state": "Empty"}, (), False),
        ({"protocol": None, "state": "Empty"}, ("t",), True),
        ({"protocol": "", "state": "PreparingRebalance"}, (), True),
        ({"type": None}, (), True),
    ],
)
def test_which_groups_are_classic_streams_groups(changes, internal, streams):
    row = group(member(None, None, client_id="app-az1-StreamThread-1-consumer"), **changes)
    if changes.get("state") == "Empty":
        row["members"] = []
    assert classic.is_streams(row, internal) is streams


def test_a_group_that_is_not_stable_is_in_transition_and_its_placement_unknown():
    row = group(member(None, None, client_id="a-StreamThread-1-consumer"), state="PreparingRebalance", protocol=None)
    empty = group(name="stopped", state="Empty", protocol=None)
    consumers = group(name="readers", state="Empty", protocol=None)
    doc = document(TABLE + "\n stopped-store-changelog 1", groups=[row, empty, consumers])
    found = groups_of(doc)
    for name, clients in (("app", None), ("stopped", [])):
        assert (found[name]["in_transition"], found[name]["clients"]) == (True, clients)
        assert found[name]["stateful_tasks"] is None and found[name]["state"] in found[name]["unread"]
    assert (found["readers"]["clients"], found["readers"]["in_transition"], found["readers"]["unread"]) == (None,) * 3
    assert found["stopped"]["internal_topics"] == ["stopped-store-changelog"]


def test_rows_of_groups_come_from_raw_bytes():
    old, broken = group(thread(8), name="old"), group(member(b"\0\0\0\x0b", b""), name="broken")
    found = groups_of(document(TABLE + "\n classic-app-x-repartition 1", groups=[recorded(), old, broken]))
    row = found["classic-app"]
    assert [c["tags"] for c in row["clients"]] == [[("zone", z)] for z in ("az2", "az1", "az3")]
    assert (row["subscription_version"], row["assignment_version"], row["unread"]) == (11, 11, None)
    assert row["internal_topics"] == ["classic-app-x-repartition"]
    assert row["members"][0]["metadata"] == base64.b64decode(recorded()["members"][0]["metadata"])
    assert [c["tags"] for c in found["old"]["clients"]] == [None]
    assert found["old"]["clients"][0]["active"] is not None
    assert "version 8 has no client tags" in found["old"]["unread"]
    assert (found["broken"]["clients"], found["broken"]["in_transition"]) == (None, None)
    assert found["broken"]["unread"].endswith("(member 1 of 1)") and found["broken"]["members"] is not None


def test_a_documents_own_streams_are_not_decoded_anew():
    own = {"group": "classic-app", "type": "classic", "state": "Stable", "in_transition": True}
    own |= {"stateful_tasks": [], "clients": []}
    row = groups_of(document(TABLE, streams=[own], groups=[recorded()]))["classic-app"]
    assert (row["in_transition"], row["clients"], row["stateful_tasks"]) == (True, [], [])


def test_a_group_whose_members_could_not_be_read():
    row = group(name="app", protocol=None)
    unreadable = {"/groups/app/members": "GROUP_AUTHORIZATION_FAILED"}
    doc = document(TABLE + "\n app-s-changelog 1", groups=[row], unreadable=unreadable)
    found = groups_of(doc)["app"]
    assert (found["clients"], found["in_transition"], found["members"]) == (None, None, None)
    assert found["unread"] == "GROUP_AUTHORIZATION_FAILED" and found["internal_topics"] == ["app-s-changelog"]
    assert classic_entries([row], ["orders"], {"app": "GROUP_AUTHORIZATION_FAILED"}) == []


def test_a_completed_document_is_valid_and_says_why():
    broken = group(member(b"\0\0\0\x0b", b""), name="broken")
    found = completed(document(TABLE, groups=[broken, recorded(), group(thread(9), name="old")]))
    assert [entry["group"] for entry in found["streams"]] == ["broken", "classic-app", "old"]
    reasons = unread(found)
    says = "SubscriptionInfo: 4 bytes at byte 4, where 0 bytes are left (member 1 of 1)"
    assert reasons["/streams/0"] == says
    assert "/streams/2/clients/0/tags" in reasons
    assert completed(validate(found, "x.json").document) is found


def test_a_part_of_a_documents_client_may_be_unknown():
    clients = [{"process": "p", "tags": {}, "active": ["0_0"], "standby": []}]
    own = {"group": "g", "type": "classic", "state": "Stable", "in_transition": False, "stateful_tasks": ["0_0"]}
    doc = document(TABLE, streams=[{**own, "clients": clients}])
    for path, expected in (
        ("/streams/g/clients/0/tags", [{"process": "p", "tags": None, "active": ["0_0"], "standby": []}]),
        ("/streams/0/clients/0", [dict.fromkeys(("process", "tags", "active", "standby"))]),
        ("/streams/0/clients/1", None),
        ("/streams/0/clients", None),
        ("/streams/0/state", [{"process": "p", "tags": [], "active": ["0_0"], "standby": []}]),
    ):
        row = groups_of({**doc, "unreadable": [{"path": path, "reason": "because"}]})["g"]
        assert (row["clients"], row["unread"]) == (expected, "because"), path


@st.composite
def damaged_group(draw) -> dict:
    """A group of one to three members, each with bytes of some version, replaced here and there or cut short."""
    members = []
    for _ in range(draw(st.integers(1, 3))):
        version = draw(st.integers(6, 11))
        row = thread(version, draw(st.integers(0, 1)))
        for name in ("metadata", "assignment"):
            data = bytearray(base64.b64decode(row[name]))
            for _ in range(draw(st.integers(0, 2))):
                data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
            if draw(st.integers(0, 9)) == 0:
                del data[draw(st.integers(0, len(data))) :]
            row[name] = base64.b64encode(bytes(data)).decode()
        members.append(row)
    return group(*members)


@settings(max_examples=300, deadline=None)
@given(damaged_group())
def test_a_damaged_group_harms_nobody_else(row):
    doc = document(TABLE, groups=[row, recorded()])
    found = groups_of(doc)
    assert found["classic-app"]["stateful_tasks"] == ["1_0", "1_1", "1_2"]
    assert (found["app"]["clients"] is None) == (found["app"]["in_transition"] is None)
    if found["app"]["clients"] is None:
        assert "Info: " in found["app"]["unread"] or "ConsumerProtocol" in found["app"]["unread"]
