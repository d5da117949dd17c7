"""A running cluster, looked at all the while: brokers restarted in an orderly way, then one that stays away (KIP-427)."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise

import pytest

from durability.collect import collect
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.lake import tables
from tests.support.runs import Runs

pytestmark = pytest.mark.slow

TOPIC, HOLDERS = "r-orders", (1, 2, 3)
POLICY = """
format: durability-policy/1
name: quick
tiers: {{all: {{replication_factor: 1}}}}
topics: [{{tier: all}}]
readings: {{prolonged_after: {prolonged_after}s, bouncing: {{changes: 3, within: 10m}}}}
"""


@contextmanager
def looking(kafka: LocalCluster, cluster: str, seen: list[dict]) -> Iterator[None]:
    """Collects the cluster once a second, under that name, until the block is left."""
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            seen.append(collect(cluster, {"bootstrap.servers": kafka.bootstrap}).document)
            over.wait(1)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    assert not thread.is_alive()


def isr(document: dict) -> set[int]:
    (topic,) = (t for t in document["topics"] if t["name"] == TOPIC)
    return set(topic["partitions"][0]["isr"])


def shown(history: list[dict], cluster: str) -> str:
    """Each document of that cluster: when, the ISR, and what couldn't be read."""
    mine = [d for d in history if d["cluster"]["id"] == cluster]
    return "\n".join(f"{d['cluster']['captured_at']} {isr(d)} {d.get('unreadable')}" for d in mine)


def all_in_sync(document: dict) -> bool:
    """Other tests' topics have replicas on these brokers, too."""
    partitions = (p for t in document["topics"] for p in t["partitions"])
    return all(set(p["replicas"]) == set(p["isr"]) for p in partitions)


def longest_step(documents: list[dict]) -> float:
    """The most seconds between two documents that follow each other."""
    moments = [datetime.fromisoformat(d["cluster"]["captured_at"]).timestamp() for d in documents]
    return max(after - before for before, after in pairwise(moments))


def wait_for(seen: list[dict], wanted: set[int], seconds: float = 90) -> None:
    """Until a document that was begun from now on shows this ISR, and of all holders only with all others' replicas."""
    count, until = len(seen) + 1, time.monotonic() + seconds
    while not any(isr(d) == wanted and (wanted != set(HOLDERS) or all_in_sync(d)) for d in seen[count:]):
        assert time.monotonic() < until, f"the ISR was never {wanted}"
        time.sleep(0.2)


@pytest.fixture
def history(kafka) -> tuple[list[dict], int]:
    """`rolling`: three brokers restarted one after the other; `stuck`: one is stopped and not started again.

    With them, in seconds, a time that no restart took and that the broker stayed away for. No two readings are half of it apart,
    which would be a gap: a busy machine restarts and reads slowly.
    """
    seed.create_topics(kafka, [seed.Topic(TOPIC, [list(HOLDERS)], {"min.insync.replicas": "2"})])
    kafka.wait_for_full_isr()
    rolling: list[dict] = []
    restarts = []
    with looking(kafka, "rolling", rolling):
        wait_for(rolling, set(HOLDERS))
        for broker in HOLDERS:
            begin = time.monotonic()
            kafka.stop_broker(broker)
            wait_for(rolling, set(HOLDERS) - {broker})
            kafka.restart_broker(broker)
            kafka.wait_for_full_isr()
            wait_for(rolling, set(HOLDERS))
            restarts.append(time.monotonic() - begin)
    prolonged_after = math.ceil(max(*restarts, 3 * longest_step(rolling))) + 5
    stuck: list[dict] = []
    with looking(kafka, "stuck", stuck):
        wait_for(stuck, set(HOLDERS))
        kafka.stop_broker(2)
        wait_for(stuck, {1, 3})
        time.sleep(prolonged_after + 3)
    return [*rolling, *stuck], prolonged_after


def test_an_orderly_rolling_restart_is_none_and_a_broker_that_stays_away_is_one(history, lake, session, tmp_path):
    history, prolonged_after = history
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.format(prolonged_after=prolonged_after))
    run = Runs(tmp_path, lake, session, policy)
    assert run("nightly", "2026-11-21T02:00:00Z", documents=history) == "complete"
    (row,) = lake.runs("nightly")
    found: dict[tuple[str, str], list[dict]] = {}
    for f in lake.results(tables.FINDINGS, row).to_pylist():
        if f["control"] == "at-min-isr-over-time" and f["resource"] in (TOPIC, "rolling", "stuck"):
            found.setdefault((f["cluster"], f["resource"]), []).append(f | {"observed": json.loads(f["observed"])})
    for resource in (TOPIC, "rolling"):
        (orderly,) = found["rolling", resource]
        assert orderly["outcome"] == "PASS", (orderly["category"], orderly["observed"], shown(history, "rolling"))
        assert orderly["observed"]["changes"] == 2 * len(HOLDERS)
    # The gate refuses what changed while it was read, as it may just then.
    without = [d["cluster"]["captured_at"] for d in history if d["cluster"]["id"] == "stuck" and isr(d) == {1, 3}]
    first_without = [moment[:19] for moment in without[:3]]
    for resource in (TOPIC, "stuck"):
        (stays_away,) = found["stuck", resource]
        assert (stays_away["outcome"], stays_away["category"]) == ("FAIL", "prolonged"), stays_away
        assert stays_away["cause"] == "broker:2 down"
        assert stays_away["observed"]["since"][:19] in first_without
