"""A dead broker's rack is carried over and marked so, never taken as none."""

from durability.lake import rows, tables
from durability.topology import validate
from tests.support.lake import EVERYWHERE, publish, rejected, stage
from tests.support.topology import document

pytestmark = EVERYWHERE
FIRST, SECOND = "2026-11-21T02:00:00Z", "2026-11-22T02:00:00Z"


DOWN = "topic replicas isr\norders 1,2,3 1,2"


def racks(lake, doc, **options):
    brokers = lake.read_staged(stage(lake, doc, **options), tables.BROKERS).to_pylist()
    return {b["broker"]: (b["rack"], b["rack_state"]) for b in brokers}


def broken(captured_at=SECOND, down="3:!"):
    return document(
        DOWN, brokers=f"1:az1 2:az2 {down}", captured_at=captured_at, unreadable={"/brokers/3/rack": "dead"}
    )


def test_a_dead_brokers_rack_comes_from_the_last_accepted_snapshot(lake):
    assert racks(lake, broken())[3] == (None, "unknown")
    publish(lake, document(DOWN, brokers="1:az1 2:az2 3:az3", captured_at=FIRST))
    assert racks(lake, broken()) == {1: ("az1", "named"), 2: ("az2", "named"), 3: ("az3", "carried")}
    publish(lake, broken())
    assert racks(lake, broken("2026-11-23T02:00:00Z"))[3] == ("az3", "carried")


def test_a_rack_is_not_carried_from_what_was_rejected_or_came_later_or_for_a_live_broker(lake):
    publish(lake, document(DOWN, brokers="1:az1 2:az2 3:az3", captured_at="2026-12-01T00:00:00Z"))
    bad = stage(lake, document(DOWN, brokers="1:az1 2:az2 3:az3", captured_at=FIRST))
    lake.publish([bad], rejected(bad))
    assert racks(lake, broken())[3] == (None, "unknown")
    publish(lake, document(DOWN, brokers="1:az1 2:az2 3:az3", captured_at="2026-11-20T00:00:00Z"))
    assert racks(lake, broken(down="3"))[3] == (None, "unknown")


def test_within_one_input_the_newest_earlier_document_gives_the_rack(lake):
    publish(lake, document(DOWN, brokers="1:az1 2:az2 3:old", captured_at="2026-11-01T00:00:00Z"))
    earlier = [
        validate(document(DOWN, brokers=f"1:az1 2:az2 3:{rack}", captured_at=moment, cluster=cluster), "f.json")
        for rack, moment, cluster in (
            ("new", "2026-11-21T03:00:00Z", "test"),
            ("older", FIRST, "test"),
            ("later", "2026-11-23T00:00:00Z", "test"),
            ("other", "2026-11-21T04:00:00Z", "another"),
        )
    ]
    assert racks(lake, broken(), earlier=earlier)[3] == ("new", "carried")


def test_each_earlier_document_is_read_once_however_many_later_ones_ask(lake, monkeypatch):
    read, real = [], rows.broker_rows
    monkeypatch.setattr(rows, "broker_rows", lambda facts: read.append(1) or real(facts))
    history = [validate(broken(f"2026-11-0{day}T00:00:00Z"), f"{day}.json") for day in range(1, 9)]
    for topology in history:
        lake.stage(topology, earlier=history)
    assert len(read) == 8 + 7  # of each its own rows; of all but the newest its racks
