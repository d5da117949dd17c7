"""Whatever kills the process that started a session, nothing of the session is left."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from durability.errors import Refused
from durability.runtime import processes, watchdog
from tests.support.waiting import wait_for

SCRIPT = textwrap.dedent(
    """
    import os, subprocess, sys, time
    from pathlib import Path
    from durability.runtime import processes

    note, how = Path(sys.argv[1]), sys.argv[2]
    if how == "orderly":
        processes.exit_on_sigterm()
    with processes.Session("durability-test-") as session:
        # A child, a grandchild that left its process group (as a daemon does), one whose environment is lost (as where
        # the title is set), a child deaf to SIGTERM, and a child whose environment is lost.
        family = "import subprocess,time; subprocess.Popen(['sleep','600'], start_new_session=True)"
        family += "; subprocess.Popen(['/bin/sleep','600'], env={}); time.sleep(600)"
        deaf = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        titled = "import os; os.execve('/bin/sleep', ['sleep', '600'], {})"
        codes = (family, deaf, titled)
        children = [session.popen([sys.executable, "-c", code], log=session.folder / "log") for code in codes]
        while os.path.basename(os.readlink(f"/proc/{children[-1].pid}/exe")) != os.path.basename(os.path.realpath("/bin/sleep")):
            time.sleep(0.01)
        note.with_suffix(".tmp").write_text(f"{session.id} {session.folder} {children[-1].pid}")
        note.with_suffix(".tmp").rename(note)
        time.sleep(600)
    """
)


def started(tmp_path: Path, how: str, command: list[str] | None = None):
    """The launcher, its session's id and folder, and a descendant without the mark, once it and four others run."""
    note, script = tmp_path / "note", tmp_path / "launcher.py"
    script.write_text(SCRIPT)
    launcher = subprocess.Popen(command or [sys.executable, str(script), str(note), how], cwd=tmp_path)
    wait_for(note.exists, "the launcher has started")
    session, folder, titled = note.read_text().split()
    wait_for(lambda: len(watchdog.marked(session)) == 4, "its four descendants run")
    return launcher, session, Path(folder), int(titled)


@pytest.mark.parametrize(
    ("how", "number"),
    [("orderly", signal.SIGTERM), ("orderly", signal.SIGINT), ("killed", signal.SIGTERM), ("killed", signal.SIGKILL)],
)
def test_nothing_is_left_of_a_killed_launcher(tmp_path: Path, how: str, number: signal.Signals) -> None:
    launcher, session, folder, titled = started(tmp_path, how)
    descendants = [*watchdog.marked(session), titled]
    assert len(descendants) == 5
    launcher.send_signal(number)
    launcher.wait(120)
    wait_for(lambda: not any(map(watchdog._alive, descendants)), "no descendant is left")
    wait_for(lambda: not folder.exists(), "its folder is removed")


