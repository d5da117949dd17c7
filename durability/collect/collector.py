"""One collection: connects, reads everything, reads the partitions again until they agree, and builds the document."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from durability.collect import agreement, brokers, configs, groups, log_dirs, quorum, topics
from durability.collect.brokers import Registered
from durability.collect.document import FENCED, NOT_DESCRIBED, OF_BROKERS, Facts, assemble
from durability.collect.limits import Limits
from durability.collect.notes import HIDDEN
from durability.collect.reasons import Unread
from durability.collect.topics import Reading
from durability.collect.wire import Job, Wire, connected
from durability.errors import Unreachable

OFFSETS = "__consumer_offsets"
REREADS = 4
"""The most further readings of all partitions while two consecutive ones disagree."""
REREAD_PAUSE = 0.5
"""Seconds before such a reading."""
REFUSED = "connection refused"
"""In the reason of a broker on whose address nothing listens."""
SEEN_WITHIN_MS = 10_000
"""How far a voter may be behind to count as up for the quorum's leader."""
FETCHED_WITHIN = 2.0
"""Seconds until each voter has fetched from a new leader. Voters fetch at least every 0.5 s."""
GREETED_AT_ONCE = 256
"""Brokers that are connected to at the same time."""


def read_cluster(
    cluster_id: str, settings: Mapping[str, object], *, controllers: Mapping[int, str], limits: Limits
) -> dict:
    """The cluster's `kafka-topology/1` document; see `durability.collect.collect`."""
    with connected(cluster_id, settings, limits) as wire:
        return wire.run(_Collection(wire, controllers).run)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Collection:
    def __init__(self, wire: Wire, controller_racks: Mapping[int, str]):
        self.wire = wire
        self.controller_racks = controller_racks
        self.facts = Facts(wire.cluster)
        self.shown: set[tuple[str, int]] = set()  # partitions that metadata has shown at any time
        self.group_errors: dict[int | None, str] = {}  # by broker; None: of the whole cluster
        self.quorum_error: str | None = None
        self.voter_refuses = False  # does nothing listen any more where the quorum's leader or a combined voter was?
        self.greeted: set[int] = set()  # brokers that were asked for their release
        self.asked: set[int] = set()  # brokers that were asked for the rest
        self.waited_for: set[int] = set()  # brokers that can't be reached, and that had the time to be fenced

    async def run(self) -> dict:
        metadata = await self.wire.bootstrap()
        self.facts.kafka_cluster_id = metadata.cluster_id or None
        self.facts.hosts = frozenset(broker.host for broker in metadata.brokers)
        # All at once: a broker that doesn't answer costs one timeout, and nothing else is asked of it.
        await self._versions(broker.node_id for broker in metadata.brokers)
        self.facts.brokers, may_describe = await self._registered(metadata)
        if may_describe is False:
            self.group_errors[None] = "CLUSTER_AUTHORIZATION_FAILED: groups that may not be described aren't listed"
        reading, *_ = await self.wire.gather([self._topics, self._quorum, self._per_broker])
        if reading is not None:
            await self._until_fenced()
            await self._reread(reading)
        if self.wire.no_controller:
            await self._without_controller(self.wire.no_controller.reason)
        await self._voters()
        await self._hidden()
        self._unlisted_groups()
        return assemble(self.facts, self.controller_racks)

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
            if REFUSED in why:
                for member in ("live", "fenced"):
                    facts.notes.add(("brokers", broker, member), f"{why}, and the cluster calls it live")
        facts.reading = reading
        facts.declared["brokers"] = len(facts.brokers)
        if reading.reassignments_error:
            facts.notes.add(("cluster", "reassignments"), reading.reassignments_error)
        # Read topics and brokers that are new since the first reading.
        await self._topic_configs(reading)
        await self._per_broker()

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
        if self.wire.no_controller:
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
            except Unread as exc:
                facts.notes.add(("cluster", "hidden_partitions"), exc.reason)
                return
            hidden &= self._not_shown()
        # A topic that this principal may not see can have its only replica on a dead broker or a failed disk.
        unread = {b.id: why for b in facts.brokers if (why := self._log_dirs_unread(b))}
        # Before 3.9, and with ZooKeeper, only the replicas of a dead broker show that it exists.
        unread |= dict.fromkeys(sorted(self._holders() - {b.id for b in facts.brokers}), NOT_DESCRIBED)
        facts.hidden = len(hidden) if hidden or not unread else None
        if hidden:
            reason = f"TOPIC_AUTHORIZATION_FAILED: {len(hidden)} partitions on log dirs belong to topics not shown"
            facts.notes.add(HIDDEN, reason)
        elif unread:
            broker, why = next(iter(unread.items()))
            more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
            without = f"{why}: without the log dirs of broker {broker}{more} it is unknown whether topics are hidden"
            asked = any(b.live and b.id not in facts.log_dirs and b.id not in facts.unreachable for b in facts.brokers)
            # A live broker that doesn't answer may hide whole topics from this principal. Every principal sees a dead broker.
            facts.notes.add(HIDDEN if asked else ("cluster", "hidden_partitions"), without)

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

    # -- Quorum and groups ---------------------------------------------------------------------------------------

    async def _quorum(self) -> None:
        """Reads the quorum, twice if a voter never caught up: a leader that is new knows no voter before it has fetched."""
        try:
            self.facts.quorum = found = await quorum.describe(self.wire)
            if found and found.times_known and any(member.lag_ms is None for member in found.voters):
                await self.wire.pause(FETCHED_WITHIN)
                self.facts.quorum = await quorum.describe(self.wire)
        except Unread as exc:
            self.quorum_error = exc.reason

    async def _voters(self) -> None:
        """Configs of the voters. If one has died, reads the quorum again: another one leads, or none."""
        await self._controllers()
        if not self.voter_refuses or self.facts.quorum is None:
            return
        leader = self.facts.quorum.leader
        await self._quorum()
        if self.wire.no_controller:
            await self._without_controller(self.wire.no_controller.reason)
        elif self.quorum_error:
            self.facts.quorum = None
        elif self.facts.quorum.leader == leader:  # if it refuses, a firewall does
            return
        await self._controllers()

    async def _greet_again(self) -> None:
        """Greet each live broker again, because nobody fences brokers now. The connection shows which have died since."""

        async def greet(broker: int) -> None:
            with suppress(Unread):
                await brokers.version(self.wire, broker)

        live = [broker.id for broker in self.facts.brokers if broker.live]
        await self.wire.gather([partial(greet, broker) for broker in live], at_once=GREETED_AT_ONCE)

    async def _without_controller(self, reason: str) -> None:
        """Read what is known while no controller leads: voters in the brokers' settings, and unreachable brokers.

        Only the controller fences brokers. Without one, dead brokers are still called live, so an unreachable broker counts
        as down.
        """
        facts = self.facts
        await self._greet_again()
        facts.unreachable = {b.id: why for b in facts.brokers if b.live and (why := self.wire.why_lost(b.id))}
        addresses = quorum.stated_voters(facts.broker_configs.values())
        # A quorum that was read before it lost its leader has the right voters, but outdated lags.
        read = facts.quorum
        voters = [member.id for member in read.voters] if read else list(addresses)
        if voters:
            self.quorum_error = None
            addresses |= read.addresses if read else {}
            unknown = [quorum.Member(node, None) for node in voters]
            facts.quorum = quorum.Quorum(None, unknown, [], addresses, times_known=False)
            facts.notes.add(("cluster", "quorum", "observers"), reason)

    async def _controllers(self) -> None:
        """Configs of the voters. A combined node has those of its broker, another one those of its own listener."""
        facts = self.facts
        if self.quorum_error:
            facts.notes.add(("cluster", "quorum"), self.quorum_error)
            facts.notes.add(("cluster", "controllers"), self.quorum_error)
        if facts.quorum is None:
            return
        combined = {b.id for b in facts.brokers}
        addresses = quorum.stated_voters(facts.broker_configs.values()) | facts.quorum.addresses
        failed: dict[int, str] = {}

        async def read(node: int) -> None:
            try:
                facts.controllers[node] = await configs.of_controller(self.wire, node, addresses.get(node, []))
            except Unread as exc:
                failed[node] = exc.reason
                if addresses.get(node):
                    self._note_reached(node, exc)
            else:
                facts.reached[node] = True

        for node in sorted({m.id for m in facts.quorum.voters} & combined):
            if node in facts.broker_configs:
                facts.controllers[node] = facts.broker_configs[node]
            else:
                failed[node] = facts.notes.reason(("brokers", node, "configs")) or "BROKER_NOT_AVAILABLE"
        await self.wire.gather([partial(read, m.id) for m in facts.quorum.voters if m.id not in combined])
        leader = facts.quorum.leader
        lost = [
            self.wire.why_lost(m.id) if m.id in combined else failed.get(m.id)
            for m in facts.quorum.voters
            if m.id in combined or m.id == leader
        ]
        self.voter_refuses = leader is not None and any(REFUSED in (why or "") for why in lost)
        for node, reason in sorted(failed.items()):
            if facts.quorum.leader is None:
                facts.notes.add(("cluster", "quorum", "voters", node, "lag_ms"), reason)
            if facts.controllers:
                facts.notes.add(("cluster", "controllers", node, "configs"), reason)
            else:  # note the first reason
                facts.notes.add(("cluster", "controllers"), reason)
        for node, found in facts.controllers.items():
            rack = found.values.get("broker.rack")
            if rack and node not in combined:
                self.controller_racks = {node: rack, **self.controller_racks}

    def _note_reached(self, node: int, failure: Unread) -> None:
        """Note whether a controller that didn't state its configs is up.

        If it answers an error, it is up. If it refuses a connection, it is down, unless the quorum's leader saw it a moment
        ago, because a firewall may refuse, too. If the connection times out, it is unknown.
        """
        quorum_ = self.facts.quorum
        lags = {m.id: m.lag_ms for m in quorum_.voters} if quorum_ and quorum_.leader is not None else {}
        lag = lags.get(node)
        if not failure.connection:
            self.facts.reached[node] = True
        elif REFUSED in failure.reason and (lag is None or lag > SEEN_WITHIN_MS):
            self.facts.reached[node] = False

    def _unlisted_groups(self) -> None:
        """Note why groups may be missing: a broker didn't list its groups, or their coordinator is down."""
        reading, reasons = self.facts.reading, sorted(self.group_errors.values())
        offsets = reading.topics.get(OFFSETS) if reading else None
        leaderless = sum(row["leader"] is None for row in offsets.partitions.values()) if offsets else 0
        if leaderless:
            reasons.append(f"COORDINATOR_NOT_AVAILABLE: {leaderless} partitions of {OFFSETS} have no leader")
        if reasons:
            self.facts.notes.add(("groups",), "; ".join(reasons[:3]))
