"""`kafka-durability schema`: the JSON Schema of a public format."""

from __future__ import annotations

import importlib
import json

from durability.errors import Refused


def run(name: str | None) -> int:
    """Print the schema called `name`, or all names; Refused for an unknown name."""
    try:
        schemas = importlib.import_module("durability.schemas")
    except ModuleNotFoundError as error:
        if error.name != "durability.schemas":
            raise
        raise Refused("this version ships no JSON Schemas") from None
    names = sorted(schemas.NAMES)
    if name is None:
        print("\n".join(names))
        return 0
    if name not in names:
        raise Refused(f"there is no format {name}; there are {', '.join(names)}")
    print(json.dumps(schemas.schema(name), indent=2, ensure_ascii=False))
    return 0
