"""Connection settings as an Airflow `kafka` Connection holds them, and what is said about wrong ones."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from durability.collect.settings import client_config
from durability.errors import BadInput

SASL = {
    "bootstrap.servers": "kafka-1:9094",
    "security.protocol": "sasl_plaintext",
    "sasl.mechanisms": "SCRAM-SHA-512",
    "sasl.username": "audit",
    "sasl.password": "hunter2-very-secret",
}


def test_a_scram_connection():
    assert client_config(SASL) == {
        "bootstrap_servers": ["kafka-1:9094"],
        "client_id": "kafka-durability-audit",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "audit",
        "sasl_plain_password": "hunter2-very-secret",
    }


def test_timeouts_and_client_id():
    config = client_config({"bootstrap.servers": "a:1", "client.id": "mine", "socket.timeout.ms": "7000"})
    assert (config["client_id"], config["request_timeout_ms"]) == ("mine", 7000)


def test_consumer_and_producer_keys_of_the_same_connection_are_let_pass():
    connection = {"bootstrap.servers": "a:1", "group.id": "g", "auto.offset.reset": "earliest", "acks": "all"}
    assert client_config(connection)["bootstrap_servers"] == ["a:1"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"bootstrap.servers": ""}, "bootstrap.servers"),
        ({"bootstrap.servers": "kafka-1"}, "bootstrap.servers"),
        ({"bootstrap.servers": "http://kafka-1:9092"}, "bootstrap.servers"),
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"sasl.mechanisms": "hunter2-very-secret"}, "sasl.mechanism"),
        ({"sasl.mechanisms": None}, "sasl.mechanism"),
        ({"sasl.password": ""}, "sasl.password"),
        ({"sasl.pasword": "hunter2-very-secret"}, "sasl.pasword"),
        ({"sasl.password": "hunter2\ud800"}, "sasl.password"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.mechanism"),
        ({"request.timeout.ms": "hunter2-very-secret"}, "request.timeout.ms"),
        ({"sasl.mechanisms": "AWS_MSK_IAM"}, "security.protocol"),
        ({"sasl.mechanisms": "OAUTHBEARER"}, "sasl.oauthbearer.client.id"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(change, key):
    with pytest.raises(BadInput) as error:
        client_config(SASL | change, "the connection of cluster eu")
    assert str(error.value).startswith("the connection of cluster eu, ")
    assert key in str(error.value)
    assert "hunter2" not in str(error.value)


def test_tls_verifies_unless_told_otherwise():
    tls = {"bootstrap.servers": "a:1", "security.protocol": "SSL"}
    strict = client_config(tls)["ssl_context"]
    assert (strict.check_hostname, strict.verify_mode) == (True, ssl.CERT_REQUIRED)
    anyone = client_config({**tls, "enable.ssl.certificate.verification": False})["ssl_context"]
    assert (anyone.check_hostname, anyone.verify_mode) == (False, ssl.CERT_NONE)
    nameless = client_config({**tls, "ssl.endpoint.identification.algorithm": "none"})["ssl_context"]
    assert (nameless.check_hostname, nameless.verify_mode) == (False, ssl.CERT_REQUIRED)


def test_tls_files_that_cannot_be_used_are_named_by_their_key(tmp_path):
    tls = {"bootstrap.servers": "a:1", "security.protocol": "SSL"}
    with pytest.raises(BadInput, match=r"ssl.ca.location: a file it names doesn't exist"):
        client_config({**tls, "ssl.ca.location": str(tmp_path / "none.pem")})
    broken = tmp_path / "broken.pem"
    broken.write_text("not a certificate")
    with pytest.raises(BadInput, match=r"ssl.certificate.location: can't be used"):
        client_config({**tls, "ssl.certificate.location": str(broken)})


def self_signed(folder, password: bytes):
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "audit")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(private, hashes.SHA256())
    )
    locked = serialization.BestAvailableEncryption(password)
    key, certificate = folder / "key.pem", folder / "cert.pem"
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key.write_bytes(private.private_bytes(pem, pkcs8, locked))
    certificate.write_bytes(signed.public_bytes(pem))
    return key, certificate


def test_a_key_with_the_wrong_password_is_an_error_and_asks_nobody(tmp_path):
    key, certificate = self_signed(tmp_path, b"right")
    tls = {"bootstrap.servers": "a:1", "security.protocol": "SSL"}
    tls |= {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    assert client_config({**tls, "ssl.key.password": "right"})["ssl_context"]
    for wrong in ({"ssl.key.password": "wrong"}, {}):
        with pytest.raises(BadInput, match=r"ssl.key.location: can't be used"):
            client_config({**tls, **wrong})
