"""Requests to the controller: whom they are sent to, and what they wait for."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from kafka.future import Future
from kafka.protocol.metadata import ApiVersionsResponse

from durability.collect import Limits, collect
from durability.collect import wire as wire_module
from durability.collect.reasons import Unread
from durability.collect.wire import Wire
from tests.support.fake_broker import API_VERSIONS, fake_broker

DESCRIBE_QUORUM = 55
NOT_CONTROLLER = 41
LONG = 20.0
"""Seconds: so long that a test which waits for this timeout has failed."""


def no_controller() -> SimpleNamespace:
    """An answer to DescribeQuorum: an empty tagged field of the header, the error, no topics, and no tagged field."""
    return SimpleNamespace(encode=lambda: b"\x00" + NOT_CONTROLLER.to_bytes(2, "big") + b"\x01\x00")


def test_a_broker_that_hangs_does_not_delay_the_question_who_leads():
    """A broker that answers only once another one was asked for the controller: no timeout comes before another one."""
    asked = threading.Event()

    def quorum() -> SimpleNamespace:
        asked.set()
        return no_controller()

    hanging = {API_VERSIONS: lambda: None if asked.wait(LONG) else ApiVersionsResponse(version=0, error_code=35)}
    with fake_broker("eu", {}, {}, brokers=0, on=hanging) as second:
        talking = {DESCRIBE_QUORUM: quorum}
        with fake_broker("eu", {}, {}, brokers=1, more={1: second}, on=talking) as first:
            document = collect(
                "eu", {"bootstrap.servers": first}, limits=Limits(connect_timeout=LONG / 4, deadline=4 * LONG)
            ).document
    assert asked.is_set()
    assert [broker["id"] for broker in document["brokers"] if "kafka_version" in broker] == [0, 1]


@pytest.fixture
def asking(monkeypatch):
    """A wire that sends nothing. `asking(answers, requests, nodes)`: the reason for each request, asked at once."""
    monkeypatch.setattr(wire_module, "PATIENCE", 0.0)
    wires = []

    def ask(answers, requests, nodes=(1, 2), lost=(), answered=()):
        wire = Wire("eu", {"bootstrap_servers": ["localhost:1"], "client_id": "test"}, Limits(deadline=LONG))
        wires.append(wire)
        wire.nodes, wire._answered = list(nodes), set(answered)
        wire._lost = {node: Unread("NETWORK_EXCEPTION: timed out", connection=True) for node in lost}
        wire.asked = []

        async def repeated(manager, node, request, code, seconds):
            wire.asked.append(node)
            return await answers(wire, request)

        async def reason(request):
            try:
                return await wire.ask_controller(request)
            except Unread as exc:
                return exc.reason

        monkeypatch.setattr(wire, "_repeated", repeated)
        jobs = [lambda request=request: reason(request) for request in requests]
        return wire.run(lambda: wire.gather(jobs)), wire

    yield ask
    for wire in wires:
        wire.close()


async def never(wire, request):
    """Nobody answers about reassignments, and every broker says that there is no controller for the quorum."""
    if request == "reassignments":
        return await Future()
    await wire.pause(0.01)
    raise Unread("NOT_CONTROLLER")


def test_a_request_that_runs_ends_once_no_broker_reaches_a_controller(asking):
    found, _ = asking(never, ["reassignments", "quorum"])
    assert found == ["NOT_CONTROLLER: no broker reaches a controller"] * 2


def test_brokers_that_have_answered_forward_first_and_lost_ones_never(asking):
    found, wire = asking(never, ["quorum"], nodes=range(1, 9), lost=(1, 2), answered=(7, 8))
    assert found == ["NOT_CONTROLLER: no broker reaches a controller"]
    assert wire.asked == [7, 8, 3, 4]


def test_without_a_broker_that_can_be_reached_nobody_is_asked(asking):
    found, wire = asking(never, ["quorum"], lost=(1, 2))
    assert found == ["BROKER_NOT_AVAILABLE: no broker reaches a controller"] and wire.asked == []
