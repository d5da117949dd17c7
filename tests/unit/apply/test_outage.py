"""What a rack outage changes for a topic, as tables, and that every kill leaves the former values or a record of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from durability.apply import outage, outage_back, outage_run, outage_throttle
from durability.apply.cluster import Reading, Replicas, ResourceType, TopicPartition
from durability.apply.outage_run import OUTAGE, Known
from durability.apply.record import BEGIN, SET_CONFIG, THROTTLE, Changes, Row
from durability.errors import Unreachable
from durability.lake.change_table import CHANGES, DONE, LEFT, RACK_OUTAGE, REMEDIATE, UNDONE
from durability.remedies.plans import Broker, Placement
from tests.support.fake_cluster import equal

RACKS = {1: "a", 4: "a", 2: "b", 5: "b", 3: "c", 6: "c"}
LIVE = frozenset({2, 5, 3, 6})  # rack a is lost
MIN = "min.insync.replicas"


def entry(step="lower", now=2, source="default", setting=MIN):
    return {"setting": setting, "step": step, "now": now, "now_source": source}


def partition(text: str) -> Replicas:
    """replicas/isr/elr; the first in sync leads; a dash: no ELR stated."""
    replicas, isr, elr = text.split("/")
    ids = [tuple(int(b) for b in part.split(",") if b) for part in (replicas, isr, elr.replace("-", ""))]
    return Replicas(ids[0], ids[1], next(iter(ids[1]), None), None if elr == "-" else ids[2])


def decided(partitions, entries, elr=False, own=None, give_up=False, knows_racks=False, live=LIVE):
    facts = outage.Facts(RACKS, live, elr, knows_racks)
    placement = Placement([Broker(b, rack, b in live) for b, rack in RACKS.items()], Counter())
    parts = {n: partition(text) for n, text in enumerate(partitions)}
    return outage.decide("t", entries, parts, own or {}, facts, placement, give_up)


SHORT, WHOLE, GONE = "1,4,2/2/4", "2,3,5/2,3,5/", "1,4//1"


@pytest.mark.parametrize(
    ("partitions", "entries", "options", "act", "becomes"),
    [
        (["1,4,2/2/"], [entry()], {}, "lower", {MIN: "1"}),
        (["1,4,2/2/-"], [entry()], {"elr": None}, "add-replicas", {0: (2, 3, 5)}),  # unknown isn't off
        ([SHORT], [entry()], {"elr": True}, "add-replicas", {0: (2, 3, 5)}),  # an ELR since the audit
        ([SHORT], [entry()], {"elr": False}, "add-replicas", {0: (2, 3, 5)}),  # the snapshot is older than the ELR
        ([SHORT, WHOLE], [entry("guarded")], {"elr": True}, "add-replicas", {0: (2, 3, 5)}),
        ([SHORT], [entry("guarded")], {"elr": True, "give_up": True}, "lower", {MIN: "1"}),
        # One partition without a leader: giving up the ELR would lose it.
        ([SHORT, GONE], [entry("guarded")], {"elr": True, "give_up": True}, "add-replicas", {0: (2, 3, 5)}),
        (["1,4,2,3/2,3/", "1,2,3,5/2,3,5/"], [entry(now=3)], {}, "lower", {MIN: "2"}),
        ([WHOLE], [entry()], {}, "hold", {}),  # it accepts again
        # The rack came back while the approval waited: its replicas catch up, and the ELR must not be given up.
        (["1,4,2/2/"], [entry()], {"live": LIVE | {4}}, "hold", {}),
        ([SHORT], [entry("guarded")], {"elr": True, "live": LIVE | {1}, "give_up": True}, "hold", {}),
        ([SHORT], [entry("hold")], {"elr": True}, "hold", {}),
        ([GONE], [entry("guarded")], {"elr": True}, "hold", {}),
        ([], [entry()], {}, "hold", {}),  # deleted
        (["1,4,2/2/"], [entry(source="topic")], {}, "hold", {}),  # its own value was deleted since the audit
        (["1,4,2/2/"], [entry(now=3, source="topic")], {"own": {MIN: "2"}}, "lower", {MIN: "1"}),
        (["1,4,2/2/"], [entry(source="topic")], {"own": {MIN: "1"}}, "hold", {}),  # lowered by hand
        ([SHORT], [entry("guarded")], {"elr": True, "live": frozenset({2})}, "hold", {}),  # no broker to add
        ([SHORT], [entry("guarded")], {"elr": True, "live": frozenset({2, 3})}, "add-replicas", {0: (2, 3)}),
        (
            [SHORT],
            [entry("guarded")],
            {"elr": True, "own": {"confluent.placement.constraints": '{"observers":[{"count":1}]}'}},
            "hold",
            {},
        ),
        (["1,2,5/2,5/"], [entry(setting="min.insync.racks")], {}, "hold", {}),  # brokers don't know it
        (["1,2,5/2,5/"], [entry(setting="min.insync.racks")], {"knows_racks": True}, "lower", {"min.insync.racks": "1"}),
        (
            ["1,2,5/2,5/"],
            [entry(setting="min.insync.racks")],
            {"knows_racks": True, "live": frozenset(RACKS)},
            "hold",
            {},
        ),
    ],
)  # fmt: skip
def test_what_a_topic_gets(partitions, entries, options, act, becomes):
    decision = decided(partitions, entries, **options)
    assert (decision.act, {**decision.settings, **decision.moves}) == (act, becomes)


def test_a_moving_partition_is_left_alone():
    moving = replace(partition("1,4,2,3/2/4"), adding=(3,))
    facts = outage.Facts(RACKS, LIVE, True)
    decision = outage.decide("t", [entry("guarded")], {0: moving}, {}, facts, Placement([], Counter()))
    assert (decision.act, decision.why) == ("hold", outage.MOVING)


@pytest.mark.parametrize(
    ("partitions", "live", "elr", "waits"),
    [
        (["1,4,2/1,4,2/"], RACKS, True, None),
        (["1,4,2/2/1"], RACKS, True, "partition 0 has eligible leader replicas outside its ISR, or that is unknown"),
        (["1,4,2/2,1/-"], RACKS, None, "partition 0 has eligible leader replicas outside its ISR, or that is unknown"),
        (["1,4,2/2/"], LIVE, False, "partition 0: brokers 1, 4 out of sync"),
        (["1,3,2/2,3/"], LIVE, False, "partition 0: broker 1 out of sync"),  # enough, but the rack is lost
        (["1,3,2/2,3/"], LIVE | {4}, False, None),  # a broker of the rack stays away: enough are in sync
        (["1,4,2/1,4,2/", "1,2//"], RACKS, False, "partition 1 has no leader"),
        ([], RACKS, True, None),
    ],
)
def test_what_a_threshold_waits_for(partitions, live, elr, waits):
    facts = outage.Facts(RACKS, frozenset(live), elr)
    value = outage.Value(("t", MIN), None, ("1",), in_force=2)
    assert outage.waits_for(value, {n: partition(text) for n, text in enumerate(partitions)}, {}, facts) == waits


@pytest.mark.parametrize(
    ("minimum", "own", "isr", "waits"),
    [
        (2, {}, (2, 3, 5), None),
        (4, {}, (2, 3, 5), "acks=all would need 4 replicas in sync while it is moved back. This doesn't end by itself"),
        (4, {}, (2,), "This doesn't end by itself: set min.insync.replicas of the topic to at most 3"),
        (4, {MIN: "3"}, (2, 3, 5), None),
        (3, {}, (2, 3), None),  # acks=all is rejected now, and the move needs no more in sync
        (2, {}, (2,), None),
        (None, {}, (2, 3, 5), "its min.insync.replicas is unknown. This doesn't end by itself"),
        (None, {MIN: "2"}, (2, 3, 5), None),
    ],
)
def test_what_replicas_wait_for(minimum, own, isr, waits):
    value = outage.Value(("t", 0), (1, 4, 2), ((2, 3, 5),), minimum)
    assert (
        outage.waits_for(value, {0: Replicas((2, 3, 5), isr, 2, ())}, own, outage.Facts(RACKS, LIVE, True)) is not None
    )
    why = outage.waits_for(
        value, {0: Replicas((2, 3, 5), isr, 2, ())}, own, outage.Facts(RACKS, frozenset(RACKS), True)
    )
    assert (why is None) == (waits is None) and (waits or "") in (why or "")
    assert why is None or outage.needs_help(why) == ("by itself" in why) == ("by itself" in waits)


@pytest.mark.parametrize(("isr", "waits"), [((2, 3, 5), True), ((2, 1), False)])
def test_a_move_that_runs_is_cancelled_only_with_enough_former_replicas_in_sync(isr, waits):
    moving = Replicas((2, 3, 5, 1, 4), isr, 2, (), adding=(3, 5), removing=(1, 4))
    value = outage.Value(("t", 0), (1, 4, 2), ((2, 3, 5),), 2)
    assert (outage.waits_for(value, {0: moving}, {}, outage.Facts(RACKS, frozenset(RACKS), True)) is not None) == waits


def test_a_row_keeps_the_minimum_of_its_replicas():
    value = outage.Value(("t", 0), (1, 4, 2), ((2, 3, 5),), 2)
    was, becomes = outage.as_json([value])
    row = Row("", "1", outage.kind_of([value]), DONE, ("t",), was, becomes, None, "run", datetime.now(UTC))
    assert outage.of_row(row) == [value]


@pytest.fixture(autouse=True)
def _without_pause(monkeypatch):
    monkeypatch.setattr(outage_back, "PAUSE", 0)


class Killed(BaseException):
    """The process ends here."""


class World:
    """A cluster and a lake that end the process at their nth call, before or after it has its effect. They keep their state."""

    location = "memory"

    def __init__(self, elr: bool):
        self.elr, self.rows = elr, pa.Table.from_pylist([], CHANGES.arrow)
        self.calls, self.kill_at, self.after = 0, None, False
        # topic: one partition on two brokers of rack a and one of b; the second topic has its own minimum.
        self.replicas = {"inherits": (1, 4, 2), "stated": (4, 1, 5), "fine": (2, 3, 5)}
        self.eligible = {t: bool(set(r) & {1, 4}) and elr for t, r in self.replicas.items()}
        self.own: dict[str, dict[str, str]] = {"inherits": {}, "stated": {MIN: "2", "retention.ms": "5"}, "fine": {}}
        self.live = LIVE
        self.registered: frozenset[int] | None = None
        self.targets: dict[
            str, tuple[int, ...]
        ] = {}  # of running reassignments, and how many readings each still takes
        self.left: dict[str, int] = {}
        self.brokers: dict[int, dict[str, str]] = {b: {} for b in RACKS}
        self.cluster_wide: dict[str, str] = {}
        self.usable: dict[int, int | None] = dict.fromkeys(RACKS, 1_000_000)

    def step(self, act):
        self.calls += 1
        if self.calls == self.kill_at and not self.after:
            raise Killed
        result = act()
        if self.calls == self.kill_at:
            raise Killed
        return result

    # The cluster

    def read(self, topics):
        def act():
            for topic in list(self.targets):
                self.left[topic] -= 1
                if self.left[topic] <= 0:
                    self.replicas[topic] = self.targets.pop(topic)
            all_of_them = {TopicPartition(t, 0): self._replicas(t) for t in self.replicas}
            asked = {place: p for place, p in all_of_them.items() if place.topic in topics}
            moving = {place: p for place, p in all_of_them.items() if p.moving}
            return Reading("id", self.live, True, asked, moving, registered=self.registered)

        return self.step(act)

    def _replicas(self, topic):
        replicas = self.replicas[topic]
        if (target := self.targets.get(topic)) is not None:
            adding, removing = (
                tuple(sorted({*some} - {*others})) for some, others in ((target, replicas), (replicas, target))
            )
            now = self._in_sync(topic, replicas)
            return replace(now, replicas=(*target, *removing), adding=adding, removing=removing)
        return self._in_sync(topic, replicas)

    def _in_sync(self, topic, replicas):
        isr = tuple(b for b in replicas if b in self.live)
        elr = tuple(b for b in replicas if b not in self.live)[:1] if self.eligible[topic] and len(isr) < 2 else ()
        return Replicas(replicas, isr, next(iter(isr), None), elr)

    def overrides(self, resources, names=None):
        return self.step(lambda: {r: dict(own) for r in resources if (own := self._own(r)) is not None})

    def _own(self, resource):
        if resource.type is ResourceType.TOPIC:
            return self.own.get(resource.name)
        if not resource.name:
            return self.cluster_wide
        assert int(resource.name) in self.live, "only a live broker answers"
        return self.brokers[int(resource.name)]

    def change(self, changes):
        def act():
            for one in changes:
                assert one.name != MIN or not self._replicas(one.resource.name).elr, "the ELR is wiped"
                own = self._own(one.resource)
                if one.value is None:
                    own.pop(one.name, None)
                else:
                    own[one.name] = one.value
            return {}

        return self.step(act)

    def reassign(self, targets, *, same_factor=False):
        def act():
            for place, replicas in targets.items():
                if replicas is None:
                    self.targets.pop(place.topic, None)
                    continue
                assert set(replicas) <= self.live, "never ends"
                running = self.targets.get(place.topic)
                assert running is None or set(replicas) - set(self.replicas[place.topic]), "adds what it removes"
                self.targets[place.topic], self.left[place.topic] = tuple(replicas), 3
                if tuple(replicas) == self.replicas[place.topic]:
                    del self.targets[place.topic]
            return {}

        return self.step(act)

    def sizes(self, brokers, topics):
        held = {TopicPartition(t, 0): (*r, *self.targets.get(t, ())) for t, r in self.replicas.items() if t in topics}
        return self.step(
            lambda: {
                (b, name): 1000 if b in self.replicas[name.topic] else 0
                for name, some in held.items()
                for b in some
                if b in brokers
            }
        )

    def usable_bytes(self, brokers):
        return self.step(lambda: {b: self.usable[b] for b in brokers})

    # The lake

    def has(self, table):
        return True

    def scan(self, table, where, columns=None):
        rows = self.rows
        for name, value in equal(where).items():
            rows = rows.filter(pc.field(name) == value)
        return rows

    def append(self, table, added):
        def act():
            self.rows = pa.concat_tables([self.rows, added.cast(CHANGES.arrow)])

        self.step(act)

    # A run

    def changes(self):
        return Changes(self, "eu", RACK_OUTAGE, OUTAGE, "run", None)

    def run(self, kill_at, after, work):
        """Works until it ends, or is killed at this call. Returns how many calls there were."""
        self.calls, self.kill_at, self.after = 0, kill_at, after
        changes = self.changes()
        try:
            with changes.claimed():
                work(changes)
        except Killed:
            pass
        finally:
            calls, self.kill_at = self.calls, None
        return calls

    def states(self):
        return {row.state for row in self.changes().state().values() if row.kind != BEGIN}


def known(elr):
    return Known([Broker(b, rack, True) for b, rack in RACKS.items()], {}, elr, False)


def entries(elr):
    step = "guarded" if elr else "lower"
    return {"inherits": [entry(step)], "stated": [entry(step, source="topic")], "fine": [entry("hold")]}


@pytest.mark.parametrize("elr", [False, True], ids=["lower", "add-replicas"])
@pytest.mark.parametrize("again", [False, True], ids=["killed", "run-again"])
def test_the_former_values_come_back_whatever_is_killed(elr, again):
    def lower(world):
        return lambda changes: outage_run.change(world, changes, entries(elr), known(elr), False, 1000)

    def restore(world):
        return lambda changes: outage_back.restore(world, changes, known(elr), 1000)

    calm = World(elr)
    total = calm.run(None, False, lower(calm))
    assert calm.states() == {DONE}
    calm.live = frozenset(RACKS)
    back = calm.run(None, False, restore(calm))
    kills = [(n, 1 + 3 * n % back) for n in range(1, total + 1)] + [(None, n) for n in range(1, back + 1)]
    for kill_change, kill_restore in kills:
        for after in (False, True):
            world = World(elr)
            former = (dict(world.replicas), {t: dict(own) for t, own in world.own.items()})
            world.run(kill_change, after, lower(world))
            if again:
                world.run(None, False, lower(world))
                for _ in range(3):
                    world.read([])
                helped = [world._replicas(t) for t in ("inherits", "stated")]
                minimum = [int(world.own[t].get(MIN, 2)) for t in ("inherits", "stated")]
                assert all(len(p.isr) >= n for p, n in zip(helped, minimum, strict=True))
            world.live = frozenset(RACKS)
            world.run(kill_restore, after, restore(world))
            for _ in range(4):
                world.run(None, False, restore(world))
            assert (world.replicas, world.own) == former, (kill_change, kill_restore, after)
            assert not any(world.brokers.values())
            assert world.states() <= {UNDONE}


@pytest.mark.parametrize(("usable", "why"), [(1200, "1,200 usable bytes, and 2,000 bytes"), (None, "are unknown")])
def test_replicas_that_do_not_fit_on_the_disks_are_not_added(usable, why):
    """Broker 3 has room for one topic's replica, or none is known."""
    world, outcomes = World(True), []
    world.live, world.usable[3] = frozenset({2, 5, 3}), usable
    made = outage_run.decided(world, entries(True), known(True), False, {})
    world.run(None, False, lambda c: outcomes.append(outage_run.change(world, c, entries(True), known(True), False, 9)))
    held = {"stated"} if usable else {"inherits", "stated"}
    assert outcomes[0].held.keys() == held == {d.topic for d in made if d.why}
    assert why in outcomes[0].held["stated"] and world.targets.keys() == {"inherits", "stated"} - held
    assert {d.topic: d.bytes for d in made if d.moves} == dict.fromkeys({"inherits", "stated"} - held, 2000)


