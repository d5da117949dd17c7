"""Lakes for tests. Each test has its own, in its tmp_path."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

EVERYWHERE = pytest.mark.parametrize("lake", ["folder", "s3"], indirect=True)
"""Marks a test that runs with each kind of lake: `folder` (the default) and `s3` (with PostgreSQL)."""


@pytest.fixture
def lake(request, tmp_path, monkeypatch):
    """An empty lake with all its tables; see EVERYWHERE."""
    from durability.lake import Lake

    if getattr(request, "param", "folder") == "s3":
        made = Lake.open(request.getfixturevalue("away"))
        made.ensure()
        return made
    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    return Lake.open(copied(request.getfixturevalue("_empty"), tmp_path / "lake"))


@pytest.fixture(scope="session")
def _empty(tmp_path_factory) -> Path:
    """The folder of a lake that stays empty. Creating all tables takes longer than most tests of a lake, copying them doesn't."""
    from durability.lake import Lake

    folder = tmp_path_factory.mktemp("empty") / "lake"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DURABILITY_CATALOG", raising=False)
        made = Lake.open(str(folder))
        made.ensure()
        made._tables.catalog.engine.dispose()
    return folder


def copied(empty: Path, there: Path) -> str:
    """A copy of a lake without rows, as if it had been created `there`; returns its location."""
    shutil.copytree(empty, there, dirs_exist_ok=True)
    for path in there.rglob("*.metadata.json"):
        path.write_text(path.read_text().replace(str(empty), str(there)))
    columns = {"iceberg_tables": "metadata_location", "iceberg_namespace_properties": "property_value"}
    with closing(sqlite3.connect(there / "catalog.db")) as catalog, catalog:
        for table, column in columns.items():
            catalog.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (str(empty), str(there)))
    return str(there)


def attach(session, lake):
    """Make a lake the catalog of a Spark session that has no other."""
    from durability.lake.tables import CATALOG
    from tests.support.stores import KEY

    # Spark was started before the environment had these.
    keys = {"s3.access-key-id": KEY["AWS_ACCESS_KEY_ID"], "s3.secret-access-key": KEY["AWS_SECRET_ACCESS_KEY"]}
    theirs = {f"spark.sql.catalog.{CATALOG}.{name}": value for name, value in keys.items()}
    for name, value in {**lake.spark_conf(), **theirs}.items():
        if name.startswith("spark.sql.catalog."):
            session.conf.set(name, value)


def accepted(*attempts):
    """A verdict on each attempt: the gate accepted it."""
    return [SimpleNamespace(attempt_id=a.attempt_id, cluster=a.cluster, accepted=True, reason=None) for a in attempts]


def rejected(*attempts, reason="contradicts itself"):
    """A verdict on each attempt: the gate rejected it."""
    return [
        SimpleNamespace(attempt_id=a.attempt_id, cluster=a.cluster, accepted=False, reason=reason) for a in attempts
    ]


def publish(lake, *documents, source="test.json"):
    """Validates, stages and publishes documents as accepted; returns their rows of `snapshots`."""
    from durability.topology import validate

    attempts = [lake.stage(validate(document, source)) for document in documents]
    return lake.publish(attempts, accepted(*attempts))


def stage(lake, doc, source="test.json", **options):
    """Validates a document and stages it; `options` are `Lake.stage`'s."""
    from durability.topology import validate

    return lake.stage(validate(doc, source), **options)


def counts(lake, cluster="test"):
    """What readers see of a cluster: the number of rows of its last accepted snapshot, by fact table."""
    from durability.lake.tables import FACTS

    snapshot = lake.last_accepted(cluster)
    return {table.name: lake.facts(table, snapshot).num_rows for table in FACTS}
