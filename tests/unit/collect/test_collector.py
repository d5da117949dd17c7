"""One collection: what the document says where the cluster could not be read again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from durability.collect import Limits, brokers, collector, topics
from durability.collect import voters as voters_module
from durability.collect.brokers import Registered
from durability.collect.configs import Configs
from durability.collect.document import assemble
from durability.collect.quorum import Member, Quorum
from durability.collect.reasons import Unread
from durability.collect.topics import Reading, Topic
from tests.support.topology import unread

TIMED_OUT = Unread("REQUEST_TIMED_OUT: no answer within 30 s")


def reading(leader: int) -> Reading:
    lists = {"replicas": [1, 2], "isr": [1, 2], "elr": [], "last_known_elr": [], "adding": [], "removing": []}
    return Reading({"orders": Topic(False, {0: {"partition": 0, "leader": leader, **lists}})})


class Still:
    """A wire that nothing is asked of."""

    cluster, remaining, no_controller, limits = "eu", 60, None, Limits()

    async def pause(self, seconds: float) -> None: ...

    async def gather(self, jobs, at_once: int = 1) -> None: ...

    def why_lost(self, node: int) -> None: ...

    def forget(self, nodes) -> None: ...


async def nothing(*arguments, **named):
    return {}


@pytest.fixture
def reread(monkeypatch):
    """The document of a cluster whose first reading has leader 1; `later` are what further readings give or raise."""

    def document(*later: Reading | Unread, wire: Still | None = None) -> dict:
        answers = iter(later)

        async def read(*arguments, **named):
            answer = next(answers)
            if isinstance(answer, Unread):
                raise answer
            return answer

        async def registered(wire):
            return [Registered(1, "a", False), Registered(2, "b", getattr(wire, "fenced", False))], True

        monkeypatch.setattr(topics, "read", read)
        monkeypatch.setattr(topics, "topic_configs", nothing)
        monkeypatch.setattr(brokers, "registered", registered)
        wire = wire or Still()
        collection = collector._Collection(wire, {})
        collection.facts.captured_at = "2026-11-21T12:00:00.000Z"
        collection.facts.brokers = asyncio.run(registered(wire))[0]
        asyncio.run(collection._reread(reading(1)))
        return assemble(collection.facts, {})

    return document


def test_readings_are_repeated_until_two_agree(reread):
    same = reread(reading(1))
    assert same["cluster"]["consistent"] is True and "/cluster/consistent" not in unread(same)
    changed = reread(reading(2), reading(2))
    assert changed["cluster"]["consistent"] is True
    assert changed["topics"][0]["partitions"][0]["leader"] == 2


def test_readings_that_never_agree_cost_what_differs(reread):
    restless = reread(*(reading(number % 2 + 2) for number in range(collector.REREADS + 1)))
    assert restless["cluster"]["consistent"] is True
    places = {path: why for path, why in unread(restless).items() if "/partitions/" in path}
    assert places == {"/topics/0/partitions/0/leader": "CHANGED: 3, then 2"}


@pytest.mark.parametrize("later", [(TIMED_OUT,), (reading(2), TIMED_OUT)])
def test_a_reading_that_failed_leaves_its_reason_and_no_claim_that_the_cluster_changed(reread, later):
    document = reread(*later)
    assert "consistent" not in document["cluster"]
    assert unread(document)["/cluster/consistent"] == TIMED_OUT.reason
    assert "/topics" not in unread(document)


@pytest.mark.parametrize(("listed", "count"), [((1, 2), 0), ((1,), None)])
def test_a_dead_broker_that_only_replicas_name_leaves_hidden_topics_unknown(listed, count):
    """Before 3.9, and with ZooKeeper, the cluster lists live brokers alone."""
    collection = collector._Collection(Still(), {})
    facts = collection.facts
    facts.captured_at, facts.reading = "2026-11-21T12:00:00.000Z", reading(1)
    facts.brokers = [Registered(broker, "a", False) for broker in listed]
    facts.log_dirs = {broker: SimpleNamespace(sizes={("orders", 0): 1}, offline=0) for broker in listed}
    collection.shown = {("orders", 0)}
    asyncio.run(collection._hidden())
    assert facts.hidden == count
    why = facts.notes.reason(("cluster", "hidden_partitions"))
    assert why is None if count == 0 else "without the log dirs of broker 2" in why


@pytest.mark.parametrize(("error", "count"), [(None, 0), ("TOPIC_AUTHORIZATION_FAILED", 1)])
def test_a_deleted_topic_that_is_still_on_a_disk_is_not_called_hidden(monkeypatch, error, count):
    """Asked by its name, a topic that may not be seen is refused, and a deleted one is unknown to the cluster."""
    collection = collector._Collection(Still(), {})
    facts = collection.facts
    facts.captured_at, facts.reading = "2026-11-21T12:00:00.000Z", reading(1)
    facts.brokers = [Registered(1, "a", False), Registered(2, "b", False)]
    sizes = {("orders", 0): 1, ("other", 0): 1}
    facts.log_dirs = {broker: SimpleNamespace(sizes=sizes, offline=0) for broker in (1, 2)}
    collection.shown = {("orders", 0)}

    async def read(wire, **asked):
        return reading(1)

    async def partitions(wire, *, names, with_elr):
        return Reading(topics={name: Topic(False, error=error) for name in names if error})

    monkeypatch.setattr(collector.topics, "read", read)
    monkeypatch.setattr(collector.topics, "partitions", partitions)
    asyncio.run(collection._hidden())
    assert facts.hidden == count
    assert (facts.notes.reason(collector.HIDDEN) is None) == (count == 0)


@pytest.mark.parametrize(
    ("failure", "leader", "lag", "reached"),
    [
        (Unread("NETWORK_EXCEPTION: connection refused", connection=True), None, None, False),
        (Unread("NETWORK_EXCEPTION: connection refused", connection=True), 1, 60_000, False),
        # The quorum's leader saw it a moment ago, so a firewall refused.
        (Unread("NETWORK_EXCEPTION: connection refused", connection=True), 1, 500, None),
        (Unread("NETWORK_EXCEPTION: timed out", connection=True), None, None, None),
        (Unread("CLUSTER_AUTHORIZATION_FAILED"), None, None, True),
    ],
)
def test_a_controller_is_down_where_nothing_listens_and_nobody_saw_it(failure, leader, lag, reached):
    collection = collector._Collection(Still(), {})
    collection.facts.quorum = Quorum(leader, [Member(1, 0), Member(101, lag)], [])
    collection.voters._note_reached(101, failure)
    assert collection.facts.reached.get(101) is reached


class Dying(Still):
    """A wire on which broker 2 answers no more, although it did before."""

    def __init__(self) -> None:
        self.lost: dict[int, str] = {}

    async def gather(self, jobs, at_once: int = 1) -> None:
        for job in jobs:
            await job()

    async def ask(self, node: int, request) -> SimpleNamespace:
        if node == 2:
            self.lost[node] = "NETWORK_EXCEPTION: connection refused"
            raise Unread(self.lost[node], connection=True)
        return SimpleNamespace(supported_features=(), API_VERSION=0, api_keys=())

    def why_lost(self, node: int) -> str | None:
        return self.lost.get(node)


def test_a_broker_that_dies_while_no_controller_leads_is_noticed_though_it_was_read():
    """Nobody fences it, so it would be called live, and its partitions healthy."""
    collection = collector._Collection(Dying(), {})
    collection.facts.brokers = [Registered(broker, "a", False) for broker in (1, 2)]
    collection.wire.no_controller = Unread("REQUEST_TIMED_OUT: no broker reaches a controller")
    asyncio.run(collection.voters.without_leader())
    collection.facts.captured_at, collection.facts.reading = "2026-11-21T12:00:00.000Z", reading(1)
    document = assemble(collection.facts, {})
    assert [broker["live"] for broker in document["brokers"]] == [True, False]


class DiesWhileReread(Still):
    """A wire on which broker 2 dies after the first reading. It is fenced after the pause that follows."""

    fenced = False

    def why_lost(self, node: int) -> str | None:
        return "NETWORK_EXCEPTION: timed out" if node == 2 else None

    async def pause(self, seconds: float) -> None:
        self.fenced = True


def test_a_broker_that_dies_while_it_is_read_again_has_the_time_to_be_fenced(reread):
    """Until then, metadata calls it live and the leader of its partitions."""
    document = reread(reading(1), reading(2), reading(2), wire=DiesWhileReread())
    assert document["topics"][0]["partitions"][0]["leader"] == 2
    assert [broker["live"] for broker in document["brokers"]] == [True, False]


class Led(Still):
    """A wire of a cluster whose quorum's leader, broker 2, died after it was read. why: it can't be reached."""

    def __init__(self, why: str = "NETWORK_EXCEPTION: connection refused") -> None:
        self.why = why

    def why_lost(self, node: int) -> str | None:
        return self.why if node == 2 else None


@pytest.mark.parametrize("voters", [(1, 2, 3), (101, 102, 103)])
def test_a_quorum_whose_leader_died_is_read_again(monkeypatch, voters):
    first, second, third = voters

    async def described(wire):
        return Quorum(first, [Member(first, 0), Member(second, None), Member(third, 0)], [])

    async def refused(wire, node, addresses):
        raise Unread("NETWORK_EXCEPTION: connection refused", connection=True)

    monkeypatch.setattr(voters_module.quorum, "describe", described)
    monkeypatch.setattr(voters_module.configs, "of_controller", refused)
    collection = collector._Collection(Led(), {})
    collection.facts.brokers = [Registered(broker, "a", False) for broker in (1, 2, 3)]
    collection.facts.quorum = Quorum(second, [Member(node, 0) for node in voters], [])
    collection.wire.gather = Dying.gather.__get__(collection.wire)
    asyncio.run(collection.voters.read())
    assert collection.facts.quorum.leader == first


@pytest.mark.parametrize("why", ["NETWORK_EXCEPTION: connection refused", "REQUEST_TIMED_OUT"])
def test_a_quorum_that_lost_its_majority_while_it_was_read_has_no_leader(monkeypatch, why):
    """Broker 2 died, or is paused, and voter 3, which led, leads no longer."""

    async def described(wire):
        wire.no_controller = Unread("REQUEST_TIMED_OUT: no broker reaches a controller")
        raise wire.no_controller

    monkeypatch.setattr(voters_module.quorum, "describe", described)
    monkeypatch.setattr(collector.brokers, "version", nothing)
    collection = collector._Collection(Led(why), {})
    collection.facts.brokers = [Registered(broker, "a", False) for broker in (1, 2, 3)]
    collection.facts.quorum = Quorum(3, [Member(node, 0) for node in (1, 2, 3)], [])
    collection.wire.gather = Dying.gather.__get__(collection.wire)
    asyncio.run(collection.voters.read())
    assert collection.facts.quorum.leader is None and list(collection.facts.unreachable) == [2]


@pytest.mark.parametrize(("later", "lag"), [(20, 20), (None, None)])
def test_a_new_leader_is_asked_again_for_voters_that_it_does_not_know_yet(monkeypatch, later, lag):
    answers = iter([None, later])

    async def described(wire):
        return Quorum(3, [Member(2, next(answers)), Member(3, 0)], [])

    monkeypatch.setattr(voters_module.quorum, "describe", described)
    collection = collector._Collection(Still(), {})
    asyncio.run(collection.voters.describe())
    assert collection.facts.quorum.voters[0].lag_ms == lag


@pytest.mark.parametrize(
    ("later", "times_known", "reached"),
    [
        (2_300, True, {101: True, 102: False}),
        (400, True, {101: True}),
        (None, True, {101: True, 102: False}),
        (None, False, {101: True}),
    ],
)
def test_a_voter_that_refuses_and_fetches_no_more_is_down(monkeypatch, later, times_known, reached):
    """Voter 102 died a moment ago. If it fetches on, a firewall refuses the connection. Before Kafka 3.4, no lag is known."""
    lags = iter([later, later])

    async def described(wire):
        return Quorum(101, [Member(101, 0), Member(102, next(lags))], [], times_known=times_known)

    async def refused(wire, node, addresses):
        if node == 102:
            raise Unread("NETWORK_EXCEPTION: connection refused", connection=True)
        return Configs({}, {})

    monkeypatch.setattr(voters_module.quorum, "describe", described)
    monkeypatch.setattr(voters_module.configs, "of_controller", refused)
    collection = collector._Collection(Still(), {})
    collection.facts.quorum = Quorum(101, [Member(101, 0), Member(102, 300)], [], {102: [("c", 9093)]})
    collection.wire.gather = Dying.gather.__get__(collection.wire)
    asyncio.run(collection.voters.read())
    assert collection.facts.reached == reached


def test_the_voters_are_asked_if_no_broker_reaches_a_controller(monkeypatch):
    """The leader hangs, and so do the brokers that ask it. The voters have elected another one."""
    found = Quorum(102, [Member(101, 9_000), Member(102, 0), Member(103, 20)], [])

    async def by_voters(wire, listeners):
        return found if listeners == [("c", 9093)] else None

    monkeypatch.setattr(voters_module.quorum, "describe_by_voters", by_voters)
    collection = collector._Collection(Still(), {})
    collection.wire.no_controller = Unread("REQUEST_TIMED_OUT: no broker reaches a controller")
    asyncio.run(collection.voters.ask_voters())
    assert collection.voters.leaderless()
    collection.facts.quorum = Quorum(101, [], [], {102: [("c", 9093)]})
    asyncio.run(collection.voters.ask_voters())
    assert not collection.voters.leaderless() and collection.facts.quorum is found
    assert collection.wire.controllers == [("c", 9093)], "they are asked for reassignments, too"
