"""Ctrl-C and SIGTERM end a reading, whatever kafka-python's event loop is doing when they arrive."""

from __future__ import annotations

import signal

import pytest

from durability.collect.limits import Limits
from durability.collect.settings import client_config
from durability.collect.wire import Wire


@pytest.fixture
def wire():
    made = Wire("eu", client_config({"bootstrap.servers": "127.0.0.1:1"}, "eu"), Limits(deadline=30))
    yield made
    made.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_within_a_task_of_the_loop_ends_the_reading(wire, number):
    def leave(*_):
        raise SystemExit(143)

    async def task():
        signal.raise_signal(number)

    async def work():
        wire._net.call_soon(task)
        await wire.pause(20)
        to_its_end.append(True)

    to_its_end: list[bool] = []
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else SystemExit):
            wire.run(work)
        assert signal.getsignal(signal.SIGTERM) is leave and signal.getsignal(signal.SIGINT) is before[signal.SIGINT]
    finally:
        signal.signal(signal.SIGTERM, before[signal.SIGTERM])
    assert not to_its_end


def test_a_handler_that_raises_nothing_lets_the_reading_go_on(wire):
    seen = []

    async def work():
        signal.raise_signal(signal.SIGTERM)
        return "read"

    before = signal.signal(signal.SIGTERM, lambda *_: seen.append("handled"))
    try:
        assert wire.run(work) == "read" and seen == ["handled"]
    finally:
        signal.signal(signal.SIGTERM, before)
