"""The tables' Arrow columns as Iceberg schemas, partitioning and sort order, and what may change in an old table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortField, SortOrder
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

from durability.errors import Refused
from durability.lake.tables import TIMESTAMP, Table

_PRIMITIVES = {
    pa.string(): StringType(),
    pa.bool_(): BooleanType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.binary(): BinaryType(),
    TIMESTAMP: TimestamptzType(),
}


def iceberg_schema(table: Table) -> Schema:
    """The table's Iceberg schema: column ids from the order of columns, those of nested fields after them."""
    nested = count(len(table.columns) + 1)
    return Schema(
        *(
            NestedField(field_id=number, name=name, field_type=_type(kind, nested), required=False)
            for number, (name, kind) in enumerate(table.columns, start=1)
        )
    )


def _type(kind: pa.DataType, ids: Iterator[int]) -> IcebergType:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if pa.types.is_map(kind):
        key, value = next(ids), next(ids)
        return MapType(
            key_id=key,
            key_type=_type(kind.key_type, ids),
            value_id=value,
            value_type=_type(kind.item_type, ids),
            value_required=False,
        )
    if pa.types.is_list(kind):
        element = next(ids)
        return ListType(element_id=element, element_type=_type(kind.value_type, ids), element_required=False)
    if pa.types.is_struct(kind):
        fields = [(next(ids), field) for field in kind]
        return StructType(
            *(
                NestedField(field_id=number, name=field.name, field_type=_type(field.type, ids), required=False)
                for number, field in fields
            )
        )
    raise TypeError(f"no Iceberg type for the column type {kind}")


def partition_spec(table: Table) -> PartitionSpec:
    """day(captured_at), for a table partitioned by day."""
    if not table.by_day:
        return PartitionSpec()
    source = [name for name, _ in table.columns].index("captured_at") + 1
    day = PartitionField(source_id=source, field_id=1000, transform=DayTransform(), name="captured_at_day")
    return PartitionSpec(day)


def sort_order(table: Table) -> SortOrder:
    """The table's sort columns, ascending, NULL first."""
    names = [name for name, _ in table.columns]
    return SortOrder(
        *(
            SortField(source_id=names.index(name) + 1, transform=IdentityTransform(), null_order=NullOrder.NULLS_FIRST)
            for name in table.sort
        )
    )


def shape(kind: IcebergType) -> object:
    """A type without its field ids, to compare with another table's."""
    if isinstance(kind, MapType):
        return ("map", shape(kind.key_type), shape(kind.value_type))
    if isinstance(kind, ListType):
        return ("list", shape(kind.element_type))
    if isinstance(kind, StructType):
        return ("struct", *((field.name, shape(field.field_type)) for field in kind.fields))
    return str(kind)


def added_columns(table: Table, existing: Schema, where: str) -> list[NestedField]:
    """The columns that `table` has beyond an existing table's.

    Raises Refused, which names the lake and the column, if the existing table isn't an earlier state of this one.
    """
    wanted = {field.name: field for field in iceberg_schema(table).fields}
    there = {field.name: field for field in existing.fields}
    for name in wanted.keys() & there.keys():
        old, new = there[name].field_type, wanted[name].field_type
        if shape(old) != shape(new):
            raise Refused(
                f"the lake at {where} can't be used: its table {table.identifier} has the column {name} ({old}) where"
                f" {name} ({new}) is expected. It was written by a version of this program that doesn't fit: use another LAKE"
            )
    extra = [name for name in there if name not in wanted and name not in table.retired]
    if extra:
        raise Refused(
            f"the lake at {where} was written by a newer version of this program: its table {table.identifier} has "
            f"columns unknown here ({', '.join(extra)}). Use that version, or another LAKE"
        )
    return [field for name, field in wanted.items() if name not in there]
