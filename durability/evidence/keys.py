"""The key that signs evidence: an Ed25519 private key, from a file that only its owner can read or from a Connection."""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key

from durability.errors import Refused
from durability.evidence.verify import key_id

CONNECTION = "kafka_durability_signing"
"""Id of the Connection with the key: PEM in its password, or in its extra `file`, the path of a file with it."""
EXPECTED = 'JSON such as {"conn_type": "generic", "extra": {"file": "/path/signing.pem"}}'
"""What the variable of that Connection contains."""
MAKE = "make one with: openssl genpkey -algorithm ed25519"
OTHERS = stat.S_IRWXG | stat.S_IRWXO
LARGEST = 1 << 16
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


class SigningKey:
    """An Ed25519 private key. id: the SHA-256 of its public key in DER."""

    def __init__(self, key: Ed25519PrivateKey):
        self._key = key
        self.public_pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        self.id = key_id(key.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """The signature of a message, 64 bytes (RFC 8032)."""
        return self._key.sign(message)


def from_file(path: Path) -> SigningKey:
    """The key in a PEM file. Raises Refused unless it is a regular file that only its owner can use, with such a key."""
    try:
        # Opening a pipe would wait for its writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise Refused(f"the signing key {path} is no regular file")
            if state.st_mode & OTHERS:
                mode = stat.S_IMODE(state.st_mode)
                raise Refused(f"the signing key {path} has mode {mode:04o}: others may read it. Run: chmod 600 {path}")
            text = file.read(LARGEST)
    except OSError as error:
        raise Refused(f"the signing key {path} can't be read: {error.strerror}") from error
    return from_pem(text.decode("utf-8", "replace"), f"the signing key {path}")


def from_connection(connection: Mapping[str, object], name: str = CONNECTION) -> SigningKey:
    """The key of a Connection, from its members `password` and `extra`. Raises Refused; the text shows no secret.

    A password field has a single line, so line ends in the PEM may be spaces.
    """
    extra = connection.get("extra")
    if file := extra.get("file") if isinstance(extra, Mapping) else None:
        return from_file(Path(str(file)))
    if not connection.get("password"):
        raise Refused(f"the Connection {name} has no key: put PEM into its password, or a path into its extra `file`")
    return from_pem(str(connection["password"]), f"the key in the Connection {name}")


def from_pem(text: str, named: str) -> SigningKey:
    """The key in a PEM text (PKCS #8). named: what messages call it. Raises Refused with what it is instead."""
    blocks = _PEM.findall(text.replace("\\n", "\n"))
    if not blocks:
        raise Refused(f"{named} isn't in PEM form; {MAKE}")
    kind, body = blocks[0]
    if kind != "PRIVATE KEY":
        kinds = {"PUBLIC KEY": "a public key", "ENCRYPTED PRIVATE KEY": "protected by a passphrase"}
        raise Refused(f"{named} is {kinds.get(kind, f'of the kind {kind}')}: an Ed25519 private key is needed; {MAKE}")
    try:
        key = load_der_private_key(base64.b64decode("".join(body.split()), validate=True), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise Refused(f"{named} is damaged: it can't be decoded; {MAKE}") from None
    if not isinstance(key, Ed25519PrivateKey):
        found = type(key).__name__.removesuffix("PrivateKey").lstrip("_")
        raise Refused(f"{named} is of the type {found}: an Ed25519 private key is needed; {MAKE}")
    return SigningKey(key)
