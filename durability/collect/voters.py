"""The controllers of a collection: who leads, who votes, which of them are up, and what their configs are.

Brokers forward requests to the controller that leads. If it hangs, or none leads, they don't answer. Then the voters themselves
are asked, and at last the quorum is described from the brokers' settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from durability.collect import brokers, configs, quorum
from durability.collect.document import Facts
from durability.collect.reasons import REFUSED, Unread
from durability.collect.wire import GREETED_AT_ONCE, Wire

SEEN_WITHIN_MS = 10_000
"""How far a voter may be behind to count as up for the quorum's leader."""
FETCHED_WITHIN = 2.0
"""Seconds until each voter has fetched from a new leader. Voters fetch at least every 0.5 s."""
FETCHES_WITHIN_MS = 1_500
"""How far a voter may be behind to count as fetching. It was last caught up when it fetched last."""


class Voters:
    """Reads into `facts.quorum`, `facts.controllers` and `facts.reached`.

    racks: of controllers, by id: those that were stated, and those that they state themselves.
    """

    def __init__(self, wire: Wire, facts: Facts, racks: Mapping[int, str]):
        self.wire, self.facts, self.racks = wire, facts, racks
        self._error: str | None = None
        self._refuses = False  # does nothing listen any more where the quorum's leader or a combined voter was?
        self._silent: set[int] = set()  # voters that can't be reached, though they may be up
        self._led = False  # does a controller lead, though no broker reaches it?

    async def describe(self) -> None:
        """Reads the quorum, twice if a voter never caught up: a leader that is new knows no voter before it has fetched."""
        try:
            self.facts.quorum = found = await quorum.describe(self.wire)
            if found and found.times_known and any(member.lag_ms is None for member in found.voters):
                await self.wire.pause(FETCHED_WITHIN)
                self.facts.quorum = await quorum.describe(self.wire)
        except Unread as exc:
            self._error = exc.reason

    async def read(self) -> None:
        """Configs of the voters. If one has died, reads the quorum again: another one leads, or none."""
        await self._controllers()
        if not self._refuses or self.facts.quorum is None:
            await self._drop_silent_voters()
            return
        leader = self.facts.quorum.leader
        await self._describe_again()
        if self.facts.quorum is not None and self.facts.quorum.leader == leader:  # if it refuses, a firewall does
            return
        await self._controllers()

    async def _describe_again(self) -> None:
        """Reads the quorum again: another voter may lead by now, or none."""
        await self.describe()
        await self.ask_voters()
        await self.without_leader()
        if self._error:
            self.facts.quorum = None

    def _led_quorum(self) -> quorum.Quorum | None:
        """The quorum, if it was read and has a leader."""
        found = self.facts.quorum
        return None if found is None or found.leader is None else found

    def leaderless(self) -> bool:
        """Whether no controller leads, as far as brokers and voters say."""
        return self.wire.no_controller is not None and not self._led

    async def ask_voters(self) -> None:
        """If no broker reaches a controller, asks the voters: the leader may hang, and another one lead instead."""
        if not self.wire.no_controller:
            return
        facts = self.facts
        addresses = quorum.stated_voters(facts.broker_configs.values())
        addresses |= facts.quorum.addresses if facts.quorum else {}
        listeners = [address for of_node in addresses.values() for address in of_node]
        listeners = listeners or quorum.stated_listeners(facts.broker_configs.values())
        found = await quorum.describe_by_voters(self.wire, listeners) if listeners else None
        self._led = found is not None
        if found is not None:
            facts.quorum, self._error = found, None
            self.wire.controllers = listeners

    async def _drop_silent_voters(self) -> None:
        """Notes as down the voters that can't be reached and that don't fetch any more.

        The leader shows a voter that died as up until its lag grows. A firewall may refuse connections, too, so the quorum is
        read again when each live voter must have fetched.
        """
        if not self._silent or self._led_quorum() is None:
            return
        await self.wire.pause(FETCHED_WITHIN)
        await self._describe_again()
        found = self._led_quorum()
        if found is None:
            await self._controllers()
            return
        if not found.times_known:  # before Kafka 3.4, no lag is stated, so a voter that hangs may fetch
            return
        for member in found.voters:
            if member.id in self._silent and (member.lag_ms is None or member.lag_ms > FETCHES_WITHIN_MS):
                self.facts.reached[member.id] = False

    async def _greet_again(self) -> None:
        """Greet each live broker again, because nobody fences brokers now. The connection shows which have died since."""

        async def greet(broker: int) -> None:
            with suppress(Unread):
                await brokers.version(self.wire, broker)

        live = [broker.id for broker in self.facts.brokers if broker.live]
        await self.wire.gather([partial(greet, broker) for broker in live], at_once=GREETED_AT_ONCE)

    async def without_leader(self) -> None:
        """If no controller leads, read what is known then: voters in the brokers' settings, and unreachable brokers.

        Only the controller fences brokers. Without one, dead brokers are still called live, so an unreachable broker counts
        as down.
        """
        if not self.leaderless():
            return
        facts, reason = self.facts, str(self.wire.no_controller and self.wire.no_controller.reason)
        await self._greet_again()
        facts.unreachable = {b.id: why for b in facts.brokers if b.live and (why := self.wire.why_lost(b.id))}
        addresses = quorum.stated_voters(facts.broker_configs.values())
        # A quorum that was read before it lost its leader has the right voters, but outdated lags.
        read = facts.quorum
        listeners = quorum.stated_listeners(facts.broker_configs.values())
        if not read and not addresses and listeners:
            addresses = await quorum.registered(self.wire, listeners)
        voters = [member.id for member in read.voters] if read else list(addresses)
        if voters or listeners:
            self._error = None
            addresses |= read.addresses if read else {}
            unknown = [quorum.Member(node, None) for node in voters]
            facts.quorum = quorum.Quorum(None, unknown, [], addresses, times_known=False)
            facts.notes.add(("cluster", "quorum", "observers"), reason)

    async def _controllers(self) -> None:
        """Configs of the voters. A combined node has those of its broker, another one those of its own listener."""
        facts = self.facts
        if self._error:
            facts.notes.add(("cluster", "quorum"), self._error)
            facts.notes.add(("cluster", "controllers"), self._error)
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
        self._refuses = leader is not None and any(REFUSED in (why or "") for why in lost)
        self._silent |= {m.id for m in facts.quorum.voters if m.id in combined and self._hangs(m.id)}
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
                self.racks = {node: rack, **self.racks}

    def _hangs(self, broker: int) -> bool:
        """Does a broker that the cluster calls live not answer? It is paused, or a firewall drops packets."""
        live = any(b.id == broker and b.live for b in self.facts.brokers)
        return live and self.wire.why_lost(broker) is not None

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
        elif lag is not None:
            self._silent.add(node)
