"""One embedded Kafka cluster for this folder's tests, repaired after each test that breaks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from durability.embedded_kafka import classes
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.miniature import VERSIONS
from durability.embedded_kafka.spec import default_spec


@pytest.fixture(scope="package", autouse=True)
def _classes_of_kafka() -> None:
    """Archives of the classes of both releases, with which nodes start in 60 % of the time; they stay in the cache folder."""
    for version in VERSIONS:
        classes.ensure(version)


# Not of the session: these tests run first, and an idle cluster takes a sixth of a core.
@pytest.fixture(scope="package")
def kafka_cluster() -> Iterator[LocalCluster]:
    """Kafka 4.3.1: three racks az1, az2, az3 of two brokers, a controller in each, eligible leader replicas on."""
    with LocalCluster(default_spec()) as cluster:
        yield cluster


@pytest.fixture
def kafka(kafka_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """The folder's cluster. A test may stop and kill brokers. All are back before the next test.

    Topics stay, so name them after your test.
    """
    yield kafka_cluster
    kafka_cluster.restore()