def test_killing_the_make_above_ends_the_launcher_too(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(f"run:\n\t@true; {sys.executable} launcher.py note killed\n")
    make, session, folder, titled = started(tmp_path, "killed", ["make", "run"])
    make.kill()
    make.wait(120)
    wait_for(lambda: not watchdog.marked(session) and not watchdog._alive(titled), "no descendant is left")
    wait_for(lambda: not folder.exists(), "its folder is removed")
    wait_for(lambda: not processes_of(tmp_path), "the launcher itself is gone")


def processes_of(folder: Path) -> list[str]:
    """Ids of the processes whose working directory is `folder`."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if os.readlink(f"/proc/{entry}/cwd") == str(folder):
                    found.append(entry)
            except OSError:  # gone meanwhile
                continue
    return found


def test_close_ends_the_session_and_not_its_owner() -> None:
    with processes.Session("durability-test-") as session:
        child = session.popen(["sleep", "600"], log=session.folder / "log")
        # The kernel shows a program's environment a moment after it has started.
        wait_for(lambda: watchdog.marked(session.id) == [child.pid], "the child is the session's")
        folder = session.folder
    assert child.wait(60) == -signal.SIGTERM
    assert not folder.exists()
    assert watchdog.marked(session.id) == []


def test_what_a_helper_starts_meanwhile_belongs_to_the_session(monkeypatch) -> None:
    monkeypatch.setenv(watchdog.MARK, "an outer one")
    with processes.Session("durability-test-") as session:
        with session.adopting():
            helped = subprocess.Popen(["sleep", "600"])
        other = subprocess.Popen(["sleep", "600"])
        wait_for(lambda: watchdog.marked(session.id) == [helped.pid], "the helper's child is the session's")
    assert helped.wait(60) == -signal.SIGTERM
    assert other.poll() is None
    other.kill()
    other.wait()


def test_a_leader_deaf_to_the_signal_goes_with_its_family() -> None:
    code = "import signal,subprocess,time; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    code += "; subprocess.Popen(['/bin/sleep','600'], env={}); time.sleep(600)"
    with processes.Session("durability-test-") as session:
        leader = session.popen([sys.executable, "-c", code], log=session.folder / "log")
        wait_for(lambda: len(watchdog.family(leader.pid)) == 2, "its child runs")
        family = watchdog.family(leader.pid)
        assert processes.stop_family(leader, signal.SIGINT, 0.3) == -signal.SIGKILL
        assert not any(map(watchdog._alive, family))


def test_close_works_without_the_watchdog() -> None:
    session = processes.Session("durability-test-")
    child = session.popen(["sleep", "600"], log=session.folder / "log")
    session._watchdog.kill()
    session._watchdog.wait()
    session.close()
    assert child.wait(60) == -signal.SIGTERM
    assert not session.folder.exists()


def test_nothing_is_started_in_a_closed_session(tmp_path: Path) -> None:
    session = processes.Session("durability-test-")
    session.close()
    note = tmp_path / "note"
    # The file may get the number of the closed pipe.
    with note.open("wb"), pytest.raises(Refused, match="its session is closed"):
        session.popen(["/bin/sleep", "600"], log=tmp_path / "log", cwd=tmp_path)
    assert note.read_bytes() == b""
    wait_for(lambda: not processes_of(tmp_path), "what was started is gone")


def test_what_a_leader_leaves_goes_with_the_session() -> None:
    code = "import subprocess; print(subprocess.Popen(['/bin/sleep','600'], env={}, stdout=subprocess.DEVNULL).pid, flush=True)"
    with processes.Session("durability-test-") as session:
        log = session.folder / "log"
        leader = session.popen([sys.executable, "-c", code], log=log)
        assert leader.wait(60) == 0
        left = int(log.read_text())
        assert watchdog.family(leader.pid) == [left]
        time.sleep(0.5)  # the watchdog has learnt of the leader's end
    wait_for(lambda: not watchdog._alive(left), "its child is gone")


@pytest.mark.parametrize("left", [0, 1])
def test_a_zombie_is_not_followed(left: int) -> None:
    """The watchdog took a whole core from the end of Spark's prestarted job to the end of the run."""
    with processes.Session("durability-test-") as session:
        leader = session.popen(["sh", "-c", "sleep 600 & " * left + "exit"], log=session.folder / "log")
        wait_for(lambda: not watchdog._alive(leader.pid), "it is a zombie")
        poll = select.poll()
        followed = watchdog._followed(poll, leader.pid)
        assert (followed is not None, len(watchdog.family(leader.pid))) == (left > 0, left)
        assert poll.poll(0) == []
        if followed is not None:
            os.close(followed)


def test_an_inner_session_outlives_neither_its_owner_nor_disturbs_the_outer() -> None:
    with processes.Session("durability-test-") as outer:
        elder = outer.popen(["sleep", "600"], log=outer.folder / "log")
        with processes.Session("durability-test-") as inner:
            inner.popen(["sleep", "600"], log=inner.folder / "log")
        assert elder.poll() is None


def test_ports_are_not_handed_out_twice_not_even_to_another_process() -> None:
    mine = {processes.free_port() for _ in range(20)}
    other = subprocess.run(
        [
            sys.executable,
            "-c",
            "from durability.runtime.processes import free_port as p; print(*(p() for _ in range(20)))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = {int(port) for port in other.stdout.split()}
    try:
        assert len(mine) == len(theirs) == 20
        assert not mine & theirs
        for port in mine:
            with socket.create_server(("127.0.0.1", port)):
                assert port < 32768  # where Linux begins to take ports for outgoing connections
    finally:
        for port in mine:
            processes.release_port(port)


def test_the_ancestors_watched_end_at_the_outermost_make() -> None:
    tree = {9: ("python", 8), 8: ("sh", 7), 7: ("make", 6), 6: ("sh", 5), 5: ("make", 4), 4: ("bash", 1)}
    assert processes._makes_above(9, tree.__getitem__) == [8, 7, 6, 5]
    assert processes._makes_above(9, {**tree, 7: ("sh", 6), 5: ("bash", 4)}.__getitem__) == []
