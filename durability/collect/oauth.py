"""OAUTHBEARER tokens by client credentials (librdkafka's `sasl.oauthbearer.method=oidc`, RFC 6749 section 4.4)."""

from __future__ import annotations

import base64
import http.client
import json
import math
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from durability.addresses import is_loopback
from durability.collect.reasons import CannotAuthenticate, connection_words
from durability.errors import BadInput

PREFIX = "sasl.oauthbearer."
NEEDED = ("client.id", "client.secret", "token.endpoint.url")
ALLOW_HTTP = "allow.http"
OPTIONAL = ("method", "scope", "extensions", ALLOW_HTTP)
TIMEOUT = 10.0
"""Seconds from the request to the end of the answer."""
LARGEST = 512 << 10
"""The most bytes of an answer. Brokers accept no larger token (sasl.server.max.receive.size)."""
TOKEN = r"[A-Za-z0-9._~+/-]+=*"
"""RFC 6750 section 2.1. Other characters could add fields to the message for the broker."""


def token_provider(settings: Mapping[str, str | None], wrong: Callable[[str, str], BadInput]) -> AbstractTokenProvider:
    """The provider for these `sasl.oauthbearer.*` settings. wrong: makes an error from a key and a problem."""
    values = {key.removeprefix(PREFIX): value for key, value in settings.items() if value is not None}
    for key in sorted(values):
        if key not in (*NEEDED, *OPTIONAL):
            raise wrong(PREFIX + key, "unknown or unsupported setting")
    if values.get("method", "oidc").lower() != "oidc":
        raise wrong(PREFIX + "method", "only oidc is supported")
    for key in NEEDED:
        if not values.get(key):
            raise wrong(PREFIX + key, "is missing, and sasl.mechanism OAUTHBEARER needs it")
    _check_endpoint(values, wrong)
    extensions = {}
    for pair in filter(None, values.get("extensions", "").split(",")):
        name, separator, value = pair.partition("=")
        if not separator:
            raise wrong(PREFIX + "extensions", "expected name=value, several separated by commas")
        extensions[name.strip()] = value.strip()
    return ClientCredentials(values, extensions)


def _check_endpoint(values: Mapping[str, str], wrong: Callable[[str, str], BadInput]) -> None:
    """Refuse an endpoint without TLS, unless it is on this host or the settings allow it."""
    allowed = values.get(ALLOW_HTTP, "false").lower()
    if allowed not in ("true", "false"):
        raise wrong(PREFIX + ALLOW_HTTP, "expected true or false")
    key = PREFIX + "token.endpoint.url"
    try:
        url = urllib.parse.urlsplit(values["token.endpoint.url"])
        scheme, host, _ = url.scheme, url.hostname, url.port
    except ValueError:
        scheme, host = "", None
    if scheme not in ("https", "http") or not host:
        raise wrong(key, "expected an https URL")
    if scheme == "http" and allowed == "false" and not is_loopback(host):
        raise wrong(
            key,
            "expected an https URL: with http everyone on the way reads the client secret. "
            f"{PREFIX}{ALLOW_HTTP}=true accepts that",
        )


class ClientCredentials(AbstractTokenProvider):
    """Fetches tokens. A token is renewed shortly before it expires."""

    def __init__(self, values: Mapping[str, str], extensions: dict[str, str]):
        super().__init__()
        self._values, self._extensions = values, extensions
        self._token, self._fresh_until = "", 0.0

    def extensions(self) -> dict[str, str]:
        return self._extensions

    def token(self) -> str:
        """Raises CannotAuthenticate if the endpoint returns no token. The error has no secrets."""
        if time.monotonic() >= self._fresh_until:
            self._fetch()
        return self._token

    def _fetch(self) -> None:
        form = {"grant_type": "client_credentials"}
        if self._values.get("scope"):
            form["scope"] = self._values["scope"]
        pair = ":".join(urllib.parse.quote(self._values[key], safe="") for key in ("client.id", "client.secret"))
        request = urllib.request.Request(
            self._values["token.endpoint.url"],
            data=urllib.parse.urlencode(form).encode("ascii"),
            headers={
                "Authorization": "Basic " + base64.b64encode(pair.encode("ascii")).decode("ascii"),
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
            },
        )
        try:
            answer = json.loads(_answer(request))
            token, lifetime = str(answer["access_token"]), float(answer.get("expires_in", 60))
        except urllib.error.HTTPError as exc:
            with exc:
                redirect = " (redirects aren't followed)" if 300 <= exc.code < 400 else ""
            raise CannotAuthenticate(f"the token endpoint answered {exc.code}{redirect}") from None
        except TimeoutError:
            raise CannotAuthenticate(f"the token endpoint didn't answer within {TIMEOUT:g} s") from None
        except (OSError, http.client.HTTPException) as exc:
            raise CannotAuthenticate(f"the token endpoint can't be reached: {_reason(exc)}") from None
        except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
            raise CannotAuthenticate("the token endpoint returned no token") from None
        if not re.fullmatch(TOKEN, token):
            raise CannotAuthenticate("the token endpoint returned no token")
        self._token = token
        self._fresh_until = time.monotonic() + 0.8 * (lifetime if 0 < lifetime < math.inf else 60)


def _reason(exc: Exception) -> str:
    """What happened, without the address, whose query may contain a secret."""
    cause = exc.reason if isinstance(exc, urllib.error.URLError) and isinstance(exc.reason, Exception) else exc
    return connection_words(str(cause))[0]


def _answer(request: urllib.request.Request) -> bytes:
    """The body of the answer. Raises TimeoutError if it isn't complete within TIMEOUT, ValueError if it is too large."""
    with _Deadline(TIMEOUT) as deadline:
        opener = urllib.request.build_opener(_NoRedirects, deadline.http, deadline.https)
        try:
            with opener.open(request, timeout=TIMEOUT) as response:
                body = response.read(LARGEST + 1)
        except urllib.error.HTTPError:
            raise
        except (OSError, http.client.HTTPException) as exc:
            timed_out = isinstance(getattr(exc, "reason", exc), TimeoutError)
            raise TimeoutError if timed_out or deadline.passed else exc from None
    if deadline.passed:
        raise TimeoutError
    if len(body) > LARGEST:
        raise ValueError
    return body


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which could send client id and secret to any host."""

    def redirect_request(self, *_: object) -> None:
        return None


class _Deadline:
    """Closes the connections of its handlers after some seconds. A socket's own timeout restarts with each byte."""

    def __init__(self, seconds: float):
        self.passed = False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._cut)
        cut = self

        class Http(urllib.request.HTTPHandler):
            def http_open(self, request: urllib.request.Request) -> Any:
                return self.do_open(cut._connections(http.client.HTTPConnection), request)

        class Https(urllib.request.HTTPSHandler):
            def https_open(self, request: urllib.request.Request) -> Any:
                context = ssl.create_default_context()
                return self.do_open(cut._connections(http.client.HTTPSConnection), request, context=context)

        self.http, self.https = Http, Https

    def _connections(self, kind: type[http.client.HTTPConnection]) -> Any:
        cut = self

        class Connection(kind):  # type: ignore[misc, valid-type]
            def connect(self) -> None:
                super().connect()
                cut._sockets.append(self.sock)
                if cut.passed:
                    raise TimeoutError

        return Connection

    def _cut(self) -> None:
        self.passed = True
        for each in self._sockets:
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)  # not TLS's shutdown: another thread is reading

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
