"""A guarded job ends with its parent, whatever ends that, and the secrets of dead runs don't stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from durability.runtime import folders, watchdog
from durability.runtime.folders import OwnedFolder, sweep
from tests.support.waiting import wait_for

# As Airflow does: a supervisor forks the task, which starts the job and reads its output until it ends. The job is, as
# spark-submit, a shell that becomes the JVM, with a driver below it; both ignore what a hung JVM ignores.
TASK = textwrap.dedent(
    """
    import os, signal, subprocess, sys
    from durability.runtime import watchdog
    from durability.runtime.folders import OwnedFolder

    note, deaf = sys.argv[1], sys.argv[2] == "deaf"
    if (task := os.fork()) == 0:
        folder = OwnedFolder()
        (folder.path / "spark.properties").write_text("password secret")
        ignored = "trap '' TERM; " if deaf else ""
        script = ignored + "sleep 600 & echo $$ $!; wait; wait; sleep 600"
        job = subprocess.Popen(
            [*watchdog.guarded(str(folder.path)), "/bin/sh", "-c", script], stdout=subprocess.PIPE, text=True
        )
        shell, driver = job.stdout.readline().split()
        assert int(shell) == job.pid, "it is the process that the hook kills"
        with open(note + ".part", "w") as file:
            file.write(f"{os.getpid()} {shell} {driver} {folder.path}")
        os.rename(note + ".part", note)
        print(*job.stdout)
        os._exit(job.wait() != 0)
    os.waitpid(task, 0)
    """
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def started(tmp_path: Path, how: str = "") -> tuple[subprocess.Popen, list[int], Path]:
    """The supervisor; task, job and driver; the job's folder."""
    note, script = tmp_path / "note", tmp_path / "task.py"
    script.write_text(TASK)
    supervisor = subprocess.Popen([sys.executable, str(script), str(note), how], cwd=tmp_path)
    wait_for(note.exists, "the job runs")
    *pids, folder = note.read_text().split()
    return supervisor, [int(pid) for pid in pids], Path(folder)


def watching(job: int) -> list[int]:
    """The processes that watch a job."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"job" in line and str(job).encode() in b",".join(line) and int(entry.parent.name) != job:
            found.append(int(entry.parent.name))
    return found


@pytest.mark.parametrize("killed", ["task", "supervisor"])
def test_a_job_and_its_folder_go_with_a_killed_task_or_supervisor(tmp_path: Path, killed: str) -> None:
    supervisor, (task, job, driver), folder = started(tmp_path)
    os.kill(task if killed == "task" else supervisor.pid, signal.SIGKILL)
    supervisor.wait(120)
    wait_for(lambda: not any(map(watchdog._alive, (job, driver))), "job and driver are gone")
    wait_for(lambda: not folder.exists(), "the folder with the password is gone")
    wait_for(lambda: not watchdog._alive(task), "the task has ended")


def test_a_job_deaf_to_sigterm_goes_too(tmp_path: Path, monkeypatch) -> None:
    supervisor, (task, job, driver), folder = started(tmp_path, "deaf")
    os.kill(task, signal.SIGKILL)
    supervisor.wait(120)
    wait_for(lambda: not any(map(watchdog._alive, (job, driver))), "job and driver are gone")
    wait_for(lambda: not folder.exists(), "the folder is gone")


def test_a_job_goes_where_its_watchdog_was_killed_too_and_the_next_run_sweeps(tmp_path: Path) -> None:
    supervisor, (task, job, driver), folder = started(tmp_path)
    (watcher,) = watching(task)
    os.kill(watcher, signal.SIGKILL)
    wait_for(lambda: not watchdog._alive(watcher), "it is gone")
    os.kill(task, signal.SIGKILL)
    supervisor.wait(120)
    wait_for(lambda: not watchdog._alive(job), "the job is gone")
    watchdog.send(driver, signal.SIGKILL)
    assert folder.exists()
    with OwnedFolder() as mine:
        assert not folder.exists() and mine.exists()


def test_a_killed_jobs_driver_goes_and_its_parent_learns_of_it(tmp_path: Path) -> None:
    supervisor, (_task, job, driver), folder = started(tmp_path)
    os.kill(job, signal.SIGKILL)
    wait_for(lambda: not watchdog._alive(driver), "the driver is gone")
    supervisor.wait(120)
    wait_for(lambda: not folder.exists(), "the task ended without removing its folder")


@pytest.mark.parametrize("status", [0, 3])
def test_a_guarded_command_ends_with_its_own_status_and_output(tmp_path: Path, status: int) -> None:
    command = [*watchdog.guarded(str(tmp_path)), "/bin/sh", "-c", f"echo said; exit {status}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (status, "said\n", "")
    assert tmp_path.exists()


def test_folders_of_live_owners_strangers_and_links_are_not_swept(tmp_path: Path, temporary: Path, monkeypatch) -> None:
    (temporary / "durability-unlocked").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / folders.OWNER).touch()
    (temporary / "durability-link").symlink_to(tmp_path / "elsewhere")
    (temporary / "other-program").mkdir()
    (temporary / "other-program" / folders.OWNER).touch()
    left = temporary / "durability-left"
    left.mkdir()
    (left / folders.OWNER).touch()
    with OwnedFolder() as mine:
        assert mine.stat().st_mode & 0o777 == 0o700
        assert not left.exists(), "its owner is gone"
        left.mkdir()
        (left / folders.OWNER).touch()
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert sweep() == [], "they are another user's"
        monkeypatch.undo()
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        assert sweep() == [left]
        assert mine.exists() and (tmp_path / "elsewhere" / folders.OWNER).exists()
    assert sorted(os.listdir(temporary)) == ["durability-link", "durability-unlocked", "other-program"]
