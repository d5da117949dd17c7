"""Processes that end other processes when their owner has ended.

This script runs on the bare interpreter, so it imports only the standard library. It has two forms:

- `<session id> <process ids to watch> <folder>`: see `processes.Session`. The watched processes are the owner, then the
  `make`s above it. Standard input is a pipe that only the owner has open. The owner writes RECORDs to it: the id of each process
  that it starts, and CLOSE when it closes the session.
- `job <process ids to watch> <folder> <command>`: becomes that command, see `guarded`. The parent comes first.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import struct
import sys
import time
from collections.abc import Iterable

MARK = "DURABILITY_SESSION"
GRACE_SECONDS = 3.0  # between SIGTERM and SIGKILL
JOB_GRACE_SECONDS = 10.0  # Spark informs its master or YARN
RECORD = struct.Struct("<i")
CLOSE = 0
QUIET_SCANS = 2  # one scan may miss a process that is just forking


def marked(session: str, led: set[int] | None = None) -> list[int]:
    """Ids of live processes that have the session's mark, or that are in a POSIX session whose leader has it.

    A process that sets its title, as Airflow's do, overwrites its environment. A zombie has none.

    led: leaders found by earlier scans. This scan adds its own.
    """
    needle = f"{MARK}={session}".encode()
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]
    found = [pid for pid in pids if _carries(pid, needle)]
    led = set() if led is None else led
    led.update(pid for pid in found if _leader(pid) == pid)
    return sorted({*found, *(pid for leader in led for pid in family(leader))})


def family(leader: int) -> list[int]:
    """Ids of the live processes in the POSIX session of `leader`, which may have ended."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [pid for pid in pids if _leader(pid) == leader and _alive(pid)]


