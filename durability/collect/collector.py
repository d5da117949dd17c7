"""One collection: connects, reads everything, reads the partitions again until they agree, and builds the document."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from durability.collect import acls, agreement, brokers, configs, groups, log_dirs, overrides, provenance, topics
from durability.collect.brokers import Registered
from durability.collect.document import FENCED, NOT_DESCRIBED, OF_BROKERS, Facts, assemble
from durability.collect.limits import Limits
from durability.collect.notes import HIDDEN
from durability.collect.reasons import REFUSED, Unread
from durability.collect.topics import Reading
from durability.collect.voters import Voters
from durability.collect.wire import GREETED_AT_ONCE, Job, Wire, connected
from durability.errors import Unreachable

OFFSETS = "__consumer_offsets"
REREADS = 4
"""The most further readings of all partitions while two consecutive ones disagree."""
REREAD_PAUSE = 0.5
"""Seconds before such a reading."""
GREETING_PAUSE = 0.02
"""Seconds until it is seen again whether a broker has answered."""


def read_cluster(
    cluster_id: str, settings: Mapping[str, object], *, controllers: Mapping[int, str], limits: Limits
) -> tuple[dict, dict[str, Any]]:
    """The cluster's `kafka-topology/1` document (`durability.collect.collect`), and how it was read (`provenance.record`)."""
    with connected(cluster_id, settings, limits) as wire:
        collection = _Collection(wire, controllers)
        document = wire.run(collection.run)
        return document, provenance.record(wire.config, wire.requests, collection.facts, collection.acls)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Collection:
    def __init__(self, wire: Wire, controller_racks: Mapping[int, str]):
        self.wire = wire
        self.facts = Facts(wire.cluster)
        self.voters = Voters(wire, self.facts, controller_racks)
        self.shown: set[tuple[str, int]] = set()  # partitions that metadata has shown at any time
        self.group_errors: dict[int | None, str] = {}  # by broker; None: of the whole cluster
        self.greeted: set[int] = set()  # brokers that were asked for their release
        self.all_greeted = False  # has each of the first brokers answered, or had the time for it?
        self.asked: set[int] = set()  # brokers that were asked for the rest
        self.waited_for: set[int] = set()  # brokers that can't be reached, and that had the time to be fenced
        self.acls: tuple[dict[str, Any] | None, str | None] = (None, None)

    async def run(self) -> dict:
        metadata = await self.wire.bootstrap()
        self.facts.kafka_cluster_id = metadata.cluster_id or None
        self.facts.hosts = frozenset(broker.host for broker in metadata.brokers)
        # At once, so that a broker that hangs and controllers that are gone cost the longer of their timeouts, not both.
        reading, _ = await self.wire.gather([partial(self._from_brokers, metadata), self._quorum])
        await self.voters.ask_voters()
        if reading is not None:
            if reading.reassignments_error and self.wire.controllers:
                await topics.add_reassignments(self.wire, reading)
            await self._until_fenced()
            await self._reread(reading)
        await self.voters.without_leader()
        await self.voters.read()
        await self._hidden()
        self._unlisted_groups()
        # Last, because no fact depends on it: a broker that doesn't answer gets no further request.
        self.acls = await acls.of_principal(self.wire, provenance.principal(self.wire.config)["name"])
        return assemble(self.facts, self.voters.racks)

    async def _from_brokers(self, metadata: Any) -> Reading | None:
        """The first reading of topics, and what brokers themselves state."""
        # All at once: a broker that doesn't answer costs one timeout, and nothing else is asked of it.
        try:
            await self._versions(broker.node_id for broker in metadata.brokers)
        finally:
            self.all_greeted = True
        self.facts.brokers, may_describe = await self._registered(metadata)
        if may_describe is False:
            self.group_errors[None] = "CLUSTER_AUTHORIZATION_FAILED: groups that may not be described aren't listed"
        reading, _ = await self.wire.gather([self._topics, self._per_broker])
        return reading

    async def _quorum(self) -> None:
        """Asks for the quorum as soon as a broker has answered that can forward the request."""
        while not (self.all_greeted or self.facts.versions):
            await self.wire.pause(GREETING_PAUSE)
        await self.voters.describe()

    # -- Brokers -------------------------------------------------------------------------------------------------

    async def _registered(self, metadata: Any) -> tuple[list[Registered], bool | None]:
        try:
            return await brokers.registered(self.wire)
        except Unread as exc:
            if not exc.connection:
                raise
            named = ", ".join(f"{b.node_id} at {b.host}:{b.port}" for b in metadata.brokers[:5])
            raise Unreachable(
                f"cluster {self.wire.cluster} can't be reached: a bootstrap server answered, but none of the brokers that "
                f"it names does ({named}): {exc.reason}. Check that advertised.listeners can be resolved and reached from "
                "this host."
            ) from exc

    async def _per_broker(self) -> None:
        """Read facts that only a broker itself states, from each live broker that wasn't asked before."""
        jobs: list[Job] = []
        new = [broker for broker in self.facts.brokers if broker.live and broker.id not in self.asked]
        await self._versions(broker.id for broker in new)
        for broker in new:
            self.asked.add(broker.id)
            jobs += [
                self._of_broker(broker.id, "broker_configs", configs.of_broker),
                self._of_broker(broker.id, "log_dirs", log_dirs.describe),
                partial(self._groups_of, broker.id),
            ]
        await self.wire.gather(jobs)

    async def _versions(self, ids: Iterable[int]) -> None:
        """Read the release of each of these brokers that wasn't asked before."""
        new = [broker for broker in ids if broker not in self.greeted]
        self.greeted.update(new)
        jobs = [self._of_broker(broker, "versions", brokers.version) for broker in new]
        await self.wire.gather(jobs, at_once=GREETED_AT_ONCE)

    def _of_broker(self, broker: int, member: str, read: Callable) -> Job:
        """A job that reads a member of Facts from one broker."""

        async def job() -> None:
            try:
                getattr(self.facts, member)[broker] = await read(self.wire, broker)
            except Unread as exc:
                for name in OF_BROKERS[member]:
                    self.facts.notes.add(("brokers", broker, name), exc.reason)

        return job

    async def _groups_of(self, broker: int) -> None:
        try:
            self.facts.groups.add(await groups.coordinated_by(self.wire, broker, self.facts.notes))
        except Unread as exc:
            self.group_errors[broker] = f"{exc.reason} (broker {broker})"

    # -- Topics --------------------------------------------------------------------------------------------------

    async def _topics(self) -> Reading | None:
        self.facts.captured_at = _now()
        try:
            reading = await self._read(with_elr=True)
        except Unread as exc:
            self.facts.notes.add(("topics",), exc.reason)
            return None
        await self._topic_configs(reading)
        for name in sorted(reading.topics)[:1]:
            with suppress(Unread):  # the settings that are asked for by name say why
                self.facts.setting_names = await configs.names_of_topic(self.wire, name)
        return reading

    async def _read(self, *, with_elr: bool, second: bool = False) -> Reading:
        reading = await topics.read(self.wire, with_elr=with_elr, second=second)
        self.shown.update((name, number) for name, t in reading.topics.items() for number in t.partitions)
        return reading

    async def _topic_configs(self, reading: Reading) -> None:
        names = reading.topics.keys() - self.facts.topic_configs.keys()
        self.facts.topic_configs |= await topics.topic_configs(self.wire, names, self.facts.notes)

    async def _reread(self, reading: Reading) -> None:
        """Read partitions and brokers until two consecutive readings agree. The document shows that state.

        Two brokers are asked in turn, so that a broker with outdated metadata can't agree with itself. If ELRs exist, the first
        one is asked by DescribeTopicPartitions, which states ELRs, and the second one by Metadata.
        """
        facts, latest = self.facts, reading
        for turn in range(REREADS + 1):
            if turn:
                await self.wire.pause(REREAD_PAUSE)
            started = _now()
            try:
                again = await self._read(with_elr=reading.with_elr and not latest.with_elr, second=turn % 2 == 0)
                registered, _ = await brokers.registered(self.wire)
            except Unread as exc:
                facts.consistent = None
                facts.notes.add(("cluster", "consistent"), exc.reason)
                break
            before, brokers_before = latest, facts.brokers
            facts.consistent = topics.same_state(latest, again) and facts.brokers == registered
            for name in topics.recreated(latest, again):  # its settings are read again, too
                facts.topic_configs.pop(name, None)
                facts.notes.forget(("topics", name, "configs"))
            latest, facts.brokers = again, registered
            if not again.with_elr:
                partitions = sum(len(topic.partitions) for topic in again.topics.values())
                facts.declared = {"topics": len(again.topics), "partitions": partitions}
            if again.with_elr or not reading.with_elr:
                reading, facts.captured_at = again, started
            if not self.wire.remaining or (facts.consistent and not await self._until_fenced()):
                break
        if facts.consistent is False:
            # Facts that changed are unknown. The others were read twice.
            reading = agreement.settled(before, latest, reading, facts.notes)
            agreement.note_brokers(brokers_before, facts.brokers, facts.notes)
            partitions = sum(len(topic.partitions) for topic in reading.topics.values())
            facts.declared = {"topics": len(reading.topics), "partitions": partitions}
            facts.consistent = True
        for broker, why in (await self._doubtful()).items():
            # A broker may be busy with one request. One that answers nothing may hang, although it sends its heartbeats.
            if REFUSED in why or not self.wire.has_answered(broker):
                for member in ("live", "fenced"):
                    facts.notes.add(("brokers", broker, member), f"{why}, and the cluster calls it live")
        facts.reading = reading
        facts.declared["brokers"] = len(facts.brokers)
        if reading.reassignments_error:
            facts.notes.add(("cluster", "reassignments"), reading.reassignments_error)
        # Read topics and brokers that are new since the first reading.
        await self._topic_configs(reading)
        await self._per_broker()
        await overrides.compare(self.wire, reading, facts.broker_configs, facts.topic_configs, facts.notes)

    async def _until_fenced(self) -> bool:
        """Waits while the cluster calls a broker live that can't be reached; whether it waited for another broker than before.

        When a dead broker's session ends, the controller fences it and elects leaders.
        """
        fenced_by, new = time.monotonic() + self.wire.limits.session_timeout, set[int]()
        while self.wire.remaining and time.monotonic() < fenced_by:
            doubtful = (await self._doubtful()).keys() - self.waited_for
            if not doubtful:
                break
            new |= doubtful
            await self.wire.pause(REREAD_PAUSE)
            try:
                self.facts.brokers, _ = await brokers.registered(self.wire)
            except Unread:  # the next reading meets the same, and notes it
                break
        self.waited_for |= new
        return bool(new)

    async def _doubtful(self) -> dict[int, str]:
        """Brokers that the cluster calls live but that can't be reached, with the reason. Empty while no controller leads.

        Brokers that refused a connection are asked again, because they may have been restarted.
        """
        if self.voters.leaderless():
            return {}
        lost = {b.id: why for b in self.facts.brokers if b.live and (why := self.wire.why_lost(b.id))}
        again = [broker for broker, why in lost.items() if REFUSED in why]
        self.wire.forget(again)
        self.greeted.difference_update(again)
        await self._versions(again)
        for broker in (b for b in again if self.wire.why_lost(b) is None):
            self.asked.discard(broker)
            self.group_errors.pop(broker, None)
            self.facts.notes.forget(("brokers", broker))
        return {broker: why for broker in lost if (why := self.wire.why_lost(broker))}

    async def _hidden(self) -> None:
        """Count partitions on log dirs that metadata has never shown. Reads twice, because a deletion takes a moment."""
        facts = self.facts
        if facts.reading is None:
            return
        hidden = self._not_shown()
        if hidden:
            await self.wire.pause(REREAD_PAUSE)
            holders = [b for b, dirs in facts.log_dirs.items() if hidden & dirs.sizes.keys()]
            await self.wire.gather([self._of_broker(b, "log_dirs", log_dirs.describe) for b in holders])
            try:
                await self._read(with_elr=False)
                hidden = await self._refused(hidden & self._not_shown())
            except Unread as exc:
                facts.notes.add(("cluster", "hidden_partitions"), exc.reason)
                return
        # A topic that this principal may not see can have its only replica on a dead broker or a failed disk.
        unread = {b.id: why for b in facts.brokers if (why := self._log_dirs_unread(b))}
        # Before 3.9, and with ZooKeeper, only the replicas of a dead broker show that it exists.
        unread |= dict.fromkeys(sorted(self._holders() - {b.id for b in facts.brokers}), NOT_DESCRIBED)
        facts.hidden = len(hidden) if hidden or not unread else None
        if hidden:
            reason = f"{topics.NOT_AUTHORIZED}: {len(hidden)} partitions on log dirs belong to topics not shown"
            facts.notes.add(HIDDEN, reason)
        elif unread:
            broker, why = next(iter(unread.items()))
            more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
            without = f"{why}: without the log dirs of broker {broker}{more} it is unknown whether topics are hidden"
            asked = any(b.live and b.id not in facts.log_dirs and b.id not in facts.unreachable for b in facts.brokers)
            # A live broker that doesn't answer may hide whole topics from this principal. Every principal sees a dead broker.
            facts.notes.add(HIDDEN if asked else ("cluster", "hidden_partitions"), without)

    async def _refused(self, partitions: set[tuple[str, int]]) -> set[tuple[str, int]]:
        """Those of topics that this principal may not see.

        The answer to its name is a refusal, or that it doesn't exist. A busy broker can need seconds to remove a deleted topic.
        """
        if not partitions:
            return partitions
        named = await topics.partitions(self.wire, with_elr=False, names=sorted({name for name, _ in partitions}))
        refused = {name for name, topic in named.topics.items() if topic.error == topics.NOT_AUTHORIZED}
        return {(name, number) for name, number in partitions if name in refused}

    def _log_dirs_unread(self, broker: Registered) -> str | None:
        """Why not all log dirs of a broker could be read; None if all could."""
        dirs = self.facts.log_dirs.get(broker.id)
        if dirs is None:
            return self.facts.notes.reason(("brokers", broker.id, "log_dirs")) or FENCED
        return f"KAFKA_STORAGE_ERROR: {dirs.offline} offline" if dirs.offline else None

    def _holders(self) -> set[int]:
        """The brokers with replicas of the partitions that were read."""
        if self.facts.reading is None:
            return set()
        found: set[int] = set()
        for topic in self.facts.reading.topics.values():
            for row in topic.partitions.values():
                found.update(row.get("replicas") or ())
        return found

    def _not_shown(self) -> set[tuple[str, int]]:
        return {p for dirs in self.facts.log_dirs.values() for p in dirs.sizes if p not in self.shown}

    # -- Groups ---------------------------------------------------------------------------------------------------

    def _unlisted_groups(self) -> None:
        """Note why groups may be missing: a broker didn't list its groups, or their coordinator is down."""
        reading, reasons = self.facts.reading, sorted(self.group_errors.values())
        offsets = reading.topics.get(OFFSETS) if reading else None
        leaderless = sum(row["leader"] is None for row in offsets.partitions.values()) if offsets else 0
        if leaderless:
            reasons.append(f"COORDINATOR_NOT_AVAILABLE: {leaderless} partitions of {OFFSETS} have no leader")
        if reasons:
            self.facts.notes.add(("groups",), "; ".join(reasons[:3]))
