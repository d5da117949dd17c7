"""`kafka-durability restore`: the catalog of a lake made again from its tables' files."""

from __future__ import annotations

import os

from durability.errors import Refused
from durability.resources import state_folder


def run(lake: str | None, label: str = "--lake ") -> int:
    """Restore the catalog of a lake (default: the one that audits of clusters use) and print what each table has.

    Raises AuditError where there is nothing to restore, a catalog is there, or which file is newest can't be known.
    """
    from durability.lake.restore import restore

    location = lake or str(state_folder() / "lake")
    if "://" not in location and not os.path.isdir(location):
        raise Refused(f"{label}{location}: no such folder")
    for line in restore(location):
        print(line)
    return 0
