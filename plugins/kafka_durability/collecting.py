"""Reading one group of sources: one result each, whatever becomes of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from durability.errors import AuditError
from kafka_durability.sources import Source

log = logging.getLogger(__name__)

THREADS = 8
Connect = Callable[[str], dict[str, object]]
"""Connection id -> the settings that `durability.collect` takes."""


def collect_group(lake, group: Sequence[Source], connect: Connect) -> dict[str, list[dict]]:
    """`{"attempts": [Attempt as JSON], "failures": [{"name", "reason"}]}`: every source is in exactly one of the lists.

    Facts are staged in `lake` under fresh attempt ids; nothing is committed.
    """
    # Connections come from Airflow's supervisor over one channel, so they are asked for before there are threads.
    prepared = [(source, _prepare(source, connect)) for source in group]
    with ThreadPoolExecutor(max_workers=min(THREADS, len(group))) as pool:
        results = list(pool.map(lambda item: _one(lake, *item), prepared))
    return {
        "attempts": [r for r in results if "reason" not in r],
        "failures": [r for r in results if "reason" in r],
    }


def _prepare(source: Source, connect: Connect) -> dict[str, object] | Exception:
    if "document" in source:
        return {}
    try:
        return connect(str(source["connection"]))
    except Exception as error:
        return error


def _one(lake, source: Source, settings: dict[str, object] | Exception) -> dict:
    try:
        if isinstance(settings, Exception):
            raise settings
        topology = _read(source, settings)
        attempt = lake.stage(topology, provider=source.get("provider") or "self", team=source.get("team"))
        return {"source": source["name"], **attempt.to_json()}
    except AuditError as error:
        return {"name": source["name"], "reason": str(error), "document": "document" in source}
    except Exception as error:
        # A defect that one cluster brings out must not cost the others their report; the run ends failed all the same.
        log.exception("reading %s failed", source["name"])
        reason = f"defect while reading: {type(error).__name__}: {error}"
        return {"name": source["name"], "reason": reason, "document": "document" in source}


def _read(source: Source, settings: dict[str, object]):
    if "document" in source:
        from durability.topology import read

        (topology,) = read(Path(str(source["document"])))
        return topology
    from durability.collect import collect

    return collect(str(source["name"]), settings, controllers=dict(source.get("controllers") or ()))
