"""Reading one group of sources: one result each, whatever becomes of the others."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from durability.errors import AuditError
from kafka_durability.sources import Source

log = logging.getLogger(__name__)

THREADS = 8
Connect = Callable[[str], dict[str, object]]
"""Connection id -> the settings that `durability.collect` takes."""


def collect_group(lake, group: Sequence[Source], connect: Connect) -> dict[str, list]:
    """`{"sources": names, "attempts": [Attempt as JSON], "failures": [{"cluster", "reason", "at"}]}`.

    Every source named is in attempts or failures. Facts are staged in `lake` under fresh attempt ids; nothing is
    committed.
    """
    results: dict[str, list] = {"sources": [s["name"] for s in group], "attempts": [], "failures": []}
    for source in group:
        if "document" in source:
            _documents(lake, Path(str(source["document"])), results)
    clusters = [s for s in group if "document" not in s]
    if clusters:
        # Connections come from Airflow's supervisor over one channel, so they are asked for before there are threads.
        prepared = [(source, _prepare(source, connect)) for source in clusters]
        with ThreadPoolExecutor(max_workers=min(THREADS, len(clusters))) as pool:
            for result in pool.map(lambda item: _cluster(lake, *item), prepared):
                results["failures" if "reason" in result else "attempts"].append(result)
    return results


def _documents(lake, path: Path, results: dict[str, list]) -> None:
    """A file or folder: whole documents or an error for each; a cluster's earlier ones tell racks of dead brokers."""
    from durability.topology.reading import read_each

    topologies, errors = read_each(path)
    results["failures"] += [failure(Path(error.file).name, str(error)) for error in errors]
    for topology in topologies:
        attempt = lake.stage(topology, earlier=topologies)
        results["attempts"].append(json.loads(attempt.to_json()))


def failure(cluster: str, reason: str) -> dict[str, str]:
    """A source that could not be read, now."""
    return {"cluster": cluster, "reason": reason, "at": datetime.now(UTC).isoformat()}


def _prepare(source: Source, connect: Connect) -> dict[str, object] | Exception:
    try:
        return connect(str(source["connection"]))
    except Exception as error:
        return error


def _cluster(lake, source: Source, settings: dict[str, object] | Exception) -> dict:
    from durability.collect import collect

    name = str(source["name"])
    try:
        if isinstance(settings, Exception):
            raise settings
        topology = collect(name, settings, controllers=dict(source.get("controllers") or ()))
        attempt = lake.stage(topology, provider=source.get("provider") or "self", team=source.get("team"))
        return json.loads(attempt.to_json())
    except AuditError as error:
        return failure(name, str(error))
    except Exception as error:
        # A defect that one cluster brings out must not cost the others their report; the run ends failed all the same.
        log.exception("reading %s failed", name)
        return failure(name, f"defect while reading: {type(error).__name__}: {error}")
