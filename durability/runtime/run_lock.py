"""Allows one run at a time on a lake, with a lock in its folder, a lock in its PostgreSQL catalog, and a lease.

Both locks end with their process. The folder's lock excludes other processes of this host, the catalog's those of all hosts.
A scheduled run shares the locks between its tasks and has the lease between them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime

from durability.errors import Unreachable
from durability.lake import catalog
from durability.runtime import lease, locks

HELD = "DURABILITY_LAKE_HELD"
"""The environment variable with the address of the lake that an earlier process of this run has locked."""
BETWEEN_TASKS = 20 * 60
"""Seconds of the lease after a task: longer than the longest delay before a retry."""


@contextmanager
def held(lake: str) -> Iterator[None]:
    """Lock the lake for this process. lake: an existing folder or an s3:// address.

    Raises Unreachable if another run has the lake, or if the catalog doesn't answer. The user can try again later.
    """
    place = catalog.place(lake)
    with _locked(place):
        _refuse(place, lambda: lease.current(place))
        yield


@contextmanager
def shared(lake: str, run: str) -> Iterator[None]:
    """Lock the lake for one task of a run, shared with the run's other tasks. Raises Unreachable like `held`.

    The run keeps the lake for its next task: `renew` extends the lease, `end` ends it.
    """
    place = catalog.place(lake)
    with _locked(place, shared=True):
        renew(lake, run)
        yield


def renew(lake: str, run: str) -> None:
    """Keep the lake for the run's next task. Raises Unreachable if another run has it."""
    place = catalog.place(lake)
    _refuse(place, lambda: lease.take(place, run, BETWEEN_TASKS))


def end(lake: str, run: str) -> None:
    """Release the lake at the end of the run."""
    lease.release(catalog.place(lake), run)


def key(warehouse: str) -> int:
    """The lock's number in the catalog: 63 bits of a hash of the warehouse's address.

    >>> key("s3://lake/warehouse") == key("s3://lake/warehouse") != key("s3://other/warehouse")
    True
    """
    return int.from_bytes(hashlib.sha256(warehouse.encode()).digest()[:8], "big") >> 1


@contextmanager
def _locked(place: catalog.Place, *, shared: bool = False) -> Iterator[None]:
    with ExitStack() as stack:
        if place.folder is not None:
            with suppress(OSError):  # no folder yet, or a network file system that can't lock folders
                lock = locks.try_folder_lock(place.folder, shared=shared)
                if lock is None:
                    raise _busy(place, f" (process {locks.holder(place.folder) or 'unknown'})")
                stack.enter_context(lock)
        if place.catalog is not None:
            stack.enter_context(_catalog_lock(place, shared=shared))
        yield


@contextmanager
def _catalog_lock(place: catalog.Place, *, shared: bool) -> Iterator[None]:
    """PostgreSQL's advisory lock (manual, "Advisory Locks"). It ends with its connection.

    A server notices a moment later that a connection was closed. So the lock is given back before that.
    """
    kind = "_shared" if shared else ""
    with ExitStack() as stack:
        with lease.answering(place):
            connection = stack.enter_context(lease.engine(place).connect())
            # A transaction open for the whole lock would block VACUUM.
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            free = connection.exec_driver_sql(f"SELECT pg_try_advisory_lock{kind}({key(place.warehouse)})").scalar()
        if not free:
            raise _busy(place)
        try:
            yield
        finally:
            with suppress(Unreachable), lease.answering(place):
                connection.exec_driver_sql(f"SELECT pg_advisory_unlock{kind}({key(place.warehouse)})")


def _refuse(place: catalog.Place, read: Callable[[], lease.Lease | None]) -> None:
    """Raise Unreachable if `read` returns another run's lease."""
    # A damaged SQLite catalog has no lease. The step that opens it reports the damage, and `restore` repairs it.
    unusable = (Unreachable,) if place.catalog is None else ()
    other = None
    with suppress(*unusable):
        other = read()
    if other is not None:
        ends = datetime.fromtimestamp(other.ends, UTC).strftime("%H:%M UTC")
        raise _busy(place, f" ({other.run}; its next task starts before {ends}, else it is over)")


def _busy(place: catalog.Place, who: str = "") -> Unreachable:
    return Unreachable(
        f"another run is using the lake {place.location}{who}; wait for it, or name another lake (--lake or LAKE=)"
    )
