"""Writes a run's evidence into a folder of its own below OUT/evidence. A folder that exists is never changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from durability.atomic import unfinished
from durability.errors import AuditError
from durability.evidence import statement, verify
from durability.evidence.keys import SigningKey
from durability.evidence.verify import ENVELOPE, FOLDER, MANIFEST, PAYLOAD_TYPE, PUBLIC_KEY, RUN, SUMS
from durability.plan.plan import Plan, from_text
from durability.policy import load_policy, load_waivers
from durability.policy.model import fingerprint
from durability.remedies.plans import INDEX
from durability.remedies.plans import folder as safe_name
from durability.report import plans, teams
from durability.report.data.teams import FOLDER as TEAMS
from durability.report.formats import ocsf

REPORT, INPUTS, DOCUMENTS = "report", "inputs", "documents"
"""Folders of a run's evidence: copies of the report's files, of policy, waivers and clusters file, and of topology documents."""

ACLS = "acls"
"""File of the inputs with the ACLs that brokers listed, by cluster. The manifest has their count and SHA-256 alone."""
INVENTORY = "inventory"
"""Input without a file of its own: what the run read of all inventories, and which cluster of the fleet each listed one is."""

NOT_KEPT = (ocsf.FILE,)
"""Files that are not copied: findings.json has the same findings, and this form takes four times as much."""


@dataclass(frozen=True)
class Attested:
    """A run's evidence.

    sha256: of its manifest. files: how many it attests. problems: what a user has to look at.
    """

    folder: Path
    sha256: str
    files: int
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Audited:
    """The run to attest.

    files: the report's files by name, as the step report returns them. plans: a folder.
    inputs: the files of policy, waivers and clusters; None for an input that the run doesn't have.
    """

    plan: Plan
    status: str
    verified: bool
    files: Mapping[str, Path]
    inputs: Mapping[str, Path | None]


def write(lake: Any, run: Audited, out: Path, key: SigningKey | None, unsigned: str | None) -> Attested:
    """Copy the run's files, and write the manifest, its signature, SHA256SUMS and verify.py.

    lake: an object with `scan(table, where, columns) -> pa.Table`, and `documents` (`durability.lake.documents`).
    key: None to write an unsigned manifest. unsigned: why there is none.
    Raises Refused if `out` can't be written, and OSError if a file can't be copied.
    """
    root = out / FOLDER
    with unfinished(root) as temporary:
        folder = temporary / "run"
        folder.mkdir(mode=0o700)
        number, previous, problems = _previous(root)
        name = _name(number, run.plan)
        read, reasons = _inputs(run, folder)
        for relative, path in _report_files(run.files):
            _copy(path, folder / REPORT / relative)
        documents = _documents(lake, run.plan, folder)
        snapshots = statement.snapshots(lake, run.plan, documents)
        if acls := statement.take_acls(snapshots):
            _write_input(folder, ACLS, acls)
        _write(folder / "verify.py", Path(verify.__file__).read_bytes())
        if key:
            _write(folder / PUBLIC_KEY, key.public_pem)
        subjects = {path.relative_to(folder).as_posix(): _sha256(path) for path in _files(folder)}
        as_evaluated = _as_evaluated(run.plan, folder, read)
        if as_evaluated is False:
            problems.append(
                "policy or waivers were changed after the run was planned; the evidence has the files of now"
            )
        signing = {
            "signed": key is not None,
            "key": key.id if key else None,
            "reason": unsigned if key is None else None,
        }
        predicate = statement.predicate(
            run.plan,
            run.status,
            run.verified,
            snapshots=snapshots,
            folder=name,
            number=number,
            previous=previous,
            signing=signing,
            inputs=statement.inputs(read, reasons, as_evaluated),
            findings=_findings(folder),
        )
        manifest = json.dumps(statement.statement(subjects, predicate), indent=1).encode() + b"\n"
        _write(folder / MANIFEST, manifest)
        if key:
            _write(folder / ENVELOPE, _envelope(manifest, key))
        own = {n: _sha256(folder / n) for n in (MANIFEST, ENVELOPE) if (folder / n).exists()}
        _write(folder / SUMS, verify.sums_of({**subjects, **own}))
        folder.rename(root / name)
        _sync(root)
    return Attested(root / name, own[MANIFEST], len(subjects), problems)


def _previous(root: Path) -> tuple[int, dict[str, str | None] | None, list[str]]:
    """This run's number, the run before (folder, manifest_sha256) or None, and problems."""
    numbers = {int(matched[1]): matched[0] for matched in map(RUN.fullmatch, sorted(os.listdir(root))) if matched}
    if not numbers:
        return 1, None, []
    last = max(numbers)
    manifest = root / numbers[last] / MANIFEST
    try:
        return last + 1, {"folder": numbers[last], "manifest_sha256": _sha256(manifest)}, []
    except OSError as error:
        problem = f"{manifest}: can't be read: {error.strerror}; the evidence of this run can't name it"
        return last + 1, {"folder": numbers[last], "manifest_sha256": None}, [problem]


