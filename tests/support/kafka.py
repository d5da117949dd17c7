"""One embedded Kafka cluster for the whole test session, repaired after each test that breaks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from durability.embedded_kafka import classes
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.miniature import VERSIONS
from durability.embedded_kafka.spec import default_spec


@pytest.fixture(scope="session")
def _classes_of_kafka() -> None:
    """Archives of the classes of both releases that tests start; they stay in the cache folder."""
    for version in VERSIONS:
        classes.ensure(version)


@pytest.fixture(autouse=True)
def _with_classes_of_kafka(request) -> None:
    """Tests of real brokers start many nodes, each of them in about 60 % of the time."""
    if request.node.get_closest_marker("cluster"):
        request.getfixturevalue("_classes_of_kafka")


@pytest.fixture(scope="session")
def kafka_session() -> Iterator[LocalCluster]:
    """Kafka 4.3.1: three racks az1, az2, az3 of two brokers, a controller in each, eligible leader replicas on."""
    with LocalCluster(default_spec()) as cluster:
        yield cluster


@pytest.fixture
def kafka(kafka_session: LocalCluster) -> Iterator[LocalCluster]:
    """The session's cluster. A test may stop and kill brokers. All are back before the next test.

    Topics stay, so name them after your test.
    """
    yield kafka_session
    kafka_session.restore()
