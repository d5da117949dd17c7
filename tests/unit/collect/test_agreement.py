"""Two readings that disagree: what the document keeps, and what is unknown with both readings."""

from __future__ import annotations

from durability.collect import agreement
from durability.collect.brokers import Registered
from durability.collect.notes import Notes
from durability.collect.topics import OF_ELR, Reading, Topic, recreated, same_state

PLACE = ("topics", "orders", "partitions", 0)


def row(number: int = 0, **changes) -> dict:
    lists = {"replicas": [1, 2], "isr": [1, 2], "elr": [], "last_known_elr": [], "adding": [], "removing": []}
    return {"partition": number, "leader": 1, **lists, **changes}


def reading(*, with_elr: bool = False, **topics: list[dict]) -> Reading:
    found = {name: Topic(False, {row["partition"]: row for row in rows}) for name, rows in topics.items()}
    return Reading(found, with_elr=with_elr)


def settled(before: Reading, after: Reading, stated: Reading) -> tuple[Reading, Notes]:
    notes = Notes()
    return agreement.settled(before, after, stated, notes), notes


def test_only_the_members_that_differ_are_noted():
    after = reading(orders=[row(isr=[1])], payments=[row()])
    kept, notes = settled(reading(orders=[row()], payments=[row()]), after, after)
    assert kept.topics["payments"].partitions == {0: row()}
    assert notes.reason((*PLACE, "isr")) == "CHANGED: [1, 2], then [1]"
    assert all(notes.reason((*PLACE, member)) is None for member in ("leader", "replicas", "adding"))
    assert notes.reason(("topics", "payments", "partitions", 0, "isr")) is None


def test_a_deleted_topic_is_left_out_and_a_new_one_is_there():
    after = reading(new=[row()])
    kept, notes = settled(reading(old=[row()]), after, after)
    assert list(kept.topics) == ["new"]
    assert notes.listed({"topics": [{"name": "new", "partitions": [row()]}]}) == []


def test_a_topic_that_was_recreated_is_shown_as_it_is_now_and_its_id_is_unknown():
    before = reading(with_elr=True, orders=[row(isr=[1], elr=[2])], payments=[row()])
    after = reading(orders=[row()], payments=[row()])
    for found, id in ((before, "old"), (after, "new")):
        found.topics["orders"].id, found.topics["payments"].id = id, "same"
    assert not same_state(before, after) and recreated(before, after) == ["orders"]
    kept, notes = settled(before, after, before)
    assert kept.topics["orders"] == Topic(False, {0: row()})
    assert notes.reason(("topics", "orders", "id")) == agreement.RECREATED
    assert notes.reason((*PLACE, "elr")) == agreement.APPEARED and notes.reason((*PLACE, "isr")) is None
    assert kept.topics["payments"].id == "same" and notes.reason(("topics", "payments", "id")) is None


def test_elrs_that_the_later_reading_cannot_state_are_kept_or_unknown():
    before = reading(with_elr=True, orders=[row(elr=[2])])
    kept, notes = settled(before, reading(orders=[row(), row(1)], new=[row()]), before)
    assert kept.with_elr and kept.topics["orders"].partitions[0]["elr"] == [2]
    assert notes.reason((*PLACE, "elr")) is None
    for place in (("topics", "orders", "partitions", 1), ("topics", "new", "partitions", 0)):
        assert [notes.reason((*place, member)) for member in OF_ELR] == [agreement.APPEARED] * 2


def test_a_lost_leader_is_none():
    after = reading(orders=[row(leader=None)])
    _, notes = settled(reading(orders=[row()]), after, after)
    assert notes.reason((*PLACE, "leader")) == "CHANGED: 1, then none"


def test_a_broker_that_was_fenced_meanwhile_is_neither_live_nor_down():
    notes = Notes()
    before = [Registered(1, "a", False), Registered(2, "b", False)]
    agreement.note_brokers(before, [Registered(1, "a", True), Registered(2, "b", False)], notes)
    assert notes.reason(("brokers", 1, "live")) == "CHANGED: live, then fenced"
    assert notes.reason(("brokers", 2, "live")) is None
