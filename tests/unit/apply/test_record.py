"""The record of changes in a real lake, and who may change a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from durability.apply import record
from durability.apply.record import LEASE, THROTTLE, Approval, Changes, Unfinished, unfinished
from durability.errors import Unreachable
from durability.lake.change_table import CHANGES
from tests.support.fake_cluster import MemoryLake


def changes(lake, run_id="r1", plan="p", cluster="eu", approval=None) -> Changes:
    return Changes(lake, cluster, "remediate", plan, run_id, approval)


def later(lake: MemoryLake, by: timedelta) -> None:
    """Time passes."""
    lake.rows = [row | {"captured_at": row["captured_at"] - by} for row in lake.rows]


def test_a_lake_keeps_each_change_with_its_approval_and_the_newest_row_counts(lake):
    noon = datetime(2026, 11, 27, 12, tzinfo=UTC)
    first = changes(lake, approval=Approval("ann", noon, "go"))
    with first.claimed():
        first.intend("1-set", "1-set", "set-config", ["t"], [{"value": None}], [{"value": "ä"}])
        first.intend("2-move", "throttle:2-move", THROTTLE, ["t", "u"], [], [])
        first.done("1-set")
        first.done("throttle:2-move", "as asked")
        with pytest.raises(Unreachable, match="run r1 changes it now, by plan p"):
            changes(lake, "r2").claim()
        changes(lake, "r2", cluster="us").claim()
        assert unfinished(lake) == []
    state = changes(lake, "r2").state()
    assert state == first.state() and {change: row.state for change, row in state.items()} == {
        "1-set": "done",
        "throttle:2-move": "done",
    }
    moved = state["throttle:2-move"]
    assert (moved.topics, moved.said, state["1-set"].becomes) == (("t", "u"), "as asked", [{"value": "ä"}])
    rows = [row for row in lake.scan(CHANGES).to_pylist() if row["cluster"] == "eu"]
    assert {(row["approved_by"], row["approved_at"], row["comment"]) for row in rows} == {("ann", noon, "go")}
    assert unfinished(lake, "eu") == [Unfinished("eu", "remediate", "p")] == unfinished(lake)
    with (again := changes(lake, "r2")).claimed():
        again.undone("throttle:2-move")
    assert unfinished(lake) == [] and changes(lake, plan="other").state() == {}


def test_a_later_try_of_the_run_takes_its_claim_over_and_the_earlier_try_changes_nothing_more():
    lake = MemoryLake()
    earlier, retry = changes(lake), changes(lake)
    earlier.claim()
    retry.claim()
    with pytest.raises(Unreachable, match="changes it now"):
        earlier.intend("1", "1", THROTTLE, [], [], [])
    retry.intend("1", "1", THROTTLE, [], [], [])
    earlier.release()
    retry.claim()  # it has it already
    retry.release()
    with pytest.raises(Unreachable, match="the claim of this run is over"):
        earlier_again = changes(lake)
        earlier_again.claim()
        later(lake, LEASE)
        earlier_again.intend("2", "2", THROTTLE, [], [], [])
    with pytest.raises(RuntimeError, match="isn't claimed"):
        changes(lake).intend("2", "2", THROTTLE, [], [], [])


def test_a_claim_lasts_while_it_is_renewed_and_then_its_lease(monkeypatch):
    lake = MemoryLake()
    first = changes(lake)
    first.claim()
    rows = len(lake.rows)
    first.renew()
    assert len(lake.rows) == rows
    later(lake, LEASE / 2)
    monkeypatch.setattr(first, "_renewed", first._renewed - LEASE / 2)
    first.renew()
    later(lake, LEASE * 2 / 3)
    with pytest.raises(Unreachable):
        changes(lake, "r2").claim()
    later(lake, LEASE / 3)
    second = changes(lake, "r2")
    second.claim()
    with pytest.raises(Unreachable, match="run r2 changes it now"):
        first.intend("1", "1", THROTTLE, [], [], [])
    monkeypatch.setattr(first, "_renewed", first._renewed - LEASE)
    with pytest.raises(Unreachable, match="run r2 changes it now"):
        first.renew()


@pytest.mark.parametrize("order", ["first", "second"])
def test_of_two_runs_that_claim_at_once_only_one_goes_on(monkeypatch, order):
    """Both see no claim, and both write theirs. The one with the greater id gives way, whoever looked first."""
    lake = MemoryLake()
    one, two = sorted((changes(lake, "r1"), changes(lake, "r2")), key=lambda made: made._claim)
    here, there = (one, two) if order == "first" else (two, one)
    monkeypatch.setattr(record, "time", type("Time", (), {"sleep": lambda seconds: None}))
    written = []

    def append(table, added):
        MemoryLake.append(lake, table, added)
        if not written:
            written.append(True)
            there._write([there._row("", there._claim, "claim", "intended", datetime.now(UTC))])

    monkeypatch.setattr(lake, "append", append)
    with pytest.raises(Unreachable, match=f"run {there.run_id} changes it now"):
        here.claim()
    assert [row["change"] for row in record.live_claims(lake.rows, datetime.now(UTC))] == [there._claim]


def test_the_smaller_of_two_claims_goes_on_once_the_other_has_given_way(monkeypatch):
    lake = MemoryLake()
    here, there = sorted((changes(lake, "r1"), changes(lake, "r2")), key=lambda made: made._claim)
    there.claim()
    monkeypatch.setattr(record, "time", type("Time", (), {"sleep": lambda seconds: there.release()}))
    found = here._live_claims
    monkeypatch.setattr(here, "_live_claims", lambda now: [] if not lake.rows[1:] else found(now))
    here.claim()
    here.intend("1", "1", THROTTLE, [], [], [])


def test_the_newest_row_counts_though_the_clock_of_its_host_is_behind():
    lake = MemoryLake()
    first = changes(lake)
    with first.claimed():
        first.intend("1", "1", THROTTLE, [], [], [])
    later(lake, -timedelta(hours=1))
    lake.rows = [row for row in lake.rows if row["kind"] != "claim"]
    second = changes(lake, "r2")
    with second.claimed():
        second.undone("1")
    assert changes(lake, "r3").state()["1"].state == "undone"
