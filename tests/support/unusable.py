"""A document that can't be used, beside one that can: what an audit of both has to say."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.support import topology

GOOD = topology.document("topic replicas isr min\norders 1,2,3 1,2 2\nscratch 2 2 1", cluster="good")
BROKEN = topology.document("topic replicas\norders 1,2,9", brokers="1:az1 2:az2", cluster="broken")


def write(folder: Path) -> Path:
    """Writes both into `folder` and returns it."""
    return topology.write(folder, GOOD, BROKEN)


def check_others(done: subprocess.CompletedProcess, folder: Path) -> dict[str, str]:
    """Checks that an audit, with OUT in `folder`, names the unusable document and reports all others.

    Returns the status of each other cluster.
    """
    said = done.stdout + done.stderr
    assert done.returncode == 2, said
    assert "broken-001.json, /topics/0/partitions/0/replicas/2" in done.stderr
    assert "Traceback" not in said
    told = json.loads((folder / "out" / "findings.json").read_text())
    status = {s["cluster"]: s["status"] for s in told["run"]["snapshots"]}
    assert status.pop("broken-001.json") == "failed" and status["good"] == "accepted"
    assert told["run"]["verified"] is True
    mine = [
        f
        for f in told["findings"]
        if (f["cluster"], f["control"], f["resource"]) == ("good", "partition-health", "orders")
    ]
    assert {f["observed"]["category"] for f in mine} == {"at-min-isr", "under-replicated"}
    assert (folder / "out" / "report.html").exists()
    assert not children(folder)
    return status


def children(folder: Path) -> list[int]:
    """Live processes that were told to write into this test's OUT."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            told = (entry / "environ").read_bytes().split(b"\0")
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        if f"OUT={folder / 'out'}".encode() in told or f"DURABILITY_OUT={folder / 'out'}".encode() in told:
            found.append(int(entry.name))
    return found
