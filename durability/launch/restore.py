"""`make restore`: the catalog of a lake made anew from its tables' files."""

from __future__ import annotations

import os
from collections.abc import Mapping

from durability.errors import Refused
from durability.launch.airflow_home import STATE


def run(environ: Mapping[str, str] = os.environ) -> int:
    """Restore the catalog of LAKE (default: the one that audits of clusters use) and say what each table has.

    Raises AuditError where there is nothing to restore, a catalog is there, or nobody can tell what is newest.
    """
    from durability.lake.restore import restore

    location = environ.get("LAKE") or str(STATE / "lake")
    if "://" not in location and not os.path.isdir(location):
        raise Refused(f"LAKE={location}: no such folder")
    for line in restore(location):
        print(line)
    return 0
