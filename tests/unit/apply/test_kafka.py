"""Answers that an embedded cluster doesn't give. tests/cluster/test_apply_kafka.py has those that it gives."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from kafka.protocol.admin import DescribeLogDirsResponse

from durability.apply import kafka_readings
from durability.apply.cluster import Resource, ResourceType, SettingChange, TopicPartition
from durability.apply.kafka import connected
from durability.apply.kafka_changes import _errors, _no_controller
from durability.collect.brokers import Version
from durability.collect.quorum import Member, Quorum
from durability.errors import BadInput, Refused
from durability.remedies.elr import FEATURE
from tests.support.fake_broker import fake_broker

TOPIC = Resource(ResourceType.TOPIC, "orders")


def test_brokers_that_are_too_old_are_refused_by_release():
    with (
        fake_broker("c", {"orders": [[0, 1, 2]]}, {}) as server,
        connected("old", {"bootstrap.servers": server}) as old,
    ):
        wanted = r"^cluster old can't be changed here: a broker doesn't know the request ListPartitionReassignments\. "
        for call in (
            lambda: old.change([SettingChange(TOPIC, "retention.ms", "1")]),
            lambda: old.reassign({TopicPartition("orders", 0): [1]}),
            lambda: old.elect_preferred([TopicPartition("orders", 0)]),
        ):
            with pytest.raises(Refused, match=wanted + r"Kafka 2\.4 and newer know it$"):
                call()


def test_settings_that_cannot_be_used_are_refused_before_a_call():
    with (
        pytest.raises(BadInput, match=r"^the connection of cluster c, bootstrap\.servers: is missing"),
        connected("c", {}),
    ):
        pass


def test_a_replica_that_moves_to_another_log_dir_has_the_bytes_of_both():
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    of_topic = result.DescribeLogDirsTopic

    def log_dir(path: str, size: int, future: bool) -> DescribeLogDirsResponse.DescribeLogDirsResult:
        rows = [
            of_topic.DescribeLogDirsPartition(
                partition_index=0, partition_size=size, offset_lag=0, is_future_key=future
            )
        ]
        topics = [of_topic(name=name, partitions=rows) for name in ("orders", "other")]
        return result(error_code=0, log_dir=path, topics=topics)

    answer = DescribeLogDirsResponse(
        version=1, throttle_time_ms=0, results=[log_dir("/a", 100, False), log_dir("/b", 30, True)]
    )
    with (
        fake_broker("c", {}, {}, on={35: lambda: answer}) as server,
        connected("c", {"bootstrap.servers": server}) as cluster,
    ):
        assert cluster.sizes([1, 7], ["orders"]) == {(1, TopicPartition("orders", 0)): 130}
        assert cluster.usable_bytes([1, 7]) == {1: None, 7: None}, "brokers before 3.3 don't state them"


def test_a_partition_that_is_not_answered_is_no_success():
    asked = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("a", 2)]
    assert _errors(asked, {("a", 0): 0, ("a", 1): 85}) == {
        asked[1]: "NO_REASSIGNMENT_IN_PROGRESS",
        asked[2]: "UNKNOWN",
    }


@pytest.mark.parametrize(("code", "whole"), [(41, 41), (7, 7), (0, 0), (3, 0), (40, 0)])
def test_only_a_controller_that_is_not_reached_fails_all_settings(code, whole):
    """UNKNOWN_TOPIC_OR_PARTITION (3) is retriable to Kafka, but it is one topic's error."""
    assert _no_controller(SimpleNamespace(responses=[SimpleNamespace(error_code=code)])) == whole


@pytest.mark.parametrize(
    ("leader", "lags", "times_known", "led"),
    [
        (1, [0, 500, 900], True, True),
        (1, [0, 900, 60_000], True, True),
        (1, [0, 60_000, 60_000], True, False),
        (1, [0, None, None], True, False),
        (None, [None, None, None], True, False),
        (1, [0, None, None], False, True),
    ],
)
def test_a_controller_leads_if_a_majority_fetches(monkeypatch, leader, lags, times_known, led):
    found = Quorum(leader, [Member(n + 1, lag) for n, lag in enumerate(lags)], [], times_known=times_known)
    wire = SimpleNamespace(pause=lambda seconds: asyncio.sleep(0))

    async def describe(_):
        return found

    monkeypatch.setattr(kafka_readings.quorum, "describe", describe)
    assert asyncio.run(kafka_readings._led(wire)) is led


@pytest.mark.parametrize(
    ("finalized", "elr"),
    [({"metadata.version": 30}, ()), ({FEATURE: 0}, ()), ({FEATURE: 1}, None), ({}, ()), (None, None)],
)
def test_an_elr_that_is_not_stated_is_none_only_where_the_feature_is_off(monkeypatch, finalized, elr):
    async def version(wire, node):
        return Version("4.1", 26, finalized)

    monkeypatch.setattr(kafka_readings.brokers, "version", version)
    assert asyncio.run(kafka_readings._elr_if_unstated(SimpleNamespace(nodes=[1]))) == elr
