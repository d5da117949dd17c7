"""Where a lake can be, who may use it at once, and lakes of other versions."""

import multiprocessing
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysTrue

from durability.errors import AuditError, Refused
from durability.lake import Lake, catalog, iceberg, restore, tables
from durability.steps.settings import Settings
from tests.support.lake import counts, publish
from tests.support.topology import healthy

FIRST, SECOND = "2026-11-21T02:00:00Z", "2026-11-22T02:00:00Z"


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not lose")
    with pytest.raises(Refused, match="isn't empty and has no lake in it"):
        Lake.open(str(tmp_path))
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_file_is_no_lake(tmp_path):
    (tmp_path / "lake").write_text("")
    with pytest.raises(Refused, match="can't be used"):
        Lake.open(str(tmp_path / "lake"))


@pytest.mark.parametrize("content", [b"no database at all, but long enough for its header to be looked at" * 20])
def test_a_catalog_that_is_no_database_is_refused(tmp_path, content):
    (tmp_path / "catalog.db").write_bytes(content)
    with pytest.raises(Refused, match=r"catalog\.db can't be read"):
        Lake.open(str(tmp_path))


def test_somebody_elses_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "catalog.db") as database:
        database.execute("CREATE TABLE songs (title TEXT)")
    database.close()
    with pytest.raises(Refused, match="something else"):
        Lake.open(str(tmp_path))


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "lake").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)  # root may write anywhere
    with pytest.raises(Refused, match="can't be written to"):
        Lake.open(str(tmp_path / "lake"))


def test_a_moved_lake_says_that_it_was_moved(lake, tmp_path):
    publish(lake, healthy())
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    with pytest.raises(AuditError, match="can't be moved"):
        Lake.open(str(tmp_path / "elsewhere")).ensure()


def test_a_lake_never_set_up_says_so(tmp_path):
    with pytest.raises(Refused, match="never set up"):
        Lake.open(str(tmp_path / "new")).snapshots()


def test_a_folder_with_a_space_in_its_name_is_a_lake_like_any_other(tmp_path):
    lake = Lake.open(str(tmp_path / "my lake"))
    lake.ensure()
    publish(lake, healthy())
    assert counts(Lake.open(str(tmp_path / "my lake")))["partitions"] == 6


def ensure_at(location, ready, results):
    ready.wait()
    try:
        Lake.open(location).ensure()
        results.put("ok")
    except Exception as error:  # told to the test, which fails on it
        results.put(repr(error))


def test_first_users_racing_all_succeed(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, results = context.Barrier(3), context.Queue()
    users = [context.Process(target=ensure_at, args=(str(tmp_path / "lake"), ready, results)) for _ in range(3)]
    for user in users:
        user.start()
    assert [results.get(timeout=120) for _ in users] == ["ok"] * 3
    for user in users:
        user.join(30)
    assert Lake.open(str(tmp_path / "lake")).snapshots() == []


def test_first_users_racing_in_one_process_all_succeed(tmp_path):
    (tmp_path / "lake").mkdir()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: Lake(catalog.place(str(tmp_path / "lake"), {})).ensure(), range(4)))
    assert Lake.open(str(tmp_path / "lake")).snapshots() == []


@pytest.mark.parametrize(("table", "fits"), [("iceberg_namespace_properties", True), ("accounts", False)])
def test_a_catalog_that_another_user_is_creating_is_no_foreign_database(tmp_path, table, fits):
    """The catalog's tables are created one after the other."""
    with closing(sqlite3.connect(tmp_path / catalog.CATALOG_FILE)) as database:
        database.execute(f"CREATE TABLE {table} (name TEXT)")
    with nullcontext() if fits else pytest.raises(Refused, match="the database of something else"):
        catalog.prepare(catalog.place(str(tmp_path), {}))


def test_a_lake_that_another_user_creates_after_the_listing_is_one(tmp_path, monkeypatch):
    def then_created(folder):
        (tmp_path / catalog.CATALOG_FILE).touch()
        return iter([SimpleNamespace(name=f"{catalog.CATALOG_FILE}-journal")])

    monkeypatch.setattr(catalog.os, "scandir", then_created)
    catalog.prepare(catalog.place(str(tmp_path), {}))


def test_writers_at_once_lose_no_commit(lake):
    def write(number):
        mine = Lake.open(lake.location)
        for _ in range(5):
            mine.record_failures([(f"c{number}", datetime(2026, 11, 21, tzinfo=UTC), "down")])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert lake.scan(tables.SNAPSHOTS).num_rows == 20


