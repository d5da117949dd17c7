"""JSON Schemas (draft 2020-12) of the public formats, made of the code that reads and writes them.

The files beside this module are the same schemas, for editors: the shipped YAML files name them in their first line, and
`python -m durability.schemas` writes them again. A test fails where they differ from the code.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).parent


def _topology() -> dict:
    from durability.schemas.generate import topology_schema

    return topology_schema()


def _policy() -> dict:
    from durability.policy.formats import POLICY
    from durability.schemas.generate import file_schema

    return file_schema(POLICY)


def _waivers() -> dict:
    from durability.policy.formats import WAIVERS
    from durability.schemas.generate import file_schema

    return file_schema(WAIVERS)


def _clusters() -> dict:
    from durability.policy.formats import CLUSTERS
    from durability.schemas.generate import file_schema

    return file_schema(CLUSTERS)


def _findings() -> dict:
    from durability.schemas.generate import file_schema
    from durability.schemas.results import findings

    return file_schema(findings())


def _plans() -> dict:
    from durability.schemas.generate import file_schema
    from durability.schemas.results import plans

    return file_schema(plans())


_SCHEMAS: dict[str, Callable[[], dict]] = {
    "topology": _topology,
    "policy": _policy,
    "waivers": _waivers,
    "clusters": _clusters,
    "findings": _findings,
    "plans": _plans,
}
NAMES = tuple(_SCHEMAS)


def schema(name: str) -> dict:
    """The JSON Schema of the format of that name, one of NAMES; KeyError for another."""
    return _SCHEMAS[name]()


def file(name: str) -> Path:
    """Where its file is."""
    return FOLDER / f"{name}.json"
