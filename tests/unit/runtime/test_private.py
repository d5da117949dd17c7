"""Files that processes of one user share lie where no other user can put anything, and no link is followed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from durability.errors import Refused
from durability.runtime import locks, private, processes

OTHER_USER = 65534


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "state_folder", lambda: tmp_path / "state")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))


def test_the_runtime_folder_is_used_and_else_the_state_folder(tmp_path: Path, monkeypatch) -> None:
    assert private.folder("ports") == tmp_path / "state" / "run" / "ports", "there is no runtime folder yet"
    (tmp_path / "runtime").mkdir(mode=0o700)
    made = private.folder("ports")
    assert made == tmp_path / "runtime" / "kafka-durability-audit" / "ports"
    assert made.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert private.folder("ports").is_relative_to(tmp_path / "state")


def test_a_runtime_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime").chmod(0o777)
    assert private.folder("ports").is_relative_to(tmp_path / "state")


def test_a_folder_that_others_prepared_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "state" / "run" / "ports"
    place.parent.mkdir(parents=True)
    (tmp_path / "theirs").mkdir()
    place.symlink_to(tmp_path / "theirs")
    with pytest.raises(Refused, match="it is a link or a file"):
        private.folder("ports")
    place.unlink()
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(Refused, match="other users can write to it"):
        private.folder("ports")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "state" / "run" / "ports"
    place.mkdir(parents=True)
    os.chown(place, OTHER_USER, OTHER_USER)
    with pytest.raises(Refused, match="it belongs to another user"):
        private.folder("ports")


def test_ports_are_leased_there_and_not_in_the_temporary_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    port = processes.free_port()
    processes.release_port(port)
    assert (tmp_path / "state" / "run" / "ports" / str(port)).is_file()
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("lock", [locks.try_lock, lambda path: locks.file_lock(path).__enter__()])
def test_a_lock_follows_no_link(tmp_path: Path, lock) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError):
        lock(tmp_path / "lock")
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_folders_lock_keeps_out_another_process_with_another_temporary_folder(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from durability.runtime import out_lock;"
    code += "out_lock.held([Path(sys.argv[1])]).__enter__()"
    (tmp_path / "shared").mkdir()
    (tmp_path / "temporary").mkdir()

    def other() -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
        command = [sys.executable, "-c", code, str(tmp_path / "shared")]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    from durability.runtime.out_lock import held

    with held([tmp_path / "shared"]):
        kept_out = other()
    assert f"another audit (process {os.getpid()}) is using" in kept_out.stderr
    assert not list((tmp_path / "shared").iterdir())
    assert other().returncode == 0
