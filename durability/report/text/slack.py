"""Posts to Slack's incoming webhooks, and makes text safe for them.

A webhook's address is a secret. It is neither logged nor part of an error.
"""

from __future__ import annotations

import html
import logging
import random
import re
import time
from http.client import HTTPException
from typing import Any

from slack_sdk.webhook import WebhookClient

from durability.errors import AuditError
from durability.report.words import plural

SECTION, HEADER = 3_000, 150
"""The most characters of a section and of a header."""
RETRIES, TIMEOUT = 4, 10
"""Attempts after the first one, and seconds per attempt."""
PAUSE, LONGEST = 0.5, 60
"""Seconds before the first retry (doubled for each further one, and varied by half), and the longest Retry-After to accept."""
WITHIN = 100.0
"""Seconds after which no other attempt begins: tasks that send have a few minutes."""


class NotificationFailed(AuditError):
    """Slack didn't accept a message. The audit's results aren't affected."""


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


def send(webhook_url: str, payload: dict[str, Any]) -> None:
    """Post a message. After 429, 5xx and failed connections it tries again, up to RETRIES times.

    If a connection breaks after Slack accepted the message, Slack may show it twice.
    Raises NotificationFailed for any failure. The error doesn't contain the address.
    """
    # slack_sdk logs the address, so it gets a logger without handlers and parent.
    silent = logging.Logger("slack", level=logging.CRITICAL + 1)
    if not webhook_url.lower().startswith(("https://", "http://")):
        raise NotificationFailed("Slack got no message: the webhook's address doesn't begin with https://; check it")
    client = WebhookClient(webhook_url, timeout=TIMEOUT, logger=silent, retry_handlers=[])
    until = time.monotonic() + WITHIN
    for attempt in range(RETRIES + 1):
        wait = PAUSE * 2**attempt * random.uniform(0.5, 1.5)
        try:
            answer = client.send_dict(payload)
        except Exception as error:
            if attempt < RETRIES and isinstance(error, OSError | HTTPException) and time.monotonic() + wait < until:
                time.sleep(wait)
                continue
            # These errors may contain the address, so only their type is reported.
            reason = getattr(error, "reason", error)
            kind = type(reason).__name__ if isinstance(reason, Exception) else type(error).__name__
            raise NotificationFailed(f"Slack got no message after {plural(attempt + 1, 'attempt')}: {kind}") from None
        if answer.status_code == 200:
            return
        stated = {name.lower(): value for name, value in answer.headers.items()}.get("retry-after", "")
        if isinstance(stated, list):
            stated = stated[0] if stated else ""
        if answer.status_code == 429 and stated.isdecimal():
            wait = min(float(stated), LONGEST)
        again = answer.status_code == 429 or answer.status_code >= 500
        if attempt == RETRIES or not again or time.monotonic() + wait >= until:
            word = answer.body if re.fullmatch(r"[a-z_]{1,40}", answer.body or "") else "no reason given"
            raise NotificationFailed(f"Slack rejected the message: HTTP {answer.status_code}, {word}")
        time.sleep(wait)
