"""Parquet files of the lake: written under fresh names, checked before they are committed, read with clear errors."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from durability.errors import Refused, Unreachable

ROW_GROUP = 250_000


@dataclass(frozen=True)
class Wanted:
    """Rows to read: the columns to return, the condition, all columns of the table, those that the condition uses."""

    schema: pa.Schema
    condition: pc.Expression | None
    table: pa.Schema
    filtered_by: set[str] = field(default_factory=set)


class Storage:
    """The files below one warehouse address."""

    def __init__(self, io: FileIO, warehouse: str):
        self.io = io
        self.warehouse = warehouse

    def table_location(self, identifier: str) -> str:
        return f"{self.warehouse}/{identifier.replace('.', '/')}"

    def write(self, identifier: str, *parts: pa.Table) -> str:
        """Writes rows into the table's data folder as one Parquet file of a fresh name; returns its address.

        parts: tables of the same columns; rows of two of them are in no row group together.

        The file has no field ids: the table's name mapping gives each column its id, so it stays readable when
        columns are added.
        """
        path = f"{self.table_location(identifier)}/data/{uuid.uuid4().hex}.parquet"
        with (
            storage_errors(f"the lake's file {path} could not be written"),
            self.io.new_output(path).create() as stream,
        ):
            writer = pq.ParquetWriter(stream, parts[0].schema, compression="zstd", store_schema=False)
            with writer:
                for rows in parts:
                    writer.write_table(rows, row_group_size=ROW_GROUP)
        return path

    def read(self, path: str, wanted: Wanted) -> pa.Table:
        """The wanted rows of one file, by column name; a column that the file was written without is NULL.

        pyiceberg's own reader isn't used: it gives a NULL list of structs back as an empty one.
        Raises Refused, which names the file, if it is missing or damaged.
        """
        with damage(path), self.io.new_input(path).open() as stream:
            fragment = ds.ParquetFileFormat().make_fragment(stream)
            present = set(fragment.physical_schema.names)
            if wanted.filtered_by <= present:
                names = [name for name in wanted.schema.names if name in present]
                found = fragment.to_table(columns=names, filter=wanted.condition)
                return _completed(found, wanted.schema)
            found = _completed(fragment.to_table(), wanted.table)
            return found.filter(wanted.condition).select(wanted.schema.names)

    def footer(self, path: str) -> pq.FileMetaData:
        """The file's footer; raises Refused, which names the file, if it is missing or damaged."""
        with damage(path), self.io.new_input(path).open() as stream:
            return pq.read_metadata(stream)


def _completed(found: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        found[field.name].cast(field.type)
        if field.name in found.column_names
        else pa.chunked_array([pa.nulls(found.num_rows, field.type)])
        for field in schema
    ]
    return pa.table(columns, schema=schema)


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Turns what reading a Parquet file can raise into Refused."""
    try:
        yield
    except FileNotFoundError:
        raise Refused(f"the lake's file {path} is missing") from None
    except (pa.ArrowException, OSError) as error:
        raise Refused(f"the lake's file {path} is damaged or can't be read: {_first_line(error)}") from None


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turns a full disk, missing permission or unreachable store into Unreachable."""
    try:
        yield
    except OSError as error:
        raise Unreachable(f"{what}: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
