"""Which run has a lake between its tasks: a row in the lake's catalog with the time until which the run may go on.

A lock ends with its process, and a scheduled run is many processes. Its row is renewed by each task. A run that dies
frees the lake when its row's time is over.
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
    """The run that has the lake, and the time until which it has it, in seconds since 1970."""

    run: str
    ends: float


def current(place: catalog.Place) -> Lease | None:
    """The lease on the lake; None where no run has one. Raises Unreachable if a PostgreSQL catalog doesn't answer."""
    import sqlalchemy

    if not _exists(place):
        return None
    with answering(place), engine(place).connect() as connection:
        if not sqlalchemy.inspect(connection).has_table(TABLE):
            return None
        return _read(connection, place)


def take(place: catalog.Place, run: str, seconds: float) -> Lease | None:
    """Gives the run the lake for that time from now, or renews its lease. Returns the lease of another run that has it.

    A lake without a catalog has none: a database with nothing but a lease would be taken for something else's.
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
    """Makes the table if it is missing. A user of the catalog need not be allowed to make tables where it is there."""
    import sqlalchemy
    from sqlalchemy.exc import IntegrityError

    if sqlalchemy.inspect(connection).has_table(TABLE):
        return
    try:
        connection.execute(sqlalchemy.text(_MAKE))
        connection.commit()
    except IntegrityError:  # another run made it at the same moment (PostgreSQL)
        connection.rollback()


def release(place: catalog.Place, run: str) -> None:
    """Ends the run's lease; another run's stays."""
    import sqlalchemy

    if not _exists(place):
        return
    with answering(place), engine(place).connect() as connection:
        if sqlalchemy.inspect(connection).has_table(TABLE):
            row = {"warehouse": place.warehouse, "run": run, "now": time.time()}
            connection.execute(sqlalchemy.text(_CLEAR), row)
            connection.commit()


def engine(place: catalog.Place) -> Engine:
    """The lake's catalog as SQLAlchemy reaches it: a connection of its own for each use."""
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    return sqlalchemy.create_engine(catalog.properties(place)["uri"], poolclass=NullPool)


@contextmanager
def answering(place: catalog.Place) -> Iterator[None]:
    """Raises Unreachable if the catalog can't be used meanwhile. The text of SQLAlchemy's error isn't shown: it may
    have parts of the address, where the password is."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as error:
        raise Unreachable(
            f"the lake {place.location} can't be locked: its catalog doesn't answer ({type(error).__name__})"
        ) from None


def _exists(place: catalog.Place) -> bool:
    """Is there a catalog? SQLite would make its file."""
    return place.catalog is not None or (place.folder is not None and (place.folder / catalog.CATALOG_FILE).is_file())


def _read(connection: Connection, place: catalog.Place) -> Lease | None:
    import sqlalchemy

    row = connection.execute(sqlalchemy.text(_READ), {"warehouse": place.warehouse, "now": time.time()}).first()
    return Lease(row.run, row.ends) if row else None
