"""Suspends Python's cyclic garbage collector for work that creates millions of objects and few reference cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspend the collector, which looks at all live objects again and again. Objects outside cycles are freed as always.

    Measured over 161,619 findings of 7 million partitions: the report took 34.2 CPU seconds with the collector and 29.7 without,
    with 2 % more memory. The findings' texts took 20.6 and 17.4, with 3 % more.

    >>> with uncollected(), uncollected():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
