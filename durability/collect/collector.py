"""One collection, step by step: connect, read everything, read the partitions again, assemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from durability.collect import brokers, groups, log_dirs, quorum, topics
from durability.collect.brokers import Registered, Registration
from durability.collect.document import Facts, assemble
from durability.collect.limits import Limits
from durability.collect.notes import HIDDEN
from durability.collect.reasons import Unread
from durability.collect.settings import client_config
from durability.collect.topics import Reading
from durability.collect.wire import Wire
from durability.errors import Unreachable

OFFSETS = "__consumer_offsets"


def read_cluster(
    cluster_id: str, settings: Mapping[str, object], *, controllers: Mapping[int, str], limits: Limits
) -> dict:
    """The cluster's `kafka-topology/1` document; see `durability.collect.collect`."""
    wire = Wire(client_config(settings, f"the connection of cluster {cluster_id}"), limits)
    try:
        return wire.run(lambda: _Collection(wire, cluster_id, controllers).run())
    except Unread as exc:
        raise Unreachable(f"cluster {cluster_id} can't be read: {exc.reason}. Check that its brokers are up.") from exc
    finally:
        wire.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Collection:
    def __init__(self, wire: Wire, cluster_id: str, controller_racks: Mapping[int, str]):
        self.wire = wire
        self.controller_racks = controller_racks
        self.facts = Facts(cluster_id)
        self.known: set[tuple[str, int]] = set()  # partitions that metadata has shown at any time
        self.group_errors: list[str] = []
        self.asked: set[int] = set()

    async def run(self) -> dict:
        metadata = await self.wire.bootstrap(self.facts.cluster_id)
        registration = await self._registered(metadata)
        self.facts.brokers = registration.brokers
        if registration.may_describe is False:
            self.group_errors.append("CLUSTER_AUTHORIZATION_FAILED: groups that may not be described aren't listed")
        reading, *_ = await self.wire.gather([self._topics, self._quorum, self._per_broker])
        await self._settle(reading)
        await self._controllers()
        await self._hidden()
        self._groups_known()
        return assemble(self.facts, self.controller_racks)

    # -- Brokers -------------------------------------------------------------------------------------------------

    async def _registered(self, metadata: Any) -> Registration:
        try:
            return await brokers.registered(self.wire)
        except Unread as exc:
            if not exc.connection:
                raise
            named = ", ".join(f"{b.node_id} at {b.host}:{b.port}" for b in metadata.brokers[:5])
            raise Unreachable(
                f"cluster {self.facts.cluster_id} can't be reached: a bootstrap server answered, but none of the "
                f"brokers it names does ({named}): {exc.reason}. Check that advertised.listeners can be resolved and "
                "reached from this host."
            ) from exc

    async def _per_broker(self) -> None:
        """Everything that only a broker itself can say, from each that isn't known to be down."""
        facts, jobs = self.facts, []
        for broker in facts.brokers:
            if broker.id in self.asked or not broker.live:
                continue
            self.asked.add(broker.id)
            jobs += [
                self._of_broker(broker.id, brokers.version, facts.versions, "kafka_version", "max_metadata_version"),
                self._of_broker(broker.id, brokers.broker_configs, facts.broker_configs, "configs"),
                self._of_broker(broker.id, log_dirs.describe, facts.log_dirs, "log_dirs", "offline_log_dirs"),
                self._groups_of(broker.id),
            ]
        await self.wire.gather(jobs)

    def _of_broker(self, broker: int, read: Callable, into: dict, *parts: str) -> Callable:
        async def job() -> None:
            try:
                into[broker] = await read(self.wire, broker)
            except Unread as exc:
                for part in parts:
                    self.facts.notes.add(("brokers", broker, part), exc.reason)

        return job

    def _groups_of(self, broker: int) -> Callable:
        async def job() -> None:
            try:
                found = await groups.coordinated_by(self.wire, broker, self.facts.notes)
            except Unread as exc:
                self.group_errors.append(f"{exc.reason} (broker {broker})")
                return
            self.facts.groups.add(found)

        return job

    # -- Topics --------------------------------------------------------------------------------------------------

    async def _topics(self) -> Reading | None:
        reading = await self._first_reading()
        await self._topic_configs(reading)
        return reading

    async def _first_reading(self) -> Reading | None:
        self.facts.captured_at = _now()
        try:
            return await self._read(with_elr=True)
        except Unread as exc:
            self.facts.notes.add(("topics",), exc.reason)
            return None

    async def _read(self, *, with_elr: bool, second: bool = False) -> Reading:
        reading = await topics.read(self.wire, with_elr=with_elr, second=second)
        self.known.update((name, number) for name, t in reading.topics.items() for number in t.partitions)
        return reading

    async def _topic_configs(self, reading: Reading | None) -> None:
        if reading is not None:
            names = reading.topics.keys() - self.facts.topic_configs.keys()
            self.facts.topic_configs |= await topics.topic_configs(self.wire, names, self.facts.notes)

    async def _settle(self, reading: Reading | None) -> None:
        """Reads partitions and brokers until two consecutive readings agree; that state is the document's.

        Two brokers take turns, so that one whose metadata lags can't agree with itself; where ELRs exist the first
        is asked by DescribeTopicPartitions, which states them, the second by Metadata.
        """
        if reading is None:
            return
        facts, latest = self.facts, reading
        for turn in range(self.wire.limits.rereads + 1):
            if turn:
                await self.wire.pause(self.wire.limits.reread_pause)
            started = _now()
            try:
                again = await self._read(with_elr=reading.with_elr and not latest.with_elr, second=turn % 2 == 0)
                registered = (await brokers.registered(self.wire)).brokers
            except Unread as exc:
                facts.changes = [f"what was read could not be read again: {exc.reason}"]
                break
            facts.changes = topics.differences(latest, again) + _broker_changes(facts.brokers, registered)
            latest, facts.brokers = again, registered
            if not again.with_elr:
                facts.declared = {"topics": len(again.topics), "partitions": again.partitions}
            if again.with_elr or not reading.with_elr:
                reading, facts.captured_at = again, started
            if not facts.changes or not self.wire.remaining:
                break
        await self._adopt(reading)

    async def _adopt(self, reading: Reading) -> None:
        """Makes this the document's state; asks for what came up since the first reading."""
        facts = self.facts
        facts.reading = reading
        facts.declared["brokers"] = len(facts.brokers)
        if reading.reassignments_error:
            facts.notes.add(("cluster", "reassignments"), reading.reassignments_error)
        await self._topic_configs(reading)
        await self._per_broker()

    async def _hidden(self) -> None:
        """Counts partitions on log dirs that metadata has never shown; asked twice, for deletion takes a moment."""
        facts = self.facts
        if facts.reading is None:
            return
        hidden = self._unknown_partitions()
        if hidden:
            await self.wire.pause(self.wire.limits.reread_pause)
            holders = [b for b, dirs in facts.log_dirs.items() if hidden & dirs.sizes.keys()]
            await self.wire.gather(
                [self._of_broker(b, log_dirs.describe, facts.log_dirs, "log_dirs", "offline_log_dirs") for b in holders]
            )
            try:
                await self._read(with_elr=False)
            except Unread as exc:
                facts.notes.add(("cluster", "hidden_partitions"), exc.reason)
                return
            hidden &= self._unknown_partitions()
        unread = [b.id for b in facts.brokers if b.live and b.id not in facts.log_dirs]
        facts.hidden = len(hidden) if hidden or not unread else None
        if hidden:
            reason = f"TOPIC_AUTHORIZATION_FAILED: {len(hidden)} partitions on log dirs belong to topics not shown"
            facts.notes.add(HIDDEN, reason)
        elif unread:
            why = facts.notes.reason(("brokers", unread[0], "log_dirs"))
            facts.notes.add(HIDDEN, f"{why}: without log dirs nothing tells whether topics are hidden")

    def _unknown_partitions(self) -> set[tuple[str, int]]:
        return {p for dirs in self.facts.log_dirs.values() for p in dirs.sizes if p not in self.known}

    # -- Quorum and groups ---------------------------------------------------------------------------------------

    async def _quorum(self) -> None:
        try:
            self.facts.quorum = await quorum.describe(self.wire)
        except Unread as exc:
            self.facts.notes.add(("cluster", "quorum"), exc.reason)
            self.facts.notes.add(("cluster", "controllers"), exc.reason)

    async def _controllers(self) -> None:
        """Configs of the voters: a combined node's are its broker's, another's come from its own listener."""
        facts = self.facts
        if facts.quorum is None:
            return
        combined = {b.id for b in facts.brokers}
        stated = (c.values.get("controller.quorum.voters", "") for c in facts.broker_configs.values())
        addresses = quorum.stated_addresses(next(stated, "")) | facts.quorum.addresses
        failed: dict[int, str] = {}

        async def read(node: int) -> None:
            if node in combined:
                if node in facts.broker_configs:
                    facts.controllers[node] = facts.broker_configs[node]
                else:
                    failed[node] = facts.notes.reason(("brokers", node, "configs")) or "BROKER_NOT_AVAILABLE"
                return
            try:
                facts.controllers[node] = await quorum.controller_configs(self.wire, node, addresses.get(node, []))
            except Unread as exc:
                failed[node] = exc.reason

        await self.wire.gather([partial(read, m.id) for m in facts.quorum.voters])
        if failed and not facts.controllers:
            facts.notes.add(("cluster", "controllers"), next(iter(dict(sorted(failed.items())).values())))
        for node, reason in failed.items() if facts.controllers else ():
            facts.notes.add(("cluster", "controllers", node, "configs"), reason)
        for node, found in facts.controllers.items():
            rack = found.values.get("broker.rack")
            if rack and node not in combined:
                self.controller_racks = {node: rack, **self.controller_racks}

    def _groups_known(self) -> None:
        """Groups that nobody can list are missing, not absent: their coordinator is down or didn't answer."""
        reading, reasons = self.facts.reading, sorted(self.group_errors)
        offsets = reading.topics.get(OFFSETS) if reading else None
        leaderless = [n for n, row in sorted(offsets.partitions.items()) if row["leader"] is None] if offsets else []
        if leaderless:
            reasons.append(f"COORDINATOR_NOT_AVAILABLE: {len(leaderless)} partitions of {OFFSETS} have no leader")
        if reasons:
            self.facts.notes.add(("groups",), "; ".join(reasons[:3]))


def _broker_changes(before: list[Registered], after: list[Registered]) -> list[str]:
    old, new = ({replace(b, host="", port=0) for b in brokers_} for brokers_ in (before, after))
    return [f"broker {i} came, went or was fenced" for i in sorted({b.id for b in old ^ new})]
