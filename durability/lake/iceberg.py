"""The Iceberg tables of one lake: created, evolved, committed to and scanned through its catalog."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TypeVar

import pyarrow as pa
import sqlalchemy.exc
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind, extract_field_ids
from pyiceberg.io import load_file_io
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import NestedField

from durability.errors import AuditError, Refused, Unreachable
from durability.lake import staging
from durability.lake.catalog import Place, locked, properties
from durability.lake.schemas import added_columns, iceberg_schema, partition_spec, sort_order
from durability.lake.storage import Storage, Wanted
from durability.lake.tables import CATALOG, NAMESPACE, TABLES, Table

T = TypeVar("T")
FIRST_USER_RETRIES = 3
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.num-retries": "20",
    "write.parquet.compression-codec": "zstd",
    "write.distribution-mode": "none",  # a sort order alone would have Spark shuffle every small write
}


class Tables:
    """The tables of one lake."""

    def __init__(self, place: Place):
        self.place = place
        with self._errors("its catalog can't be opened"), self._lock():
            self.catalog = _among_first_users(lambda: SqlCatalog(CATALOG, **properties(place)))
        self.storage = Storage(load_file_io(self.catalog.properties, place.warehouse), place.warehouse)

    def _lock(self) -> AbstractContextManager[None]:
        return locked(self.place)

    def ensure(self) -> None:
        """Makes the namespace and every table, and adds the columns that an earlier version didn't have.

        Raises Refused if a table of the lake is no earlier state of what is written now.
        """
        with self._errors("its tables can't be prepared"), self._lock():
            _among_first_users(lambda: self.catalog.create_namespace_if_not_exists(NAMESPACE))
            existing = {name for _, name in self.catalog.list_tables(NAMESPACE)}
            if not existing and self.metadata_files(TABLES["snapshots"]):
                raise Refused(
                    f"the lake at {self.place.location} has files and its catalog has no table of it: the catalog is lost, or "
                    f"DURABILITY_CATALOG names another; `make restore LAKE={self.place.location}` makes it anew"
                )
            for table in TABLES.values():
                if table.name not in existing:
                    self._create(table)
                self._evolve(table)

    def _create(self, table: Table) -> None:
        schema = iceberg_schema(table)
        mapping = {"schema.name-mapping.default": schema.name_mapping.model_dump_json()}
        with suppress(TableAlreadyExistsError):  # another host was quicker; whether it is the same is checked next
            self.catalog.create_table(
                table.identifier,
                schema,
                location=self.storage.table_location(table.identifier),
                partition_spec=partition_spec(table),
                sort_order=sort_order(table),
                properties=TABLE_PROPERTIES | mapping,
            )

    def _evolve(self, table: Table) -> None:
        missing = self._missing(table)
        if not missing:
            return
        try:
            with self.catalog.load_table(table.identifier).update_schema() as update:
                for column in missing:
                    update.add_column(column.name, column.field_type)
        except (CommitFailedException, ValueError):  # another host was quicker, or added them before they were here
            if self._missing(table):
                raise

    def _missing(self, table: Table) -> list[NestedField]:
        existing = self.catalog.load_table(table.identifier)
        return added_columns(table, existing.schema(), self.place.location)

    def load(self, table: Table) -> IcebergTable:
        try:
            return self.catalog.load_table(table.identifier)
        except NoSuchTableError:
            raise Refused(
                f"the lake at {self.place.location} has no table {table.identifier}: it was never set up; run an audit on it"
            ) from None

    def metadata_files(self, table: Table) -> list[str]:
        """The addresses of a table's metadata files, whether its catalog knows them or not."""
        return staging.metadata_files(self.place.warehouse, self.storage.table_location(table.identifier))

    def add_files(self, table: Table, paths: Sequence[str]) -> None:
        """Commits Parquet files to a table, all at once."""
        with self._errors(f"{table.identifier} can't be committed to"), self._lock():
            self.load(table).add_files(list(paths), check_duplicate_files=False)

    def files(self, table: Table, where: BooleanExpression) -> set[str]:
        """The addresses of the committed files that may hold rows matching `where`; reads no data."""
        with self._errors(f"{table.identifier} can't be read"):
            return {task.file.file_path for task in self.load(table).scan(row_filter=where).plan_files()}

    def names_of_files(self, table: Table) -> set[str]:
        """The names of all data files that any snapshot of the table refers to, expired ones aside."""
        with self._errors(f"{table.identifier} can't be read"):
            current = self.load(table)
            manifests = {m.manifest_path: m for s in current.metadata.snapshots for m in s.manifests(current.io)}
            return {
                entry.data_file.file_path.rpartition("/")[2]
                for manifest in manifests.values()
                for entry in manifest.fetch_manifest_entry(current.io, discard_deleted=False)
            }

    def scan(
        self,
        table: Table,
        where: str | BooleanExpression | None = None,
        columns: Iterable[str] | None = None,
    ) -> pa.Table:
        """The matching rows (all where no condition is given), with the Arrow types of `tables.py`."""
        names = list(columns) if columns is not None else table.arrow.names
        wanted = pa.schema([table.arrow.field(name) for name in names])
        condition = (parse(where) if isinstance(where, str) else where) or AlwaysTrue()
        with self._errors(f"{table.identifier} can't be read"):
            current = self.load(table)
            bound = bind(current.schema(), condition, case_sensitive=True)
            found = (current.schema().find_column_name(number) for number in extract_field_ids(bound))
            used = {name for name in found if name is not None}
            rows = Wanted(wanted, expression_to_pyarrow(bound), table.arrow, used)
            parts = []
            for task in current.scan(row_filter=condition).plan_files():
                if task.delete_files:
                    raise Refused(f"{task.file.file_path} has row-level deletes, which no writer of this lake makes")
                parts.append(self.storage.read(task.file.file_path, rows))
            return pa.concat_tables([wanted.empty_table(), *parts])

    def parts(self, table: Table, where: BooleanExpression) -> Iterator[pa.Table]:
        """`scan` file by file, so that what grows with the fleet needn't be in memory as a whole."""
        with self._errors(f"{table.identifier} can't be read"):
            current = self.load(table)
            bound = bind(current.schema(), where, case_sensitive=True)
            used = {name for n in extract_field_ids(bound) if (name := current.schema().find_column_name(n))}
            rows = Wanted(table.arrow, expression_to_pyarrow(bound), table.arrow, used)
            for task in current.scan(row_filter=where).plan_files():
                yield self.storage.read(task.file.file_path, rows)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turns what the catalog and its files can raise into errors that name the lake."""
        where = f"the lake at {self.place.location}: {what}"
        try:
            yield
        except AuditError:
            raise
        except FileNotFoundError as error:
            raise Refused(f"{where}; a file is missing ({error}). A lake can't be moved to another folder") from None
        except CommitFailedException as error:
            raise Unreachable(f"{where}: others kept writing to it ({error}). Run the audit again") from None
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise Unreachable(f"{where} ({_cause(error)})") from None
        except ModuleNotFoundError as error:
            raise Refused(f"{where}: its database needs the Python package {error.name}; install it") from None
        except (OSError, pa.ArrowException) as error:
            raise Unreachable(f"{where} ({_cause(error)})") from None


def _among_first_users(make: Callable[[], T]) -> T:
    """Makes what another host may be making at this moment: its row or table in the way means that it is there."""
    for _ in range(FIRST_USER_RETRIES):
        with suppress(sqlalchemy.exc.IntegrityError, sqlalchemy.exc.OperationalError, sqlalchemy.exc.ProgrammingError):
            return make()
        time.sleep(0.1)
    return make()


def _cause(error: Exception) -> str:
    """One line, without the statement and the connection's address that SQLAlchemy adds."""
    inner = getattr(error, "orig", None) or error
    return (str(inner).splitlines() or [type(inner).__name__])[0]
