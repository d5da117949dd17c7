"""A program that draws: it reads {name: Vega-Lite specification} as JSON, and writes {name: {"svg": ...} or {"error": ...}}.

It runs as a separate process, so that a converter that crashes or never ends doesn't cost the report, and that its memory
(about 130 MB) is free again before the next file is written. It reads no address, whatever a specification says.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import vl_convert


def drawn(specification: dict[str, Any]) -> dict[str, str]:
    try:
        return {"svg": vl_convert.vegalite_to_svg(specification, allowed_base_urls=[])}
    except ValueError as error:  # what the converter raises for a specification that Vega refuses
        return {"error": str(error)}


if __name__ == "__main__":
    json.dump({name: drawn(specification) for name, specification in json.load(sys.stdin).items()}, sys.stdout)
