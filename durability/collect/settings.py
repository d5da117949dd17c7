"""Translates connection settings from librdkafka's keys, as in an Airflow `kafka` Connection's extra, to kafka-python's.

Errors name the key and never its value, which may be a secret.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from durability.errors import BadInput, printable

CLIENT_ID = "kafka-durability-audit"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "AWS_MSK_IAM", "OAUTHBEARER")
NEEDS_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
DNS_LOOKUPS = ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")

# Settings of producers, consumers and librdkafka that Connections may have. They don't affect reading metadata.
_IRRELEVANT = """
acks allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
auto.commit.interval.ms auto.offset.reset batch.num.messages batch.size broker.address.family
broker.address.ttl broker.version.fallback builtin.features check.crcs compression.codec compression.level
compression.type connections.max.idle.ms debug delivery.timeout.ms enable.auto.commit
enable.auto.offset.store enable.idempotence enable.partition.eof enable.sparse.connections error_cb
fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
fetch.wait.max.ms group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
internal.termination.signal isolation.level linger.ms log.connection.close log.queue log.thread.name
log_level logger max.in.flight max.in.flight.requests.per.connection max.partition.fetch.bytes
max.poll.interval.ms message.copy.max.bytes message.max.bytes message.send.max.retries
message.timeout.ms metadata.max.age.ms metadata.recovery.strategy on_commit partition.assignment.strategy
partitioner queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms
queued.max.messages.kbytes queued.min.messages receive.message.max.bytes reconnect.backoff.max.ms
reconnect.backoff.ms request.required.acks retries retry.backoff.max.ms retry.backoff.ms
session.timeout.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
socket.receive.buffer.bytes socket.send.buffer.bytes sticky.partitioning.linger.ms
statistics.interval.ms stats_cb throttle_cb topic.blacklist topic.metadata.refresh.fast.interval.ms
topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse transaction.timeout.ms
transactional.id
"""

_SSL_KEYS = (
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.crl.location",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
    "ssl.cipher.suites",
)
_OTHER_KEYS = (
    "bootstrap.servers",
    "client.id",
    "security.protocol",
    "request.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "client.dns.lookup",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.kerberos.service.name",
    "allow_changes",  # of the DAGs that change clusters; no client reads it
)
_OAUTH, _AWS = "sasl.oauthbearer.", "aws."
_KNOWN = frozenset((*_SSL_KEYS, *_OTHER_KEYS, *_IRRELEVANT.split()))
_ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "socket.timeout.ms": "request.timeout.ms",
}


def client_config(settings: Mapping[str, object], where: str = "the Kafka connection") -> dict[str, Any]:
    """kafka-python's configuration for these settings. TLS verifies certificate and host name unless a setting disables that.

    settings: librdkafka's keys (`bootstrap.servers`, `security.protocol`, `sasl.*`, `ssl.*`, `client.id`,
        `request.timeout.ms` or `socket.timeout.ms`, `socket.connection.setup.timeout.ms`, `client.dns.lookup`), and `aws.*` of
        `durability.collect.msk_iam`. Producer and consumer keys are ignored.
    where: the settings' name in errors.
    Raises BadInput for a missing, unknown or unusable setting. It names the key and shows no value.

    >>> client_config({"bootstrap.servers": "a:9092, b:9092"})["bootstrap_servers"]
    ['a:9092', 'b:9092']
    """
    read = _Settings(settings, where)
    protocol = read.choice("security.protocol", PROTOCOLS) or "PLAINTEXT"
    config: dict[str, Any] = {
        "bootstrap_servers": read.servers(),
        "client_id": read.text("client.id") or CLIENT_ID,
        "security_protocol": protocol,
    }
    for key, name in (
        ("request.timeout.ms", "request_timeout_ms"),
        ("socket.connection.setup.timeout.ms", "socket_connection_setup_timeout_ms"),
    ):
        if (span := read.milliseconds(key)) is not None:
            config[name] = span
    if lookup := read.choice("client.dns.lookup", DNS_LOOKUPS):
        config["client_dns_lookup"] = lookup
    if protocol.startswith("SASL"):
        config |= _sasl(read, protocol)
    if protocol.endswith("SSL"):
        config["ssl_context"] = _tls(read)
    return config


class _Settings:
    """The settings by key, with aliases replaced."""

    def __init__(self, settings: Mapping[str, object], where: str):
        self.where = where
        self.values: dict[str, object] = {}
        for key, value in settings.items():
            name = _ALIASES.get(key, key)
            if name in self.values and self.values[name] != value:
                raise self.wrong(key, f"contradicts {name}; keep one of the two")
            self.values[name] = value
        unknown = [key for key in sorted(self.values) if key not in _KNOWN and not key.startswith((_OAUTH, _AWS))]
        if unknown:
            keys = ", ".join(unknown[:5])
            raise self.wrong(keys, "unknown or unsupported setting; see the documented connection settings")

    def wrong(self, key: str, problem: str) -> BadInput:
        return BadInput(self.where, key, problem)

    def text(self, key: str) -> str | None:
        """A setting as text; None if it is missing or empty."""
        value = self.values.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str | int | float):
            raise self.wrong(key, "expected text")
        text = str(value)
        if printable(text) != text:
            raise self.wrong(key, "expected text that can be written in UTF-8")
        return text

    def choice(self, key: str, allowed: tuple[str, ...]) -> str | None:
        value = self.text(key)
        if value is None:
            return None
        for each in allowed:
            if value.strip().lower() == each.lower():
                return each
        raise self.wrong(key, f"its value isn't supported; expected one of {', '.join(allowed)}")

    def milliseconds(self, key: str) -> int | None:
        value = self.text(key)
        if value is None:
            return None
        if not value.isascii() or not value.isdigit() or not 0 < int(value) <= 3_600_000:
            raise self.wrong(key, "expected milliseconds, a whole number from 1 to 3600000")
        return int(value)

    def servers(self) -> list[str]:
        value = self.values.get("bootstrap.servers")
        parts = value if isinstance(value, list | tuple) else str(value or "").split(",")
        servers = [str(part).strip() for part in parts if str(part).strip()]
        if not servers:
            raise self.wrong("bootstrap.servers", "is missing; expected host:port, several separated by commas")
        for server in servers:
            host, _, port = server.rpartition(":")
            if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536 or "/" in server:
                raise self.wrong("bootstrap.servers", "expected host:port, several separated by commas")
        return servers


def _sasl(read: _Settings, protocol: str) -> dict[str, Any]:
    """kafka-python's SASL settings."""
    mechanism = read.choice("sasl.mechanism", MECHANISMS)
    if mechanism is None:
        raise read.wrong("sasl.mechanism", f"is missing, and security.protocol {protocol} needs it")
    config: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism in NEEDS_PASSWORD:
        for key, name in (("sasl.username", "sasl_plain_username"), ("sasl.password", "sasl_plain_password")):
            config[name] = read.text(key)
            if config[name] is None:
                raise read.wrong(key, f"is missing, and sasl.mechanism {mechanism} needs it")
    aws = {key: value for key in sorted(read.values) if key.startswith(_AWS) and (value := read.text(key)) is not None}
    if mechanism == "AWS_MSK_IAM":
        from durability.collect import msk_iam

        if protocol != "SASL_SSL":
            raise read.wrong("security.protocol", "sasl.mechanism AWS_MSK_IAM needs SASL_SSL")
        provider = msk_iam.token_provider(aws, read.servers(), read.wrong)
        config |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": provider}
    elif aws:
        raise read.wrong(next(iter(aws)), "needs sasl.mechanism AWS_MSK_IAM")
    if mechanism == "GSSAPI" and (service := read.text("sasl.kerberos.service.name")):
        config["sasl_kerberos_service_name"] = service
    if mechanism == "OAUTHBEARER":
        from durability.collect.oauth import token_provider

        oauth = {key: read.text(key) for key in sorted(read.values) if key.startswith(_OAUTH)}
        config["sasl_oauth_token_provider"] = token_provider(oauth, read.wrong)
    return config


