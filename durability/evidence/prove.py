"""Proves that a finding is one of a run, without showing the run's other findings."""

from __future__ import annotations

import json
from pathlib import Path

from durability.atomic import atomic_files
from durability.errors import Refused
from durability.evidence import verify
from durability.evidence.verify import ENVELOPE, FINDINGS, MANIFEST, PUBLIC_KEY


def write(place: Path, finding: str, target: Path) -> Path:
    """Write the proof of a finding into a file. Returns the folder of the run.

    place: the folder of a run, or of all runs, of which the newest one counts. finding: its id.
    Raises Refused if there is no such finding, or if the run isn't as its manifest attests.
    """
    folder = _run(place)
    run = verify.check_run(folder)
    if run.problems:
        raise Refused(f"{folder} isn't as attested: {run.problems[0]}; verify it")
    if not run.predicate.get("findings"):
        raise Refused(f"{folder}: an earlier version wrote it, without the root that a proof needs")
    leaves: list[bytes] = []
    found: tuple[int, str] | None = None
    for line in verify.finding_lines(folder / FINDINGS):
        if json.loads(line)["id"] == finding:
            found = len(leaves), line.decode()
        leaves.append(verify.leaf_hash(line))
    if found is None:
        raise Refused(f"{folder / FINDINGS} has no finding {verify.shown(finding)}. It lists what doesn't pass")
    index, text = found
    files = {name: (folder / name).read_text() for name in (MANIFEST, ENVELOPE, PUBLIC_KEY) if name in run.digests}
    path = [sibling.hex() for sibling in verify.tree(leaves, index)[1]]
    proof = {"format": verify.PROOF, "finding": text, "index": index, "path": path, "files": files}
    with atomic_files(target.parent, target.name) as (file,):
        file.write(json.dumps(proof, ensure_ascii=False, indent=1) + "\n")
    return folder


def _run(place: Path) -> Path:
    """The folder of the run that is meant."""
    try:
        folder, single = verify.evidence_in(place)
    except verify.Unusable as error:
        raise Refused(str(error)) from None
    if single:
        return folder
    names = (path.name for path in folder.iterdir() if verify.RUN.fullmatch(path.name))
    return folder / max(names, key=lambda name: int(name.split("-")[0]))
