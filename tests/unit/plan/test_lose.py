"""What is named as lost, resolved against the nodes of a snapshot."""

import pytest

from durability.errors import Refused
from durability.plan import lose

BROKERS = [
    {"broker": 1, "rack": "az1", "live": True},
    {"broker": 2, "rack": "az2", "live": False},
    {"broker": 3, "rack": "eu,west", "live": True},
    {"broker": 4, "rack": "", "live": True},
    {"broker": 5, "rack": None, "live": None},
]
CONTROLLERS = [
    {"controller": 1, "rack": "az1", "role": "voter"},
    {"controller": 3, "rack": None, "role": "observer"},
    {"controller": 101, "rack": "az2", "role": "voter"},
    {"controller": 102, "rack": None, "role": "observer"},
]
"""3 is a broker that fetches the quorum's log. 102 is a controller that doesn't vote yet (KIP-853)."""


def resolved(text):
    return lose.resolve(lose.parse(text), BROKERS, CONTROLLERS)


@pytest.mark.parametrize(
    "text, brokers, controllers, down",
    [
        ("broker:3", (3,), (), ()),
        ("broker:1", (1,), (1,), ()),
        ("controller:1", (1,), (1,), ()),
        ("controller:101", (), (101,), ()),
        ("rack:az2", (2,), (101,), (2,)),
        ("rack:eu%2Cwest, broker:3", (3,), (), ()),
        ("rack:az1,rack:az2,broker:4", (1, 2, 4), (1, 101), (2,)),
        ("broker:1,broker:2,broker:3,broker:4,broker:5", (1, 2, 3, 4, 5), (1,), (2,)),
    ],
)
def test_a_rack_takes_its_nodes_and_a_combined_node_is_lost_as_both(text, brokers, controllers, down):
    loss = resolved(text)
    assert (loss.brokers, loss.controllers, loss.down_already) == (brokers, controllers, down)


def test_nodes_without_a_rack_may_stand_in_a_lost_one():
    assert resolved("rack:az1").unplaced == {"brokers": (4, 5), "controllers": (102,)}
    assert resolved("broker:1").unplaced == {"brokers": (), "controllers": ()}


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "--lose is empty: name what to lose, for instance broker:3,rack:az2,controller:101"),
        (" , broker:1", "--lose: an item between two commas is empty"),
        ("broker:x", "--lose broker:x: expected a broker's id, for instance broker:3"),
        ("broker:-1", "--lose broker:-1: expected a broker's id, for instance broker:3"),
        ("brokr:1", "--lose brokr:1: expected broker:ID, rack:NAME or controller:ID; did you mean broker?"),
        ("3", "--lose 3: expected broker:ID, rack:NAME or controller:ID"),
        ("rack:", "--lose rack:: expected a rack's name; brokers without a rack are never lost as a rack"),
        ("broker:99", "--lose broker:99: the cluster has no such broker; there are 1, 2, 3, 4, 5"),
        ("rack:az9", "--lose rack:az9: the cluster has no such rack; there are az1, az2, eu,west; did you mean az2?"),
        ("controller:2", "--lose controller:2: the cluster has no such controller; there are 1, 101, 102"),
    ],
)
def test_what_names_nothing_is_refused_with_what_there_is(text, message):
    with pytest.raises(Refused) as refused:
        resolved(text)
    assert str(refused.value) == message


def test_of_many_nodes_some_are_named():
    many = [{"broker": n, "rack": "az1", "live": True} for n in range(1, 100)]
    with pytest.raises(Refused, match="29, 30 and 69 more"):
        lose.resolve(lose.parse("broker:100"), many, [])


def test_text_of_a_cluster_is_escaped():
    strange = [{"broker": 1, "rack": "a\x1b[2J", "live": True}]
    with pytest.raises(Refused) as refused:
        lose.resolve(lose.parse("rack:b"), strange, [])
    assert "\x1b" not in str(refused.value)
