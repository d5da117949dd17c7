"""The Iceberg tables of one lake: creates, evolves, writes and scans them through the catalog."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TypeVar

import pyarrow as pa
import sqlalchemy.exc
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.schema import index_by_name
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.sorting import NullOrder
from pyiceberg.transforms import DayTransform, IdentityTransform

from durability.errors import AuditError, Refused, Unreachable
from durability.lake.catalog import Place, properties
from durability.lake.files import Files
from durability.lake.namespaces import namespace, same_folder
from durability.lake.tables import CATALOG, TABLES, Table

T = TypeVar("T")
RETRIES = 3
CLOCKS = 60
"""Seconds that the clocks of writers may differ. Iceberg's Java library reads no table whose commits go back in time by more."""
# Errors while another host creates or changes the same object. The next attempt succeeds.
RACES = (
    CommitFailedException,
    TableAlreadyExistsError,
    sqlalchemy.exc.IntegrityError,
    sqlalchemy.exc.OperationalError,
    sqlalchemy.exc.ProgrammingError,
)
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.retry.num-retries": "20",
    "commit.retry.max-wait-ms": "2000",
    "write.parquet.compression-codec": "zstd",
    "write.distribution-mode": "none",  # the sort order alone would make Spark shuffle every small write
}


class Tables:
    """The tables of one lake."""

    def __init__(self, place: Place):
        self.place = place
        self.files = Files(place)
        with self._errors("its catalog can't be opened"):
            self.catalog = _retried(lambda: SqlCatalog(CATALOG, **properties(place)))

    @cached_property
    def namespace(self) -> str:
        """The namespace of the lake's tables in its catalog; see `durability.lake.namespaces`."""
        return namespace(self.place)

    def identifier(self, table: Table) -> str:
        """A table's name in the catalog."""
        return f"{self.namespace}.{table.name}"

    def ensure(self) -> None:
        """Create the namespace and missing tables, and add columns that an earlier version didn't have.

        Raises Refused if a table of the lake was written by a newer version or doesn't fit.
        """
        with self._errors("its tables can't be prepared"):
            self.create_namespace()
            # Check files first. A host that creates the lake now adds other tables to the catalog before these files.
            if self.files.metadata(TABLES["snapshots"]) and not self.catalog.list_tables(self.namespace):
                raise Refused(
                    f"the lake at {self.place.location} has files, but its catalog has no tables: the catalog is lost, or "
                    f"DURABILITY_CATALOG names another one; `make restore LAKE={self.place.location}` restores it"
                )
            for table in TABLES.values():
                _retried(partial(self._ensure_table, table))

    def create_namespace(self) -> None:
        """Create the lake's namespace, with the lake's address for people who read the catalog."""
        stated = {"location": self.files.warehouse}
        _retried(lambda: self.catalog.create_namespace_if_not_exists(self.namespace, stated))

    def _ensure_table(self, table: Table) -> None:
        try:
            current = self._own(table)
        except NoSuchTableError:
            self._create(table)
        else:
            self.check_clock(table, current)
            self._evolve(table, current)

    def check_clock(self, table: Table, current: IcebergTable) -> None:
        """Raises Refused if the table's last commit is in the future, because Spark couldn't read the table after another one."""
        last = current.metadata.last_updated_ms / 1000
        if last - time.time() > CLOCKS:
            raise Refused(
                f"the lake at {self.place.location} can't be written to: the last commit to its table {table.name} has the time "
                f"{datetime.fromtimestamp(last, UTC):%F %T} UTC, which is in the future. Correct the clock of this host, or of "
                "the host that wrote it. Until that time is past, use another LAKE, or a backup of this one"
            )

    def _own(self, table: Table) -> IcebergTable:
        """A table of the catalog. Raises Refused if its files are outside this lake, and so belong to another."""
        current = self.catalog.load_table(self.identifier(table))
        if not same_folder(current.location(), self.files.folder(table)):
            raise Refused(
                f"the lake at {self.place.location} can't be used: its catalog's table {self.identifier(table)} is in "
                f"{current.location()}, which is another lake's. A lake can't be moved or copied to another folder. If "
                f"that's one table of several, `make restore LAKE={self.place.location}` creates it again"
            )
        return current

    def _create(self, table: Table) -> None:
        with self.catalog.create_table_transaction(
            self.identifier(table), table.arrow, self.files.folder(table), properties=TABLE_PROPERTIES
        ) as creation:
            with creation.update_spec() as spec:
                spec.add_field("captured_at", DayTransform(), "captured_at_day")
            with creation.update_sort_order() as order:
                for column in table.sort:
                    order.asc(column, IdentityTransform(), NullOrder.NULLS_FIRST)
            mapping = creation.table_metadata.schema().name_mapping
            creation.set_properties({"schema.name-mapping.default": mapping.model_dump_json()})

    def _evolve(self, table: Table, current: IcebergTable) -> None:
        # Compare fields of structs, too, such as checks.element.control: `union_by_name` accepts unknown fields.
        known = index_by_name(self.catalog._convert_schema_if_needed(table.arrow))
        names = (name for name in current.schema().column_names if name.partition(".")[0] not in table.retired)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise Refused(
                f"the lake at {self.place.location} was written by a newer version of this program: its table "
                f"{table.identifier} has columns unknown here ({', '.join(unknown)}). Use that version, or another LAKE"
            )
        try:
            with current.update_schema() as update:
                update.union_by_name(table.arrow)
        except (ValueError, ValidationError) as error:
            raise Refused(
                f"the lake at {self.place.location} can't be used: its table {table.identifier} has a column of another "
                f"type ({error}). It was written by a version of this program that doesn't fit: use another LAKE"
            ) from None

    def exists(self, table: Table) -> bool:
        with self._errors(f"{table.identifier} can't be looked up"):
            return self.catalog.table_exists(self.identifier(table))

    def load(self, table: Table) -> IcebergTable:
        try:
            return self._own(table)
        except NoSuchTableError:
            raise Refused(
                f"the lake at {self.place.location} has no table {table.identifier}: it was never set up; run an audit on it"
            ) from None

    def add_files(self, table: Table, paths: Sequence[str]) -> None:
        """Commit Parquet files to a table in one commit."""
        with self._errors(f"{table.identifier} can't be committed to"):
            current = self.load(table)
            self.check_clock(table, current)
            current.add_files(list(paths), check_duplicate_files=False)

    def committed(self, table: Table, where: BooleanExpression) -> set[str]:
        """The addresses of committed files that may have rows matching `where`. Reads no data."""
        with self._errors(f"{table.identifier} can't be read"):
            return {task.file.file_path for task in self.load(table).scan(row_filter=where).plan_files()}

    def names_of_files(self, table: Table) -> set[str]:
        """The names of all data files in any snapshot of the table, except expired snapshots."""
        with self._errors(f"{table.identifier} can't be read"):
            current = self.load(table)
            manifests = {m.manifest_path: m for s in current.metadata.snapshots for m in s.manifests(current.io)}
            return {
                entry.data_file.file_path.rpartition("/")[2]
                for manifest in manifests.values()
                for entry in manifest.fetch_manifest_entry(current.io, discard_deleted=False)
            }

    def parts(
        self,
        table: Table,
        where: str | BooleanExpression | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.Table]:
        """The matching rows (without a condition, all rows), file by file, with the Arrow types of `tables.py`."""
        condition = (parse(where) if isinstance(where, str) else where) or AlwaysTrue()
        with self._errors(f"{table.identifier} can't be read"):
            current = self.load(table)
            bound = expression_to_pyarrow(bind(current.schema(), condition, case_sensitive=True))
            for task in current.scan(row_filter=condition).plan_files():
                if task.delete_files:
                    raise Refused(f"{task.file.file_path} has row-level deletes, which no writer of this lake makes")
                yield self.files.read(table, task.file.file_path, columns, bound)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn errors of the catalog and its files into errors that name the lake."""
        where = f"the lake at {self.place.location}: {what}"
        try:
            yield
        except AuditError:
            raise
        except FileNotFoundError as error:
            raise Refused(
                f"{where}; a file is missing ({error}). A lake can't be moved to another folder. If the file is lost, "
                f"`make restore LAKE={self.place.location}` names what is gone and leaves the rest readable"
            ) from None
        except CommitFailedException as error:
            raise Unreachable(f"{where}: others kept writing to it ({error}). Run the audit again") from None
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise Unreachable(f"{where} ({_cause(error)})") from None
        except ModuleNotFoundError as error:
            raise Refused(f"{where}: its database needs the Python package {error.name}; install it") from None
        except (OSError, pa.ArrowException) as error:
            raise Unreachable(f"{where} ({_cause(error)})") from None


def _retried(work: Callable[[], T]) -> T:
    """Repeat `work` if another host does the same at the same time."""
    for _ in range(RETRIES):
        with suppress(*RACES):
            return work()
        time.sleep(0.1)
    return work()


def _cause(error: Exception) -> str:
    """One line of the error, without the statement and the connection's address that SQLAlchemy adds."""
    inner = getattr(error, "orig", None) or error
    return (str(inner).splitlines() or [type(inner).__name__])[0]