@pytest.mark.parametrize("where", ["broker", "cluster"])
def test_nothing_is_moved_where_others_throttle(where):
    world = World(True)
    {"broker": world.brokers[3], "cluster": world.cluster_wide}[where]["follower.replication.throttled.rate"] = "5"
    outcomes = []
    world.run(None, False, lambda c: outcomes.append(outage_run.change(world, c, entries(True), known(True), False, 9)))
    assert set(outcomes[0].failed) == {"inherits", "stated"} and "others throttle" in outcomes[0].failed["stated"]
    assert world.replicas == World(True).replicas and world.states() == {UNDONE}


def test_topics_that_a_plan_changed_are_held_until_it_is_taken_back():
    world, outcomes = World(False), []
    values = [{"topic": "stated", "name": MIN, "value": value, "until": "2-raise"} for value in "32"]
    plan = Changes(world, "eu", REMEDIATE, "p", "r", None)
    with plan.claimed():
        plan.begin("id", [])
        plan.intend("1-lower", "1-lower", SET_CONFIG, ["stated"], *([value] for value in values))
        plan.done("1-lower")
        plan.intend("2-reassign", "throttle:2-reassign", THROTTLE, ["inherits"], [], [])

    def change(changes):
        outcomes.append(outage_run.change(world, changes, entries(False), known(False), False))

    world.run(None, False, change)
    assert outcomes[0].held == {"stated": outage_run.OF_PLAN.format("p")} and outcomes[0].topics == {"lower": 1}
    assert world.own["stated"][MIN] == "2" and world.own["inherits"] == {MIN: "1"}
    with plan.claimed():
        plan.undone("1-lower")
    world.run(None, False, change)  # its own rows hold nothing
    assert outcomes[1].held == {} and world.own["stated"][MIN] == "1"


