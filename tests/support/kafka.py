"""One embedded Kafka cluster for the whole test session, repaired after each test that breaks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import default_spec


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
