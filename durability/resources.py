"""Paths of shipped files, and the default folders for state (the lake, Airflow's home) and cache (jars).

Shipped files are beside the packages in a checkout, and below `share` in an installed wheel.
"""

from __future__ import annotations

import os
from pathlib import Path

NAME = "kafka-durability-audit"
PACKAGES = Path(__file__).resolve().parents[1]
"""The folder of this project's top-level packages: a checkout's root, or site-packages."""
SHARE = Path(__file__).resolve().parent / "share"


def checkout() -> Path | None:
    """The root of the checkout that this code runs from; None if it was installed from a wheel."""
    return PACKAGES if (PACKAGES / "pyproject.toml").is_file() and (PACKAGES / "dags").is_dir() else None


def shipped(*parts: str) -> Path:
    """A file or folder by its path in a checkout: `shipped("policies", "policy.yaml")`."""
    return (checkout() or SHARE).joinpath(*parts)


def spark_job(name: str) -> Path:
    """A script for spark-submit: `spark_job("evaluate.py")`."""
    return PACKAGES / "spark_jobs" / name


def state_folder() -> Path:
    """`.state` of a checkout, else $XDG_STATE_HOME/kafka-durability-audit (default ~/.local/state/...)."""
    root = checkout()
    return root / ".state" if root else _user_folder("XDG_STATE_HOME", ".local/state")


def create_private(folder: Path) -> None:
    """Create a folder, if missing, whose files only this user can read. Findings and facts say a lot about clusters.

    An existing folder keeps its permissions, so that a user can share it. Raises OSError if it can't be created.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def cache_folder() -> Path:
    """DURABILITY_CACHE, else `.cache` of a checkout, else $XDG_CACHE_HOME/kafka-durability-audit (default ~/.cache/...)."""
    stated = os.environ.get("DURABILITY_CACHE")
    if stated:
        return Path(stated).expanduser().resolve()
    root = checkout()
    return root / ".cache" if root else _user_folder("XDG_CACHE_HOME", ".cache")


def _user_folder(variable: str, default: str) -> Path:
    """The folder of an XDG variable. By the specification, a relative path is invalid and counts as not set."""
    stated = Path(os.environ.get(variable, ""))
    return (stated if stated.is_absolute() else Path.home() / default) / NAME
