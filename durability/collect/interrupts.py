"""Signals while kafka-python's event loop runs in the main thread.

The loop takes what a signal's handler raises for an exception of the task that happens to run: it logs it, or fails a connection
with it. So Ctrl-C would be lost, or read as an unreachable broker.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafka.future import Future

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Awaited:
    """Done if a future is, or once a signal's handler has raised something.

    The handler doesn't end the future itself: this thread may have the future's lock when the signal arrives.
    """

    def __init__(self, future: Future):
        self._future = future
        self.raised: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return self.raised is not None or bool(self._future.is_done)


@contextmanager
def awaited(future: Future, wake: Callable[[], None]) -> Iterator[Awaited]:
    """What to wait for instead of `future`. At the end, it raises what a handler of SIGNALS has raised meanwhile.

    wake: lets the loop look whether the wait is over. Other threads than the main one get no signals.
    """
    waits = Awaited(future)
    if threading.current_thread() is not threading.main_thread():
        yield waits
        return
    former = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}

    def kept(number: int, frame: Any) -> None:
        try:
            former[signal.Signals(number)](number, frame)
        except BaseException as raised:
            waits.raised = raised
            wake()

    for number in former:
        signal.signal(number, kept)
    try:
        yield waits
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    if waits.raised is not None:
        raise waits.raised
