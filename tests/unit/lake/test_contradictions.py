"""Partitions whose facts contradict each other are unknown, with both readings; all others keep their facts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.lake import contradictions, rows, tables
from durability.topology import validate
from tests.support.topology import document

LISTS = contradictions.FACTS[1:]


def columns(*partitions: dict) -> dict[str, pa.Array]:
    """Columns of partitions; what is left out is an empty list, or no leader."""
    ints = pa.list_(pa.int32())
    found = {name: pa.array([p.get(name, []) for p in partitions], ints) for name in LISTS}
    return found | {"leader": pa.array([p.get("leader") for p in partitions], pa.int32())}


@pytest.mark.parametrize(
    "partition, reading",
    [
        ({"leader": 3, "replicas": [1, 2], "isr": [1, 3]}, "leader 3; replicas 1,2; isr 1,3"),
        ({"leader": 2, "replicas": [1, 2], "isr": [1]}, "leader 2; isr 1"),
        ({"leader": 2, "replicas": [1, 2], "isr": []}, "leader 2; isr none"),
        ({"leader": 1, "replicas": [1, 2], "isr": [1, 2, 4]}, "isr 1,2,4; replicas 1,2"),
        ({"replicas": [1, 2], "isr": [1, 2], "elr": [2]}, "isr 1,2; elr 2"),
        ({"replicas": [1, 2], "isr": [1, 2], "adding": [3]}, "adding 3; replicas 1,2"),
        ({"replicas": [1, 2], "isr": [1, 2], "removing": [3]}, "removing 3; replicas 1,2"),
        ({"replicas": [1, 2], "isr": [1, 2], "adding": [2], "removing": [2]}, "adding 2; removing 2"),
        ({"replicas": [1, 2], "isr": [1], "adding": [1, 2]}, "adding 1,2; replicas 1,2"),
        ({"replicas": [1, 2], "isr": [1], "removing": [2, 1]}, "removing 2,1; replicas 1,2"),
        ({"replicas": [1, 1], "isr": [1]}, "replicas 1,1"),
        ({"replicas": [1, 2], "isr": [2, 2]}, "isr 2,2"),
    ],
)
def test_both_readings_are_kept(partition, reading):
    sound = {"leader": 1, "replicas": [1, 2, 3], "isr": [1, 2], "elr": [3], "adding": [3], "removing": [1]}
    assert contradictions.readings(columns(sound, partition, sound)) == {1: reading}


@pytest.mark.parametrize(
    "partition",
    [
        {"leader": 3, "replicas": None, "isr": None},
        {"leader": None, "replicas": [1], "isr": None, "elr": None, "adding": None, "removing": None},
        {"replicas": [1, 2], "isr": [1], "last_known_elr": [7]},
        {"replicas": [1, 2], "isr": []},
        {"replicas": [], "isr": [], "adding": [], "removing": []},
        {"replicas": [3, 4, 1, 2], "isr": [1, 2], "adding": [3, 4], "removing": [1, 2]},  # a complete move
    ],
)
def test_what_could_not_be_read_contradicts_nothing(partition):
    assert contradictions.readings(columns(partition)) == {}


IDS = st.none() | st.lists(st.integers(-1, 4), max_size=4)
PARTITION = st.fixed_dictionaries({"leader": st.none() | st.integers(-1, 4), **dict.fromkeys(LISTS, IDS)})


def contradicts(p: dict) -> bool:
    leader = None if p["leader"] is None else [p["leader"]]
    within = [
        (leader, p["replicas"]),
        (leader, p["isr"]),
        *((p[n], p["replicas"]) for n in ("isr", "adding", "removing")),
    ]
    apart = [(p["isr"], p["elr"]), (p["adding"], p["removing"])]
    return (
        any(p["replicas"] and set(p[n] or ()) >= set(p["replicas"]) for n in ("adding", "removing"))
        or any(a is not None and b is not None and not set(a) <= set(b) for a, b in within)
        or any(set(a or ()) & set(b or ()) for a, b in apart)
        or any(len(set(p[name] or ())) < len(p[name] or ()) for name in LISTS)
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTITION, max_size=8))
def test_columns_are_compared_like_rows(partitions):
    """Oracle: the same questions asked of one partition at a time."""
    found = contradictions.readings(columns(*partitions))
    assert set(found) == {n for n, p in enumerate(partitions) if contradicts(p)}


@settings(max_examples=100, deadline=None)
@given(st.lists(PARTITION, max_size=8))
def test_lists_of_many_ids_are_compared_by_themselves(partitions):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contradictions, "WIDE", 2)
        some_wide = contradictions.readings(columns(*partitions))
    assert some_wide == contradictions.readings(columns(*partitions))


def test_rows_of_later_batches_are_found(monkeypatch):
    monkeypatch.setattr(contradictions, "BATCH_ROWS", 2)
    sound, odd = {"replicas": [1], "isr": [1]}, {"replicas": [1], "isr": [2]}
    assert set(contradictions.readings(columns(sound, sound, sound, odd, odd))) == {3, 4}


def staged(doc: dict) -> dict[str, pa.Table]:
    return rows.build(validate(doc, "test.json"), "s", "a")


def test_only_the_contradicting_partition_is_null():
    drawn = "topic leader replicas isr\n orders 1 1,2 1,2,4\n orders 2 1,2 1,2"
    built = staged(document(drawn, brokers="1:a 2:b 4:c"))
    odd, sound = built[tables.PARTITIONS.name].to_pylist()
    assert all(odd[name] is None for name in contradictions.FACTS) and set(odd["unreadable"]) == set(
        contradictions.FACTS
    )
    assert odd["contradiction"] == "isr 1,2,4; replicas 1,2"
    assert (sound["leader"], sound["isr"], sound["unreadable"], sound["contradiction"]) == (2, [1, 2], None, None)
    [cluster] = built[tables.CLUSTERS.name].to_pylist()
    assert cluster["unreadable"] == [
        {"path": "/topics/orders/partitions/0", "reason": "CONTRADICTION: isr 1,2,4; replicas 1,2"}
    ]


def test_a_topic_is_listed_once():
    drawn = "topic leader replicas isr\n" + "orders 1 1,2 1,2,4\n" * 3
    [cluster] = staged(document(drawn, brokers="1:a 2:b 4:c"))[tables.CLUSTERS.name].to_pylist()
    assert cluster["unreadable"] == [
        {
            "path": "/topics/orders/partitions",
            "reason": "CONTRADICTION in 3 partitions, first in 0: isr 1,2,4; replicas 1,2",
        }
    ]


def test_a_contradicting_partition_is_in_no_group(monkeypatch):
    monkeypatch.setattr("durability.lake.partition_groups.FROM", 1)
    drawn = "topic leader replicas isr\n" + "orders 1 1,2 1,2\n" * 2 + "orders 1 1,2 1,2,4\n" * 2
    built = staged(document(drawn, brokers="1:a 2:b 4:c"))
    groups = built[tables.PARTITIONS.name]["partition_group"].to_pylist()
    assert groups[2:] == [None, None] and groups[0] == groups[1] is not None
    of_groups = built[tables.PARTITION_GROUPS.name].select(["partitions", "contradiction"]).to_pylist()
    odd = "isr 1,2,4; replicas 1,2"
    assert of_groups == [
        {"partitions": [0, 1], "contradiction": None},
        {"partitions": [2], "contradiction": odd},
        {"partitions": [3], "contradiction": odd},
    ]
