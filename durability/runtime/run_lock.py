"""One run at a time on a lake: the lock is in the lake's folder and in its PostgreSQL catalog.

Both locks end with their process. The folder's excludes all users of this host, the catalog's all hosts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from durability.errors import Unreachable
from durability.lake import catalog
from durability.runtime import locks

HELD = "DURABILITY_LAKE_HELD"
"""The environment variable with the address of the lake whose lock an earlier process of this run holds."""


@contextmanager
def held(lake: str) -> Iterator[None]:
    """Hold the lake's locks meanwhile. lake: a folder that exists, or an s3:// address.

    Raises Unreachable if another run has them, or if the catalog doesn't answer: trying again later helps.
    """
    place = catalog.place(lake)
    with ExitStack() as stack:
        if place.folder is not None:
            with suppress(OSError):  # no folder yet, or a network file system that locks no folders
                lock = locks.try_folder_lock(place.folder)
                if lock is None:
                    raise _busy(f"{lake} (process {locks.holder(place.folder) or 'unknown'})")
                stack.enter_context(lock)
        if place.catalog is not None:
            stack.enter_context(_catalog_lock(place))
        yield


def key(warehouse: str) -> int:
    """The lock's number in the catalog: 63 bits of a hash of the warehouse's address.

    >>> key("s3://lake/warehouse") == key("s3://lake/warehouse") != key("s3://other/warehouse")
    True
    """
    return int.from_bytes(hashlib.sha256(warehouse.encode()).digest()[:8], "big") >> 1


@contextmanager
def _catalog_lock(place: catalog.Place) -> Iterator[None]:
    """The advisory lock of PostgreSQL (its manual, "Advisory Locks"). It is the connection's, and ends with it."""
    import sqlalchemy
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    # The password is in the address alone, which no error of SQLAlchemy has.
    engine = sqlalchemy.create_engine(catalog.properties(place)["uri"], poolclass=NullPool)
    try:
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        free = connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({key(place.warehouse)})").scalar()
    except SQLAlchemyError as error:
        raise Unreachable(
            f"the lake {place.location} can't be locked: its catalog doesn't answer ({type(error).__name__})"
        ) from None
    with connection:
        if not free:
            raise _busy(place.location)
        yield


def _busy(lake: str) -> Unreachable:
    return Unreachable(f"another run is using the lake {lake}; wait for it, or name another lake (--lake or LAKE=)")
