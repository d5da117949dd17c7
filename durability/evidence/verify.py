#!/usr/bin/env python3
"""Verifies evidence of Kafka Durability Audit: that files are as attested, who signed them, and that no run is missing.

This file needs Python 3.8 or later and nothing else. Take it from a place that you trust, not from the folder that you check:

    python3 -I verify.py FOLDER --public-key pub.pem

FOLDER is the folder of one run, the folder `evidence` with all runs, or a file that proves one finding of a run. A run's
manifest is an in-toto Statement v1, and its signature a DSSE envelope with Ed25519 (RFC 8032). Exit status: 0 as attested,
1 something differs, 2 nothing could be checked.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any, Iterator, Sequence  # noqa: UP035  # Python 3.8

MANIFEST, ENVELOPE, SUMS = "manifest.json", "manifest.dsse.json", "SHA256SUMS"
OWN = (MANIFEST, ENVELOPE, SUMS)
"""Files that the manifest can't name, because they are made from it. It names all others."""
PUBLIC_KEY, FOLDER = "pub.pem", "evidence"
FINDINGS, PROOF = "report/findings.json", "durability-proof/1"
PROOF_MEMBERS = {"format", "finding", "index", "path", "files"}
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://kafka-durability-audit.example/evidence/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
RUN = re.compile(r"([0-9]{6,})-[0-9TZ]+-[0-9a-f]{8}")
"""The name of a run's folder: the run's number, when it started, and a hash."""
UNFINISHED = ".unfinished-"
"""The folder of a run that is being written has a name like this."""
LARGEST = 256 << 20
"""Bytes of the largest manifest, envelope or list of hashes that is read."""
AS_ATTESTED, DIFFERS, UNCHECKED = 0, 1, 2


class Unusable(Exception):
    """Nothing can be checked. The text says why."""


class Run:
    """What is found in one run's folder.

    problems: what isn't as attested, each with the file's name. notes: what else a reader must know.
    digests: the SHA-256 of each file, by its path in the folder. unread: paths of files and folders that can't be read.
    predicate: that of the signed statement, else of manifest.json. Empty if there is none.
    place: what has the files, in texts.
    """

    place = "folder"

    def __init__(self, folder: Path):
        self.folder = folder
        self.name = folder.absolute().name
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.digests: dict[str, str] = {}
        self.unread: set[str] = set()
        self.predicate: dict[str, Any] = {}

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of the manifest."""
        return self.digests.get(MANIFEST)

    @property
    def number(self) -> int:
        named, stated = RUN.fullmatch(self.name), self.predicate.get("number")
        return stated if isinstance(stated, int) else int(named[1]) if named else 0

    def wrong(self, name: str, problem: str) -> None:
        self.problems.append(f"{name}: {problem}")

    def read(self, name: str) -> bytes | None:
        """The bytes of a file; None if it is missing, no regular file, or too large."""
        path = self.folder / name
        return path.read_bytes() if name in self.digests and path.stat().st_size <= LARGEST else None


# Ed25519 (RFC 8032, 5.1). Points are (X, Y, Z, T) in extended coordinates.

FIELD, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, FIELD - 2, FIELD) % FIELD
ROOT_OF_MINUS_1 = pow(2, (FIELD - 1) // 4, FIELD)
DER = bytes.fromhex("302a300506032b6570032100")
"""The bytes before a public key's own 32 bytes in DER (RFC 8410)."""
Point = Sequence[int]


def _add(p: Point, q: Point) -> Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % FIELD, (p[1] + p[0]) * (q[1] + q[0]) % FIELD
    c, d = 2 * p[3] * q[3] * CURVE % FIELD, 2 * p[2] * q[2] % FIELD
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % FIELD, g * h % FIELD, f * g % FIELD, e * h % FIELD


def _times(factor: int, point: Point) -> Point:
    total: Point = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            total = _add(total, point)
        point, factor = _add(point, point), factor >> 1
    return total