def test_it_waits_for_the_rack_and_leaves_what_others_set():
    world = World(False)
    world.run(None, False, lambda c: outage_run.change(world, c, entries(False), known(False), False))
    assert world.own == {"inherits": {MIN: "1"}, "stated": {MIN: "1", "retention.ms": "5"}, "fine": {}}
    waits = []
    world.run(None, False, lambda c: waits.append(outage_back.restore(world, c, known(False))))
    assert sorted(waits[0].waiting) == ["inherits", "stated"] and world.states() == {DONE}
    world.live, world.own["inherits"][MIN] = frozenset(RACKS), "3"
    assert outage_back.survey(world, world.changes(), known(False))[1]
    world.run(None, False, lambda c: waits.append(outage_back.restore(world, c, known(False))))
    assert world.own == {"inherits": {MIN: "3"}, "stated": {MIN: "2", "retention.ms": "5"}, "fine": {}}
    assert waits[1].left == [f"topic inherits: {MIN} 3 was set by others and stays; before the outage it was unset"]
    assert world.states() == {LEFT}


@pytest.mark.parametrize("elr", [False, True], ids=["lowered", "moved"])
def test_a_topic_that_was_deleted_is_called_so(elr):
    world, waits = World(elr), []
    world.run(None, False, lambda c: outage_run.change(world, c, entries(elr), known(elr), False))
    for of_topics in (world.replicas, world.own, world.targets):
        for topic in ("inherits", "stated"):
            of_topics.pop(topic, None)
    world.run(None, False, lambda c: waits.append(outage_back.restore(world, c, known(elr))))
    assert waits[0].left == ["topic inherits was deleted since the outage", "topic stated was deleted since the outage"]
    assert (waits[0].back, world.states()) == (0, {LEFT})


