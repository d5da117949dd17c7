"""The location of a lake, and how Python and Spark reach its catalog."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from durability.errors import Refused
from durability.lake import encryption
from durability.lake.tables import CATALOG, NAMESPACE
from durability.resources import create_private

CATALOG_FILE = "catalog.db"
_BUSY_SECONDS = 60
_OWN_TABLES = frozenset({"iceberg_tables", "iceberg_namespace_properties"})


@dataclass(frozen=True)
class Place:
    """A lake's address. folder: on this host; None on S3. catalog: a PostgreSQL URL; None for SQLite's file in the folder."""

    location: str
    folder: Path | None
    warehouse: str
    catalog: str | None


def place(location: str, environ: dict[str, str] | None = None) -> Place:
    """The lake at a folder or s3:// address, with the catalog in DURABILITY_CATALOG, if set. Raises Refused if invalid."""
    environ = dict(os.environ) if environ is None else environ
    url = environ.get("DURABILITY_CATALOG") or None
    if url and urlsplit(url).scheme.partition("+")[0] not in ("postgresql", "postgres"):
        raise Refused(
            f"DURABILITY_CATALOG has the scheme {urlsplit(url).scheme!r}; expected postgresql://user:password@host/database"
        )
    try:
        _ = urlsplit(url or "").port
    except ValueError:  # the error's text includes a part of the password
        raise Refused(
            "DURABILITY_CATALOG can't be read as postgresql://user:password@host:port/database; in a password, / is written"
            " %2F, @ %40, : %3A, # %23 and ? %3F"
        ) from None
    if location.startswith("s3://"):
        if url is None:
            raise Refused(f"the lake {location} needs a catalog: set DURABILITY_CATALOG to a postgresql:// URL")
        return Place(location, None, location.rstrip("/"), url)
    if "://" in location and not location.startswith("file:///"):
        raise Refused(f"the lake {location} can't be used: expected a folder or s3://bucket/prefix")
    folder = Path(location.removeprefix("file://")).expanduser().absolute()
    if any(mark in str(folder) for mark in "#?%"):
        raise Refused(f"the lake folder {folder} can't be used: its path has one of # ? % in it")
    return Place(str(folder), folder, f"file://{folder}/warehouse", url)


def prepare(where: Place) -> None:
    """Create the lake's folder. Raises Refused if it isn't writable or has other files in it."""
    if where.folder is None:
        return
    try:
        create_private(where.folder)
        names = {entry.name for entry in os.scandir(where.folder)}
    except OSError as error:
        raise Refused(
            f"the lake folder {where.folder} can't be used: {error.strerror}. Name another with LAKE"
        ) from None
    if not os.access(where.folder, os.W_OK | os.X_OK):
        raise Refused(
            f"the lake folder {where.folder} can't be written to. Change its permissions or name another with LAKE"
        )
    if where.catalog is None:
        _refuse_foreign(where.folder, names)


def _refuse_foreign(folder: Path, names: set[str]) -> None:
    # Look for the catalog after the listing: another process may create the lake now, and the catalog is its first file.
    if not (folder / CATALOG_FILE).exists():
        if "warehouse" in names:
            raise Refused(
                f"the lake at {folder} has lost its catalog ({CATALOG_FILE}); `make restore LAKE={folder}` restores it"
            )
        if names:
            raise Refused(
                f"the folder {folder} isn't empty and has no lake in it ({CATALOG_FILE}). Name an empty or new one with LAKE"
            )
        return
    try:
        with closing(sqlite3.connect(f"file:{folder / CATALOG_FILE}?mode=ro", uri=True)) as database:
            found = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        raise Refused(f"{folder / CATALOG_FILE} can't be read as a lake's catalog ({error})") from None
    # A process that creates the catalog now may have created one table of the two.
    if found and not found & _OWN_TABLES:
        raise Refused(f"{folder / CATALOG_FILE} is the database of something else, not a lake's catalog")


def properties(where: Place) -> dict[str, str]:
    """pyiceberg's catalog properties."""
    if where.catalog is None:
        uri = f"sqlite:///{where.folder}/{CATALOG_FILE}?timeout={_BUSY_SECONDS}"
    else:
        scheme, _, rest = where.catalog.partition("://")
        # SQLAlchemy's default driver depends on its release. The deployment includes this one.
        uri = f"{scheme if '+' in scheme else 'postgresql+psycopg2'}://{rest}"
    encrypted = encryption.IO_PROPERTIES if where.folder is None else {}
    stated = {"type": "sql", "uri": uri, "warehouse": where.warehouse, "pool_pre_ping": "true"}
    return stated | encrypted | _s3("s3.region")


def _s3(region_key: str) -> dict[str, str]:
    """Endpoint and region from the variables that AWS tools read. Credentials come from the default chain."""
    endpoint = encryption.endpoint()
    stated = {"s3.endpoint": endpoint and endpoint[1], region_key: encryption.region()}
    return {name: value for name, value in stated.items() if value}


def spark_conf(where: Place, namespace: str = NAMESPACE) -> dict[str, str]:
    """Spark settings for a catalog named `durability` on this lake, with tables in that namespace.

    They may include the catalog's password. Pass them in a file that only its owner can read, never on a command line.
    """
    name = f"spark.sql.catalog.{CATALOG}"
    conf = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        name: "org.apache.iceberg.spark.SparkCatalog",
        f"{name}.type": "jdbc",
        f"{name}.warehouse": where.warehouse,
        f"{name}.jdbc.schema-version": "V1",
        f"{name}.cache-enabled": "false",
        f"{name}.default-namespace": namespace,
    }
    if where.catalog is None:
        conf[f"{name}.uri"] = f"jdbc:sqlite:{where.folder}/{CATALOG_FILE}"
        conf[f"{name}.jdbc.busy_timeout"] = str(_BUSY_SECONDS * 1000)
    else:
        url = urlsplit(where.catalog)
        port = f":{url.port}" if url.port else ""
        query = f"?{url.query}" if url.query else ""
        conf[f"{name}.uri"] = f"jdbc:postgresql://{url.hostname or 'localhost'}{port}{url.path}{query}"
        if url.username:
            conf[f"{name}.jdbc.user"] = unquote(url.username)
        if url.password:
            conf[f"{name}.jdbc.password"] = unquote(url.password)
    if where.folder is None:
        conf[f"{name}.io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
        stated = _s3("client.region") | encryption.spark_properties()
        conf |= {f"{name}.{key}": value for key, value in stated.items()}
        if f"{name}.s3.endpoint" in conf:
            conf[f"{name}.s3.path-style-access"] = "true"
    return conf
