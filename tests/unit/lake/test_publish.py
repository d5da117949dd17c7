"""Facts count from their row in `snapshots`, written last; nothing half-written is ever seen."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from durability.errors import BadInput, Refused
from durability.lake import iceberg, partition_groups, tables
from durability.topology import validate
from tests import ROOT
from tests.support.lake import EVERYWHERE, accepted, counts, publish, rejected, stage
from tests.support.topology import healthy

pytestmark = EVERYWHERE
STAGED = {
    "clusters": 1,
    "brokers": 3,
    "controllers": 3,
    "topics": 2,
    "partitions": 6,
    "partition_groups": 2,
    "groups": 0,
}
WITH_ROWS = [table for table in tables.FACTS if STAGED[table.name]]
FIRST, SECOND = "2026-11-21T02:00:00Z", "2026-11-22T02:00:00Z"


@pytest.fixture(autouse=True)
def few_are_grouped(monkeypatch):
    """The partitions of these small clusters are grouped too."""
    monkeypatch.setattr(partition_groups, "FROM", 1)


def test_staged_facts_do_not_exist_until_published(lake):
    attempt = stage(lake, healthy(topics=2, partitions=3))
    assert lake.snapshots() == [] and lake.scan(tables.PARTITIONS).num_rows == 0
    [row] = lake.publish([attempt], accepted(attempt))
    assert (row["status"], row["partitions"], row["sha256"]) == ("accepted", 6, attempt.sha256)
    assert counts(lake) == STAGED


def test_what_is_read_back_is_what_was_staged(lake):
    attempt = stage(lake, healthy(unreadable={"/brokers/1/configs": "?", "/topics/0/partitions/1/isr": "?"}))
    lake.publish([attempt], accepted(attempt))
    for table in tables.FACTS:
        read = lake.facts(table, lake.last_accepted("test"))
        assert read.schema.equals(table.arrow)
        assert read.sort_by([(name, "ascending") for name in table.sort]).equals(lake.read_staged(attempt, table))


def test_a_null_list_is_not_read_as_an_empty_one(lake):
    publish(lake, healthy(unreadable={"/brokers/0/log_dirs": "CLUSTER_AUTHORIZATION_FAILED"}))
    assert lake.scan(tables.BROKERS, columns=["log_dirs"])["log_dirs"].null_count == 3


def test_a_document_is_known_by_its_hash_and_a_live_reading_by_cluster_and_moment(lake):
    topology = validate(healthy(captured_at=FIRST), "test.json")
    assert lake.stage(topology).snapshot_id == topology.sha256
    assert stage(lake, healthy(captured_at=FIRST), "live").snapshot_id == "test@2026-11-21T02:00:00+00:00"


def test_a_rejected_snapshot_is_kept_with_its_reason_and_never_the_last_accepted(lake):
    publish(lake, healthy(captured_at=FIRST))
    bad = stage(lake, healthy(captured_at=SECOND))
    lake.publish([bad], rejected(bad, reason="2 leaders outside their replicas"))
    assert [(row["status"], row["reason"]) for row in lake.snapshots("test")] == [
        ("accepted", None),
        ("rejected", "2 leaders outside their replicas"),
    ]
    assert lake.last_accepted("test")["captured_at"].isoformat() == "2026-11-21T02:00:00+00:00"
    bad_row = lake.snapshots(status="rejected")[0]
    assert {table.name: lake.facts(table, bad_row).num_rows for table in tables.FACTS} == STAGED


def test_a_rerun_counts_instead_of_the_first_attempt_and_rows_are_not_doubled(lake):
    publish(lake, healthy())
    first = lake.last_accepted("test")
    publish(lake, healthy())
    second = lake.last_accepted("test")
    assert first["snapshot_id"] == second["snapshot_id"] and first["attempt_id"] != second["attempt_id"]
    assert len(lake.snapshots()) == 1 and counts(lake) == STAGED


def test_publishing_again_what_was_published_adds_nothing(lake):
    attempts = [stage(lake, healthy(cluster=name)) for name in ("a", "b")]
    lake.publish(attempts[:1], accepted(*attempts))
    lake.publish(attempts, accepted(*attempts))
    assert counts(lake, "a") == counts(lake, "b") == STAGED
    assert {table.name: lake.scan(table).num_rows for table in tables.FACTS} == {n: 2 * c for n, c in STAGED.items()}


def test_a_fleet_and_its_history_are_one_commit_a_table(lake):
    history = [healthy(cluster=f"c{n}", captured_at=moment) for n in range(3) for moment in (FIRST, SECOND)]
    publish(lake, *history)
    for table in (*WITH_ROWS, tables.SNAPSHOTS):
        assert len(lake._tables.load(table).snapshots()) == 1
    assert [s["cluster"] for s in lake.snapshots()] == ["c0", "c0", "c1", "c1", "c2", "c2"]
    assert lake.last_accepted("c1")["captured_at"].day == 22


def test_a_cluster_that_could_not_be_read_is_recorded(lake):
    lake.record_failures([("lost", datetime(2026, 11, 21, tzinfo=UTC), "no broker answered")])
    [row] = lake.snapshots("lost")
    assert (row["status"], row["reason"], row["partitions"]) == ("failed", "no broker answered", None)
    assert lake.last_accepted("lost") is None


def test_of_a_result_written_twice_the_newest_row_counts(lake):
    run = {"run_id": "r", "kind": "nightly", "captured_at": datetime(2026, 11, 21, tzinfo=UTC)}
    for result, minute, status in (("r:1", 5, "complete"), ("r:2", 6, "complete"), ("r:1", 7, "unverified")):
        finished = run["captured_at"] + timedelta(minutes=minute)
        lake.commit_run({**run, "result_id": result, "finished_at": finished, "status": status})
    assert [(r["result_id"], r["status"]) for r in lake.runs("nightly")] == [("r:2", "complete"), ("r:1", "unverified")]
    assert lake.runs("pulse") == []


def test_an_attempt_without_a_verdict_is_refused(lake):
    attempt = stage(lake, healthy())
    with pytest.raises(Refused, match="no verdict"):
        lake.publish([attempt], [])


def test_names_with_quotes_are_only_names(lake):
    publish(lake, healthy(cluster="o'brien\" or 1=1 --"), healthy(cluster="b"))
    assert [s["cluster"] for s in lake.snapshots("o'brien\" or 1=1 --")] == ["o'brien\" or 1=1 --"]


# Killed in between

# Imports once, then publishes in a child for each line it is given: the number of commits that the child survives.
WRITER = """
import os, sys
from types import SimpleNamespace
from durability.lake import Lake, iceberg, partition_groups
from durability.topology import validate
from tests.support.topology import healthy

