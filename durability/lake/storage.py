"""Parquet files of the lake: written under fresh names, checked before they are committed, read with clear errors."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from durability.errors import Refused, Unreachable

ROW_GROUP = 250_000


class Storage:
    """The files below one warehouse address."""

    def __init__(self, io: FileIO, warehouse: str):
        self.io = io
        self.warehouse = warehouse

    def table_location(self, identifier: str) -> str:
        return f"{self.warehouse}/{identifier.replace('.', '/')}"

    def write(self, identifier: str, rows: pa.Table) -> str:
        """Writes rows into the table's data folder as one Parquet file of a fresh name; returns its address.

        The file has no field ids: the table's name mapping gives each column its id, so it stays readable when
        columns are added.
        """
        path = f"{self.table_location(identifier)}/data/{uuid.uuid4().hex}.parquet"
        with (
            storage_errors(f"the lake's file {path} could not be written"),
            self.io.new_output(path).create() as stream,
        ):
            pq.write_table(rows, stream, compression="zstd", row_group_size=ROW_GROUP, store_schema=False)
        return path

    def read(self, path: str, schema: pa.Schema) -> pa.Table:
        """All rows of one file with the columns of `schema`, in their types.

        Raises Refused, which names the file, if it is missing or damaged.
        """
        with damage(path), self.io.new_input(path).open() as stream:
            return pq.ParquetFile(stream).read().select(schema.names).cast(schema)

    def footer(self, path: str) -> pq.FileMetaData:
        """The file's footer; raises Refused, which names the file, if it is missing or damaged."""
        with damage(path), self.io.new_input(path).open() as stream:
            return pq.read_metadata(stream)

    def find_damage(self, paths: Iterable[str]) -> None:
        """Reads files whole; raises Refused for the first that can't be."""
        for path in paths:
            with damage(path), self.io.new_input(path).open() as stream:
                for _ in pq.ParquetFile(stream).iter_batches():
                    continue


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
