"""Step collect: reads one group of sources and stages the facts. Nothing is committed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from durability.collect.fleet import ClusterRead, ClusterScheduler
from durability.errors import AuditError, printable
from durability.plain import plural
from durability.steps.results import Collected, Failure
from durability.steps.settings import Settings
from durability.steps.sources import Source
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Attempt, Lake
    from durability.topology import Topology

log = logging.getLogger(__name__)

THREADS = 8
PARTITIONS_AT_ONCE = 100_000
"""Limits memory to about half a gigabyte: a partition takes about 5 KB until its topology is staged."""
Connect = Callable[[str], Mapping[str, object]]
"""Takes a Connection id, returns the settings for `durability.collect.collect`."""


def collect(
    settings: Settings,
    group: Sequence[Source],
    connect: Connect,
    seconds: float,
    summary: StepSummary,
    threads: int = THREADS,
    *,
    keep: bool = False,
) -> Collected:
    """Read `group` into the run's lake; see `collect_group`. keep: also keep the documents (`Lake.documents`)."""
    lake = settings.open_lake()
    known = lake.kafka_cluster_ids(str(s["name"]) for s in group if "document" not in s)
    results = collect_group(
        lake,
        group,
        connect,
        seconds=seconds,
        threads=threads,
        progress=summary.progress,
        known=known,
        keep=keep,
        # They have JSON files, too, and may be in the documents' folder.
        without=[settings.out, *([] if "://" in settings.lake else [Path(settings.lake)])],
        note=summary.problems.append,
    )
    partitions = sum(a.partitions for a in results.attempts)
    summary.text = f"{plural(len(results.attempts), 'snapshot')}, {plural(partitions, 'partition')}"
    summary.problems += [f.text for f in results.failures]
    return results


def collect_group(
    lake: Lake,
    group: Sequence[Source],
    connect: Connect,
    *,
    seconds: float,
    threads: int = THREADS,
    progress: Callable[[int, int], None] = lambda done, total: None,
    known: Mapping[str, tuple[str, datetime]] = MappingProxyType({}),
    keep: bool = False,
    without: Sequence[Path] = (),
    note: Callable[[str], None] = lambda text: None,
) -> Collected:
    """One result per source: facts staged in `lake` under a new attempt id, or a failure.

    A failing source doesn't affect the others.

    seconds: the time for all clusters. A cluster whose read isn't started in that time is a failure.
    threads: how many clusters are read at once.
    progress: called with the numbers of finished clusters and of all clusters.
    known: by cluster, its Kafka cluster id and when it was read (`Lake.kafka_cluster_ids`).
    keep: also keep the documents.
    without: see `read_each`.
    note: gets what is to be said of a document that is used.
    """
    stage = _Staging(lake, keep)
    results = Collected([str(s["name"]) for s in group])
    for source in group:
        if "document" in source:
            _documents(stage, Path(str(source["document"])), results, without, note)
    clusters = [s for s in group if "document" not in s]
    if clusters:
        _clusters(stage, clusters, connect, seconds, threads, results, progress, known)
    return results


class _Staging:
    """Stages topologies in a lake, and keeps their documents if `keep`."""

    def __init__(self, lake: Lake, keep: bool):
        self.lake, self.keep = lake, keep

    def __call__(self, topology: Topology, **more: Any) -> Attempt:
        """As `Lake.stage`. A document that can't be kept costs nothing else: evidence states that it is missing."""
        attempt = self.lake.stage(topology, **more)
        if self.keep:
            try:
                self.lake.documents.keep(attempt, topology)
            except AuditError as error:
                log.warning("the document of %s could not be kept: %s", topology.cluster, error)
        return attempt


def _documents(
    stage: _Staging, path: Path, results: Collected, without: Sequence[Path], note: Callable[[str], None]
) -> None:
    """Stage each document of a file or folder. A cluster's earlier documents show the racks of its dead brokers."""
    from durability.collect import identity
    from durability.topology.reading import read_each

    topologies, errors = read_each(path, without)
    results.failures += [Failure(Path(error.file).name, str(error)) for error in errors]
    known = stage.lake.kafka_cluster_ids({topology.cluster for topology in topologies}, documents=True)
    for text in filter(None, (identity.changed(t, known.get(t.cluster)) for t in topologies)):
        log.warning("%s", text)
        note(text)
    for topology in topologies:
        try:
            results.attempts.append(stage(topology, earlier=topologies))
        except AuditError:  # a problem of the lake, which affects every document
            raise
        except Exception as error:
            results.failures.append(_defect(topology.source, error))


def _clusters(
    stage: _Staging,
    clusters: Sequence[Source],
    connect: Connect,
    seconds: float,
    threads: int,
    results: Collected,
    progress: Callable[[int, int], None],
    known: Mapping[str, tuple[str, datetime]],
) -> None:
    """Read clusters in threads. A cluster that doesn't answer blocks one thread only."""
    # Tasks share one channel to Airflow's Connections, so read them before threads start.
    prepared = [ClusterRead((s, _prepare(s, connect)), int(s["partitions"]), float(s["seconds"])) for s in clusters]
    scheduler = ClusterScheduler(prepared, PARTITIONS_AT_ONCE, seconds)

    def read() -> None:
        while taken := scheduler.take():
            cluster, allowed = taken
            try:
                source, prepared_settings = cluster.source
                last = known.get(str(source["name"]))
                result = _cluster(stage, source, prepared_settings, allowed, last)
            finally:
                scheduler.done(cluster)
            if isinstance(result, Failure):
                results.failures.append(result)
            else:
                results.attempts.append(result)
            progress(len(results.attempts) + len(results.failures), len(clusters))

    threads = min(threads, len(clusters))
    pool = ThreadPoolExecutor(max_workers=threads)
    try:
        for thread in [pool.submit(read) for _ in range(threads)]:
            thread.result()
    finally:
        # Airflow may have ended the task. Reads in progress end at their own deadlines.
        scheduler.stop()
        pool.shutdown(wait=False)
    late = f"not read: its group of {plural(len(clusters), 'cluster')} used up its {seconds:,.0f} s"
    results.failures += [Failure(str(cluster.source[0]["name"]), late) for cluster in scheduler.waiting]


def _prepare(source: Source, connect: Connect) -> Mapping[str, object] | Exception:
    try:
        return connect(str(source["connection"]))
    except Exception as error:
        return error


def _cluster(
    stage: _Staging,
    source: Source,
    settings: Mapping[str, object] | Exception,
    seconds: float,
    last: tuple[str, datetime] | None,
) -> Attempt | Failure:
    from durability.collect import Limits, collect, identity

    name = str(source["name"])
    try:
        if isinstance(settings, Exception):
            raise settings
        controllers = dict(source.get("controllers") or ())
        topology = collect(name, settings, controllers=controllers, limits=Limits(deadline=seconds))
        if last or source.get("kafka_cluster_id"):
            identity.check(topology, stated=source.get("kafka_cluster_id"), last=last)
        return stage(topology, provider=source.get("provider") or "self", team=source.get("team"))
    except AuditError as error:
        return Failure(name, str(error))
    except Exception as error:
        return _defect(name, error)


def _defect(name: str, error: Exception) -> Failure:
    """A failure for a defect of this program that one source triggers. Other sources still get their report."""
    log.error("reading %s failed", name, exc_info=error)
    return Failure(name, printable(f"defect while reading: {type(error).__name__}: {error}"))
