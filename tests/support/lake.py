"""Lakes for tests: each test's own, in its tmp_path."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """An empty lake with all its tables."""
    from durability.lake import Lake

    monkeypatch.delenv("DURABILITY_CATALOG", raising=False)
    made = Lake.open(str(tmp_path / "lake"))
    made.ensure()
    return made


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
    """What a reader sees of a cluster: the number of rows of its last accepted snapshot, by fact table."""
    from durability.lake.tables import FACTS

    snapshot = lake.last_accepted(cluster)
    return {table.name: lake.facts(table, snapshot).num_rows for table in FACTS}
