"""Groups of type streams (KIP-1071): an answer that Kafka's own classes encoded -> the `streams[]` entry."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from durability.collect.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from durability.streams import kip1071
from tests import ROOT

# Written by `StreamsBytes.java describe` on Kafka 4.3.1's jars.
DESCRIBED = bytes.fromhex((ROOT / "tests" / "support" / "streams_described.hex").read_text("ascii"))


@pytest.fixture
def response():
    return StreamsGroupDescribeResponse.decode(DESCRIBED, version=0)


@pytest.fixture
def calm(response):
    """The described group once nothing warms up."""
    group = response.groups[0]
    for member in group.members:
        member.assignment.warmup_tasks = member.target_assignment.warmup_tasks = []
    return group


def test_an_answer_of_kafkas(response):
    group, gone = response.groups
    found = kip1071.entry_of(group)
    assert found.unread == {}
    assert found.entry == {
        "group": "app",
        "type": "streams",
        "state": "Stable",
        "in_transition": True,  # 1_1 warms up on m2
        "stateful_tasks": ["1_0", "1_1"],
        "clients": [
            {"process": "p1", "tags": {"zone": "az1"}, "active": ["0_0", "0_1", "0_10", "1_0"], "standby": []},
            {"process": "p2", "tags": {"zone": "az2"}, "active": ["1_1"], "standby": ["1_0"]},
        ],
        "internal_topics": ["app-x-changelog", "app-x-repartition"],
    }
    assert (gone.group_id, gone.error_code, gone.error_message) == ("gone", 69, "Group gone not found.")


def test_the_request_is_kafkas():
    """A compact array of one compact string, no authorized operations, no tagged fields."""
    assert bytes(StreamsGroupDescribeRequest(group_ids=["app"]).encode(version=0)) == b"\x02\x04app\x00\x00"
    assert StreamsGroupDescribeRequest.API_KEY == 89


def change(group, **values):
    for name, value in values.items():
        setattr(group, name, value)


@pytest.mark.parametrize(
    "moves",
    [
        lambda group: change(group, group_state="Reconciling"),
        lambda group: change(group, group_epoch=8),
        lambda group: change(group.members[0], member_epoch=6),
        lambda group: change(group.members[0], is_classic=True),
        lambda group: change(group.members[2].target_assignment, standby_tasks=[]),
        lambda group: change(group.members[2].target_assignment, active_tasks=[]),
    ],
    ids=["not stable", "target outdated", "member behind", "to be upgraded", "standby to go", "active to go"],
)
def test_when_the_placement_is_in_transition(calm, moves):
    assert kip1071.entry_of(calm).entry["in_transition"] is False
    moves(calm)
    assert kip1071.entry_of(calm).entry["in_transition"] is True


def test_an_uninitialized_topology_leaves_state_unknown(calm):
    for topology in (None, SimpleNamespace(subtopologies=None)):
        calm.topology = topology
        assert kip1071.entry_of(calm).unread == {("stateful_tasks",): kip1071.UNINITIALIZED}


def test_a_source_topic_that_serves_as_changelog_is_no_internal_topic(calm):
    calm.topology.subtopologies[0].state_changelog_topics = [SimpleNamespace(name="in")]
    entry = kip1071.entry_of(calm).entry
    assert entry["stateful_tasks"] == ["0_0", "0_1", "0_10", "1_0", "1_1"]
    assert entry["internal_topics"] == ["app-x-changelog", "app-x-repartition"]


def test_threads_that_disagree_about_their_tags(calm):
    calm.members[0].client_tags = []
    assert kip1071.entry_of(calm).unread == {("clients", 0, "tags"): kip1071.CONFLICT}


def test_a_group_without_members(calm):
    change(calm, members=[], group_state="Empty")
    entry = kip1071.entry_of(calm).entry
    assert (entry["clients"], entry["in_transition"], entry["stateful_tasks"]) == ([], True, [])


def test_a_group_that_may_not_be_described_is_unknown_with_the_brokers_reason(response):
    """What the collector makes of it: the group is listed, its error stands under `/streams`."""
    import asyncio

    from durability.collect import groups
    from durability.collect.document import Facts, assemble
    from durability.collect.reasons import Unread
    from durability.lake import rows
    from durability.topology import validate

    class Broker:
        """Lists two groups; answers what Kafka encoded, or refuses."""

        refuses = False

        async def ask(self, broker, request):
            if not isinstance(request, StreamsGroupDescribeRequest):
                listed = [
                    SimpleNamespace(group_id=name, group_type="Streams", group_state="Stable", protocol_type="streams")
                    for name in ("gone", "app")
                ]
                return SimpleNamespace(API_VERSION=5, groups=listed)
            assert request.group_ids == ["app", "gone"]
            if self.refuses:
                raise Unread("UNSUPPORTED_VERSION")
            return response

    def rows_now() -> dict[str, dict]:
        facts = Facts("eu", captured_at="2026-11-21T12:00:00Z")
        facts.groups.add(asyncio.run(groups.coordinated_by(Broker(), 1, facts.notes)))
        built = rows.build(validate(assemble(facts, {}), "live"), "s", "a")["groups"].to_pylist()
        return {row["group"]: row for row in built}

    found = rows_now()
    assert found["app"]["unread"] is None and len(found["app"]["clients"]) == 2
    assert (found["gone"]["unread"], found["gone"]["clients"]) == ("GROUP_ID_NOT_FOUND", None)
    assert (found["gone"]["type"], found["gone"]["state"]) == ("streams", "Stable")
    Broker.refuses = True
    assert [row["unread"] for row in rows_now().values()] == ["UNSUPPORTED_VERSION"] * 2
