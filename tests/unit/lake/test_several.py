"""Several lakes in one PostgreSQL catalog: each keeps to its own tables, and a deleted one takes nothing with it."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import psycopg2
import pytest

from durability.errors import Refused
from durability.lake import Lake, catalog, iceberg, namespaces, restore, tables
from tests.support.lake import publish
from tests.support.topology import healthy


@pytest.fixture
def shared(postgresql, monkeypatch):
    """DURABILITY_CATALOG names a new database."""
    name = f"shared_{uuid.uuid4().hex}"
    connection = psycopg2.connect(f"{postgresql}/postgres")
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    monkeypatch.setenv("DURABILITY_CATALOG", f"{postgresql}/{name}")


def lake_at(path) -> Lake:
    lake = Lake.open(str(path))
    lake.ensure()
    return lake


def clusters(lake) -> list[str]:
    return [row["cluster"] for row in lake.snapshots()]


def lake_of_01(path, monkeypatch) -> Lake:
    """A lake as 0.1 made it: in the namespace `audit`, whatever else the catalog has."""
    with monkeypatch.context() as patched:
        patched.setattr(iceberg, "namespace", lambda place: tables.NAMESPACE)
        lake = lake_at(path)
        publish(lake, healthy(cluster="production"))
    return lake


def test_another_lake_leaves_the_tables_of_the_first_alone(shared, tmp_path):
    production = lake_at(tmp_path / "production")
    publish(production, healthy(cluster="production"))
    laptop = lake_at(tmp_path / "laptop")
    publish(laptop, healthy(cluster="laptop"))
    shutil.rmtree(tmp_path / "laptop")
    assert clusters(lake_at(tmp_path / "production")) == ["production"]
    again = lake_at(tmp_path / "laptop")
    publish(again, healthy(cluster="again"))
    assert clusters(again) == ["again"], "a deleted folder is a new lake"


def test_a_lake_of_0_1_keeps_its_tables_and_others_get_their_own(shared, tmp_path, monkeypatch):
    lake_of_01(tmp_path / "production", monkeypatch)
    other = lake_at(tmp_path / "other")
    publish(other, healthy(cluster="other"))
    production = lake_at(tmp_path / "production")
    assert production.spark_conf()["spark.sql.catalog.durability.default-namespace"] == "audit"
    assert other.spark_conf()["spark.sql.catalog.durability.default-namespace"].startswith("audit_")
    assert (clusters(production), clusters(other)) == (["production"], ["other"])


def test_a_folder_reached_by_a_link_is_the_same_lake(shared, tmp_path):
    publish(lake_at(tmp_path / "lake"), healthy(cluster="a"))
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    assert clusters(lake_at(tmp_path / "link")) == ["a"]


def test_what_0_1_mixed_is_taken_apart(shared, tmp_path, monkeypatch):
    production = lake_of_01(tmp_path / "production", monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(iceberg, "namespace", lambda place: tables.NAMESPACE)
        patched.setattr(iceberg, "same_folder", lambda one, other: True)
        laptop = Lake.open(str(tmp_path / "laptop"))
        publish(laptop, healthy(cluster="laptop"))
        production._tables.catalog.drop_table("audit.runs")
        laptop.ensure()  # a newer version, that first ran for the laptop's lake
    shutil.rmtree(tmp_path / "laptop" / "warehouse" / "audit" / "snapshots")
    with pytest.raises(Refused, match=r"audit.runs is in file://.*laptop/.*another lake's"):
        lake_at(tmp_path / "production").runs()
    told = restore.restore(str(tmp_path / "production"))
    assert any("laptop/warehouse/audit/snapshots" in line and "another lake's folder" in line for line in told)
    mended = lake_at(tmp_path / "production")
    assert clusters(mended) == ["production"] and mended.runs() == []
    assert set(mended.scan(tables.TOPICS)["cluster"].to_pylist()) == {"production"}
    assert list((tmp_path / "laptop" / "warehouse" / "audit" / "topics" / "data").iterdir()), "no file is removed"


def test_an_address_on_s3_gives_the_namespace(shared):
    url = "postgresql://auditor:x@127.0.0.1:1/lake"
    one, two = (namespaces.namespace(catalog.place(f"s3://audit/{n}", {"DURABILITY_CATALOG": url})) for n in "ab")
    assert one != two and one.startswith("audit_")
    assert one == namespaces.namespace(catalog.place("s3://audit/a/", {"DURABILITY_CATALOG": url}))


def test_a_copied_lake_is_refused(lake, tmp_path):
    publish(lake, healthy(cluster="a"))
    shutil.copytree(lake.location, tmp_path / "copy")
    with pytest.raises(Refused, match="another lake's"):
        Lake.open(str(tmp_path / "copy")).ensure()
    with pytest.raises(Refused, match="moved or copied"):
        restore.restore(str(tmp_path / "copy"))
    assert clusters(lake) == ["a"]


# Lost files


def data(lake, table) -> list[Path]:
    return sorted(Path(lake.location, "warehouse", "audit", table.name, "data").glob("*.parquet"))


def test_a_lake_that_lost_files_names_them_and_the_rest_stays_readable(lake):
    publish(lake, healthy(cluster="a"))
    publish(lake, healthy(cluster="b"))
    lost = next(Path(path.removeprefix("file://")) for path in committed(lake, tables.TOPICS, "b"))
    lost.unlink()
    with pytest.raises(Refused, match=r"is missing.*make restore"):
        lake.scan(tables.TOPICS)
    told = restore.restore(lake.location)
    (named,) = (line for line in told if lost.name in line)
    assert "audit.topics" in named and "cluster b" in named and "is missing" in named
    mended = lake_at(lake.location)
    assert set(mended.scan(tables.TOPICS)["cluster"].to_pylist()) == {"a"}
    assert mended.last_accepted("a") and mended.last_accepted("b") is None, "nothing rests on half a snapshot"
    assert any("cluster b: its snapshot" in line for line in told)
    publish(mended, healthy(cluster="c"))
    with pytest.raises(Refused, match="no file of theirs is missing"):
        restore.restore(lake.location)


def committed(lake, table, cluster):
    from pyiceberg.expressions import EqualTo

    return lake._tables.committed(table, EqualTo("cluster", cluster))


def test_a_file_cut_short_is_lost_too(lake):
    publish(lake, healthy(cluster="a"))
    (file,) = data(lake, tables.BROKERS)
    file.write_bytes(file.read_bytes()[:100])
    told = restore.restore(lake.location)
    assert any("has 100 of" in line for line in told)
    assert lake_at(lake.location).scan(tables.BROKERS).num_rows == 0


@pytest.mark.parametrize("kind", ["*.metadata.json", "snap-*.avro", "*-m0.avro"])
def test_a_table_continues_from_the_newest_state_that_is_whole(lake, kind):
    publish(lake, healthy(cluster="a"))
    folder = Path(lake.location, "warehouse", "audit", "snapshots", "metadata")
    before = set(folder.iterdir())
    publish(lake, healthy(cluster="b"))
    for file in folder.glob(kind):
        if file not in before:
            file.unlink()
    told = restore.restore(lake.location)
    assert any("audit.snapshots" in line and "it continues from 0000" in line for line in told)
    assert clusters(lake_at(lake.location)) == ["a"]


def test_a_table_without_any_metadata_is_made_anew(lake):
    publish(lake, healthy(cluster="a"))
    shutil.rmtree(Path(lake.location, "warehouse", "audit", "groups", "metadata"))
    told = restore.restore(lake.location)
    anew = "all of its rows are gone, and the next run creates it again"
    assert told == [f"audit.groups: its metadata file is missing or damaged; {anew}"]
    assert clusters(lake_at(lake.location)) == ["a"]


def test_a_catalog_whose_files_are_all_gone_starts_anew(lake):
    publish(lake, healthy(cluster="a"))
    shutil.rmtree(Path(lake.location, "warehouse"))
    assert len(restore.restore(lake.location)) == len(tables.TABLES)
    assert clusters(lake_at(lake.location)) == []
