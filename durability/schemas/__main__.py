"""`python -m durability.schemas`: writes the files of the schemas again, from the code."""

from __future__ import annotations

from durability.schemas import NAMES, file, schema
from durability.schemas.generate import text

for name in NAMES:
    file(name).write_text(text(schema(name)), encoding="utf-8")