partition_groups.FROM = 1

def publish(survive):
    lake = Lake.open(sys.argv[1])
    documents = [healthy(topics=3, captured_at=sys.argv[2], cluster=name) for name in ("a", "b")]
    attempts = [lake.stage(validate(document, "t.json")) for document in documents]
    commit = iceberg.Tables.add_files
    def dying(self, table, paths):
        nonlocal survive
        if survive == 0:
            os._exit(9)
        survive -= 1
        commit(self, table, paths)
    iceberg.Tables.add_files = dying
    lake.publish(attempts, [SimpleNamespace(attempt_id=a.attempt_id, accepted=True, reason=None) for a in attempts])

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        publish(int(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_killed_between_any_two_commits_readers_see_the_old_state_or_the_new_one(lake):
    publish(lake, healthy(topics=2, cluster="a", captured_at=FIRST), healthy(topics=2, cluster="b", captured_at=FIRST))
    command = [sys.executable, "-c", WRITER, lake.location, SECOND]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(command, **pipes) as writer:

        def write(survive):
            print(survive, file=writer.stdin, flush=True)
            return int(writer.stdout.readline())

        for survive in range(len(WITH_ROWS) + 1):  # a commit for each of these tables, then snapshots
            assert write(survive) == 9
            assert [(s["cluster"], s["captured_at"].day) for s in lake.snapshots()] == [("a", 21), ("b", 21)]
            assert counts(lake, "a") == counts(lake, "b") == STAGED
        assert write(len(WITH_ROWS) + 1) == 0
        assert lake.last_accepted("a")["captured_at"].day == 22
        more = STAGED | {"topics": 3, "partitions": 9, "partition_groups": 3}
        assert counts(lake, "a") == counts(lake, "b") == more
        writer.stdin.close()


def test_a_publish_that_failed_half_way_can_be_repeated_with_the_same_attempts(lake, monkeypatch):
    attempt = stage(lake, healthy())
    commit, seen = iceberg.Tables.add_files, []

    def failing(self, table, paths):
        seen.append(table.name)
        if table.name == "topics":
            raise ConnectionError("lost")
        commit(self, table, paths)

    with monkeypatch.context() as patched:
        patched.setattr(iceberg.Tables, "add_files", failing)
        with pytest.raises(ConnectionError):
            lake.publish([attempt], accepted(attempt))
    assert seen == ["clusters", "brokers", "controllers", "topics"] and lake.snapshots() == []
    lake.publish([attempt], accepted(attempt))
    assert counts(lake) == STAGED


def test_discarding_removes_all_staged_files_but_committed_ones(lake):
    loose, committed = stage(lake, healthy(cluster="loose")), stage(lake, healthy(cluster="committed"))
    lake.publish([committed], accepted(committed))
    assert set(loose.files) == {table.name for table in WITH_ROWS}
    assert lake.discard([committed, loose]) == len(WITH_ROWS)
    assert lake.discard([committed, loose]) == 0 and counts(lake, "committed") == STAGED


def test_staged_files_of_killed_runs_are_removed_once_they_are_old(lake):
    stage(lake, healthy(cluster="killed"))
    publish(lake, healthy())
    assert lake.discard_orphans() == 0
    assert lake.discard_orphans(older_than=timedelta(0)) == len(WITH_ROWS)
    assert lake.discard_orphans(older_than=timedelta(0)) == 0 and counts(lake) == STAGED


def test_bad_input_never_reaches_the_lake(lake):
    doc = healthy()
    doc["topics"][0]["partitions"][0]["isr"] = [99]
    with pytest.raises(BadInput):
        stage(lake, doc)
    assert lake.discard_orphans(older_than=timedelta(0)) == 0
