"""The lease on a lake between a run's tasks: a row in the lake's catalog with an expiry time.

A lock ends with its process, but a scheduled run consists of many processes. Each task renews the lease. If a run dies, its
lease expires.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from durability.errors import Unreachable
from durability.lake import catalog

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

TABLE = "durability_lease"
_MAKE = f"CREATE TABLE IF NOT EXISTS {TABLE} (warehouse TEXT PRIMARY KEY, run TEXT NOT NULL, ends DOUBLE PRECISION NOT NULL)"
_READ = f"SELECT run, ends FROM {TABLE} WHERE warehouse = :warehouse AND ends > :now"
_CLEAR = f"DELETE FROM {TABLE} WHERE warehouse = :warehouse AND (run = :run OR ends <= :now)"
_WRITE = f"INSERT INTO {TABLE} VALUES (:warehouse, :run, :ends)"


@dataclass(frozen=True)
class Lease:
    """The run that has the lease, and the expiry time in seconds since 1970."""

    run: str
    ends: float


def current(place: catalog.Place) -> Lease | None:
    """The current lease, or None. Raises Unreachable if a PostgreSQL catalog doesn't answer."""
    import sqlalchemy

    if not _exists(place):
        return None
    with answering(place), engine(place).connect() as connection:
        if not sqlalchemy.inspect(connection).has_table(TABLE):
            return None
        return _read(connection, place)


def take(place: catalog.Place, run: str, seconds: float) -> Lease | None:
    """Give the run a lease for that time, or renew its lease. If another run has one, return that.

    A lake without a catalog gets no lease: a database that contains only a lease would not be recognized as a catalog.
    """
    import sqlalchemy
    from sqlalchemy.exc import IntegrityError

    if not _exists(place):
        return None
    now = time.time()
    row = {"warehouse": place.warehouse, "run": run, "now": now, "ends": now + seconds}
    with answering(place), engine(place).connect() as connection:
        _make(connection)
        try:
            connection.execute(sqlalchemy.text(_CLEAR), row)
            connection.execute(sqlalchemy.text(_WRITE), row)
            connection.commit()
        except IntegrityError:
            connection.rollback()
            return _read(connection, place)
    return None


def _make(connection: Connection) -> None:
    """Create the table if it is missing. If it exists, the catalog's user needs no permission to create tables."""
    import sqlalchemy
    from sqlalchemy.exc import IntegrityError, ProgrammingError

    if sqlalchemy.inspect(connection).has_table(TABLE):
        return
    try:
        connection.execute(sqlalchemy.text(_MAKE))
        connection.commit()
    except (IntegrityError, ProgrammingError):
        # PostgreSQL's IF NOT EXISTS doesn't wait for a transaction that creates the same table. By the moment, the second
        # one fails with unique_violation, duplicate_table or duplicate_object.
        connection.rollback()
        if not sqlalchemy.inspect(connection).has_table(TABLE):
            raise


def release(place: catalog.Place, run: str) -> None:
    """End the run's lease. Leases of other runs stay."""
    import sqlalchemy

    if not _exists(place):
        return
    with answering(place), engine(place).connect() as connection:
        if sqlalchemy.inspect(connection).has_table(TABLE):
            row = {"warehouse": place.warehouse, "run": run, "now": time.time()}
            connection.execute(sqlalchemy.text(_CLEAR), row)
            connection.commit()


def engine(place: catalog.Place) -> Engine:
    """An SQLAlchemy engine for the lake's catalog, with a new connection for each use."""
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    return sqlalchemy.create_engine(catalog.properties(place)["uri"], poolclass=NullPool)


@contextmanager
def answering(place: catalog.Place) -> Iterator[None]:
    """Raise Unreachable for a failure of the catalog.

    SQLAlchemy's error text isn't shown, because it may include the address with the password.
    """
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as error:
        raise Unreachable(
            f"the lake {place.location} can't be locked: its catalog doesn't answer ({type(error).__name__})"
        ) from None


def _exists(place: catalog.Place) -> bool:
    """True if the catalog exists. Connecting to a missing SQLite file would create it."""
    return place.catalog is not None or (place.folder is not None and (place.folder / catalog.CATALOG_FILE).is_file())


def _read(connection: Connection, place: catalog.Place) -> Lease | None:
    import sqlalchemy

    row = connection.execute(sqlalchemy.text(_READ), {"warehouse": place.warehouse, "now": time.time()}).first()
    return Lease(row.run, row.ends) if row else None