def end_session(session: str, folder: str, also: tuple[int, ...] = (), leaders: Iterable[int] = ()) -> None:
    """Send SIGTERM to marked processes and to `also`, SIGKILL after a grace period, then remove the folder.

    leaders: live leaders of POSIX sessions. Their processes belong to the session, marked or not.
    """
    for pid in also:
        send(pid, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    terminated: set[int] = set()
    led = set(leaders)
    quiet = 0
    while quiet < QUIET_SCANS:
        late = time.monotonic() > deadline
        left = marked(session, led)
        for pid in left:
            if late or pid not in terminated:
                send(pid, signal.SIGKILL if late else signal.SIGTERM)
                terminated.add(pid)
        waiting = [pid for pid in also if _alive(pid)]
        if late:
            for pid in waiting:
                send(pid, signal.SIGKILL)
        quiet = 0 if left or waiting else quiet + 1
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def main(session: str, watched: list[int], folder: str) -> None:
    """Wait until the owner closes the session or one of `watched` has ended, then end the session."""
    poll = select.poll()
    lifeline = sys.stdin.fileno()
    poll.register(lifeline, select.POLLIN | select.POLLHUP)
    ended = in_order = False
    for pid in watched:
        ended |= not _registered(poll, pid)
    leaders: dict[int, int] = {}
    while not ended:
        for descriptor, _ in poll.poll():
            if descriptor in leaders:
                leader = leaders.pop(descriptor)
                poll.unregister(descriptor)
                os.close(descriptor)
                if member := _followed(poll, leader):
                    leaders[member] = leader
            elif descriptor != lifeline:
                ended = True
            elif (started := _next(lifeline)) == CLOSE:
                ended = in_order = True
            elif number := _followed(poll, started):
                leaders[number] = started
    # Processes that the owner started just before it ended.
    while not in_order and _readable(lifeline) and (started := _next(lifeline)) != CLOSE:
        if number := _followed(poll, started):
            leaders[number] = started
    owner = watched[0]
    # If only a `make` died, the owner is still alive and has to end, too.
    also = () if in_order or os.getppid() != owner else (owner,)
    end_session(session, folder, also, leaders.values())


def _readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _next(lifeline: int) -> int:
    """The next number that the owner wrote; CLOSE if the owner has ended."""
    record = os.read(lifeline, RECORD.size)
    return RECORD.unpack(record)[0] if len(record) == RECORD.size else CLOSE


def _followed(poll: select.poll, leader: int) -> int | None:
    """A descriptor of the leader of a POSIX session, or of another process in it if the leader has ended; None if none is left.

    The leader's id is given to no other process while one is in its session.
    """
    # The descriptor of a zombie is always ready. Its parent may not ask for its exit status before the session ends.
    if _alive(leader) and (descriptor := _registered(poll, leader)):
        return descriptor
    return next(filter(None, (_registered(poll, pid) for pid in family(leader))), None)


def _registered(poll: select.poll, pid: int) -> int | None:
    """A descriptor of the process that `poll` reports when the process ends; None if there is none: the process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    poll.register(descriptor, select.POLLIN)
    return descriptor


def guarded(folder: str) -> list[str]:
    """The start of a command line whose processes end with this process. The folder is removed then.

    If the parent runs the same program, it supervises an Airflow task and is watched, too. The task isn't informed of its
    parent's end. A shell isn't watched, because programs may outlive it.
    """
    watched = [os.getpid()]
    try:
        if os.readlink(f"/proc/{os.getppid()}/exe") == os.readlink("/proc/self/exe"):
            watched.append(os.getppid())
    except OSError:  # not Linux, another user's process, or a process that has ended
        pass
    pids = ",".join(map(str, watched))
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), "job", pids, folder]


def run_job(watched: list[int], folder: str, command: list[str]) -> None:
    """Become `command` in its own POSIX session. A second process ends that session when one of `watched` has ended.

    Without process descriptors (not Linux), it only becomes the command.
    """
    if hasattr(os, "pidfd_open"):
        gone = os.getppid() != watched[0]
        descriptors = []
        for pid in watched:
            try:
                descriptors.append(os.pidfd_open(pid))
            except ProcessLookupError:
                gone = True
        if gone:
            sys.exit(128 + signal.SIGTERM)
        os.setsid()
        job = os.getpid()
        if os.fork() == 0:
            if os.fork() == 0:  # a child of init, because the job must not have an unknown child
                os.setsid()
                _watch_job(job, descriptors, folder)
            os._exit(0)
        os.wait()
        # If the watching process is killed, too, this ends the job, but not its children. 1: PR_SET_PDEATHSIG.
        ctypes.CDLL(None).prctl(1, int(signal.SIGTERM), 0, 0, 0)
    os.execvp(command[0], command)


def _watch_job(job: int, watched: list[int], folder: str) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # the job's parent reads its output until all ends of the pipe are closed
        os.dup2(null, standard)
    os.chdir("/")
    poll = select.poll()
    ended = os.pidfd_open(job)
    for descriptor in (ended, *watched):
        poll.register(descriptor, select.POLLIN)
    poll.poll()
    deadline = time.monotonic() + JOB_GRACE_SECONDS
    terminated: set[int] = set()
    while left := family(job):
        late = time.monotonic() > deadline
        for pid in left:
            if late or pid not in terminated:
                send(pid, signal.SIGKILL if late else signal.SIGTERM)
                terminated.add(pid)
        time.sleep(0.05)
    poll.unregister(ended)
    if poll.poll(200):  # also if the job ended first: it gets its own signal then
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def _leader(pid: int) -> int | None:
    """The leader of the process's POSIX session; None if the process has ended."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _carries(pid: int, needle: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return needle in file.read().split(b"\0")
    except OSError:  # the process has ended or belongs to another user
        return False


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


if __name__ == "__main__":
    if sys.argv[1] == "job":
        run_job([int(pid) for pid in sys.argv[2].split(",")], sys.argv[3], sys.argv[4:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(sys.argv[1], [int(pid) for pid in sys.argv[2].split(",")], sys.argv[3])
