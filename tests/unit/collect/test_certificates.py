"""Certificates that a broker shows: expired, of another host and untrusted are told apart."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from durability.collect import Limits, collect
from durability.errors import Unreachable

QUICK = Limits(connect_timeout=20, attempts=1)
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
PEM, PKCS8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8


class Authority:
    """Issues certificates. The first is its own."""

    def __init__(self, name: str):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self.issue(self.key, self.name, NOW - DAY, NOW + DAY, is_authority=True)
        self.pem = self.certificate.public_bytes(PEM).decode()

    def issue(self, key, name, first, last, host="127.0.0.1", is_authority=False):
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self.name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(first).not_valid_after(last)
        address = x509.IPAddress(ipaddress.ip_address(host))
        builder = builder.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        return builder.sign(self.key, hashes.SHA256())

    def server(self, folder, first=NOW - DAY, last=NOW + DAY, **options) -> ssl.SSLContext:
        """A server with a certificate of this authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
        certificate = self.issue(key, name, first, last, **options)
        file = folder / "server.pem"
        secret = key.private_bytes(PEM, PKCS8, serialization.NoEncryption())
        file.write_bytes(secret + certificate.public_bytes(PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


AUTHORITY, OTHER = Authority("trusted"), Authority("other")


def said(context: ssl.SSLContext) -> str:
    """What is said of a listener with this certificate, which ends each connection after its handshake."""

    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            try:
                context.wrap_socket(connection, server_side=True).close()
            except OSError:  # refused by the client
                connection.close()

    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    address = f"127.0.0.1:{server.getsockname()[1]}"
    settings = {"bootstrap.servers": address, "security.protocol": "SSL", "ssl.ca.pem": AUTHORITY.pem}
    try:
        with pytest.raises(Unreachable) as caught:
            collect("eu", settings, limits=QUICK)
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
    return str(caught.value).partition(f"{address}: ")[2]


CASES = [
    (
        AUTHORITY,
        {"last": NOW - DAY / 2},
        "the broker's certificate has expired",
        "the broker's certificate and its issuers",
    ),
    (AUTHORITY, {"first": NOW + DAY / 2}, "the broker's certificate isn't valid yet", "this host's clock"),
    (AUTHORITY, {"host": "127.0.0.9"}, "the broker's certificate is for another host", "bootstrap.servers and"),
    (OTHER, {}, "the broker's certificate isn't trusted", "ssl.ca.location"),
    (OTHER, {"last": NOW - DAY / 2}, "the broker's certificate isn't trusted", "ssl.ca.location"),
]


@pytest.mark.parametrize(("authority", "options", "happened", "check"), CASES)
def test_a_certificate_that_is_refused_says_why(tmp_path, authority, options, happened, check):
    text = said(authority.server(tmp_path, **options))
    assert text.startswith(f"TLS failed: {happened}")
    assert check in text


def test_a_certificate_that_is_accepted_is_no_reason(tmp_path):
    assert "certificate" not in said(AUTHORITY.server(tmp_path)).partition("Check")[0]
