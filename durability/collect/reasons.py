"""Why something could not be read: Kafka's error names, and plain texts for failed connections."""

from __future__ import annotations

import errno
import re

from kafka import errors

REFUSED = "connection refused"
"""In the reason of a node on whose address nothing listens."""


class Unread(Exception):
    """A request had no usable answer. reason: as in `unreadable`. connection: the broker couldn't be reached."""

    def __init__(self, reason: str, *, connection: bool = False):
        self.reason = reason
        self.connection = connection
        super().__init__(reason)


class CannotAuthenticate(errors.KafkaError):
    """This host can't authenticate, because a library, credentials or the region is missing. The text has no secrets."""


AUTHENTICATION = (
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    CannotAuthenticate,
)
"""Failures that are the same at another attempt."""
# Errors that mean that the broker couldn't be reached. Others are answers.
_LOST = (
    errors.KafkaConnectionError,
    errors.NodeNotReadyError,
    errors.KafkaTimeoutError,
    errors.RequestTimedOutError,
    errors.KafkaProtocolError,
    errors.UnknownBrokerIdError,
    errors.Cancelled,
    OSError,
)

# Text fragments of connection failures (operating system, OpenSSL, kafka-python) -> what happened, what to check.
_CONNECTION = (
    # First, because the text of a certificate contains names. "verify failed": the broker's certificate; an alert: the client's.
    (
        r"certificate verify failed: certificate has expired",
        "TLS failed: the broker's certificate has expired",
        "the broker's certificate and its issuers' (openssl s_client -connect shows them)",
    ),
    (
        r"certificate verify failed: certificate is not yet valid",
        "TLS failed: the broker's certificate isn't valid yet",
        "this host's clock, and the broker's certificate",
    ),
    (
        r"certificate verify failed: (?:Hostname|IP address) mismatch",
        "TLS failed: the broker's certificate is for another host",
        "the host in bootstrap.servers and advertised.listeners against the names in the certificate",
    ),
    (
        r"certificate verify failed: certificate revoked",
        "TLS failed: the broker's certificate is revoked",
        "the broker's certificate, and ssl.crl.location",
    ),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify",
        "TLS failed: the broker's certificate isn't trusted",
        "ssl.ca.location: it needs the authority that issued the broker's certificate",
    ),
    (r"ECONNREFUSED|refused", REFUSED, "that a broker listens on that address and port"),
    (r"DNS|resol|Name or service", "the host name can't be resolved", "the host name in bootstrap.servers"),
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


def explained(exc: BaseException) -> tuple[str, str]:
    """(what happened, what to check) for a server that can't be used."""
    match exc:
        case Unread():
            return exc.reason, "that the brokers are up"
        case errors.IllegalSaslStateError():
            return "authentication failed: this listener doesn't ask for it", "security.protocol against the listener's"
        case errors.UnsupportedSaslMechanismError():
            return "authentication failed: the broker doesn't offer this mechanism", "sasl.mechanism"
        case errors.SaslAuthenticationFailedError():
            checks = "sasl.mechanism and the credentials (sasl.username, sasl.password)"
            return "authentication failed: the broker refused the credentials", checks
        case CannotAuthenticate() | errors.KafkaConfigurationError():
            checks = "what sasl.mechanism needs on this host: its library, credentials and, for AWS_MSK_IAM, a region"
            return f"authentication can't begin ({exc.args[0]})", checks
        case errors.KafkaProtocolError():
            return "its answer isn't Kafka's protocol", "that the port belongs to a broker, and security.protocol"
        case errors.IncompatibleBrokerVersion():
            return "it doesn't serve metadata", "that the port belongs to a broker, not to a controller"
        case errors.AuthorizationError():
            return error_name(exc.errno), "the principal's ACLs"
        case errors.KafkaTimeoutError():
            return connection_words("timed out")
    return connection_words(str(exc))


def unread(exc: BaseException) -> Unread:
    """The failure of a request: Kafka's error name, with an explanation if the name alone isn't clear."""
    return Unread(_reason(exc), connection=isinstance(exc, _LOST))


def _reason(exc: BaseException) -> str:
    match exc:
        case errors.IncompatibleBrokerVersion():
            return "UNSUPPORTED_VERSION"
        case errors.KafkaTimeoutError() | errors.RequestTimedOutError() | TimeoutError():
            return "REQUEST_TIMED_OUT"
        case errors.UnknownBrokerIdError():
            return "BROKER_NOT_AVAILABLE"
        case errors.InvalidReceiveError():
            return "CORRUPT_MESSAGE: the answer is larger than one to this request can be"
        case errors.KafkaProtocolError():
            return "CORRUPT_MESSAGE: the answer isn't Kafka's protocol"
        case errors.BrokerResponseError():
            return error_name(exc.errno)
        case OSError(errno=int(code)) if code in errno.errorcode:
            return f"NETWORK_EXCEPTION: {connection_words(errno.errorcode[code])[0]}"
    if isinstance(exc, _LOST):
        return f"NETWORK_EXCEPTION: {connection_words(str(exc))[0]}"
    return f"UNKNOWN_SERVER_ERROR: {type(exc).__name__}"


def error_name(code: int) -> str:
    """Kafka's name of an error code (org.apache.kafka.common.protocol.Errors).

    >>> error_name(31)
    'CLUSTER_AUTHORIZATION_FAILED'
    >>> error_name(9999)
    'error code 9999'
    """
    known = errors.kafka_errors.get(code)
    return known.message if known is not None and known.message else f"error code {code}"


def is_retriable(code: int) -> bool:
    """Whether Kafka calls this error code retriable."""
    known = errors.kafka_errors.get(code)
    return known is not None and known.retriable
