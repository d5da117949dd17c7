"""The namespace of a lake's tables in its catalog.

A SQLite catalog is in the lake's folder, and its tables are in NAMESPACE. A PostgreSQL catalog may serve several lakes, so each
has its own namespace. A lake of version 0.1 uses NAMESPACE there, too, and keeps it while its tables are in their folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path

from durability.errors import Refused
from durability.lake.catalog import Place, properties
from durability.lake.files import path_of
from durability.lake.tables import CATALOG, NAMESPACE, TABLES

LABEL = ("_catalog", "namespace")
"""The file with the lake's namespace, below a folder's warehouse. A new lake never reuses the name of a deleted one."""
_LABELLED = re.compile(rf"{NAMESPACE}_[0-9a-f]{{12}}")


def namespace(place: Place) -> str:
    """The namespace of a lake's tables. The first call for a folder with a PostgreSQL catalog writes LABEL.

    Raises Refused if that file can't be read or written.
    """
    if place.catalog is None or _is_first(place):
        return NAMESPACE
    if place.folder is None:
        return f"{NAMESPACE}_{hashlib.sha256(place.warehouse.encode()).hexdigest()[:12]}"
    return _label(Path(path_of(place.warehouse), *LABEL))


def same_folder(one: str, other: str) -> bool:
    """Whether two addresses name one folder. On this host, links are followed.

    >>> same_folder("s3://bucket/lake/", "s3://bucket/lake"), same_folder("file:/tmp/../tmp/a", "file:///tmp/a")
    (True, True)
    """
    if one.startswith("file:") and other.startswith("file:"):
        return os.path.realpath(path_of(one)) == os.path.realpath(path_of(other))
    return one.rstrip("/") == other.rstrip("/")


def _is_first(place: Place) -> bool:
    """Whether the tables in NAMESPACE are this lake's: the catalog has `snapshots` there, and its file exists."""
    pointer = _pointer(place, TABLES["snapshots"].name)
    if pointer is None:
        return False
    folder = f"{place.warehouse}/{TABLES['snapshots'].identifier.replace('.', '/')}"
    there = place.folder is None or os.path.exists(path_of(pointer))
    return there and same_folder(pointer.rpartition("/metadata/")[0], folder)


def _pointer(place: Place, table: str) -> str | None:
    """The address of a table's metadata file in NAMESPACE; None if there is no such table or no answer."""
    import sqlalchemy
    from sqlalchemy.exc import SQLAlchemyError

    query = sqlalchemy.text(
        "SELECT metadata_location FROM iceberg_tables"
        " WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
    )
    engine = sqlalchemy.create_engine(properties(place)["uri"], poolclass=sqlalchemy.NullPool)
    # A new database has no such table. If the database doesn't answer, opening the lake reports it.
    with suppress(SQLAlchemyError), engine.connect() as connection:
        return connection.execute(query, {"catalog": CATALOG, "namespace": NAMESPACE, "table": table}).scalar()
    return None


def _label(file: Path) -> str:
    """The name in a lake's LABEL, which the first call writes. Concurrent calls get the same name."""
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            name = f"{NAMESPACE}_{uuid.uuid4().hex[:12]}"
            whole = file.with_name(f"{file.name}.{name}")
            whole.write_text(name, encoding="utf-8")
            with suppress(FileExistsError):
                os.link(whole, file)
            whole.unlink()
        name = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise Refused(f"{file}: can't be read or written: {error.strerror}; it names the lake's tables") from None
    if not _LABELLED.fullmatch(name):
        raise Refused(f"{file}: expected the name of the lake's namespace in its catalog, such as audit_0123456789ab")
    return name