def test_replicas_stay_once_a_former_broker_is_unregistered():
    world, waits = World(True), []
    world.run(None, False, lambda c: outage_run.change(world, c, entries(True), known(True), False))
    for _ in range(3):
        world.read([])  # the moves end
    world.live = frozenset(RACKS) - {4}
    for registered in (frozenset(RACKS), world.live):
        world.registered = registered
        world.run(None, False, lambda c: waits.append(outage_back.restore(world, c, known(True))))
    assert (waits[0].waiting["inherits"], waits[0].left) == ("broker 4 down", [])
    assert (waits[1].waiting, waits[1].left) == (
        {},
        [
            "inherits-0: its replicas stay, because one of its former brokers 1,4,2 isn't registered any more",
            "stated-0: its replicas stay, because one of its former brokers 4,1,5 isn't registered any more",
        ],
    )
    assert world.states() == {LEFT}


def test_replicas_that_others_chose_are_named():
    world, waits = World(True), []
    world.run(None, False, lambda c: outage_run.change(world, c, entries(True), known(True), False))
    world.targets.clear()
    world.replicas["inherits"], world.live = (6,), frozenset(RACKS)
    world.run(None, False, lambda c: waits.append(outage_back.restore(world, c, known(True))))
    assert waits[0].left == ["inherits-0: replicas 6 were set by others and stay; before the outage they were 1,4,2"]


