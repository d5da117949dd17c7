"""Proofs of single findings. Roots and proofs are held against RFC 6962: known roots, and its recursive definition."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from durability.cli.app import app
from durability.evidence import keys, verify
from durability.topology.document import canonical
from tests.support.evidence import CLUSTER, attest, new_key, rewrite, seal, statement, verified
from tests.support.report_cases import snapshot
from tests.support.schemas import unnamed

# The leaves and roots of Certificate Transparency's own tests (google/certificate-transparency, merkle_tree_test.cc).
LEAVES = [bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")]
LEAVES.append(bytes.fromhex("606162636465666768696a6b6c6d6e6f"))
ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
TOPICS = ("orders", "audit", "kundenumsätze\u2028", "payments", "refunds")


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def mth(lines: list[bytes]) -> bytes:
    """MTH of RFC 6962, 2.1, as it is written there."""
    if len(lines) < 2:
        return sha256(b"\0" + lines[0]) if lines else sha256(b"")
    k = 1 << (len(lines) - 1).bit_length() - 1
    return sha256(b"\1" + mth(lines[:k]) + mth(lines[k:]))


def test_roots_and_paths_are_those_of_rfc_6962():
    for count, root in enumerate(ROOTS):
        assert verify.tree([verify.leaf_hash(leaf) for leaf in LEAVES[:count]])[0].hex() == root
    for count in range(1, 40):
        lines = [b"%d" % number for number in range(count)]
        leaves, root = [verify.leaf_hash(line) for line in lines], mth(lines)
        for index in range(count):
            found, path = verify.tree(leaves, index)
            assert found == root == verify.root_from(leaves[index], index, count, path)
            assert verify.root_from(leaves[index], index, count, [*path, root]) is None
            assert not path or verify.root_from(leaves[index], index, count, path[:-1]) is None
            assert count == 1 or verify.root_from(leaves[index], (index + 1) % count, count, path) != root


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a signed run of some findings, the signer's keys as key.pem and key.pub, and other.pub of another."""
    out = tmp_path_factory.mktemp("evidence")
    new_key(out / "other.pem")
    attest(out, keys.from_file(new_key(out / "key.pem")), topics=TOPICS)
    return out


def findings(out: Path) -> list[dict]:
    return json.loads((out / "findings.json").read_text())["findings"]


def prove(finding: str, evidence: Path, file: Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["prove", finding, "--evidence", str(evidence), "--file", str(file)])
    return done.exit_code, done.output


def test_a_finding_is_proven_without_the_others(made, tmp_path):
    lines = (made / "findings.json").read_bytes().split(b"\n")[2:-2]
    stated = statement(next((made / "evidence").iterdir()))["predicate"]["findings"]
    assert stated == {"count": 5, "root": mth([line.removesuffix(b",") for line in lines]).hex()}
    key = ("--public-key", made / "key.pub")
    for number, finding in enumerate(findings(made)[2:4]):
        proof = tmp_path / f"{number}.json"
        assert prove(finding["id"], made / "evidence", proof)[0] == 0
        status, said = verified(proof, *key)
        assert (
            status == 0
            and f"As attested. Finding {verify.shown(finding['id'])}: FAIL, replication-factor on topic" in said
        )
        text = proof.read_text()
        assert unnamed("proof", json.loads(text)) == []
        assert not any(f'resource\\": \\"{other}' in text for other in TOPICS if other != finding["resource"])
    assert verified(proof, "--public-key", made / "other.pub")[0] == 1
    assert verified(proof, *key, "--head", "0" * 64)[0] == 1 and verified(proof, *key, "--after", "0" * 64)[0] == 2


def test_a_key_of_the_same_file_proves_nothing(made, tmp_path):
    forger = keys.from_file(new_key(tmp_path / "forger.pem"))
    forged = attest(tmp_path / "out", forger, topics=("payments",))
    proof = tmp_path / "proof.json"
    prove(findings(tmp_path / "out")[0]["id"], forged.folder, proof)
    status, said = verified(proof)
    assert status == 1 and "As attested" not in said and "in the same file and proves nothing about who signed" in said
    assert "it is signed by a key of the same file: give the key that you know, with --public-key" in said
    assert verified(proof, "--public-key", made / "key.pub")[0] == 1
    # A hash that the reader knows pins the manifest, and with it the finding.
    assert verified(proof, "--head", forged.sha256)[0] == 0


