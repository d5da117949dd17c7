"""Writes `jars.lock`: resolves ROOTS with their runtime dependencies and records the SHA-256 of each file.

Run `python -m durability.runtime.lock_jars` after changing a version in ROOTS. It reads POMs, which takes minutes. `ensure`
reads none.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

from durability.errors import AuditError
from durability.runtime import jars

_HEAD = "# SHA-256 and Maven coordinates of every jar; written by `python -m durability.runtime.lock_jars`.\n"


def write_lock() -> None:
    """Replace `jars.lock`. Raises AuditError if a root can't be resolved."""
    sections = [f"[{name}]\n" + "".join(f"{line}\n" for line in resolve(roots)) for name, roots in jars.ROOTS.items()]
    jars.LOCK.write_text(_HEAD + "\n".join(sections), encoding="utf-8")


def resolve(roots: tuple[tuple[str, str, str], ...]) -> list[str]:
    """Lines "sha256 group:artifact:version" of `roots` and their transitive runtime dependencies, sorted by name."""
    wanted = "".join(
        f'<dependency org={quoteattr(g)} name={quoteattr(a)} rev={quoteattr(v)} conf="default->default"/>'
        for g, a, v in roots
    )
    with tempfile.TemporaryDirectory() as temporary:
        output = jars._run_ivy(wanted, "", Path(temporary, "ivy"), "")
        found = sorted(Path(temporary, "ivy", "out").glob("*.jar"), key=lambda path: path.name)
        names = {path.name: path for path in found}
        for group, artifact, version in roots:
            if f"{group}@{artifact}@{version}.jar" not in names:
                raise AuditError(f"can't resolve {group}:{artifact}:{version}: {output[-1000:]}")
        return [f"{jars._sha256(path)} {path.stem.replace('@', ':')}" for path in found]


if __name__ == "__main__":
    try:
        write_lock()
    except AuditError as error:
        sys.exit(f"error: {error}")
