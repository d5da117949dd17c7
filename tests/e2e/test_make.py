"""The Makefile: cheap when everything is there, and careful with what a user writes into its variables."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from typer.main import get_command

from durability.cli.app import app
from tests import ROOT


def make(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")} | environ
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def copy(tmp_path) -> Path:
    """The Makefile in a folder where everything is set up, with a python that shows what it is given."""
    for name in ("Makefile", "requirements.lock", "requirements-uv.lock", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name in ("runtime/jars.lock", "cli/classes.py"):
        (tmp_path / "durability" / name).parent.mkdir(parents=True)
        (tmp_path / "durability" / name).write_text("")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\nprintf "%s|" "$@" "$TOPOLOGY" "$OUT"\n')
    python.chmod(0o755)
    (tmp_path / ".state").mkdir()
    for stamp in ("uv", "environment", "ready"):
        time.sleep(0.01)
        (tmp_path / ".state" / f"{stamp}.stamp").touch()
    return tmp_path


def test_nothing_is_done_again_when_everything_is_there(copy):
    done = make(copy, "audit")
    assert done.stdout == "-m|durability.cli|audit|--airflow|||"


def test_a_new_lock_sets_the_environment_up_again(copy):
    os.utime(copy / "requirements.lock", (time.time() + 5, time.time() + 5))
    asked = make(copy, "--dry-run", "audit").stdout
    assert "pip sync" in asked and "durability.cli migrate" in asked and "durability.cli classes" in asked
    assert "-m venv" not in asked  # uv's own environment depends on its own lock alone


def test_variables_never_become_shell(copy):
    hostile = "a b; touch owned; $(touch owned) `touch owned` 'x"
    done = make(copy, "audit", OUT=hostile, TOPOLOGY="$HOME\"'")
    assert done.stdout == f"-m|durability.cli|audit|--airflow|$HOME\"'|{hostile}|"
    done = make(copy, "audit", f"OUT={hostile.replace('$', '$$')}", TOPOLOGY="$HOME\"'")
    assert done.stdout == f"-m|durability.cli|audit|--airflow|$HOME\"'|{hostile}|"
    assert not (copy / "owned").exists()


def test_what_is_measured_is_what_was_asked_for(copy):
    for options, module in (((), "floor"), (("SIZE=10",), "scale"), (("PARTITIONS=10",), "collect")):
        assert make(copy, "bench", *options).stdout.startswith(f"-m|bench.{module}|")


def test_a_mistyped_option_is_refused_by_name(copy):
    done = make(copy, "audit", "BOOTSTRP=broker:9092")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown option BOOTSTRP; there are BOOTSTRAP COMMAND_CONFIG CLUSTER CLUSTERS TOPOLOGY" in done.stderr


def test_every_variable_of_a_command_is_an_option_of_make():
    text = (ROOT / "Makefile").read_text()
    exported, options = (set(re.search(f"(?m)^{name} (.*)$", text)[1].split()) for name in ("export", "OPTIONS :="))
    commands = get_command(app).commands
    for name in re.findall(r"-m durability.cli ([a-z-]+)", text):
        variables = {option.envvar for option in getattr(commands.get(name), "params", ()) if option.envvar}
        assert variables <= exported & options, name


def test_a_missing_python_is_said_with_the_command_that_installs_it(copy):
    (copy / ".state" / "uv.stamp").unlink()
    tools = copy / "tools"
    tools.mkdir()
    for tool in ("make", "bash", "sed", "mkdir", "touch", "rm"):
        (tools / tool).symlink_to(f"/usr/bin/{tool}")
    done = make(copy, "setup", PATH=str(tools))
    assert done.returncode == 2
    assert "Python 3.11 or 3.12 is needed" in done.stderr and "apt-get install python3.11" in done.stderr


def test_help_names_every_target():
    said = make(ROOT, "help").stdout
    assert all(
        f"make {target}" in said
        for target in (
            "audit",
            "whatif",
            "drill",
            "test",
            "up",
            "demo",
            "bench",
            "lint",
            "docs",
            "lock",
            "clean",
            "setup",
        )
    )


def test_locks_hold_hashes_and_no_addresses():
    for name in ("requirements.lock", "requirements-uv.lock", "deploy/requirements.lock"):
        text = (ROOT / name).read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text and "--index" not in text and "--find-links" not in text, name
