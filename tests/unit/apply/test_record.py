"""The record of changes in a real lake, and who may change a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from durability.apply import record
from durability.apply.record import LEASE, THROTTLE, Approval, Changes
from durability.apply.recorded import Unfinished, unfinished
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


@pytest.mark.parametrize(
    "other, gives_way, sleeps, goes_on",
    [("claim:0", False, 0, False), ("claim:g", False, 5, False), ("claim:g", True, 1, True)],
    ids=["smaller", "greater, but looked first", "greater, gives way"],
)
def test_of_two_runs_that_claim_at_once_only_one_goes_on(monkeypatch, other, gives_way, sleeps, goes_on):
    """Neither saw the other's claim before it wrote its own. The one with the greater id gives way, unless it looked first."""
    lake, slept = MemoryLake(), []
    here = changes(lake, "r1")
    theirs = here._row("", other, "claim", "intended", datetime.now(UTC)) | {"run_id": "r2"}

    def append(table, added):
        MemoryLake.append(lake, table, added)
        if len(lake.rows) == 1:
            lake.rows.append(theirs)

    def sleep(seconds):
        slept.append(seconds)
        if gives_way:
            lake.rows.append(theirs | {"state": "done"})

    monkeypatch.setattr(lake, "append", append)
    monkeypatch.setattr(record, "time", SimpleNamespace(sleep=sleep))  # other threads sleep on
    if goes_on:
        here.claim()
        here.intend("1", "1", THROTTLE, [], [], [])
    else:
        with pytest.raises(Unreachable, match="run r2 changes it now"):
            here.claim()
        assert [row["change"] for row in record.live_claims(lake.rows, datetime.now(UTC))] == [other]
    assert len(slept) == sleeps


def test_a_run_that_failed_with_open_changes_keeps_its_claim_for_its_next_try():
    lake = MemoryLake()
    for number in range(2):
        with pytest.raises(ZeroDivisionError), (failed := changes(lake)).claimed():
            if number:
                failed.intend("1", "1", THROTTLE, [], [], [])
            raise ZeroDivisionError
        if not number:
            changes(lake, "r2").release()
            with changes(lake, "r2").claimed():
                pass
    with pytest.raises(Unreachable, match="run r1 changes it now"):
        changes(lake, "r2").claim()
    with (again := changes(lake)).claimed():
        again.undone("1")
    with again.claimed(), pytest.raises(Unreachable):
        changes(lake, "r2").claim()
    changes(lake, "r2").claim()


def test_only_plans_that_may_be_open_are_read_whole():
    lake, whole = MemoryLake(), []
    value = {"topic": "t", "name": "n", "value": "1", "until": "2"}
    for plan in ("complete", "killed"):
        run = changes(lake, plan=plan)
        run.claim()
        run.intend("1", "1", "set-config", ["t"], [value], [value])
        run.done("1")
        if plan == "complete":
            run.intend("2", "2", "set-config", ["t"], [value], [value | {"until": None}])
            run.done("2")
            run.release()
        else:  # with a value that a second change was to replace
            later(lake, LEASE)
    scan = lake.scan
    lake.scan = lambda table, where, columns=None: whole.append(columns is None) or scan(table, where, columns)
    [left] = unfinished(lake)
    assert (left.plan, [row.change for row in left.rows], whole) == ("killed", ["1"], [False, True])
    assert left.last == max(row["captured_at"] for row in lake.rows if row["plan"] == "killed")
    with (again := changes(lake, "r2", plan="killed")).claimed():
        again.undone("1")
    whole.clear()
    assert unfinished(lake) == [] and whole == [False]  # the claim of the killed run has ended, too


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
