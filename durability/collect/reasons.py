"""Why something could not be read, in Kafka's error names and in plain words."""

from __future__ import annotations

import errno
import re


class Unread(Exception):
    """One request had no usable answer; its text is the reason as it stands in `unreadable`."""

    def __init__(self, reason: str, *, connection: bool = False):
        self.reason = reason
        self.connection = connection
        super().__init__(reason)


# Text fragments of connection failures (operating system, OpenSSL, kafka-python) -> what happened, what to check.
_CONNECTION = (
    (r"ECONNREFUSED|refused", "connection refused", "that a broker listens on that address and port"),
    (r"DNS|resol|Name or service", "the host name can't be resolved", "the host name in bootstrap.servers"),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify",
        "TLS failed: the broker's certificate isn't trusted",
        "ssl.ca.location, and that the certificate names this host",
    ),
    (
        r"WRONG_VERSION_NUMBER|wrong version|UNEXPECTED_EOF|record layer",
        "TLS failed: the other side doesn't speak TLS",
        "security.protocol against the listener's",
    ),
    (
        r"Handshake failed|SSL|TLS|certificate",
        "TLS failed: the handshake was refused",
        "security.protocol, ssl.ca.location and, if the broker asks for one, the client certificate",
    ),
    (
        r"EHOSTUNREACH|ENETUNREACH|unreachable",
        "no route to the host",
        "the network and firewall between this host and the cluster",
    ),
    (
        r"[Tt]imed out|ETIMEDOUT",
        "timed out",
        "firewalls on the way, and security.protocol (a TLS listener never answers plain text)",
    ),
    (
        r"ECONNRESET|reset by peer|disconnected|closed|EPIPE",
        "the connection was closed by the other side",
        "that the port belongs to a broker's client listener, and security.protocol",
    ),
)


def connection_words(text: str) -> tuple[str, str]:
    """(what happened, what to check) for a connection failure's text.

    >>> connection_words("unable to connect: 111 ECONNREFUSED")[0]
    'connection refused'
    """
    for pattern, happened, check in _CONNECTION:
        if re.search(pattern, text):
            return happened, check
    return "the connection failed", "the address, the network and security.protocol"


def is_connection(exc: BaseException) -> bool:
    """Whether `exc` says that the broker could not be talked to, rather than that it answered with an error."""
    import kafka.errors as kafka_errors

    lost = (
        kafka_errors.KafkaConnectionError,
        kafka_errors.NodeNotReadyError,
        kafka_errors.KafkaTimeoutError,
        kafka_errors.RequestTimedOutError,
        kafka_errors.KafkaProtocolError,
        kafka_errors.UnknownBrokerIdError,
        kafka_errors.Cancelled,
        OSError,
    )
    return isinstance(exc, lost)


def is_authentication(exc: BaseException) -> bool:
    """Whether `exc` is the broker's refusal of who is asking."""
    import kafka.errors as kafka_errors

    refusals = (
        kafka_errors.SaslAuthenticationFailedError,
        kafka_errors.UnsupportedSaslMechanismError,
        kafka_errors.IllegalSaslStateError,
    )
    return isinstance(exc, refusals)


def reason_of(exc: BaseException) -> str:
    """The reason for `unreadable`: Kafka's error name, with plain words where the name alone says little."""
    import kafka.errors as kafka_errors

    if isinstance(exc, Unread):
        return exc.reason
    if isinstance(exc, kafka_errors.IncompatibleBrokerVersion):
        return "UNSUPPORTED_VERSION"
    if isinstance(exc, (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError, TimeoutError)):
        return "REQUEST_TIMED_OUT"
    if isinstance(exc, kafka_errors.UnknownBrokerIdError):
        return "BROKER_NOT_AVAILABLE"
    if isinstance(exc, kafka_errors.KafkaProtocolError):
        return "CORRUPT_MESSAGE: the answer isn't Kafka's protocol"
    if isinstance(exc, kafka_errors.BrokerResponseError):
        return error_name(exc.errno)
    if is_connection(exc):
        text = errno.errorcode.get(exc.errno, str(exc)) if isinstance(exc, OSError) and exc.errno else str(exc)
        return f"NETWORK_EXCEPTION: {connection_words(text)[0]}"
    return f"UNKNOWN_SERVER_ERROR: {type(exc).__name__}"


def error_name(code: int) -> str:
    """Kafka's name of an error code (org.apache.kafka.common.protocol.Errors).

    >>> error_name(31)
    'CLUSTER_AUTHORIZATION_FAILED'
    >>> error_name(9999)
    'error code 9999'
    """
    import kafka.errors as kafka_errors

    known = kafka_errors.kafka_errors.get(code)
    return known.message if known is not None and known.message else f"error code {code}"


def is_retriable(code: int) -> bool:
    """Whether Kafka calls this error code retriable."""
    import kafka.errors as kafka_errors

    known = kafka_errors.kafka_errors.get(code)
    return known is not None and known.retriable
