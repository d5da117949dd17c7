"""Child processes that always end with their parent, and leases of ports. Linux only.

A `Session` marks the processes it starts with an environment variable, which their children inherit. A watchdog process waits
until the owner (or the `make` that started it) has ended. Then it terminates every marked process in /proc, and those that the
session started, and removes the session's folder. So Ctrl-C, SIGTERM and SIGKILL leave neither processes nor files.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from durability.errors import Refused
from durability.runtime import private
from durability.runtime.folders import OwnedFolder
from durability.runtime.locks import Lock, try_lock
from durability.runtime.watchdog import CLOSE, MARK, RECORD

# Below Linux's range for outgoing connections, so that the port of a stopped broker stays free until it restarts.
PORTS = range(21000, 32000)
STOP_SECONDS = 20.0

_leases: dict[int, Lock] = {}
_leases_guard = threading.Lock()


class Session:
    """Processes and a temporary folder that end with `close()` or with the owner's death. Also a context manager.

    A program that starts processes itself (for example Airflow with spark-submit) passes on the variables of
    `environment()`.
    """

    def __init__(self, prefix: str = "durability-"):
        if not sys.platform.startswith("linux"):
            raise Refused(
                f"the embedded cluster needs Linux's /proc to leave no process behind; this is {sys.platform}"
            )
        self.id = uuid.uuid4().hex
        self._folder = OwnedFolder(prefix)
        self.folder = self._folder.path
        self._closed = False
        self._guard = threading.Lock()
        self._started: list[subprocess.Popen[bytes]] = []
        self._lifeline: int | None
        read, self._lifeline = os.pipe()
        watched = ",".join(str(pid) for pid in (os.getpid(), *_makes_above(os.getpid())))
        command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("watchdog.py"))]
        plain = {k: v for k, v in os.environ.items() if k != MARK}  # the end of an outer session must not end this
        try:
            self._watchdog = subprocess.Popen(
                [*command, self.id, watched, str(self.folder)],
                stdin=read,
                stdout=subprocess.DEVNULL,
                env=plain,
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(read)

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """`base` (default: this process's environment) with the session's mark."""
        return {**(os.environ if base is None else base), MARK: self.id}

    @contextmanager
    def adopting(self) -> Iterator[None]:
        """Every process started in this block belongs to the session, including processes that libraries start."""
        before = os.environ.get(MARK)
        os.environ[MARK] = self.id
        try:
            yield
        finally:
            if before is None:
                del os.environ[MARK]
            else:
                os.environ[MARK] = before

    def popen(
        self, command: Sequence[str], *, log: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start `command` as part of the session and append its output to `log`.

        It has its own process group. So Ctrl-C reaches only the owner, which stops the processes in order.
        """
        with log.open("ab") as output:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd or self.folder,
                env=self.environment(env),
                start_new_session=True,
            )
        # The mark is lost if the process sets its title.
        with self._guard:
            self._started = [child for child in self._started if child.returncode is None] + [process]
        self._say(process.pid)
        if self._closed:  # by another thread, after the watchdog may have searched
            process.kill()
            raise Refused(f"{command[0]} can't be started: its session is closed")
        return process

    def close(self) -> None:
        """Terminate remaining processes (SIGTERM, then SIGKILL) and remove the folder. Returns when both are done."""
        if self._closed:
            return
        self._closed = True
        if not self._say(CLOSE):  # do the watchdog's work here
            from durability.runtime import watchdog

            live = [child.pid for child in self._started if child.poll() is None]
            watchdog.end_session(self.id, str(self.folder), leaders=live)
        with self._guard:
            if self._lifeline is not None:
                os.close(self._lifeline)
            self._lifeline = None
        self._watchdog.wait()
        self._folder.remove()

    def _say(self, number: int) -> bool:
        """Write a number to the watchdog. Returns False if it was killed, or if the session is closed."""
        # Another thread may close the session. The descriptor's number may then be another file's.
        with self._guard:
            if self._lifeline is None:
                return False
            try:
                os.write(self._lifeline, RECORD.pack(number))
            except BrokenPipeError:
                return False
        return True

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stop(process: subprocess.Popen, seconds: float = STOP_SECONDS) -> int:
    """Send SIGTERM, then SIGKILL after `seconds`. Returns the exit status, negative for a signal."""
    if process.poll() is None:
        process.terminate()
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def stop_family(leader: subprocess.Popen, number: int, seconds: float = STOP_SECONDS) -> int:
    """Send signal `number` to a process of `Session.popen`, which ends its children. Returns its exit status.

    After `seconds`, SIGKILL goes to it and to what remains of its POSIX session.
    """
    from durability.runtime import watchdog

    if leader.poll() is None:
        leader.send_signal(number)
    deadline = time.monotonic() + seconds
    while leader.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    while left := watchdog.family(leader.pid):
        for pid in left:
            watchdog.send(pid, signal.SIGKILL)
        time.sleep(0.05)
        leader.poll()
    return leader.wait()


def exit_on_sigterm() -> None:
    """Turn SIGTERM into SystemExit(143), so that `finally` and context managers run as for Ctrl-C."""

    def leave(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)


def free_port() -> int:
    """A free TCP port on 127.0.0.1. No other process of this project uses it while this process lives.

    The claim is a file lock. The kernel releases it when the process ends, `release_port` earlier.
    """
    claims = private.folder("ports")
    for port in random.sample(PORTS, 500):
        with _leases_guard:
            if port not in _leases and (lease := try_lock(claims / str(port))) is not None:
                if _is_free(port):
                    _leases[port] = lease
                    return port
                lease.close()
    raise Refused(f"no free TCP port between {PORTS.start} and {PORTS.stop} on 127.0.0.1")


def release_port(port: int) -> None:
    """Release a port of `free_port`."""
    with _leases_guard:
        lease = _leases.pop(port, None)
    if lease is not None:
        lease.close()


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _makes_above(pid: int, read: Callable[[int], tuple[str, int]] | None = None) -> list[int]:
    """The ancestors of `pid` up to the outermost `make`, nearest first. Empty if none of them is a `make`."""
    read = read or _name_and_parent
    chain: list[tuple[int, str]] = []
    _, parent = read(pid)
    while parent > 1:
        name, above = read(parent)
        chain.append((parent, name))
        parent = above
    makes = [i for i, (_, name) in enumerate(chain) if name in ("make", "gmake")]
    return [pid for pid, _ in chain[: makes[-1] + 1]] if makes else []


def _name_and_parent(pid: int) -> tuple[str, int]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return "", 0
    name, _, rest = stat.partition("(")[2].rpartition(")")
    return name, int(rest.split()[1])
