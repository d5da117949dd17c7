"""Partitions that a restart of a broker harms, as `partition_health` has them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType

from durability.findings import fragile
from durability.lake.tables import BROKERS, PARTITION_HEALTH, PARTITIONS
from durability.remedies.cluster import Fragile

SNAPSHOTS = [SimpleNamespace(cluster=cluster, attempt_id=f"{cluster}-1") for cluster in ("eu", "us")]
RUN = SimpleNamespace(run_id="r", result_id="r1", judged=SNAPSHOTS)
KEYS = Schema(*(NestedField(n, key, StringType()) for n, key in enumerate(("run_id", "result_id", "cluster"), 1)))
ISR = {"a": [3], "b": [2], "c": [1, 3], "d": [2]}


class Lake:
    """`partition_health` and `partitions` in parts of two rows, and `brokers`."""

    def __init__(self, rows: list[dict], brokers: list[dict] = ()):
        facts = [
            {"attempt_id": "eu-1", "topic": row["topic"], "partition": number}
            | {"isr": ISR.get(row["topic"]), "leader": ISR.get(row["topic"], [None])[0]}
            for row in rows
            for number in (*row["partitions"], 9)
        ]
        health = pa.Table.from_pylist(rows, PARTITION_HEALTH.arrow)
        self.tables = {
            "partition_health": health,
            "partitions": pa.Table.from_pylist(facts, PARTITIONS.arrow),
            "brokers": pa.Table.from_pylist([{"attempt_id": "eu-1", **b} for b in brokers], BROKERS.arrow),
        }

    def scan(self, table, where, columns) -> pa.Table:
        return self.tables[table.name].select(list(columns))

    def parts(self, table, where, columns) -> list[pa.Table]:
        whole = self.tables[table.name]
        if table is PARTITION_HEALTH:
            whole = whole.filter(expression_to_pyarrow(bind(KEYS, where, True)))
        whole = whole.select(list(columns))
        return [whole.slice(at, 2) for at in range(0, whole.num_rows, 2)]


def row(topic, partitions, categories, effective, replicas, out_of_sync, known=True):
    return {
        "run_id": "r",
        "result_id": "r1",
        "cluster": "eu",
        "topic": topic,
        "partitions": partitions,
        "categories": categories,
        "categories_known": known,
        "effective_min_insync_replicas": effective,
        "replication_factor": replicas,
        "out_of_sync": out_of_sync,
    }


def test_what_a_restart_harms():
    rows = [
        row("b", [1, 2], ["at-min-isr", "under-replicated"], 1, 3, [1, 2]),
        row("a", [7], ["at-min-isr"], 1, 1, []),
        row("c", [0, 3], ["at-min-isr"], 2, 2, []),
        row("d", [0], ["under-min-isr", "under-replicated"], 2, 3, [1, 2]),
        row("e", [0], ["under-min-isr", "under-replicated"], 3, 3, [1]),  # writes are rejected already
        row("f", [0], ["offline"], 1, 1, [1]),  # offline already
        row("g", [0], ["under-replicated"], 1, 3, [1]),  # two are in sync
        row("h", [4], [], None, None, None, known=False),
        row("i", [0], ["under-min-isr"], None, None, [1], known=False),  # how many are in sync is unknown
    ]
    found, _ = fragile.read(Lake(rows), RUN)
    by_broker = {
        1: Fragile(least=2, first_least="c-0"),
        2: Fragile(single=3, first_single="b-1"),
        3: Fragile(single=1, first_single="a-7", least=2, first_least="c-0"),
    }
    assert found["eu"] == Fragile(5, "a-7", 2, "c-0", 1, "h-4", by_broker)
    assert found["us"] == Fragile(by_broker={})


def test_a_cluster_of_a_run_is_read_without_the_others():
    rows = [row("a", [7], ["at-min-isr"], 1, 1, []), row("a", [0], ["at-min-isr"], 1, 1, []) | {"cluster": "us"}]
    one = SimpleNamespace(run_id="r", result_id="r1", judged=SNAPSHOTS[:1])
    of_broker = Fragile(single=1, first_single="a-7")
    found, _ = fragile.read(Lake(rows), one)
    assert found == {"eu": replace(of_broker, by_broker={3: of_broker})}


def test_which_brokers_many_partitions_need_is_not_looked_up(monkeypatch):
    monkeypatch.setattr(fragile, "MOST", 1)
    lake = Lake([row("a", [7, 8], ["at-min-isr"], 1, 1, [])])
    del lake.tables["partitions"]
    assert fragile.read(lake, RUN)[0]["eu"] == Fragile(single=2, first_single="a-7")


def test_nothing_is_read_where_no_partition_is_fragile():
    lake = Lake([row("g", [0], ["under-replicated"], 1, 3, [1])])
    del lake.tables["partitions"]
    assert fragile.read(lake, RUN)[0]["eu"] == Fragile(by_broker={})


def test_which_copies_failed_disks_alone_have():
    """Broker 1 is down. The disks of brokers 2 and 3, which are up, failed. Broker 1 has a copy of c, but can't lead now."""
    rows = [row(topic, [0], ["offline"], 1, 3, [1]) for topic in "abcd"] + [row("d", [5], ["at-min-isr"], 1, 3, [1, 3])]
    brokers = [{"broker": 1, "live": False}, *({"broker": b, "live": True, "offline_log_dirs": 1} for b in (2, 3))]
    found = fragile.read(Lake(rows, brokers), RUN)[0]["eu"]
    assert found == Fragile(
        single=1,
        first_single="d-5",
        by_broker={
            2: Fragile(single=1, first_single="d-5", offline=2, first_offline="b-0"),
            3: Fragile(offline=2, first_offline="a-0"),
        },
    )
    sound = [{"broker": 1, "live": True}, *brokers[1:]]  # it can lead c, so an empty disk of broker 3 loses nothing
    assert fragile.read(Lake(rows, sound), RUN)[0]["eu"].by_broker[3] == Fragile(offline=1, first_offline="a-0")
    whole = [broker | {"offline_log_dirs": 0} for broker in brokers]
    assert fragile.read(Lake(rows, whole), RUN)[0]["eu"].by_broker == {2: Fragile(single=1, first_single="d-5")}


def lagging(topic, *brokers):
    causes = ", ".join(f"broker:{broker} lagging" for broker in brokers)
    return row(topic, [0, 1], ["under-replicated"], 1, 4, list(brokers)) | {"cause": causes}


@pytest.mark.parametrize(
    "rows, shared",
    [
        ([lagging("a", 1, 2)], 3),  # both lag behind broker 3
        ([lagging("a", 1, 2), lagging("b", 3)], 3),  # broker 3 lags behind others, too
        ([lagging("a", 1)], None),  # the leader or the one that lags
        ([lagging("b", 1), lagging("a", 1)], None),  # causes name the one that lags
        ([lagging("a", 1, 2), lagging("b", 1)], None),
        ([lagging("a", 1, 2), lagging("x", 3)], None),  # a leader is unknown
        ([row("a", [0], ["under-replicated"], 1, 3, [1]) | {"cause": "broker:1 down"}], None),
    ],
)
def test_the_broker_that_lagging_replicas_have_in_common(rows, shared):
    assert fragile.read(Lake(rows), RUN)[1] == ({} if shared is None else {"eu": shared})


def test_leaders_of_many_lagging_partitions_are_not_looked_up(monkeypatch):
    monkeypatch.setattr(fragile, "MOST", 1)
    lake = Lake([lagging("a", 1, 2)])
    del lake.tables["partitions"]
    assert fragile.read(lake, RUN)[1] == {}
