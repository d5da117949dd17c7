"""OAUTHBEARER tokens by client credentials (librdkafka's `sasl.oauthbearer.method=oidc`, RFC 6749 section 4.4)."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from durability.errors import BadInput

PREFIX = "sasl.oauthbearer."
NEEDED = ("client.id", "client.secret", "token.endpoint.url")
OPTIONAL = ("method", "scope", "extensions")
TIMEOUT = 10.0


def token_provider(settings: Mapping[str, str | None], wrong: Callable[[str, str], BadInput]) -> AbstractTokenProvider:
    """The provider for these `sasl.oauthbearer.*` settings. wrong: makes the error of a key and a problem."""
    values = {key.removeprefix(PREFIX): value for key, value in settings.items() if value is not None}
    for key in sorted(values):
        if key not in (*NEEDED, *OPTIONAL):
            raise wrong(PREFIX + key, "unknown or unsupported setting")
    if values.get("method", "oidc").lower() != "oidc":
        raise wrong(PREFIX + "method", "only oidc is supported")
    for key in NEEDED:
        if not values.get(key):
            raise wrong(PREFIX + key, "is missing, and sasl.mechanism OAUTHBEARER needs it")
    if urllib.parse.urlsplit(values["token.endpoint.url"]).scheme not in ("https", "http"):
        raise wrong(PREFIX + "token.endpoint.url", "expected an https URL")
    extensions = {}
    for pair in filter(None, values.get("extensions", "").split(",")):
        name, separator, value = pair.partition("=")
        if not separator:
            raise wrong(PREFIX + "extensions", "expected name=value, several separated by commas")
        extensions[name.strip()] = value.strip()
    return ClientCredentials(values, extensions)


class ClientCredentials(AbstractTokenProvider):
    """Fetches a token, and a new one shortly before it expires."""

    def __init__(self, values: Mapping[str, str], extensions: dict[str, str]):
        super().__init__()
        self._values, self._extensions = values, extensions
        self._token, self._fresh_until = "", 0.0

    def extensions(self) -> dict[str, str]:
        return self._extensions

    def token(self) -> str:
        """Raises SaslAuthenticationFailedError if the endpoint returns no token; its text has no secret."""
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
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
                answer = json.load(response)
            self._token = str(answer["access_token"])
            lifetime = float(answer.get("expires_in", 60))
        except urllib.error.HTTPError as exc:
            raise SaslAuthenticationFailedError(f"the token endpoint answered {exc.code}") from exc
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise SaslAuthenticationFailedError("the token endpoint returned no token") from exc
        self._fresh_until = time.monotonic() + lifetime * 0.8
