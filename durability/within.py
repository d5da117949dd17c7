"""Bounds how long work that waits for another host may take."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns or raises. Raises TimeoutError if it takes longer; then it goes on alone, until the process ends.

    A socket's timeout is that of one read. A server that sends a byte now and then makes its client wait without end.

    >>> within(5, lambda: 1 + 1)
    2
    """
    outcome: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            outcome.set_result(context.run(work))
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, daemon=True).start()
    return outcome.result(seconds)