def test_a_catalog_that_does_not_answer_is_named_without_its_password(tmp_path, monkeypatch):
    monkeypatch.setenv("DURABILITY_CATALOG", "postgresql://auditor:hunter2@127.0.0.1:1/lake")
    with pytest.raises(AuditError, match=r"the lake at .* catalog can't be opened") as caught:
        Lake.open(str(tmp_path / "lake"))
    assert "hunter2" not in str(caught.value)


def test_spark_gets_the_same_catalog(tmp_path):
    place = catalog.place(str(tmp_path / "lake"), {})
    conf = catalog.spark_conf(place)
    assert conf["spark.sql.catalog.durability.uri"] == f"jdbc:sqlite:{tmp_path}/lake/catalog.db"
    assert conf["spark.sql.catalog.durability.warehouse"] == f"file://{tmp_path}/lake/warehouse"
    assert conf["spark.sql.catalog.durability.cache-enabled"] == "false"


def test_a_postgresql_catalogs_password_is_decoded_and_in_no_address(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://s3.internal:9000")
    url = "postgresql://auditor:p%40ss@db.internal:5433/lake?sslmode=require"
    place = catalog.place("s3://audit/lake", {"DURABILITY_CATALOG": url})
    conf = catalog.spark_conf(place)
    name = "spark.sql.catalog.durability"
    assert conf[f"{name}.uri"] == "jdbc:postgresql://db.internal:5433/lake?sslmode=require"
    assert (conf[f"{name}.jdbc.user"], conf[f"{name}.jdbc.password"]) == ("auditor", "p@ss")
    assert conf[f"{name}.s3.path-style-access"] == "true"
    assert catalog.properties(place)["warehouse"] == "s3://audit/lake"


@pytest.mark.parametrize(
    ("location", "url", "says"),
    [
        ("s3://audit/lake", None, "DURABILITY_CATALOG"),
        ("gs://audit/lake", None, "folder or s3://"),
        ("/srv/a#b", None, "one of # . %"),
        ("/srv/lake", "mysql://u:secret@h/d", "'mysql'"),
        ("/srv/lake", "postgresql://u:secret/1@h/d", "/ is written %2F"),
    ],
)
def test_an_address_that_cannot_be_used_says_what_can(location, url, says):
    with pytest.raises(Refused, match=says) as caught:
        catalog.place(location, {"DURABILITY_CATALOG": url} if url else {})
    assert "secret" not in str(caught.value)


# Evolution


def earlier(table, columns):
    """A table as a version before this one had it: without its last columns."""
    return replace(table, columns=table.columns[:-columns])


def lake_of(path, monkeypatch, *changed):
    """A lake as another version made it, with these tables changed, and a snapshot published by it."""
    others = tables.TABLES | {table.name: table for table in changed}
    with monkeypatch.context() as patched:
        patched.setattr(iceberg, "TABLES", others)
        lake = Lake.open(str(path))
        lake.ensure()
    return lake


def test_a_table_of_an_earlier_version_gets_its_columns_and_is_read(tmp_path, monkeypatch):
    before = earlier(tables.SNAPSHOTS, 2)
    lake = lake_of(tmp_path / "lake", monkeypatch, before, earlier(tables.BROKERS, 1))
    row = {"cluster": "old", "captured_at": datetime(2026, 1, 1, tzinfo=UTC), "snapshot_id": "s", "attempt_id": "a"}
    row |= {"status": "accepted", "published_at": datetime(2026, 1, 1, tzinfo=UTC)}
    path = lake._tables.files.write(before, pa.Table.from_pylist([row], before.arrow))
    lake._tables.add_files(before, [path])

    now = Lake.open(str(tmp_path / "lake"))
    now.ensure()
    publish(now, healthy(cluster="new"))
    read = {s["cluster"]: (s["kind"], s["partitions"]) for s in now.snapshots()}
    assert read == {"old": (None, None), "new": ("full", 6)}
    assert now.scan(tables.SNAPSHOTS, "partitions > 1", ["cluster"])["cluster"].to_pylist() == ["new"]
    assert now.scan(tables.SNAPSHOTS, "partitions is null", ["cluster"])["cluster"].to_pylist() == ["old"]
    assert counts(now, "new")["brokers"] == 3


def test_a_column_added_with_nested_fields_is_written_and_read(tmp_path, monkeypatch):
    lake_of(tmp_path / "lake", monkeypatch, earlier(tables.GROUPS, 1), earlier(tables.CLUSTERS, 1))
    now = Lake.open(str(tmp_path / "lake"))
    now.ensure()
    publish(now, healthy(unreadable={"/cluster/features": "timeout"}))
    [unreadable] = now.scan(tables.CLUSTERS, columns=["unreadable"])["unreadable"].to_pylist()
    assert unreadable == [{"path": "/cluster/features", "reason": "timeout"}]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ((*tables.TOPICS.columns, ("colour", pa.string())), r"newer version .* \(colour\)"),
        ((*tables.TOPICS.columns[:-1], ("colour", pa.int32())), r"newer version .* \(colour\)"),
        (
            (
                *(column for column in tables.TOPICS.columns if column[0] != "declared_partitions"),
                ("declared_partitions", pa.string()),
            ),
            "Cannot change column type: declared_partitions",
        ),
    ],
)
def test_a_table_that_is_no_earlier_version_is_refused(tmp_path, monkeypatch, columns, says):
    lake_of(tmp_path / "lake", monkeypatch, replace(tables.TOPICS, columns=columns))
    with pytest.raises(Refused, match=f"(?s)audit.topics.*{says}|{says}"):
        Lake.open(str(tmp_path / "lake")).ensure()


