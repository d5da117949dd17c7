"""A topology's partitions as one Arrow table. There may be a million rows, so no row becomes a Python object."""

from __future__ import annotations

from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake import contradictions, partition_groups
from durability.lake.facts import Facts
from durability.lake.tables import PARTITION_GROUPS, PARTITIONS, Table
from durability.topology.diskless import is_diskless
from durability.topology.elr import electable
from durability.topology.kinds import PARTITION_LISTS

_FIELDS = ("leader", *PARTITION_LISTS, "bytes")


def keyed(table: Table, keys: dict[str, object], columns: dict[str, pa.Array], rows: int) -> pa.Table:
    """An Arrow table of these columns, with the same keys in each row, in the column order of `table`."""
    kinds = dict(table.columns)
    arrays = {name: pa.repeat(pa.scalar(value, kinds[name]), rows) for name, value in keys.items()} | columns
    return pa.Table.from_arrays([arrays[name] for name in kinds], schema=table.arrow)


def partition_tables(facts: Facts, keys: dict[str, object], brokers: list[dict]) -> tuple[pa.Table, pa.Table]:
    """The rows of `partitions`, sorted by topic and partition, and of `partition_groups` (empty for a small cluster).

    A partition without a number has no row. If a partition's facts contradict each other, none of them counts. A diskless topic
    has no contradictions, because no rule reads these facts.

    brokers: the rows of `brokers`.
    """
    partitions: list[dict] = []
    topics: list[str] = []
    unread: dict[int, list[str]] = {}  # fields that couldn't be read, by row
    diskless: set[str] = set()
    for place, topic in facts.named("name", "topics"):
        where = (*place, "partitions")
        if is_diskless(facts.configs(place, topic)[0]):
            diskless.add(topic["name"])
        if facts.unreadable.touches(*where):
            for partition, names in _with_nulls(facts, where):
                if names:
                    unread[len(partitions)] = names
                partitions.append(partition)
                topics.append(topic["name"])
        else:
            partitions += sorted(topic["partitions"], key=itemgetter("partition"))
            topics += [topic["name"]] * len(topic["partitions"])
    kinds = dict(PARTITIONS.columns)
    columns = {name: pa.array(list(map(itemgetter(name), partitions)), kinds[name]) for name in ("partition", "leader")}
    columns |= {name: pa.array(list(map(itemgetter(name), partitions)), kinds[name]) for name in PARTITION_LISTS}
    columns["elr"] = pa.array([electable(p["elr"], p["replicas"]) for p in partitions], kinds["elr"])
    columns["topic"] = pa.array(topics, kinds["topic"])
    columns["bytes"] = pa.array([partition.get("bytes") for partition in partitions], kinds["bytes"])
    found = contradictions.readings(columns)
    found = {row: reading for row, reading in found.items() if topics[row] not in diskless}
    if found:
        unread |= {row: list(contradictions.FACTS) for row in found}
        sound = pa.array([row not in found for row in range(len(partitions))])
        columns |= {name: pc.if_else(sound, columns[name], None) for name in contradictions.FACTS}
    columns["contradiction"] = pa.array([found.get(row) for row in range(len(partitions))], kinds["contradiction"])
    columns["unreadable"] = pa.array([unread.get(row) for row in range(len(partitions))], kinds["unreadable"])
    if len(partitions) < partition_groups.FROM:
        columns["partition_group"] = pa.nulls(len(partitions), kinds["partition_group"])
        return keyed(PARTITIONS, keys, columns, len(partitions)), PARTITION_GROUPS.arrow.empty_table()
    groups = partition_groups.grouped(columns, brokers)
    columns["partition_group"] = pa.array(groups, kinds["partition_group"], mask=groups < 0)
    rows = keyed(PARTITIONS, keys, columns, len(partitions))
    return rows, partition_groups.first_of_each(rows)


def replication_factors(partitions: pa.Table, reassignments_known: bool) -> dict[str, int | None]:
    """By topic, the fewest replicas of a partition; None if a partition's replicas are unknown.

    In a reassignment the smaller of two numbers counts: without the replicas being added, or without those being removed. If
    reassignments could not be read, replicas are certain to stay only if all are in sync.

    partitions: rows of `partitions`.
    """
    replicas, isr, adding, removing = (
        pc.list_value_length(partitions[name]) for name in ("replicas", "isr", "adding", "removing")
    )
    moved = pc.max_element_wise(adding, removing, skip_nulls=False)
    whole = pc.fill_null(pc.greater_equal(isr, replicas), False)
    unknown = pa.scalar(None, pa.int32())
    settled = pc.subtract(replicas, moved) if reassignments_known else unknown
    known = pc.coalesce(settled, pc.if_else(whole, replicas, unknown))
    table = pa.table({"topic": partitions["topic"], "least": known, "unknown": pc.is_null(known)})
    least = table.group_by("topic").aggregate([("least", "min"), ("unknown", "any")])
    # No partition has fewer than one.
    sure = pc.or_(pc.invert(least["unknown_any"]), pc.fill_null(pc.equal(least["least_min"], 1), False))
    found = pc.if_else(sure, least["least_min"], unknown)
    return dict(zip(least["topic"].to_pylist(), found.to_pylist(), strict=True))


def _with_nulls(facts: Facts, where: tuple) -> list[tuple[dict, list[str]]]:
    """The partitions of a topic with None for unreadable fields, each with the names of those fields."""
    rows = []
    for place, partition in facts.named("partition", *where):
        names = [name for name in _FIELDS if facts.unreadable.touches(*place, name)]
        stated = {name: partition.get(name) for name in ("partition", *_FIELDS)}
        rows.append((stated | dict.fromkeys(names), names))
    return rows