def _encoded(point: Point) -> bytes:
    inverse = pow(point[2], FIELD - 2, FIELD)
    x, y = point[0] * inverse % FIELD, point[1] * inverse % FIELD
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decoded(data: bytes) -> Point | None:
    """The point of 32 bytes; None if they are no point."""
    number = int.from_bytes(data, "little")
    y, sign = number & (1 << 255) - 1, number >> 255
    u, v = (y * y - 1) % FIELD, (CURVE * y * y + 1) % FIELD
    x = u * pow(v, 3, FIELD) * pow(u * pow(v, 7, FIELD), (FIELD - 5) // 8, FIELD) % FIELD
    if v * x * x % FIELD != u:
        x = x * ROOT_OF_MINUS_1 % FIELD
    if len(data) != 32 or y >= FIELD or v * x * x % FIELD != u or (x == 0 and sign):
        return None
    x = FIELD - x if x & 1 != sign else x
    return x, y, 1, x * y % FIELD


def signature_matches(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Was an Ed25519 signature of 64 bytes made for a message with the private key of these 32 bytes?"""
    point, base = _decoded(public_key), _decoded(b"\x58" + b"\x66" * 31)
    factor = int.from_bytes(signature[32:], "little")
    if point is None or base is None or len(signature) != 64 or factor >= ORDER:
        return False
    digest = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % ORDER
    negative = (FIELD - point[0], point[1], point[2], FIELD - point[3])
    return _encoded(_add(_times(factor, base), _times(digest, negative))) == signature[:32]


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """The bytes that DSSE signs."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def envelope_of(payload: bytes, key: str, signature: bytes) -> bytes:
    """The file manifest.dsse.json, byte by byte. key: the id of the signer's public key."""
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": key, "sig": base64.b64encode(signature).decode()}],
    }
    return json.dumps(envelope, indent=1).encode() + b"\n"


def sums_of(digests: dict[str, str]) -> bytes:
    """The file SHA256SUMS, byte by byte. digests: the SHA-256 of each file by its name."""
    return "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(digests.items())).encode()


def public_keys(text: bytes) -> list[bytes]:
    """The keys, 32 bytes each, in a file of one or more PEM blocks. Raises ValueError for anything else."""
    blocks = re.findall(rb"-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----", text)
    try:
        keys = [base64.b64decode(b"".join(block.split()), validate=True) for block in blocks]
    except ValueError:
        keys = []
    if not keys or any(len(key) != len(DER) + 32 or not key.startswith(DER) for key in keys):
        raise ValueError("it is no Ed25519 public key in PEM form")
    return [key[len(DER) :] for key in keys]


def key_id(public_key: bytes) -> str:
    """The SHA-256 of a public key in DER, as `openssl pkey -pubin -in pub.pem -outform DER | sha256sum` prints it."""
    return hashlib.sha256(DER + public_key).hexdigest()


# The findings of a run as a Merkle tree (RFC 6962, 2.1). Each line of findings.json with a finding is a leaf, without the comma
# at its end. A node without a sibling moves up unchanged.


def finding_lines(path: Path) -> Iterator[bytes]:
    """The lines with a finding, without the comma and the newline at their ends."""
    with path.open("rb") as file:
        for line in file:
            if line.startswith(b'{"id"'):
                line = line.rstrip(b"\n")
                yield line[:-1] if line.endswith(b",") else line


def leaf_hash(line: bytes) -> bytes:
    return hashlib.sha256(b"\0" + line).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def tree(leaves: Sequence[bytes], index: int = 0) -> tuple[bytes, list[bytes]]:
    """The root over hashes of leaves, and the siblings on the way from leaf `index` to it."""
    level, path = list(leaves), []
    while len(level) > 1:
        if index ^ 1 < len(level):
            path.append(level[index ^ 1])
        alone = level[-1:] if len(level) % 2 else []
        level = [_node(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)] + alone
        index //= 2
    return (level[0] if level else hashlib.sha256().digest()), path


def root_from(leaf: bytes, index: int, count: int, path: Sequence[bytes]) -> bytes | None:
    """The root of a tree of `count` leaves to which this path leads; None if the path is too short or too long."""
    siblings = list(path)
    while count > 1:
        if index ^ 1 < count:
            if not siblings:
                return None
            sibling = siblings.pop(0)
            leaf = _node(sibling, leaf) if index % 2 else _node(leaf, sibling)
        index, count = index // 2, (count + 1) // 2
    return None if siblings else leaf


# One run


def check_run(folder: Path, keys: list[bytes] | None = None) -> Run:
    """Check the folder of one run. keys: public keys that the reader trusts; None to use the folder's own."""
    run = Run(folder)
    run.digests.update(_digests(run))
    statement = _attested(run, keys)
    subjects = dict(_subjects(run, statement))
    _compare(run, subjects)
    _check_sums(run, subjects)
    _check_root(run, subjects)
    return run


def _digests(run: Run) -> Iterator[tuple[str, str]]:
    """The path and the SHA-256 of each file. Links and devices are reported and not read."""
    for place, folders, files in os.walk(run.folder):
        for path in sorted(Path(place, name) for name in folders + files):
            name = path.relative_to(run.folder).as_posix()
            try:
                mode = path.lstat().st_mode
                if stat.S_ISREG(mode):
                    yield name, _sha256(path)
                elif not stat.S_ISDIR(mode):
                    run.wrong(name, "added: it is a link or no regular file")
                elif not os.listdir(path):
                    run.wrong(name, "an empty folder, which is not attested")
            except OSError as error:
                run.unread.add(name)
                run.wrong(name, f"can't be read: {error.strerror}")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _attested(run: Run, keys: list[bytes] | None) -> dict[str, Any]:
    """The statement: the signed one, else that of manifest.json; empty if there is none. Sets the run's predicate."""
    manifest, payload = run.read(MANIFEST), _signed_payload(run, keys)
    if manifest is None:
        run.wrong(MANIFEST, "too large to be read" if MANIFEST in run.digests else "missing")
    elif payload is not None and payload != manifest:
        run.wrong(MANIFEST, f"differs from the payload of {ENVELOPE}")
    statement = _object(manifest if payload is None else payload)
    if statement.get("_type") != STATEMENT or statement.get("predicateType") != PREDICATE:
        run.wrong(MANIFEST, "it is no evidence of this audit in a version that is known here")
    run.predicate = _member(statement, "predicate")
    signed = _member(run.predicate, "signing").get("signed") is True
    if ENVELOPE in run.digests and not signed:
        run.wrong(ENVELOPE, "added: the manifest says that it is not signed")
    elif ENVELOPE not in run.digests and signed:
        run.wrong(ENVELOPE, "missing, although the manifest says that it is signed")
    elif not signed and keys is not None:
        run.wrong(MANIFEST, "it is not signed, so no key can show who wrote it")
    elif not signed:
        run.notes.append(
            f"not signed: only a SHA-256 of the manifest that you keep elsewhere shows that no one changed the {run.place}"
        )
    return statement


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object. Raises ValueError if two have the same name, since programs differ in which one they read."""
    if len(dict(members)) != len(members):
        raise ValueError
    return dict(members)


def _object(text: bytes | None) -> dict[str, Any]:
    """The JSON object in a text; empty if it is none."""
    try:
        value = json.loads((text or b"").decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _member(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _signed_payload(run: Run, keys: list[bytes] | None) -> bytes | None:
    """The envelope's payload if one of the keys has signed it. Reports why not."""
    if ENVELOPE not in run.digests:
        return None
    envelope = _object(run.read(ENVELOPE))
    try:
        kind, payload = str(envelope["payloadType"]), base64.b64decode(envelope["payload"], validate=True)
        signatures = {base64.b64decode(s["sig"], validate=True): str(s.get("keyid")) for s in envelope["signatures"]}
    except (KeyError, TypeError, ValueError, AttributeError):
        run.wrong(ENVELOPE, "it is no DSSE envelope")
        return None
    if kind != PAYLOAD_TYPE:
        run.wrong(ENVELOPE, "its payload is no in-toto statement")
        return None
    signed = pre_authentication_encoding(kind, payload)
    trusted = _trusted(run, keys)
    for key in trusted:
        matching = [signature for signature in signatures if signature_matches(key, signed, signature)]
        if matching:
            # No signature covers the rest of the file.
            if run.read(ENVELOPE) != envelope_of(payload, key_id(key), matching[0]):
                run.wrong(ENVELOPE, "it has more than its payload, the key's id and one signature, or was reformatted")
            if keys is None:
                own = f"which is in the same {run.place} and proves nothing about who signed"
                run.notes.append(
                    f"signed by the key {key_id(key)}, {own}: give the key that you know, with --public-key"
                )
            else:
                run.notes.append(f"signed by the given key {key_id(key)}")
            return payload
    if not trusted:
        run.wrong(ENVELOPE, "there is no public key to check its signature with")
    known, stated = {key_id(key) for key in trusted}, sorted(signatures.values())
    whose = f"the key in {PUBLIC_KEY}" if keys is None else "the given key"
    if known & set(stated):
        run.wrong(ENVELOPE, f"its signature isn't one of its payload by {whose}")
    elif known:
        run.wrong(ENVELOPE, f"signed by another key ({', '.join(stated)}) than {whose} ({', '.join(sorted(known))})")
    return None


def _trusted(run: Run, keys: list[bytes] | None) -> list[bytes]:
    """The keys to check with. Reports a pub.pem that is missing, no key, or another key than those given."""
    try:
        own = public_keys(run.read(PUBLIC_KEY) or b"")
    except ValueError as error:
        if PUBLIC_KEY in run.digests:
            run.wrong(PUBLIC_KEY, str(error))
        own = []
    if keys is not None and set(own) - set(keys):
        run.wrong(PUBLIC_KEY, f"another key ({', '.join(map(key_id, own))}) than the given one")
    return own if keys is None else keys


def _subjects(run: Run, statement: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The files that a statement attests, with their SHA-256."""
    subjects, known = statement.get("subject"), set()
    for subject in subjects if isinstance(subjects, list) else []:
        try:
            name, sha256 = subject["name"], subject["digest"]["sha256"]
            if not isinstance(name, str) or name in known or not re.fullmatch("[0-9a-f]{64}", sha256):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            run.wrong(MANIFEST, "one of its subjects can't be read")
        else:
            known.add(name)
            yield name, sha256


def _compare(run: Run, subjects: dict[str, str]) -> None:
    """Report files that differ, are missing, were renamed or were added."""
    added = {name: sha256 for name, sha256 in run.digests.items() if name not in subjects and name not in OWN}
    for name in sorted(subjects.keys() & run.digests.keys()):
        if run.digests[name] != subjects[name]:
            run.wrong(name, "differs from what was attested")
    for name in sorted(subjects.keys() - run.digests.keys()):
        if name in run.unread or any(name.startswith(f"{path}/") for path in run.unread):
            continue
        now = next((other for other in sorted(added) if added[other] == subjects[name]), None)
        run.wrong(name, f"renamed to {now}" if now else "missing")
        added.pop(now or "", None)
    for name in sorted(added) if subjects else ():
        run.wrong(name, "added")


def _check_sums(run: Run, subjects: dict[str, str]) -> None:
    """Report where SHA256SUMS differs from what was attested. Of files that the manifest can't name, compare the files."""
    text = run.read(SUMS)
    if text is None:
        run.wrong(SUMS, "too large to be read" if SUMS in run.digests else "missing")
        return
    stated: dict[str, str] = {}
    known = len(run.problems)
    if b"\r\n" in text:  # said once, and not of each line
        run.wrong(SUMS, "its lines end with CR and LF, and were written with LF")
        text = text.replace(b"\r\n", b"\n")
    *lines, rest = text.decode("utf-8", "replace").split("\n")
    if rest:
        run.wrong(SUMS, "there is text after its last line")
    unreadable = 0
    for line in lines:
        matched = re.fullmatch(r"([0-9a-f]{64})  (.+)", line)
        if matched and matched[2] not in stated:
            stated[matched[2]] = matched[1]
        else:
            unreadable += 1
    if unreadable:
        run.wrong(SUMS, f"lines that can't be read, or that name a file again: {unreadable}")
    expected = {name: run.digests[name] for name in OWN if name in run.digests and name != SUMS}
    expected.update(subjects or {name: sha256 for name, sha256 in run.digests.items() if name != SUMS})
    for name in sorted(expected.keys() | stated.keys()):
        if name not in stated:
            run.wrong(SUMS, f"has no line for {name}")
        elif name not in expected:
            run.wrong(SUMS, f"has a line for {name}, which was not attested")
        elif stated[name] != expected[name]:
            run.wrong(SUMS, f"states another hash for {name}")
    if len(run.problems) == known and text != sums_of(expected):
        run.wrong(SUMS, "its lines are in another order")


def _check_root(run: Run, subjects: dict[str, str]) -> None:
    """Compare the root of the findings with the file. Runs of earlier versions have none."""
    stated, sha256 = _member(run.predicate, "findings"), run.digests.get(FINDINGS)
    if stated and sha256 is not None and sha256 == subjects.get(FINDINGS):
        leaves = [leaf_hash(line) for line in finding_lines(run.folder / FINDINGS)]
        if (stated.get("count"), stated.get("root")) != (len(leaves), tree(leaves)[0].hex()):
            run.wrong(MANIFEST, f"its count or root of the findings isn't that of {FINDINGS}")


# One finding


class Proof(Run):
    """A run of which a proof has the signed statement alone."""

    place = "file"

    def __init__(self, path: Path, files: dict[str, Any]):
        super().__init__(path)
        known = {name: text for name, text in files.items() if name in (*OWN, PUBLIC_KEY) and isinstance(text, str)}
        self.files = {name: text.encode("utf-8", "replace") for name, text in known.items()}
        self.digests = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)


def _leads_to(line: Any, index: Any, siblings: Any, count: Any) -> bytes | None:
    """The root to which the members of a proof lead; None if they aren't of the right types and ranges."""
    numbers = isinstance(index, int) and isinstance(count, int) and 0 <= index < count
    if not (numbers and isinstance(line, str) and isinstance(siblings, list)):
        return None
    try:
        hashes = [bytes.fromhex(sibling) for sibling in siblings]
    except (TypeError, ValueError):
        return None
    return root_from(leaf_hash(line.encode("utf-8", "replace")), index, count, hashes)


def check_proof(path: Path, keys: list[bytes] | None, head: str | None) -> tuple[Run, dict[str, Any]]:
    """Check a file that proves a finding. Returns the run that it is of, and the finding.

    head: the SHA-256 that the run's manifest must have; None for any.
    Without keys and head it is a problem: who forged the file would have put the forger's own key into it.
    """
    proof = _object(path.read_bytes() if path.stat().st_size <= LARGEST else None)
    if proof.get("format") != PROOF:
        raise Unusable(f"{path}: it is neither a folder with evidence nor a proof of a finding")
    files = _member(proof, "files")
    run = Proof(path, files)
    more = (proof.keys() - PROOF_MEMBERS) | (files.keys() - {MANIFEST, ENVELOPE, PUBLIC_KEY})
    if more:
        run.wrong("the file", f"has members that no proof has: {', '.join(sorted(more))}")
    _attested(run, keys)
    stated, line = _member(run.predicate, "findings"), proof.get("finding")
    root = _leads_to(line, proof.get("index"), proof.get("path"), stated.get("count"))
    if root is None or root.hex() != stated.get("root"):
        run.wrong("the finding", "the run attests no such finding at this place")
    if head is not None and run.sha256 != head:
        run.wrong(MANIFEST, f"its SHA-256 isn't {head}")
    if keys is None and head is None and not run.problems:
        if ENVELOPE in run.digests:
            whose = "it is signed by a key of the same file: give the key that you know, with --public-key"
            run.wrong(MANIFEST, f"{whose}, or state the SHA-256 of it that you know, with --head")
        else:
            run.wrong(MANIFEST, "it is not signed: state the SHA-256 of it that you know, with --head")
    return run, _object(line.encode("utf-8", "replace") if isinstance(line, str) else None)


# All runs of a folder


def check_chain(folder: Path, keys: list[bytes] | None, after: str | None, head: str | None) -> list[Run]:
    """Check each run of a folder, and that each run names the manifest of the one before. Returns the runs in order.

    after: the SHA-256 of the manifest that the first run must name; None: the first run must be number 1.
    head: the SHA-256 of the manifest that the last run must have; None for any.
    """
    runs, others = [], Run(folder)
    for path in sorted(folder.iterdir()):
        if RUN.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            runs.append(check_run(path, keys))
        elif path.name.startswith(UNFINISHED):
            others.notes.append(
                f"{path.name} isn't attested: a run is being written, or was killed while it was written"
            )
        else:
            others.wrong(path.name, "added: it is no run")
    runs.sort(key=lambda run: (run.number, run.name))
    for before, run in zip([None, *runs], runs):  # noqa: B905  # Python 3.8
        _check_link(run, before, after)
    if head is not None and (not runs or runs[-1].sha256 != head):
        others.wrong("chain broken", _wrong_head(runs, head))
    return [*runs, others] if others.problems or others.notes else runs


def _wrong_head(runs: list[Run], head: str) -> str:
    for place, run in enumerate(runs):
        if run.sha256 == head:
            return f"the manifest {head} is that of {run.name}, and {len(runs) - place - 1} newer runs follow it"
    return f"no last run has the manifest {head}; runs are missing at the end, or were changed"


def _check_link(run: Run, before: Run | None, after: str | None) -> None:
    named = _member(run.predicate, "previous")
    sha256, folder = named.get("manifest_sha256"), named.get("folder")
    if run.predicate and run.predicate.get("folder") != run.name:
        run.wrong("the folder", f"renamed; it was {run.predicate.get('folder')}")
    problem = None
    if before is None:
        if after is not None and sha256 != after:
            problem = f"the run before isn't the one with the manifest {after}"
        elif after is None and (named or run.number != 1):
            problem = f"this is run number {run.number}, and the run before, {folder}, is missing"
    elif run.number == before.number:
        problem = f"{before.name} has the same number"
    elif not named or (run.predicate and run.number != before.number + 1):
        problem = f"a run is missing between {before.name} and this one"
    elif sha256 != before.sha256:
        problem = f"it names another manifest than that of the run before, {before.name}"
    if problem:
        run.wrong("chain broken", problem)


# The program


def verify(
    path: Path, public_key: Path | None = None, after: str | None = None, head: str | None = None
) -> tuple[list[str], int]:
    """Check the folder of a run or of all runs, or the proof of a finding. Returns the lines to print, and the exit status.

    public_key: a file with the trusted public keys; None to use those in the folders, which prove no signer.
    A proof needs public_key or head, else it is not as attested.
    after, head: as in `check_chain`.
    """
    try:
        keys, after, head = _given_keys(public_key), _digest("--after", after), _digest("--head", head)
        if path.is_file():
            if after:
                raise Unusable(f"{path}: it is one file; name the folder of all runs to check their order")
            return _proof_lines(*check_proof(path, keys, head))
        folder, single = evidence_in(path)
        if single and (after or head):
            raise Unusable(f"{path}: it is the folder of one run; name the folder of all runs to check their order")
        runs = [check_run(folder, keys)] if single else check_chain(folder, keys, after, head)
        if single and runs[0].predicate.get("folder") not in (None, folder.resolve().name):
            runs[0].notes.append(f"its folder was named {runs[0].predicate['folder']}")
    except Unusable as error:
        return [shown(str(error))], UNCHECKED
    except OSError as error:
        return [shown(f"{error.filename}: can't be read: {error.strerror}")], UNCHECKED
    lines = [f"{run.name}: {problem}" for run in runs for problem in run.problems]
    problems, checked = len(lines), [run for run in runs if run.digests]
    notes: dict[str, list[str]] = {}
    for run in runs:
        for note in run.notes:
            notes.setdefault(note, []).append(run.name)
    lines += [f"note: {of[0] if len(of) == 1 else f'{len(of)} runs'}: {note}" for note, of in notes.items()]
    extent = f"runs: {len(checked)}, files: {sum(len(run.digests) for run in checked)}"
    lines.append(f"NOT as attested. Problems: {problems}, {extent}" if problems else f"As attested. {extent}")
    if checked and checked[-1].sha256:
        lines.append(f"last manifest: {checked[-1].sha256} ({checked[-1].name})")
    return [shown(line) for line in lines], DIFFERS if problems else AS_ATTESTED


def _proof_lines(run: Run, finding: dict[str, Any]) -> tuple[list[str], int]:
    lines = [*run.problems, *(f"note: {note}" for note in run.notes)]
    if run.problems:
        lines.append(f"NOT as attested. Problems: {len(run.problems)}")
    else:
        said = [
            finding.get(name) for name in ("id", "outcome", "control", "resource_type", "resource", "cluster", "since")
        ]
        lines.append("As attested. Finding {}: {}, {} on {} {} in {}, since {}".format(*said))
    lines.append(f"run {run.predicate.get('folder')}, manifest {run.sha256}")
    return [shown(line) for line in lines], DIFFERS if run.problems else AS_ATTESTED


def _digest(option: str, stated: str | None) -> str | None:
    """A SHA-256 that a user states. Raises Unusable for text that is none."""
    if stated is not None and not re.fullmatch("[0-9a-f]{64}", stated.lower()):
        raise Unusable(f"{option} {stated}: expected the SHA-256 of a manifest, 64 hexadecimal digits")
    return stated.lower() if stated is not None else None


def _given_keys(path: Path | None) -> list[bytes] | None:
    try:
        return None if path is None else public_keys(path.read_bytes())
    except ValueError as error:
        raise Unusable(f"{path}: {error}") from None


def evidence_in(path: Path) -> tuple[Path, bool]:
    """The folder to check, and whether it is that of a single run."""
    if not path.is_dir():
        raise Unusable(f"{path}: no such folder or file")
    if any((path / name).exists() for name in OWN):
        return path, True
    for folder in (path, path / FOLDER):
        if folder.is_dir() and any(RUN.fullmatch(name) for name in os.listdir(folder)):
            return folder, False
    raise Unusable(f"{path}: no evidence in it; expected the folder of a run, or a folder with such folders")


def shown(text: str) -> str:
    """Text for a terminal. Names of files may have control characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter, prog="verify.py")
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(__file__).parent,
        help="or a file; default: the folder of this file",
    )
    parser.add_argument("--public-key", type=Path, metavar="FILE", help="the signer's public key (PEM), or several")
    parser.add_argument("--after", metavar="SHA256", help="the manifest that the first run must name as the one before")
    parser.add_argument("--head", metavar="SHA256", help="the manifest that the last run must have")
    given = parser.parse_args()
    lines, status = verify(given.folder, given.public_key, given.after, given.head)
    print("\n".join(lines), file=sys.stderr if status == UNCHECKED else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
