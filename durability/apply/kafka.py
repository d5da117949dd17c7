"""A cluster that can be changed, by Kafka's protocol.

An application of a plan runs for hours. So each call has its own connections and its own time: brokers that restarted are
asked again, and no idle connection fails.

A change is sent to one broker, which has just reached the controller. If its answer is missing, the change isn't sent to
another broker, because the first one may still make it, and later than whatever is changed next. It is sent again only to the
same broker, after a lost connection or an error that Kafka calls retriable. That is harmless: setting and deleting a value,
starting and cancelling a reassignment, and electing a preferred leader have the same result when they are repeated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from durability.apply import kafka_changes, kafka_readings
from durability.apply.cluster import Reading, Resource, SettingChange, TopicPartition
from durability.apply.permissions import Authorized
from durability.collect.limits import Limits
from durability.collect.reasons import Unread
from durability.collect.settings import client_config
from durability.collect.wire import Wire
from durability.errors import AuditError, Refused, Unreachable

LIMITS = Limits()
"""Of each call."""
CHECK = "Check that its brokers are up"
MAY_BE_MADE = "The change may have been made: read the cluster before it is repeated"

T = TypeVar("T")


@contextmanager
def connected(cluster: str, settings: Mapping[str, object], limits: Limits = LIMITS) -> Iterator[KafkaCluster]:
    """A cluster that can be changed. Nothing is sent to it before the first call.

    cluster: its name in errors.
    settings: see `durability.collect.settings.client_config`. Raises BadInput for settings that can't be used.
    limits: of each call.
    """
    yield KafkaCluster(cluster, client_config(settings, f"the connection of cluster {cluster}"), limits)


class KafkaCluster:
    """Implements `durability.apply.cluster.Cluster`, which states shapes and errors.

    Each method also raises Refused if the principal lacks an ACL, or if brokers don't know a request.
    """

    def __init__(self, name: str, config: Mapping[str, Any], limits: Limits):
        self.name = name
        self._config, self._limits = config, limits

    def _run(self, work: Callable[[Wire], Awaitable[T]], hint: str = CHECK) -> T:
        """Connects, does the work, and closes the connections. hint: the end of the text of Unreachable.

        Requests begin with the broker that Metadata calls the controller. In ZooKeeper mode, only this broker moves replicas.
        In KRaft mode it is any live broker, which forwards requests to the controller (KIP-590).
        """
        wire = Wire(self.name, dict(self._config), self._limits)

        async def run() -> T:
            metadata = await wire.bootstrap()
            wire.nodes.sort(key=lambda node: node != metadata.controller_id)
            return await work(wire)

        try:
            return wire.run(run)
        except Unread as exc:
            raise _failure(self.name, exc.reason, hint) from exc
        finally:
            wire.close()

    # -- Reading ---------------------------------------------------------------------------------------------------

    def read(self, topics: Collection[str] | None) -> Reading:
        """While no controller leads, `moving` is empty, because only the controller knows reassignments.

        Of a moving partition of another topic, isr is empty and leader is None, because the controller doesn't state them.
        """
        return self._run(partial(kafka_readings.read, names=None if topics is None else sorted(set(topics))))

    def overrides(
        self, resources: Iterable[Resource], names: tuple[str, ...] | None = None
    ) -> Mapping[Resource, Mapping[str, str]]:
        """Only a broker itself states its settings. Unreachable is raised for one that is down."""
        return self._run(partial(kafka_readings.overrides, resources=list(dict.fromkeys(resources)), names=names))

    def sizes(self, brokers: Collection[int], topics: Collection[str]) -> Mapping[tuple[int, TopicPartition], int]:
        """A replica that is moved to another log dir of its broker has the bytes of both."""
        wanted = frozenset(topics)
        found: defaultdict[tuple[int, TopicPartition], int] = defaultdict(int)
        for broker, dirs in self._run(partial(kafka_readings.log_dirs_of, ids=brokers)).items():
            for sizes in (dirs.sizes, dirs.future):
                for (topic, partition), size in sizes.items():
                    if topic in wanted:
                        found[broker, TopicPartition(topic, partition)] += size
        return dict(found)

    def usable_bytes(self, brokers: Collection[int]) -> Mapping[int, int | None]:
        """The sum of a broker's log dirs that are online."""
        found = self._run(partial(kafka_readings.log_dirs_of, ids=brokers))
        return {broker: kafka_readings.usable(found[broker]) if broker in found else None for broker in brokers}

    def authorized(self, topics: Collection[str]) -> Authorized:
        """What the principal may do with the cluster and these topics."""
        return self._run(partial(kafka_readings.authorized, names=sorted(set(topics))))

    # -- Changes ---------------------------------------------------------------------------------------------------

    def change(self, changes: Sequence[SettingChange]) -> Mapping[Resource, str]:
        """An error is Kafka's name of it, followed by a colon and what the broker says, if it says something.

        Only a broker itself takes its settings. If it doesn't answer, that is the error, and the change may have been made.
        """
        return self._run(partial(kafka_changes.alter, changes=changes), MAY_BE_MADE)

    def reassign(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, same_factor: bool = False
    ) -> Mapping[TopicPartition, str]:
        """A cancellation that is repeated, or of a reassignment that has ended, has the error NO_REASSIGNMENT_IN_PROGRESS."""
        return self._run(partial(kafka_changes.reassign, targets=targets, same_factor=same_factor), MAY_BE_MADE)

    def elect_preferred(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
        return self._run(partial(kafka_changes.elect, partitions=sorted(set(partitions))), MAY_BE_MADE)


def _failure(cluster: str, reason: str, hint: str) -> AuditError:
    if "AUTHORIZATION_FAILED" in reason:
        return Refused(f"cluster {cluster} refuses a request: {reason}. Grant its principal the ACL that is missing")
    return Unreachable(f"cluster {cluster} doesn't answer: {reason}. {hint}")
