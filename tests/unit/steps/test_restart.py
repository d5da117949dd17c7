"""The nodes of a restart plan, from rows of brokers and controllers."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability.lake.tables import BROKERS, CONTROLLERS
from durability.steps.restart import nodes


def states(brokers, controllers):
    rows = {BROKERS.name: (BROKERS, brokers), CONTROLLERS.name: (CONTROLLERS, controllers)}

    def facts(table, snapshot):
        schema, found = rows[table.name]
        return pa.Table.from_pylist([dict.fromkeys(schema.arrow.names) | row for row in found], schema.arrow)

    return {node.id: node.live for node in nodes(SimpleNamespace(facts=facts), {})}


@pytest.mark.parametrize("live", [True, False, None])
def test_a_broker_is_as_live_as_it_is_known_to_be(live):
    assert states([{"broker": 1, "live": live}], []) == {1: live}


@pytest.mark.parametrize(
    "voter, live",
    [
        ({"leader": True}, True),
        ({"caught_up": True}, True),
        ({"live": True}, True),
        ({"caught_up": False}, False),
        ({"live": False, "caught_up": True}, False),
        ({"live": True, "caught_up": False}, False),
        ({}, None),
    ],
)
def test_a_voter_that_nothing_is_known_of_may_be_down(voter, live):
    assert states([], [{"controller": 7, "role": "voter", **voter}]) == {7: live}


def test_a_combined_node_is_up_if_both_are():
    voter = {"controller": 1, "role": "voter", "caught_up": True}
    assert states([{"broker": 1, "live": True}], [voter]) == {1: True}
    assert states([{"broker": 1, "live": None}], [voter]) == {1: None}
    assert states([{"broker": 1, "live": True}], [voter | {"caught_up": False}]) == {1: False}