@pytest.mark.parametrize("later", [(2, 3, 5), (2, 3, 6)], ids=["shown-late", "of-others"])
def test_replicas_that_a_broker_shows_late_are_not_those_of_others(later, monkeypatch):
    world = World(True)
    world.run(None, False, lambda c: outage_run.change(world, c, entries(True), known(True), False))
    world.targets.clear()
    world.eligible = dict.fromkeys(world.eligible, False)
    # The move has ended, and the reading still shows the replicas that it removes; then others' replicas, once.
    for shown in ((2, 3, 5, 1, 4), (2, 6, 1)):
        world.replicas["inherits"] = shown
        back, _ = outage_back.survey(world, world.changes(), known(True))
        assert bool(back.others) == (shown == (2, 6, 1))
        # The module's own name alone: a thread that sleeps elsewhere must not change the replicas.
        paused = SimpleNamespace(sleep=lambda seconds: world.replicas.update(inherits=later))
        monkeypatch.setattr(outage_back, "time", paused)
        world.run(None, False, lambda c: outage_back.restore(world, c, known(True)))
        assert world.states() == {DONE}
    world.run(None, False, lambda c: outage_back.restore(world, c, known(True)))
    assert (world.states() == {LEFT}) == (later == (2, 3, 6))


def test_a_value_that_was_lowered_twice_goes_back_to_the_first_one():
    before = {("t", MIN): outage.Value(("t", MIN), "3", ("2",), 3)}
    decision = outage.Decision("t", outage.LOWER, {MIN: "1"}, in_force=2)
    assert outage.changed(decision, {}, {MIN: "2"}, before) == [outage.Value(("t", MIN), "3", ("2", "1"), 3)]
    assert outage.changed(decision, {}, {MIN: "4"}, before) == [outage.Value(("t", MIN), "4", ("1",), 2)]


