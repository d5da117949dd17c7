"""Writes, lists, reads and removes files in a lake's warehouse. Every written file gets a new name."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs
from pyiceberg.io.pyarrow import PyArrowFileIO

from durability.errors import Refused, Unreachable
from durability.lake.catalog import Place, properties
from durability.lake.encryption import encrypting
from durability.lake.tables import Table

ROW_GROUP = 250_000
# Names given by `Files.write`. Spark's files have other names and are never removed here.
_WRITTEN_HERE = re.compile(r"[0-9a-f]{32}\.parquet")


class EncryptedFileIO(PyArrowFileIO):
    """pyiceberg's files with encryption."""

    def _initialize_fs(self, scheme: str, netloc: str | None = None) -> fs.FileSystem:
        return encrypting(super()._initialize_fs(scheme, netloc))


class Files:
    """The files of one lake. Raises Refused for a missing or damaged file, and Unreachable if the store fails."""

    def __init__(self, place: Place):
        self.warehouse = place.warehouse
        scheme, bucket, _ = PyArrowFileIO.parse_location(place.warehouse)
        self.system: fs.FileSystem = EncryptedFileIO(properties(place)).fs_by_scheme(scheme, bucket)

    def folder(self, table: Table) -> str:
        """The address of a table's folder."""
        return f"{self.warehouse}/{table.identifier.replace('.', '/')}"

    def write(self, table: Table, rows: pa.Table) -> str:
        """Write rows into the table's data folder as one Parquet file with a new name. Returns its address.

        The file has no field ids. The table's name mapping assigns ids to columns, so the file stays readable when columns are
        added.
        """
        address = f"{self.folder(table)}/data/{uuid.uuid4().hex}.parquet"
        with _storage_errors(f"the lake's file {address} could not be written"):
            pq.write_table(
                rows,
                path_of(address),
                filesystem=self.system,
                compression="zstd",
                store_schema=False,
                row_group_size=ROW_GROUP,
            )
        return address

    def read(
        self, table: Table, address: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
    ) -> pa.Table:
        """The rows of one file that meet a condition, with the table's column types. Missing columns are NULL.

        pyiceberg's own reader isn't used, because it returns a NULL list of structs as an empty list.
        """
        names = table.arrow.names if columns is None else columns
        wanted = pa.schema([table.arrow.field(name) for name in names])
        with _damage(address):
            fragment = ds.ParquetFileFormat().make_fragment(path_of(address), self.system)
            return fragment.to_table(schema=table.arrow, columns=wanted.names, filter=where).cast(wanted)

    def batches(self, address: str, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Some columns of one Parquet file, in batches of at most `rows` rows."""
        with _damage(address), pq.ParquetFile(path_of(address), filesystem=self.system) as file:
            yield from file.iter_batches(rows, columns=list(columns))

    def footer(self, address: str) -> pq.FileMetaData:
        """A Parquet file's footer."""
        with _damage(address):
            return pq.read_metadata(path_of(address), filesystem=self.system)

    def written_before(self, table: Table, moment: datetime) -> list[str]:
        """The addresses of a table's files that `write` made, committed or not, last changed before `moment`."""
        folder = f"{self.folder(table)}/data"
        return [
            f"{folder}/{entry.base_name}"
            for entry in self.listed(folder)
            if _WRITTEN_HERE.fullmatch(entry.base_name) and entry.mtime < moment
        ]

    def metadata(self, table: Table) -> list[str]:
        """The addresses of the metadata files in a table's folder, by name."""
        return self.named(f"{self.folder(table)}/metadata", ".metadata.json")

    def named(self, folder: str, ending: str) -> list[str]:
        """The addresses of the files directly in a folder whose names end like that, by name."""
        names = sorted(entry.base_name for entry in self.listed(folder))
        return [f"{folder}/{name}" for name in names if name.endswith(ending)]

    def listed(self, folder: str) -> list[fs.FileInfo]:
        """The files directly in a folder. Empty if the folder doesn't exist."""
        with _storage_errors(f"the folder {folder} can't be listed"):
            entries = self.system.get_file_info(fs.FileSelector(path_of(folder), allow_not_found=True))
            return [entry for entry in entries if entry.type == fs.FileType.File]

    def text(self, address: str) -> str:
        """The content of a text file."""
        return self.read_bytes(address).decode(errors="replace")

    def read_bytes(self, address: str) -> bytes:
        """The content of a file."""
        with (
            _storage_errors(f"the file {address} can't be read"),
            self.system.open_input_stream(path_of(address), compression=None) as file,
        ):
            return file.read()

    def write_text(self, address: str, text: str) -> None:
        """Write a small text file atomically."""
        self.write_bytes(address, text.encode())

    def write_bytes(self, address: str, content: bytes) -> None:
        """Write a file atomically."""
        # An object appears in S3 only when it is complete. A local file is visible while it is written.
        partial = path_of(address) + ("" if self.warehouse.startswith("s3://") else ".partial")
        with _storage_errors(f"the file {address} can't be written"):
            with self.system.open_output_stream(partial, compression=None) as file:
                file.write(content)
            if partial != path_of(address):
                self.system.move(partial, path_of(address))

    def remove(self, addresses: Iterable[str]) -> int:
        """Remove files and return how many. A file that is already gone doesn't count."""
        removed = 0
        for address in addresses:
            with _storage_errors(f"the file {address} can't be removed"), suppress(FileNotFoundError):
                self.system.delete_file(path_of(address))
                removed += 1
        return removed

    def exists(self, address: str) -> bool:
        return self.size(address) is not None

    def size(self, address: str) -> int | None:
        """A file's size in bytes; None if it doesn't exist."""
        with _storage_errors(f"the file {address} can't be looked up"):
            found = self.system.get_file_info(path_of(address))
            return found.size if found.type == fs.FileType.File else None


def path_of(address: str) -> str:
    """The path for pyarrow's file systems. Spark writes addresses of files with one slash.

    >>> path_of("file:///lake/a b"), path_of("file:/lake/a b"), path_of("s3://bucket/lake")
    ('/lake/a b', '/lake/a b', 'bucket/lake')
    """
    return address.partition(":")[2].removeprefix("//")


@contextmanager
def _damage(address: str) -> Iterator[None]:
    """Turn the errors of reading a Parquet file into Refused."""
    try:
        yield
    except FileNotFoundError:
        raise Refused(
            f"the lake's file {address} is missing. If it is lost, `make restore LAKE=` names what is gone and leaves the rest "
            "readable"
        ) from None
    except (pa.ArrowException, OSError) as error:
        raise Refused(f"the lake's file {address} is damaged or can't be read: {_first_line(error)}") from None


@contextmanager
def _storage_errors(what: str) -> Iterator[None]:
    """Turn a full disk, a missing permission or an unreachable store into Unreachable."""
    try:
        yield
    except OSError as error:
        raise Unreachable(f"{what}: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
