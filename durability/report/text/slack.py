"""Posts to Slack's incoming webhooks, and makes text safe for them.

A webhook's address is a secret. It is neither logged nor part of an error.
"""

from __future__ import annotations

import html
import json
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from durability.errors import AuditError, Rejected
from durability.plain import plural
from durability.within import within

SECTION, HEADER = 3_000, 150
"""The most characters of a section and of a header."""
RETRIES, TIMEOUT = 4, 10
"""Attempts after the first one, and seconds per attempt, for the whole answer."""
PAUSE, LONGEST = 0.5, 60
"""Seconds before the first retry (doubled for each further one, and varied by half), and the longest Retry-After to accept."""
WITHIN = 100.0
"""Seconds after which no other attempt begins: tasks that send have a few minutes."""


MOST = 10_000
"""The most bytes of an answer that are read."""


class NotificationFailed(AuditError):
    """Slack didn't accept a message. The audit's results aren't affected."""


@contextmanager
def naming(connection: str) -> Iterator[None]:
    """Name the Connection in an AuditError: its address is a secret, and there may be one per team."""
    try:
        yield
    except AuditError as error:
        raise type(error)(f"Connection {connection}: {error}") from None


def escaped(text: str | None, limit: int) -> str:
    """mrkdwn on one line of at most `limit` characters. &, < and > are escaped, so that "<!channel>" has no effect.

    >>> escaped("<!channel> & co", 100), escaped("a&b", 6)
    ('&lt;!channel&gt; &amp; co', 'a…')
    """
    line = "".join(c if c.isprintable() else " " for c in (text or "")[:limit])
    safe = html.escape(line, quote=False)
    if len(safe) < limit and len(text or "") < limit:
        return safe
    return re.sub(r"&[a-z]*$", "", safe[: limit - 1]) + "…"


def code(text: str, limit: int) -> str:
    """`text` as inline code. Backticks in it are replaced, because they would end the code."""
    return f"`{escaped(text.replace('`', chr(39)), limit)}`"


class _NoRedirects(HTTPRedirectHandler):
    """A redirect is an error. A client that follows one sends a GET without the message, whose answer may be 200."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class _Answer:
    status: int
    retry_after: str
    body: str

    @property
    def is_accepted(self) -> bool:
        """Is it the answer of a webhook, and no page of a proxy? Slack says ok. Some that imitate it answer in JSON."""
        if self.status != 200:
            return False
        try:
            said = json.loads(self.body)
        except ValueError:
            return self.body.strip() == "ok"
        return isinstance(said, dict) and True in (said.get("ok"), said.get("success"))


def _post(webhook_url: str, payload: dict[str, Any]) -> _Answer:
    """One request. slack_sdk's client would follow redirects, and log the address.

    Raises OSError or HTTPException if there is no answer, and TimeoutError, an OSError, if it isn't complete in time.
    """
    headers = {"Content-Type": "application/json;charset=utf-8"}
    request = Request(webhook_url, json.dumps(payload).encode(), headers)

    def answered() -> _Answer:
        try:
            response = build_opener(_NoRedirects).open(request, timeout=TIMEOUT)
        except HTTPError as error:
            response = error
        with response:
            body = response.read(MOST).decode(errors="replace")
            return _Answer(response.status, response.headers.get("Retry-After") or "", body)

    return within(TIMEOUT, answered)


def send(webhook_url: str, payload: dict[str, Any], seconds: float = WITHIN) -> None:
    """Post a message. After 429, 5xx and failed connections it tries again, up to RETRIES times.

    seconds: no other attempt begins after them.
    If a connection breaks after Slack accepted the message, Slack may show it twice.
    Raises Rejected if this message is the reason, else NotificationFailed. The error doesn't contain the address.
    """
    if not webhook_url.lower().startswith(("https://", "http://")):
        raise NotificationFailed("Slack got no message: the webhook's address doesn't begin with https://; check it")
    until = time.monotonic() + seconds
    for attempt in range(RETRIES + 1):
        wait = PAUSE * 2**attempt * random.uniform(0.5, 1.5)
        try:
            answer = _post(webhook_url, payload)
        except Exception as error:
            if attempt < RETRIES and isinstance(error, OSError | HTTPException) and time.monotonic() + wait < until:
                time.sleep(wait)
                continue
            # These errors may contain the address, so only their type is reported.
            reason = getattr(error, "reason", error)
            kind = type(reason).__name__ if isinstance(reason, Exception) else type(error).__name__
            tried = f"Slack got no message after {plural(attempt + 1, 'attempt')}: {kind}"
            raise NotificationFailed(f"{tried}. Check the webhook's address and the network") from None
        if answer.is_accepted:
            return
        if answer.status == 429 and answer.retry_after.isdecimal():
            wait = min(float(answer.retry_after), LONGEST)
        again = answer.status == 429 or answer.status >= 500
        if attempt == RETRIES or not again or time.monotonic() + wait >= until:
            raise _refused(answer)
        time.sleep(wait)


def _refused(answer: _Answer) -> AuditError:
    if answer.status == 200:
        return NotificationFailed(
            "the webhook's address answers, but not as Slack does: a proxy may have answered; check it"
        )
    word = answer.body if re.fullmatch(r"[a-z_]{1,40}", answer.body) else "no reason given"
    kind = Rejected if answer.status in Rejected.STATUS else NotificationFailed
    return kind(f"Slack rejected the message: HTTP {answer.status}, {word}")