def test_the_order_of_columns_is_no_matter(tmp_path, monkeypatch):
    lake_of(tmp_path / "lake", monkeypatch, replace(tables.TOPICS, columns=tables.TOPICS.columns[::-1]))
    now = Lake.open(str(tmp_path / "lake"))
    now.ensure()
    publish(now, healthy(cluster="new"))
    assert set(now.scan(tables.TOPICS)["topic"].to_pylist()) == {"topic-0", "topic-1"}


def test_field_ids_follow_from_the_order_of_columns(lake):
    schema = lake._tables.load(tables.BROKERS).schema()
    assert [(field.field_id, field.name) for field in schema.fields][:5] == [
        (1, "cluster"),
        (2, "captured_at"),
        (3, "snapshot_id"),
        (4, "attempt_id"),
        (5, "broker"),
    ]


def test_a_table_is_partitioned_by_day_and_keeps_few_old_metadata(lake):
    table = lake._tables.load(tables.PARTITIONS)
    assert [str(field.transform) for field in table.spec().fields] == ["day"]
    assert [field.source_id for field in table.sort_order().fields] == [1, 5, 6]
    assert table.properties["write.metadata.delete-after-commit.enabled"] == "true" and table.format_version == 2
    for _ in range(25):
        lake.record_failures([("c", datetime(2026, 11, 21, tzinfo=UTC), "down")])
    assert len(list((Path(lake.location) / "warehouse/audit/snapshots/metadata").glob("*.metadata.json"))) <= 21


def test_a_temporary_lake_leaves_nothing_in_the_catalog_of_others(tmp_path, monkeypatch):
    monkeypatch.setenv("DURABILITY_CATALOG", "postgresql://nobody@127.0.0.1:1/none")
    path = tmp_path / "policy.yaml"
    settings = Settings(path, path, path, tmp_path, str(tmp_path / "lake"), None, scratch=True)
    settings.open_lake().ensure()
    assert publish(settings.open_lake(), healthy()) and (tmp_path / "lake" / "catalog.db").is_file()
    assert "scratch" not in settings.to_params()


def test_a_commit_before_the_last_one_by_a_wrong_clock_is_refused(tmp_path, monkeypatch):
    """Iceberg's Java library wouldn't read the table again: "Expected sorted snapshot log entries"."""
    lake, now = Lake.open(str(tmp_path / "lake")), time.time
    for ahead, moment in ((30, FIRST), (0, SECOND), (3600, "2026-11-23T02:00:00Z")):
        monkeypatch.setattr(time, "time", lambda ahead=ahead: now() + ahead)
        lake.ensure()
        publish(lake, healthy(captured_at=moment))
    monkeypatch.setattr(time, "time", now)
    future = (
        r"the last commit to its table \w+ has the time .* UTC, which is in the future. Correct the clock of this host"
    )
    with pytest.raises(Refused, match=future):
        publish(lake, healthy(captured_at="2026-11-24T02:00:00Z"))
    with pytest.raises(Refused, match=future):
        lake.ensure()


def test_a_restore_by_a_wrong_clock_takes_nothing_out(tmp_path, monkeypatch):
    """It would take facts out of a table, and then fail before it rejects their snapshot."""
    lake, now = Lake.open(str(tmp_path / "lake")), time.time
    lake.ensure()
    publish(lake, healthy())
    lost = [
        Path(address.removeprefix("file://")) for address in lake._tables.committed(tables.PARTITIONS, AlwaysTrue())
    ]
    for path in lost:
        path.unlink()
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    with pytest.raises(Refused, match="in the future"):
        restore.restore(lake.location)
    monkeypatch.setattr(time, "time", now)
    said = "\n".join(restore.restore(lake.location))
    assert lost and all(path.name in said for path in lost) and "no longer counts" in said