def test_a_proof_shows_no_acls(tmp_path):
    acl = {"principal": "User:*", "resource_type": "TOPIC", "resource": "salaries", "host": "10.0.0.7"}
    acls = {"count": 1, "listed": [acl]}
    collection = json.dumps({**json.loads(CLUSTER["collection"]), "acls": acls, "acls_reason": None})
    run = attest(tmp_path, None, clusters=({**CLUSTER, "collection": collection},), snapshots=[snapshot()])
    proof = tmp_path / "proof.json"
    assert prove(findings(tmp_path)[0]["id"], run.folder, proof)[0] == 0
    assert "salaries" not in proof.read_text() and "10.0.0.7" not in proof.read_text()
    predicate = statement(run.folder)["predicate"]
    (entry,) = predicate["snapshots"]
    kept = json.loads((run.folder / "inputs" / "acls.json").read_text())
    assert kept == {entry["cluster"]: acls} and unnamed("evidence", predicate) == []
    assert entry["acls"] == {"count": 1, "sha256": sha256(canonical(kept[entry["cluster"]])).hex()}
    assert "inputs/acls.json" in {subject["name"] for subject in statement(run.folder)["subject"]}


def tampered(change: Callable[[dict], object]) -> Callable[[dict], dict]:
    def applied(proof: dict) -> dict:
        change(proof)
        return proof

    return applied


@pytest.mark.parametrize(
    "change",
    [
        tampered(lambda p: p.update(finding=p["finding"].replace("FAIL", "EXEMPT"))),
        tampered(lambda p: p.update(finding=p["finding"] + ",")),
        tampered(lambda p: p.update(finding=None)),
        tampered(lambda p: p.update(finding="\ud800")),
        tampered(lambda p: p.update(index=(p["index"] + 1) % 5)),
        tampered(lambda p: p.update(index=-1)),
        tampered(lambda p: p.update(index="0")),
        tampered(lambda p: p.update(path=p["path"][1:])),
        tampered(lambda p: p.update(path=[*p["path"], "00" * 32])),
        tampered(lambda p: p.update(path=["x"])),
        tampered(lambda p: p.update(path=None)),
        tampered(lambda p: p["files"].pop("manifest.dsse.json")),
        tampered(
            lambda p: p["files"].update({"manifest.json": p["files"]["manifest.json"].replace("complete", "partial")})
        ),
        tampered(lambda p: p.update(files=None)),
        tampered(lambda p: p.update(remark="fixed in the meantime")),
        tampered(lambda p: p["files"].update({"report/approval.txt": "approved"})),
    ],
)
def test_a_proof_that_was_tampered_with_is_found(made, tmp_path, change):
    proof = tmp_path / "proof.json"
    prove(findings(made)[2]["id"], made / "evidence", proof)
    proof.write_text(json.dumps(change(json.loads(proof.read_text()))))
    said, status = verify.verify(proof, made / "key.pub")
    assert status == 1 and any(line.startswith("NOT as attested") for line in said)


def test_a_proof_of_an_unsigned_run_needs_the_hash_of_its_manifest(made, tmp_path):
    run = attest(tmp_path / "out", None, topics=TOPICS)
    proof = tmp_path / "proof.json"
    prove(findings(made)[0]["id"], run.folder, proof)
    assert verified(proof, "--head", run.sha256)[0] == 0
    assert verified(proof)[0] == 1 and verified(proof, "--public-key", made / "key.pub", "--head", run.sha256)[0] == 1


def test_what_cannot_be_proven_is_refused(made, tmp_path):
    out, proof = shutil.copytree(made, tmp_path / "out"), tmp_path / "proof.json"
    (folder,) = (out / "evidence").iterdir()
    some = findings(made)[0]["id"]
    assert prove("none", folder, proof) == (
        2,
        f"error: {folder / 'report' / 'findings.json'} has no finding none. It lists what doesn't pass\n",
    )
    assert prove(some, tmp_path / "nothing", proof)[0] == 2
    stated = statement(folder)
    stated["predicate"]["findings"]["root"] = "0" * 64
    seal(folder, stated, keys.from_file(out / "key.pem"))
    status, said = verified(folder, "--public-key", out / "key.pub")
    assert status == 1 and "manifest.json: its count or root of the findings isn't that of report/findings.json" in said
    assert prove(some, folder, proof)[0] == 2
    del stated["predicate"]["findings"]
    seal(folder, stated, keys.from_file(out / "key.pem"))
    assert verified(folder)[0] == 0, "an earlier version wrote no root"
    status, said = prove(some, folder, proof)
    assert status == 2 and "an earlier version wrote it" in said
    rewrite(folder, "report/findings.json", b"{}")
    status, said = prove(some, folder, proof)
    assert status == 2 and "isn't as attested: report/findings.json" in said and not proof.exists()
    assert verified(out / "key.pub")[0] == 2, "a file that is no proof"
