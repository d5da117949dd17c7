"""Evidence of small runs, and keys made by OpenSSL."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from typer.testing import CliRunner

from durability.cli.app import app
from durability.evidence import keys, verify
from durability.evidence.write import Attested, Audited, write
from durability.lake import tables
from durability.policy import load_policy, load_waivers
from durability.policy.model import fingerprint
from tests import ROOT
from tests.support.report_cases import NIGHT, facts, finding, plan, report, snapshot

POLICY = {name: ROOT / "policies" / f"{name}.yaml" for name in ("policy", "waivers", "clusters")}
CLUSTER = {
    "cluster": "eu-payments",
    "captured_at": NIGHT,
    "attempt_id": "attempt-1",
    "kafka_cluster_id": "4L6g3nShT-eMCtK--X86sw",
    "kafka_version": "4.3.1",
    "quorum_mode": "kraft",
    "declared_brokers": 3,
    "declared_topics": 2,
    "declared_partitions": 12,
    "hidden_partitions": 0,
    "collection": json.dumps(
        {
            "principal": {
                "security_protocol": "PLAINTEXT",
                "sasl_mechanism": None,
                "name": "User:ANONYMOUS",
                "reason": None,
            },
            "acls": None,
            "acls_reason": "SECURITY_DISABLED",
            "apis": [{"api": "Metadata", "key": 3, "version": 13, "count": 4}],
            "clock_offset_ms": -7,
            "log_dirs": {"brokers": 3, "topics": 2, "partitions": 12},
        }
    ),
}


def verified(*arguments: object) -> tuple[int, str]:
    """Exit status and text of `kafka-durability verify`, and of verify.py, which say the same."""
    given = [str(argument) for argument in arguments]
    program = CliRunner().invoke(app, ["verify", *given], env={"COLUMNS": "1000"})
    alone = [sys.executable, "-I", verify.__file__, *given]
    shipped = subprocess.run(alone, capture_output=True, text=True, cwd="/", timeout=60)
    said = program.output.removeprefix("error: ")
    assert (program.exit_code, said) == (shipped.returncode, shipped.stdout + shipped.stderr)
    return shipped.returncode, shipped.stdout + shipped.stderr


def new_key(path: Path, *options: str) -> Path:
    """A private key of OpenSSL's, Ed25519 unless `options` say otherwise, with its public key beside it as .pub."""
    subprocess.run(["openssl", "genpkey", "-out", path, *(options or ("-algorithm", "ed25519"))], check=True)
    path.chmod(0o600)
    subprocess.run(["openssl", "pkey", "-in", path, "-pubout", "-out", path.with_suffix(".pub")], check=True)
    return path


def lake_of(*clusters: dict, documents: dict[str, bytes] | None = None) -> SimpleNamespace:
    """A lake with these rows of `clusters` alone. documents: as gzip, by attempt id."""
    rows = {tables.CLUSTERS: facts(list(clusters))}

    def scan(table, where, columns):
        return rows.get(table, table.arrow.empty_table()).select(columns)

    return SimpleNamespace(scan=scan, documents=SimpleNamespace(read=(documents or {}).get))


def attest(
    out: Path,
    key: keys.SigningKey | None,
    *,
    clusters: tuple[dict, ...] = (CLUSTER,),
    topics: tuple[str, ...] = ("orders",),
    **more,
) -> Attested:
    """Report a run into `out`, with a plan for a topic, and attest it. topics: with a finding. more: fields of the plan."""
    written = report([finding(topic, "replication-factor") for topic in topics], out, **more)
    folder = out / "plans"
    (folder / "eu-payments").mkdir(parents=True, exist_ok=True)
    (folder / "eu-payments" / "orders.json").write_text('{"version": 1, "partitions": []}')
    entry = {"cluster": "eu-payments", "topic": "orders", "file": "eu-payments/orders.json"}
    (folder / "index.json").write_text(json.dumps({"plans": [entry], "without": []}))
    files = {**written, "plans": folder}
    return write(lake_of(*clusters), Audited(plan(**more), "complete", True, files, POLICY), out, key, None)


def evaluated_policy() -> str:
    """The fingerprint of the shipped policy and waivers."""
    return fingerprint(load_policy(POLICY["policy"]), load_waivers(POLICY["waivers"]))


def statement(folder: Path) -> dict:
    return json.loads((folder / verify.MANIFEST).read_text())


def rewrite(folder: Path, name: str, content: bytes) -> None:
    """Replace a file, which is read-only."""
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_bytes(content)


def seal(folder: Path, changed: dict | None = None, key: keys.SigningKey | None = None) -> None:
    """Make a folder consistent again, as a forger does: subjects, manifest, SHA256SUMS and, with a key, the signature.

    changed: the statement to write; the present one if not given. Without a key, the envelope keeps its signature.
    """
    stated = changed or statement(folder)
    if key:
        rewrite(folder, verify.PUBLIC_KEY, key.public_pem)
        stated["predicate"]["signing"]["key"] = key.id
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(files.items())}
    own = (verify.MANIFEST, verify.ENVELOPE, verify.SUMS)
    stated["subject"] = [{"name": n, "digest": {"sha256": sha}} for n, sha in hashes.items() if n not in own]
    manifest = json.dumps(stated).encode()
    rewrite(folder, verify.MANIFEST, manifest)
    if (folder / verify.ENVELOPE).exists():
        (kept,) = json.loads((folder / verify.ENVELOPE).read_text())["signatures"]
        key_id, signature = kept["keyid"], base64.b64decode(kept["sig"])
        if key:
            signed = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(manifest), manifest)
            key_id, signature = key.id, key.sign(signed)
        rewrite(folder, verify.ENVELOPE, verify.envelope_of(manifest, key_id, signature))
    names = [name for name in hashes if name != verify.SUMS]
    lines = [f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    rewrite(folder, verify.SUMS, "".join(lines).encode())


def signed_chain(out: Path, key: keys.SigningKey | None, runs: int = 2) -> list[Path]:
    """The folders of some runs in one chain."""
    return [attest(out, key, run_id=f"run-{n}", snapshots=[snapshot()]).folder for n in range(1, runs + 1)]