def test_what_others_set_before_our_change_is_not_taken_for_ours(monkeypatch):
    world = World(False)

    def append(table, added):
        World.append(world, table, added)
        if added["kind"].to_pylist() == ["set-config"]:
            world.own["inherits"][MIN] = "1"  # by hand, while our row is written

    monkeypatch.setattr(world, "append", append)
    world.run(None, False, lambda c: outage_run.change(world, c, entries(False), known(False), False))
    assert [(r.state, r.topics) for r in world.changes().state().values() if r.kind != BEGIN] == [(DONE, ("stated",))]
    world.live = frozenset(RACKS)
    world.run(None, False, lambda c: outage_back.restore(world, c, known(False)))
    assert world.own["inherits"] == {MIN: "1"} and world.own["stated"][MIN] == "2"


def test_a_topic_with_an_error_does_not_stop_the_others(monkeypatch):
    world = World(False)
    world.run(None, False, lambda c: outage_run.change(world, c, entries(False), known(False), False))
    world.live = frozenset(RACKS)

    def read(topics, broken=("inherits",)):
        if set(broken) & set(topics):
            raise Unreachable("UNKNOWN: topic inherits")
        return World.read(world, topics)

    monkeypatch.setattr(world, "read", read)
    found = []
    world.run(None, False, lambda c: found.append(outage_back.restore(world, c, known(False))))
    assert found[0].failed == {"inherits": "UNKNOWN: topic inherits"}
    assert world.own["stated"][MIN] == "2" and world.own["inherits"][MIN] == "1" and world.states() == {DONE}
    back, ready = outage_back.survey(world, world.changes(), known(False))
    assert not ready and outage_back.waiting(back).back == found[0].back == 1
    monkeypatch.setattr(world, "read", lambda topics: read(topics, ["inherits", "stated"]))
    with pytest.raises(Unreachable):
        outage_back.survey(world, world.changes(), known(False))


