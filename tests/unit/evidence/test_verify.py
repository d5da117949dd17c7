"""Evidence that was tampered with: what each verifier finds. OpenSSL and coreutils run as the documentation shows."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from durability.evidence import keys, verify
from tests import ROOT
from tests.support.evidence import attest, new_key, rewrite, seal, signed_chain, statement, verified

SHELL = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "evidence.md").read_text(), re.DOTALL)
CASES: dict[str, tuple[Callable, str, bool, bool]] = {}
"""By name: what is done to the last run, what both verifiers say, and whether coreutils and OpenSSL find it, too."""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with two signed runs in `evidence`, the signer's keys as key.pem and key.pub, and other.pem of another."""
    out = tmp_path_factory.mktemp("evidence")
    new_key(out / "other.pem")
    signed_chain(out, keys.from_file(new_key(out / "key.pem")))
    return out


@pytest.fixture
def out(made, tmp_path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(made, tmp_path / "out")


def runs(out: Path) -> list[Path]:
    return sorted((out / "evidence").iterdir())


def by_other_programs(folder: Path, public_key: Path) -> tuple[bool, bool]:
    """Whether coreutils and OpenSSL find nothing, run as the documentation shows, with the key that the auditor has."""
    found = []
    signature = SHELL[0].replace("/tmp/", f"{public_key.parent}/").replace("pub.pem", str(public_key))
    for shell in (SHELL[1], signature):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", shell], cwd=folder, capture_output=True, timeout=60)
        found.append(done.returncode == 0)
    return found[0], found[1]


def test_what_was_not_touched_is_as_attested_for_every_program(out):
    status, said = verified(out / "evidence", "--public-key", out / "key.pub")
    assert status == 0 and "As attested. runs: 2" in said and "signed by the given key" in said
    assert verified(out, "--public-key", out / "key.pub") == (status, said), "OUT leads to its evidence"
    for folder in runs(out):
        assert verified(folder, "--public-key", out / "key.pub")[0] == 0
        assert by_other_programs(folder, out / "key.pub") == (True, True)
    assert subprocess.run([sys.executable, "-I", runs(out)[0] / "verify.py"], capture_output=True).returncode == 0


def test_a_key_of_the_same_folder_is_said_to_prove_nothing(out):
    status, said = verified(out / "evidence")
    assert status == 0 and "in the same folder and proves nothing about who signed" in said


def test_each_attested_file_is_named_if_one_byte_differs(out):
    folder = runs(out)[-1]
    names = [subject["name"] for subject in statement(folder)["subject"]]
    assert {"report/plans/index.json", "report/plans/eu-payments/orders.json", "inputs/policy.yaml"} < set(names)
    assert {f"report/{name}" for name in os.listdir(out) if (out / name).is_file()} >= {"report/findings.json"}
    for name in names:
        content = (folder / name).read_bytes()
        rewrite(folder, name, content[:-1] + bytes([content[-1] ^ 1]))
    status, said = verified(folder, "--public-key", out / "key.pub")
    assert status == 1
    for name in names:
        assert re.search(rf": {re.escape(name)}: differs from what was attested$", said, re.MULTILINE)


def case(says: str, *, sums: bool, openssl: bool) -> Callable:
    """Register a way to tamper. sums, openssl: do coreutils and OpenSSL find it?"""

    def register(tamper: Callable) -> Callable:
        CASES[tamper.__name__] = (tamper, says, sums, openssl)
        return tamper

    return register


def changed(folder: Path) -> dict:
    """The statement with a lie."""
    stated = statement(folder)
    stated["predicate"]["run"]["verified"] = False
    return stated


@case("manifest.json: differs from the payload of manifest.dsse.json", sums=True, openssl=True)
def the_manifest(folder, out):
    rewrite(folder, "manifest.json", json.dumps(changed(folder)).encode())


@case("manifest.json: differs from the payload of manifest.dsse.json", sums=True, openssl=True)
def the_manifest_is_no_json(folder, out):
    rewrite(folder, "manifest.json", b"[" * 100_000)


@case("manifest.json: one of its subjects can't be read", sums=True, openssl=True)
def a_subject_without_a_name(folder, out):
    (folder / "manifest.dsse.json").unlink()
    stated = statement(folder)
    stated["subject"] += [{"name": 5, "digest": {"sha256": "0" * 64}}, {"name": [], "digest": None}, 7]
    rewrite(folder, "manifest.json", json.dumps(stated).encode())


@case("manifest.dsse.json: its payload is no in-toto statement", sums=True, openssl=False)
def the_payloads_type(folder, out):
    envelope = json.loads((folder / "manifest.dsse.json").read_text())
    rewrite(folder, "manifest.dsse.json", json.dumps(envelope | {"payloadType": "\ud800"}, indent=1).encode())


@case("manifest.dsse.json: its signature isn't one of its payload by the given key", sums=True, openssl=False)
def the_payload(folder, out):
    envelope = json.loads((folder / "manifest.dsse.json").read_text())
    envelope["payload"] = base64.b64encode(json.dumps(changed(folder)).encode()).decode()
    rewrite(folder, "manifest.dsse.json", json.dumps(envelope, indent=1).encode())


@case("manifest.dsse.json: its signature isn't one of its payload by the given key", sums=True, openssl=True)
def the_signature(folder, out):
    envelope = json.loads((folder / "manifest.dsse.json").read_text())
    signature = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
    signature[40] ^= 1
    envelope["signatures"][0]["sig"] = base64.b64encode(signature).decode()
    rewrite(folder, "manifest.dsse.json", json.dumps(envelope, indent=1).encode())


@case("manifest.dsse.json: it is no DSSE envelope", sums=True, openssl=True)
def the_envelope_is_cut(folder, out):
    rewrite(folder, "manifest.dsse.json", (folder / "manifest.dsse.json").read_bytes()[:-60])


@case("manifest.dsse.json: its signature isn't one of its payload by the given key", sums=False, openssl=True)
def everything_but_the_signature(folder, out):
    rewrite(folder, "report/findings.json", b"{}")
    seal(folder, changed(folder))


@case("pub.pem: differs from what was attested", sums=True, openssl=False)
def the_public_key(folder, out):
    rewrite(folder, "pub.pem", (out / "other.pub").read_bytes())


@case("manifest.dsse.json: signed by another key", sums=False, openssl=True)
def signed_again_by_another_key(folder, out):
    rewrite(folder, "report/losses.json", b"{}")
    seal(folder, changed(folder), keys.from_file(out / "other.pem"))


@case("pub.pem: another key", sums=False, openssl=True)
def signed_again_with_the_public_key_swapped(folder, out):
    signed_again_by_another_key(folder, out)


@case("manifest.dsse.json: missing, although the manifest says that it is signed", sums=True, openssl=True)
def the_signature_is_removed(folder, out):
    (folder / "manifest.dsse.json").unlink()


@case("manifest.json: it is not signed, so no key can show who wrote it", sums=False, openssl=True)
def the_signature_is_removed_and_no_longer_claimed(folder, out):
    for name in ("manifest.dsse.json", "pub.pem"):
        (folder / name).unlink()
    stated = changed(folder)
    stated["predicate"]["signing"] = {"signed": False, "key": None, "reason": "no signing key is configured"}
    seal(folder, stated)


@case("SHA256SUMS: states another hash for report/report.html", sums=True, openssl=False)
def a_hash(folder, out):
    lines = (folder / "SHA256SUMS").read_text()
    rewrite(folder, "SHA256SUMS", re.sub(r"\w{64}(?=  report/report.html)", "0" * 64, lines).encode())


@case("SHA256SUMS: has no line for report/findings.csv", sums=False, openssl=False)
def a_hash_is_left_out(folder, out):
    lines = (folder / "SHA256SUMS").read_text().splitlines(keepends=True)
    rewrite(folder, "SHA256SUMS", "".join(line for line in lines if "findings.csv" not in line).encode())


@case("SHA256SUMS: missing", sums=True, openssl=False)
def the_hashes(folder, out):
    (folder / "SHA256SUMS").unlink()


@case("report/more.json: added", sums=False, openssl=False)
def a_file_is_added(folder, out):
    (folder / "report" / "more.json").write_text("{}")


@case("report/empty: an empty folder, which is not attested", sums=False, openssl=False)
def a_folder_is_added(folder, out):
    (folder / "report" / "empty").mkdir()


@case("report/losses.json: missing", sums=True, openssl=False)
def a_file_is_removed(folder, out):
    (folder / "report" / "losses.json").unlink()


@case("report/losses.json: renamed to report/lost.json", sums=True, openssl=False)
def a_file_is_renamed(folder, out):
    (folder / "report" / "losses.json").rename(folder / "report" / "lost.json")


@case("report/losses.json: added: it is a link or no regular file", sums=False, openssl=False)
def a_file_becomes_a_link(folder, out):
    (folder / "report" / "losses.json").unlink()
    (folder / "report" / "losses.json").symlink_to(out / "losses.json")


@case(r"report/a\x1b]0;owned\x07\nAs attested.: added", sums=False, openssl=False)
def a_name_with_control_characters(folder, out):
    (folder / "report" / "a\x1b]0;owned\x07\nAs attested.").write_text("")


@case("SHA256SUMS: there is text after its last line", sums=True, openssl=False)
def text_behind_the_sums(folder, out):
    rewrite(folder, "SHA256SUMS", (folder / "SHA256SUMS").read_bytes() + b"approved")


@case("SHA256SUMS: its lines end with CR and LF, and were written with LF\nnote:", sums=False, openssl=False)
def lines_end_as_on_windows(folder, out):
    rewrite(folder, "SHA256SUMS", (folder / "SHA256SUMS").read_bytes().replace(b"\n", b"\r\n"))


MORE = "manifest.dsse.json: it has more than its payload, the key's id and one signature, or was reformatted"


@case(MORE, sums=True, openssl=True)
def a_second_signature(folder, out):
    envelope = json.loads((folder / "manifest.dsse.json").read_bytes())
    envelope["signatures"].append({"keyid": "0" * 64, "sig": base64.b64encode(b"x" * 64).decode()})
    rewrite(folder, "manifest.dsse.json", json.dumps(envelope).encode())


def another_envelope(folder: Path, change: Callable[[dict], object], text: Callable[[str], str] = str) -> None:
    """Change what no signature covers, and SHA256SUMS with it."""
    envelope = json.loads((folder / "manifest.dsse.json").read_text())
    change(envelope["signatures"][0])
    rewrite(folder, "manifest.dsse.json", text(json.dumps(envelope, indent=1) + "\n").encode())
    lines = [line.split("  ") for line in (folder / "SHA256SUMS").read_text().splitlines()]
    sums = {name: sha256 for sha256, name in lines}
    sums["manifest.dsse.json"] = hashlib.sha256((folder / "manifest.dsse.json").read_bytes()).hexdigest()
    rewrite(folder, "SHA256SUMS", verify.sums_of(sums))


@case(MORE, sums=False, openssl=False)
def another_key_id(folder, out):
    another_envelope(folder, lambda signature: signature.update(keyid="0" * 64))


@case(MORE, sums=False, openssl=False)
def a_claim_beside_the_signature(folder, out):
    another_envelope(folder, lambda signature: signature.update(approved="by the auditor"))


@case(MORE, sums=False, openssl=False)
def blanks_in_the_envelope(folder, out):
    another_envelope(folder, lambda signature: None, lambda text: text + " ")


@case("manifest.dsse.json: it is no DSSE envelope", sums=False, openssl=False)
def a_second_payload_that_other_programs_may_read(folder, out):
    another_envelope(folder, lambda signature: None, lambda text: text.replace("{", '{"payload": "e30=",', 1))


@case("SHA256SUMS: its lines are in another order", sums=False, openssl=False)
def the_hashes_in_another_order(folder, out):
    lines = (folder / "SHA256SUMS").read_text().splitlines(keepends=True)
    rewrite(folder, "SHA256SUMS", "".join(reversed(lines)).encode())


@case("SHA256SUMS: lines that can't be read, or that name a file again: 2\nnote:", sums=False, openssl=False)
def a_hash_twice_and_a_remark(folder, out):
    content = (folder / "SHA256SUMS").read_bytes()
    rewrite(folder, "SHA256SUMS", b"# approved\n" + content + content.splitlines(keepends=True)[0])


@case("manifest.json: too large to be read", sums=True, openssl=True)
def a_manifest_that_fills_the_memory(folder, out):
    with (folder / "manifest.json").open("ab") as file:
        file.truncate(verify.LARGEST + 1)


def test_a_signature_without_any_key_to_check_it_is_named(out):
    """A forger without the key deletes pub.pem, and leaves the old signature beside a manifest of their own."""
    folder = runs(out)[-1]
    stated = statement(folder)
    (folder / "pub.pem").unlink()
    stated["subject"] = [subject for subject in stated["subject"] if subject["name"] != "pub.pem"]
    rewrite(folder, "manifest.json", json.dumps(stated).encode())
    status, said = verified(folder)
    assert status == 1 and "manifest.dsse.json: there is no public key to check its signature with" in said


@pytest.mark.parametrize("name", CASES)
def test_a_tampered_run_is_found_and_named(out, name):
    tamper, says, sums, openssl = CASES[name]
    folder = runs(out)[-1]
    tamper(folder, out)
    status, said = verified(out / "evidence", "--public-key", out / "key.pub")
    assert status == 1 and f"{folder.name}: {says}" in said
    lines = said.splitlines()
    assert "\x1b" not in said and not any(line.startswith(("As attested", runs(out)[0].name)) for line in lines)
    assert by_other_programs(folder, out / "key.pub") == (not sums, not openssl)


def test_a_run_signed_by_another_key_is_whole_by_its_own_key(out):
    signed_again_by_another_key(runs(out)[-1], out)
    assert verified(out / "evidence")[0] == 0, "its own key can't show it: the auditor needs the signer's"
    assert verified(out / "evidence", "--public-key", out / "other.pub")[0] == 1, "the first run is of the other signer"
    both = (out / "key.pub").read_bytes() + (out / "other.pub").read_bytes()
    (out / "both.pub").write_bytes(both)
    assert verified(out / "evidence", "--public-key", out / "both.pub")[0] == 0, "a key that was replaced"


def test_a_chain_shows_what_the_signer_changed_afterwards(out):
    first, last = runs(out)
    key = keys.from_file(out / "key.pem")
    seal(first, changed(first), key)
    assert verified(first, "--public-key", out / "key.pub")[0] == 0
    status, said = verified(out / "evidence", "--public-key", out / "key.pub")
    assert status == 1 and f"{last.name}: chain broken: it names another manifest than that of the run before" in said
    stated = statement(last)
    stated["predicate"]["previous"]["manifest_sha256"] = "0" * 64
    seal(last, stated, key)
    assert verified(out / "evidence")[0] == 1


def test_runs_that_are_missing_are_named(out):
    third = attest(out, keys.from_file(out / "key.pem"), run_id="run-3")
    first, second, _ = runs(out)
    manifest = verify.check_run(first).sha256
    head = ("--head", third.sha256)
    assert verified(out / "evidence", *head)[0] == 0
    status, said = verified(out / "evidence", "--head", manifest)
    assert status == 1 and f"is that of {first.name}, and 2 newer runs follow it" in said
    shutil.move(second, out / "second")
    status, said = verified(out / "evidence")
    assert status == 1 and f"a run is missing between {first.name} and this one" in said
    shutil.rmtree(first)
    shutil.move(out / "second", second)
    status, said = verified(out / "evidence")
    assert status == 1 and f"the run before, {first.name}, is missing" in said
    assert verified(out / "evidence", "--after", manifest, *head)[0] == 0, "the auditor knows what was moved away"
    assert verified(out / "evidence", "--after", "0" * 64)[0] == 1
    shutil.rmtree(third.folder)
    assert verified(out / "evidence", "--after", manifest)[0] == 0, "the end of a chain shows no gap by itself"
    status, said = verified(out / "evidence", "--after", manifest, *head)
    assert status == 1 and "runs are missing at the end" in said


def test_what_cannot_be_read_is_not_called_missing(out, monkeypatch):
    run, name = runs(out)[-1], "report/findings.json"
    sha256 = verify._sha256

    def denied(path):
        if path == run / name:
            raise PermissionError(13, "Permission denied")
        return sha256(path)

    monkeypatch.setattr(verify, "_sha256", denied)
    assert [text for text in verify.check_run(run).problems if name in text] == [
        f"{name}: can't be read: Permission denied"
    ]


def test_a_renamed_run_and_what_is_no_run_are_named(out):
    last = runs(out)[-1]
    copied = last.with_name(last.name[:-1] + ("0" if last.name[-1] != "0" else "1"))
    shutil.copytree(last, copied)
    (out / "evidence" / "notes.txt").write_text("")
    (out / "evidence" / ".unfinished-x").mkdir()
    status, said = verified(out / "evidence")
    assert "note: evidence: .unfinished-x isn't attested: a run is being written, or was killed" in said
    assert status == 1 and f"{copied.name}: the folder: renamed; it was {last.name}" in said
    assert "has the same number" in said and "notes.txt: added: it is no run" in said


def test_a_run_by_itself_says_what_its_folder_was_named(out, tmp_path):
    last = runs(out)[-1]
    shutil.copytree(last, tmp_path / "copied")
    status, said = verified(tmp_path / "copied")
    assert status == 0 and f"note: copied: its folder was named {last.name}" in said
    assert "its folder was named" not in verified(last)[1]


def test_a_stated_hash_is_read_in_any_case_and_refused_if_it_is_none(out):
    head = hashlib.sha256((runs(out)[-1] / "manifest.json").read_bytes()).hexdigest()
    assert verified(out / "evidence", "--head", head.upper())[0] == 0
    for option, stated in (("--head", ""), ("--head", head[:-1]), ("--after", "x" * 64)):
        status, said = verified(out / "evidence", option, stated)
        assert status == 2 and "64 hexadecimal digits" in said


def test_where_nothing_can_be_checked_the_status_is_2(out, tmp_path):
    (tmp_path / "empty").mkdir()
    folder = runs(out)[0]
    for arguments, says in (
        ((tmp_path / "none",), "no such folder"),
        ((tmp_path / "empty",), "no evidence in it"),
        ((folder, "--public-key", tmp_path / "none.pem"), "none.pem: can't be read"),
        ((folder, "--public-key", out / "key.pem"), "it is no Ed25519 public key"),
        (
            (folder, "--public-key", new_key(tmp_path / "rsa.pem", "-algorithm", "rsa").with_suffix(".pub")),
            "it is no Ed25519",
        ),
        ((folder, "--head", "0" * 64), "it is the folder of one run"),
    ):
        status, said = verified(*arguments)
        assert status == 2 and says in said


def test_signatures_are_checked_as_another_library_checks_them():
    for length in (0, 1, 1023):
        key = Ed25519PrivateKey.generate()
        public, message = key.public_key().public_bytes_raw(), os.urandom(length)
        signature = key.sign(message)
        assert verify.signature_matches(public, message, signature)
        assert not verify.signature_matches(public, message + b"\0", signature)
        assert not verify.signature_matches(
            Ed25519PrivateKey.generate().public_key().public_bytes_raw(), message, signature
        )
        # S + L is another encoding of the same number, which RFC 8032 forbids.
        more = int.from_bytes(signature[32:], "little") + verify.ORDER
        for wrong in (signature[:32] + more.to_bytes(32, "little"), signature[:-1], signature + b"\0", b"", bytes(64)):
            assert not verify.signature_matches(public, message, wrong)
        assert not verify.signature_matches(b"\xff" * 32, message, signature)
        assert not verify.signature_matches(public[:-1], message, signature)


def test_the_verifier_needs_only_an_older_python():
    tree = ast.parse(Path(verify.__file__).read_text(), feature_version=(3, 8))
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported - {"__future__"} <= sys.stdlib_module_names
