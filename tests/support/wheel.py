"""The project as installed by pip: its wheel, built once and unpacked into a folder for a child's path."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests import ROOT

FOLDERS = ("durability", "expectations", "spark_jobs", "plugins", "policies", "dags", "docs")


@functools.cache
def unpacked() -> Path:
    """A folder like site-packages with the wheel in it. It is removed at the end of the session."""
    holder = tempfile.TemporaryDirectory(prefix="durability-test-wheel-")
    unpacked.holder = holder
    tree, site = Path(holder.name, "tree"), Path(holder.name, "site")
    tree.mkdir()
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        if (ROOT / file).exists():
            shutil.copy2(ROOT / file, tree)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    build = "from setuptools.build_meta import build_wheel; build_wheel('dist')"
    done = subprocess.run([sys.executable, "-c", build], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tree / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site
