"""One embedded Kafka cluster for this folder's tests, repaired after each test that breaks it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from durability.embedded_kafka import classes, tools
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.miniature import VERSIONS
from durability.embedded_kafka.spec import default_spec
from durability.errors import AuditError
from tests.support import tool_jvm

PACE_SECONDS = 0.005


@pytest.fixture(scope="package", autouse=True)
def _classes_of_kafka() -> None:
    """Archives of the classes of both releases, with which nodes start in 60 % of the time; they stay in the cache folder."""
    for version in VERSIONS:
        classes.ensure(version)


@pytest.fixture(scope="package", autouse=True)
def _tools_of_kafka() -> Iterator[None]:
    """Kafka's tools run in a JVM that runs already, those of `LocalCluster` too."""

    def run(command: Sequence[str], *, env: Mapping[str, str], what: str) -> str:
        at = command.index("-cp")
        version = Path(command[at + 1]).parent.name.removeprefix("kafka-")
        done = tool_jvm.of(version).run(command[at + 2], command[at + 3 :])
        if done.status != 0:
            raise AuditError(f"{what} failed with exit status {done.status}: {(done.out + done.err).strip()[-2000:]}")
        return done.out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tools, "run", run)
        yield
    tool_jvm.close()


@pytest.fixture(scope="package", autouse=True)
def _paced_producers() -> Iterator[None]:
    """Producers look again after 5 ms at the soonest. While a leader is dead, kafka-python's sender would take a whole core."""
    from kafka.producer.sender import Sender

    once = Sender.run_once

    def paced(sender: Sender) -> None:
        start = time.monotonic()
        once(sender)
        if time.monotonic() - start < PACE_SECONDS:
            time.sleep(PACE_SECONDS)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sender, "run_once", paced)
        yield


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
