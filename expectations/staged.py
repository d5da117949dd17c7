"""The staged Parquet files of one attempt, to be read by column before anything of it is committed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from durability.lake.catalog import properties
from durability.lake.tables import TABLES
from expectations.contradictions import BATCH_ROWS

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyiceberg.io import InputStream

    from durability.lake import Attempt, Lake


class Staged:
    """An attempt's files. `reading`: the file last opened, for messages about one that is broken."""

    def __init__(self, lake: Lake, attempt: Attempt):
        self.lake, self.attempt = lake, attempt
        self.reading = ""

    def table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """Rows of a fact table, `columns` of it or all; without rows when nothing was written.

        Raises pyarrow.ArrowException or OSError for a file that can't be read.
        """
        schema = TABLES[name].arrow
        if columns is not None:
            schema = pa.schema([schema.field(c) for c in columns])
        parts = [file.read(columns=schema.names) for file in self._files(name)]
        return pa.concat_tables([schema.empty_table(), *(p.select(schema.names).cast(schema) for p in parts)])

    def batches(self, name: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Likewise, some 100 K rows at a time."""
        for file in self._files(name):
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=columns)

    def _files(self, name: str) -> Iterator[pq.ParquetFile]:
        import pyarrow.parquet as pq

        for path in self.attempt.files.get(name, []):
            self.reading = path
            with self._open(path) as source:
                yield pq.ParquetFile(source)

    def _open(self, path: str) -> InputStream:
        from pyiceberg.io import load_file_io

        return load_file_io(properties(self.lake.place), path).new_input(path).open()
