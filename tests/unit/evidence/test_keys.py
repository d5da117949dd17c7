"""The signing key: which files and Connections have one, and what is said of all others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from durability.errors import Refused
from durability.evidence import keys
from durability.evidence.verify import public_keys, signature_matches
from tests.support.evidence import new_key


@pytest.fixture(scope="module")
def key(tmp_path_factory) -> Path:
    return new_key(tmp_path_factory.mktemp("keys") / "key.pem")


def test_a_key_of_openssl_signs_for_its_public_key(key):
    signing = keys.from_file(key)
    assert signing.public_pem == key.with_suffix(".pub").read_bytes()
    (public,) = public_keys(signing.public_pem)
    assert signature_matches(public, b"message", signing.sign(b"message"))
    command = f"openssl pkey -pubin -in {key.with_suffix('.pub')} -outform DER | sha256sum"
    assert subprocess.check_output(command, shell=True, text=True).split()[0] == signing.id


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o602])
def test_a_key_that_others_may_use_is_refused(key, tmp_path, mode):
    file = tmp_path / "key.pem"
    file.write_bytes(key.read_bytes())
    file.chmod(mode)
    with pytest.raises(Refused, match=f"has mode {mode:04o}: others may read it. Run: chmod 600 {file}"):
        keys.from_file(file)
    file.chmod(0o400)
    assert keys.from_file(file).id == keys.from_file(key).id


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-algorithm", "rsa", "-pkeyopt", "rsa_keygen_bits:2048"), "of the type RSA"),
        (("-algorithm", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"), "of the type E"),
        (("-algorithm", "x25519"), "of the type X25519"),
        (("-algorithm", "ed25519", "-aes256", "-pass", "pass:hunter2"), "protected by a passphrase"),
    ],
)
def test_another_kind_of_key_is_refused_by_its_name(tmp_path, options, says):
    file = tmp_path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-out", file, *options], check=True, capture_output=True)
    file.chmod(0o600)
    with pytest.raises(Refused, match=rf"{file} is {says}.*openssl genpkey -algorithm ed25519"):
        keys.from_file(file)


def test_what_is_no_key_is_refused_and_never_shown(key, tmp_path):
    body = key.read_text().splitlines()[1]
    for text, says in (
        ("", "isn't in PEM form"),
        (body, "isn't in PEM form"),
        (key.with_suffix(".pub").read_text(), "is a public key"),
        (key.read_text().replace(body, body[:-8]), "is damaged"),
        (key.read_text().replace(body, "ÿ" * 64), "is damaged"),
        (key.read_text().replace("PRIVATE KEY", "OPENSSH PRIVATE KEY"), "of the kind OPENSSH PRIVATE KEY"),
    ):
        file = tmp_path / "key.pem"
        file.write_text(text)
        file.chmod(0o600)
        for read in (lambda: keys.from_file(file), lambda: keys.from_connection({"password": text or "-"})):  # noqa: B023
            with pytest.raises(Refused, match=says) as refused:
                read()
            assert body[:20] not in str(refused.value)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(Refused, match="is no regular file"):
        keys.from_file(tmp_path / "pipe")
    for path, says in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(Refused, match=f"the signing key {path} can't be read: {says}"):
            keys.from_file(path)


def test_a_connection_has_the_key_or_names_its_file(key):
    text, expected = key.read_text(), keys.from_file(key).id
    for password in (text, text.replace("\n", " "), text.replace("\n", "\\n"), text.replace("\n", "\r\n")):
        assert keys.from_connection({"password": password, "extra": {}}).id == expected
    assert keys.from_connection({"password": None, "extra": {"file": str(key)}}).id == expected
    with pytest.raises(Refused, match="Connection kafka_durability_signing has no key"):
        keys.from_connection({"password": None, "extra": {}})