def test_a_move_that_adds_what_it_removes_is_cancelled():
    """Kafka leaves a partition so if a move is replaced by one back to the former replicas."""
    world, asked = World(False), []
    world.live = frozenset(RACKS)
    stuck = Replicas((1, 4, 2, 3, 5), (1, 2, 3, 4, 5), 1, (), adding=(3, 5), removing=(3, 5))
    reading = Reading("id", world.live, True, {TopicPartition("inherits", 0): stuck})
    world.read = lambda topics: reading
    world.reassign = lambda targets: asked.append(targets) or {}
    value = outage.Value(("inherits", 0), (1, 4, 2), ((2, 3, 5),), 2)
    world.run(None, False, lambda changes: changes.done(outage_run._intend(changes, "", [value])))
    assert outage_back.survey(world, world.changes(), known(False))[1]
    # It may have ended since it was read.
    world.reassign = lambda targets: asked.append(targets) or dict.fromkeys(targets, "NO_REASSIGNMENT_IN_PROGRESS")
    found = []
    world.run(None, False, lambda c: found.append(outage_back.restore(world, c, known(False))))
    assert asked == [{TopicPartition("inherits", 0): None}] and not found[0].failed
    assert found[0].waiting == {"inherits": outage_back.MOVED_BACK}
    # Too few of the former replicas are in sync.
    reading.partitions[TopicPartition("inherits", 0)] = replace(stuck, isr=(1, 3, 5))
    back, ready = outage_back.survey(world, world.changes(), known(False))
    assert not ready and "too few of its former replicas" in back.waiting["inherits"]