def _name(number: int, plan: Plan) -> str:
    """The run's folder. Its end is the same for each attempt to report a result."""
    result = hashlib.sha256(f"{plan.run_id}\0{plan.result_id}".encode()).hexdigest()
    return f"{number:06}-{from_text(plan.started_at):%Y%m%dT%H%M%SZ}-{result[:8]}"


def _report_files(files: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """The name and the path of each file that the run's report consists of."""
    for name, path in sorted(files.items()):
        if name in NOT_KEPT:
            continue
        if path.is_dir():
            for file in teams.files(path) if name == TEAMS else (path / INDEX, *plans.files(path)):
                yield f"{name}/{file.relative_to(path).as_posix()}", file
        else:
            yield name, path


def _inputs(run: Audited, folder: Path) -> tuple[dict[str, str | None], dict[str, str]]:
    """Copy the input files, and write what inventories listed: MSK may list others later.

    Returns the SHA-256 of each, and the reason for each one without.
    """
    found: dict[str, str | None] = {}
    reasons: dict[str, str] = {}
    for name, path in run.inputs.items():
        found[name] = None
        if path is None:
            reasons[name] = "this run doesn't use it"
            continue
        try:
            copy = folder / INPUTS / f"{name}.yaml"
            _copy(path, copy)
            found[name] = _sha256(copy)
        except OSError as error:
            reasons[name] = f"can't be read: {error.strerror}"
    found[INVENTORY] = None
    compared = run.plan.inventory
    if compared is None or not compared.sources:
        reasons[INVENTORY] = "this run compares no inventory"
    else:
        content = {name: value for name, value in compared.to_dict().items() if name != "previous_result_ids"}
        found[INVENTORY] = _sha256(_write_input(folder, INVENTORY, content))
    return found, reasons


def _write_input(folder: Path, name: str, content: Mapping[str, Any]) -> Path:
    """Write an input without a file of its own as JSON. Returns the file."""
    file = folder / INPUTS / f"{name}.json"
    file.parent.mkdir(mode=0o700, exist_ok=True)
    _write(file, json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n")
    return file


def _documents(lake: Any, plan: Plan, folder: Path) -> dict[str, str]:
    """Copy the documents of the run's snapshots. Returns the file of each by attempt id."""
    found = {}
    for part in plan.snapshots:
        content = lake.documents.read(part.attempt_id) if part.attempt_id and part.sha256 else None
        if content is not None:
            name = f"{DOCUMENTS}/{safe_name(part.cluster)}.json.gz"
            (folder / DOCUMENTS).mkdir(mode=0o700, exist_ok=True)
            _write(folder / name, content)
            found[str(part.attempt_id)] = name
    return found


def _as_evaluated(plan: Plan, folder: Path, read: Mapping[str, str | None]) -> bool | None:
    """Do the copies of policy and waivers have the fingerprint of the run's? None: one is missing or can't be read."""
    if not (read.get("policy") and read.get("waivers")):
        return None
    try:
        policy, waivers = load_policy(folder / INPUTS / "policy.yaml"), load_waivers(folder / INPUTS / "waivers.yaml")
    except (AuditError, UnicodeDecodeError):
        return False
    return fingerprint(policy, waivers) == plan.policy.sha256


def _findings(folder: Path) -> dict[str, Any] | None:
    """The number of findings in the copy of findings.json, and the root of their Merkle tree; None without the file."""
    file = folder / verify.FINDINGS
    if not file.exists():
        return None
    leaves = [verify.leaf_hash(line) for line in verify.finding_lines(file)]
    return {"count": len(leaves), "root": verify.tree(leaves)[0].hex()}


def _envelope(manifest: bytes, key: SigningKey) -> bytes:
    """The DSSE envelope of a manifest."""
    signature = key.sign(verify.pre_authentication_encoding(PAYLOAD_TYPE, manifest))
    return verify.envelope_of(manifest, key.id, signature)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _copy(source: Path, target: Path) -> None:
    """Copy a file. Hard links would change with their source if it was edited in place."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    _finish(target)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    _finish(path)


def _finish(path: Path) -> None:
    """Write a file's data to the disk, and make the file read-only."""
    path.chmod(path.stat().st_mode & ~0o222)
    _sync(path)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