def _tls(read: _Settings) -> ssl.SSLContext:
    """A TLS context. It is created here, before connecting, so that errors can name the key of an unusable file."""
    tls = {key: value for key in _SSL_KEYS if (value := read.text(key)) is not None}
    if "ssl.cipher.suites" in tls:
        raise read.wrong("ssl.cipher.suites", "isn't supported; leave it out")
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.check_hostname = _either(read, tls, "ssl.endpoint.identification.algorithm", "https", "none")
    if not _either(read, tls, "enable.ssl.certificate.verification", "true", "false"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if location := tls.get("ssl.ca.location"):
        folder = Path(location).is_dir()
        _load(
            read,
            "ssl.ca.location",
            lambda: context.load_verify_locations(**{"capath" if folder else "cafile": location}),
        )
    if pem := tls.get("ssl.ca.pem"):
        _load(read, "ssl.ca.pem", lambda: context.load_verify_locations(cadata=pem))
    if crl := tls.get("ssl.crl.location"):
        _load(read, "ssl.crl.location", lambda: context.load_verify_locations(cafile=crl))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    certificate, key = tls.get("ssl.certificate.location"), tls.get("ssl.key.location")
    if key and not certificate:
        raise read.wrong("ssl.certificate.location", "is missing, and ssl.key.location needs it")
    if certificate:
        password = tls.get("ssl.key.password", "")  # without a password OpenSSL would ask on the terminal
        _load(
            read,
            "ssl.key.location" if key else "ssl.certificate.location",
            lambda: context.load_cert_chain(certificate, key, password=lambda: password),
        )
    return context


def _either(read: _Settings, tls: dict[str, str], key: str, default: str, other: str) -> bool:
    """Whether a setting has its default."""
    value = tls.get(key, default).lower()
    if value not in (default, other):
        raise read.wrong(key, f"expected {default} or {other}")
    return value == default


def _load(read: _Settings, key: str, load: Callable[[], object]) -> None:
    try:
        load()
    except FileNotFoundError as exc:
        raise read.wrong(key, "a file it names doesn't exist") from exc
    except PermissionError as exc:
        raise read.wrong(key, "a file it names can't be read") from exc
    except (ssl.SSLError, ValueError, OSError) as exc:
        what = getattr(exc, "reason", None) or type(exc).__name__
        raise read.wrong(key, f"can't be used: {what}. Expected PEM, and ssl.key.password if the key has one") from exc