def test_a_value_is_restored_while_another_of_its_topic_waits():
    world = World(False)
    world.own["inherits"][MIN], world.replicas["inherits"] = "1", (2, 3, 5)
    world.live = frozenset({1, 4, 2, 5})  # another rack is lost

    def record(changes):
        for value in (
            outage.Value(("inherits", MIN), "3", ("1",), 3),
            outage.Value(("inherits", 0), (1, 4, 2), ((2, 3, 5),), 2),
        ):
            name = outage_run._intend(changes, "", [value])
            changes.done(name)

    world.run(None, False, record)
    back, ready = outage_back.survey(world, world.changes(), known(False))
    assert ready and [*back.put] == [("inherits", 0)] and [*back.waiting] == ["inherits"]


def test_a_threshold_is_restored_before_a_throttle_takes_its_time(monkeypatch):
    world, made = World(True), []
    world.eligible["inherits"] = False
    asked = entries(True) | {"inherits": [entry("lower")]}
    outcomes = []
    world.run(None, False, lambda c: outcomes.append(outage_run.change(world, c, asked, known(True), False, 9)))
    assert outcomes[0].topics == {"lower": 1, "add-replicas": 1}
    for _ in range(3):
        world.read([])
    world.run(None, False, lambda c: outage_throttle.lift(world, c))
    world.live = frozenset(RACKS)
    monkeypatch.setattr(
        world, "change", lambda some: made.extend(one.name for one in some) or World.change(world, some)
    )
    world.run(None, False, lambda c: outage_back.restore(world, c, known(True), 9))
    assert made[0] == MIN and "leader.replication.throttled.rate" in made


def test_what_is_left_of_a_throttle_on_a_dead_broker_asks_for_no_claim():
    world, seen = World(True), []
    world.run(None, False, lambda c: outage_run.change(world, c, entries(True), known(True), False, 9))
    for _ in range(3):
        world.read([])

    def lift(changes):
        seen.append(outage_throttle.are_over(world, changes))
        outage_throttle.lift(world, changes)

    live = world.live
    world.live = live - {5}
    world.run(None, False, lift)
    world.run(None, False, lift)
    world.live = live
    world.run(None, False, lift)
    assert seen == [True, False, True] and not outage_throttle.open_rows(world.changes())


def test_a_move_of_ours_whose_target_is_lost_too_gets_another_one():
    world, outcomes = World(True), []

    def lower(changes):
        outcomes.append(outage_run.change(world, changes, entries(True), known(True), False))

    world.run(None, False, lower)
    assert world.targets == {"inherits": (2, 3, 5), "stated": (5, 6, 2)}
    world.left, world.live = dict.fromkeys(world.targets, 99), LIVE - {3}  # a broker of another rack dies
    before, world.usable[5] = outage.open_values(world.changes().state()), 500  # it has nothing of its replica yet
    held = {d.topic: d.why for d in outage_run.decided(world, entries(True), known(True), False, before)}
    assert "500 usable bytes, and 1,000 bytes" in held["inherits"]
    world.usable[5] = 1_000_000
    world.run(None, False, lower)
    assert world.targets == {"inherits": (2, 5, 6), "stated": (5, 6, 2)}
    assert outcomes[1].held == {"stated": outage.MOVING}
    opened = outage.open_values(world.changes().state())
    assert opened["inherits", 0].was == (1, 4, 2) and opened["inherits", 0].becomes == ((2, 3, 5), (2, 5, 6))


def test_later_batches_choose_among_the_brokers_that_are_left(monkeypatch):
    monkeypatch.setattr(outage_run, "TOPICS_AT_ONCE", 1)
    world, outcomes = World(True), []

    def reassign(targets, **options):
        world.live = LIVE - {6}  # dies after the first batch
        return World.reassign(world, targets, **options)

    monkeypatch.setattr(world, "reassign", reassign)
    world.run(None, False, lambda c: outcomes.append(outage_run.change(world, c, entries(True), known(True), False)))
    assert outcomes[0].topics == {"add-replicas": 2} and not outcomes[0].failed
