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
from kafka_durability.turns import Turn, Turns

log = logging.getLogger(__name__)

THREADS = 8
TOGETHER = 100_000  # partitions that one worker reads at once: half a gigabyte, see `turns`
Connect = Callable[[str], dict[str, object]]
"""Connection id -> the settings that `durability.collect` takes."""


def collect_group(lake, group: Sequence[Source], connect: Connect, *, seconds: float) -> dict[str, list]:
    """`{"sources": names, "attempts": [Attempt as JSON], "failures": [{"cluster", "reason", "at"}]}`.

    Every source named is in attempts or failures. Facts are staged in `lake` under fresh attempt ids; nothing is
    committed. seconds: within which clusters are read; those whose turn doesn't come are failures.
    """
    results: dict[str, list] = {"sources": [s["name"] for s in group], "attempts": [], "failures": []}
    for source in group:
        if "document" in source:
            _documents(lake, Path(str(source["document"])), results)
    clusters = [s for s in group if "document" not in s]
    if clusters:
        _clusters(lake, clusters, connect, seconds, results)
    return results


def _clusters(lake, clusters: Sequence[Source], connect: Connect, seconds: float, results: dict[str, list]) -> None:
    """Threads that take turns: one whose cluster doesn't answer costs the others no more than that thread."""
    # Connections come from Airflow's supervisor over one channel, so they are asked for before there are threads.
    prepared = [Turn((s, _prepare(s, connect)), int(s["partitions"]), float(s["seconds"])) for s in clusters]
    turns = Turns(prepared, TOGETHER, seconds)

    def read() -> None:
        while taken := turns.take():
            turn, allowed = taken
            try:
                result = _cluster(lake, *turn.what, allowed)
            finally:
                turns.done(turn)
            results["failures" if "reason" in result else "attempts"].append(result)

    with ThreadPoolExecutor(max_workers=min(THREADS, len(clusters))) as pool:
        try:
            for thread in [pool.submit(read) for _ in range(min(THREADS, len(clusters)))]:
                thread.result()
        finally:
            turns.stop()  # the task may have been told to end; what is being read is bounded by its own seconds
    late = f"its turn didn't come within the {seconds:.0f} s that its group of {len(clusters)} clusters has"
    results["failures"] += [failure(str(turn.what[0]["name"]), late) for turn in turns.left]


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


def _cluster(lake, source: Source, settings: dict[str, object] | Exception, seconds: float) -> dict:
    from durability.collect import Limits, collect

    name = str(source["name"])
    try:
        if isinstance(settings, Exception):
            raise settings
        controllers = dict(source.get("controllers") or ())
        topology = collect(name, settings, controllers=controllers, limits=Limits(deadline=seconds))
        attempt = lake.stage(topology, provider=source.get("provider") or "self", team=source.get("team"))
        return json.loads(attempt.to_json())
    except AuditError as error:
        return failure(name, str(error))
    except Exception as error:
        # A defect that one cluster brings out must not cost the others their report; the run ends failed all the same.
        log.exception("reading %s failed", name)
        return failure(name, f"defect while reading: {type(error).__name__}: {error}")
