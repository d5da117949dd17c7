"""Measures seconds, processor seconds and memory of steps, and describes the machine."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from durability import resources

LARGE = 1 << 30
"""Bytes. For a larger process, the memory that it shares with others is small compared with its own."""


class Peak(threading.Thread):
    """The most memory in MB that this process and its children had at one time, measured once a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.mb = self.of_step = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        this, before = psutil.Process(), 0
        # Measuring more often would delay processes that allocate memory.
        while not self._done.wait(1):
            total = 0
            for process in (this, *this.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    total += _memory(process)
            # While a process starts another one, memory that both share is counted twice.
            used, before = min(total, before) / 1e6, total
            self.mb, self.of_step = max(self.mb, used), max(self.of_step, used)

    def stop(self) -> int:
        self._done.set()
        self.join()
        return round(self.mb)


def _memory(process: psutil.Process) -> int:
    """Bytes of a process. Small processes split shared memory. For 3 GB, that would take 40 ms to find out."""
    resident = process.memory_info().rss
    return resident if resident > LARGE else process.memory_full_info().pss


@dataclass(frozen=True)
class Step:
    """Seconds, seconds of all processors, and the most memory."""

    wall: float
    cpu: float
    peak_mb: int


class Clock:
    """What each step took, by name. It is printed when the step ends."""

    def __init__(self, peak: Peak):
        self.steps: dict[str, Step] = {}
        self._peak = peak

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self._peak.of_step = 0.0
        wall, cpu = time.monotonic(), _cpu()
        yield
        self.add(name, time.monotonic() - wall, _cpu() - cpu)

    def add(self, name: str, wall: float, cpu: float) -> None:
        step = self.steps[name] = Step(round(wall, 2), round(cpu, 2), round(self._peak.of_step))
        print(f"{name:<14}{step.wall:9.1f} s{step.cpu:9.1f} s{step.peak_mb:9} MB", flush=True)

    def wall(self, name: str) -> float:
        return self.steps[name].wall


def _cpu() -> float:
    """Processor seconds of this process and of the children that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, output: Path | None = None) -> float:
    """Run a program, with its standard output in `output` if given. Returns its seconds. Raises SystemExit if it fails."""
    started = time.monotonic()
    with output.open("w") if output else nullcontext(subprocess.PIPE) as out:
        done = subprocess.run(
            list(command),
            env=environment,
            cwd=resources.PACKAGES,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{(done.stdout or '')[-2000:]}\n{done.stderr[-2000:]}")
    return round(time.monotonic() - started, 3)


def machine() -> dict:
    """The machine that a measurement ran on."""
    memory = round(psutil.virtual_memory().total / 2**30)
    return {"processors": os.cpu_count(), "memory_gb": memory, "python": platform.python_version()}
