"""One digest a run for Slack: Block Kit, three lines of substance, delivered through an incoming webhook.

Limits are Slack's own: 50 blocks a message, 3000 characters a section, 150 a header. The webhook's address is a
secret: it is neither logged nor part of any error.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Iterable
from http.client import RemoteDisconnected
from pathlib import Path
from urllib.error import URLError

from slack_sdk.http_retry.builtin_handlers import (
    ConnectionErrorRetryHandler,
    RateLimitErrorRetryHandler,
    ServerErrorRetryHandler,
)
from slack_sdk.http_retry.builtin_interval_calculators import BackoffRetryIntervalCalculator
from slack_sdk.http_retry.handler import RetryHandler
from slack_sdk.http_retry.jitter import Jitter
from slack_sdk.webhook import WebhookClient

from durability.errors import AuditError
from durability.report.data.causes import Cause, Causes
from durability.report.data.headline import compared, first, overview
from durability.report.files import load
from durability.report.words import cause_title, is_command, joined, plural, readable

SECTION, HEADER, LINE = 3_000, 150, 900
CAUSES = 3
MARKS = {"critical": ":red_circle:", "warning": ":large_yellow_circle:", "unknown": ":grey_question:"}


class NotificationFailed(AuditError):
    """A digest that Slack didn't take; the audit itself stands, and whoever sends records this and goes on."""


def digest(findings_json: dict | Path, *, link: str | None = None, paths: Iterable[Path | str] = ()) -> dict:
    """The payload for a run: how the fleet stands, what is worst and mends most, what changed and isn't known.

    `findings_json`: a findings.json, read or as a path. `link`: where the report can
    be read; `paths`: files to name otherwise.
    """
    document = load(findings_json) if isinstance(findings_json, Path) else findings_json
    run = document["run"]
    standing, causes = overview(document)
    mark = MARKS.get(standing.tone, ":large_green_circle:")
    doubt = "" if run["verified"] else "*Not verified.* "
    lines = [
        f"{mark} {doubt}*{escaped(standing.headline, LINE)}*",
        *_worst(causes),
        _changes(document, standing.waived),
    ]
    title = f"Kafka durability, {readable(run['started_at'])}"
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:HEADER]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)}},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": _foot(run, link, paths)}]},
    ]
    return {"text": escaped(f"{title}: {standing.headline}", SECTION), "blocks": blocks}


def escaped(text: str | None, limit: int) -> str:
    """mrkdwn with &, < and > escaped (so that no "<!channel>" works), on one line, at most `limit` characters long.

    >>> escaped("<!channel> & co", 100), escaped("a&b", 6)
    ('&lt;!channel&gt; &amp; co', 'a…')
    """
    out, length = [], 0
    for character in text or "":
        shown = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(character, character if character.isprintable() else " ")
        length += len(shown)
        if length > limit - 1:
            return "".join(out) + "…"
        out.append(shown)
    return "".join(out)


def code(text: str, limit: int) -> str:
    """`text` as inline code; backticks would end it."""
    return f"`{escaped(text.replace('`', chr(39)), limit)}`"


def _worst(causes: Causes) -> list[str]:
    failing = causes.ranked("FAIL")
    if not failing:
        return []
    first = failing[0]
    commands = [f" First: {code(_first_line(text), 400)}" for text, _ in first.first_commands(1)]
    line = f"*Worst:* {_cause(first)}, {first.extent}.{''.join(commands)}"
    others = [_cause(cause) for cause in failing[1:CAUSES]]
    if others:
        line += f" Then {joined(others)}."
    if len(failing) > CAUSES:
        line += f" {plural(len(failing) - CAUSES, 'more cause')} in the report."
    return [line]


def _first_line(remediation: str) -> str:
    """A script's first command, or the advice."""
    return next(filter(is_command, remediation.splitlines()), remediation)


def _cause(cause: Cause) -> str:
    return f"{escaped(cause_title(cause.cause), 120)} in {escaped(cause.cluster, 80)} ({cause.weight})"


def _changes(document: dict, waived: int) -> str:
    changed = "First run" if first(document["run"]) else compared(document["summary"]["changes"], waived)
    line = f"{changed}, {document['summary']['outcomes']['UNKNOWN']:,} unknown."
    missing = [escaped(s["cluster"], 80) for s in document["run"]["snapshots"] if s["status"] != "accepted"]
    if missing:
        named = missing[:5] + ([f"{len(missing) - 5:,} more"] if len(missing) > 5 else [])
        line += f" Not judged: {joined(named)}."
    return line


def _foot(run: dict, link: str | None, paths: Iterable[Path | str]) -> str:
    parts = [f"<{escaped(link, 500).replace('|', '%7C')}|Read the report>"] if link else []
    parts += [code(str(path), 200) for path in list(paths)[:4]]
    parts.append(f"policy {escaped(run['policy']['name'], 60)} {code(run['policy']['sha256'][:12], 20)}")
    return " · ".join([*parts, f"run {code(run['id'], 80)}"])


def send(
    webhook_url: str, payload: dict, *, retries: int = 4, timeout: int = 10, pause: float = 0.5, longest: float = 60
) -> None:
    """Post a digest, trying again up to `retries` times on 429, 5xx and connections that fail.

    `timeout`: seconds an attempt may take; `pause`: the back-off's first step in seconds, doubled each time;
    `longest`: seconds that a Retry-After is honoured up to. A connection that broke after Slack took the message can
    deliver it twice. Errors: NotificationFailed, whatever went wrong, without the address.
    """
    # slack_sdk writes the address into its log; this logger has no handlers and no parent.
    silent = logging.Logger("slack digest", level=logging.CRITICAL + 1)
    if not webhook_url.lower().startswith(("https://", "http://")):
        raise NotificationFailed("Slack digest not sent: the webhook's address doesn't begin with https://; check it")
    try:
        client = WebhookClient(
            webhook_url, timeout=timeout, logger=silent, retry_handlers=_handlers(retries, pause, longest)
        )
        answer = client.send_dict(payload)
    except Exception as error:
        # The text of these errors may hold the address: only their kind is told.
        reason = getattr(error, "reason", error)
        kind = type(reason).__name__ if isinstance(reason, Exception) else type(error).__name__
        raise NotificationFailed(f"Slack digest not sent after up to {retries + 1} attempts: {kind}") from None
    if answer.status_code != 200:
        word = answer.body if re.fullmatch(r"[a-z_]{1,40}", answer.body or "") else "no reason given"
        raise NotificationFailed(f"Slack didn't take the digest: HTTP {answer.status_code}, {word}")


class Spread(Jitter):
    """Half to one and a half times the wait, so that several senders don't come back together."""

    def recalculate(self, duration: float) -> float:
        return duration * random.uniform(0.5, 1.5)


class Busy(RateLimitErrorRetryHandler):
    """Waits as Retry-After says, in seconds up to `longest`; without a number as long as the back-off."""

    def __init__(self, retries: int, backoff: BackoffRetryIntervalCalculator, longest: float):
        super().__init__(retries, backoff)
        self.longest = longest

    def prepare_for_next_attempt(self, *, state, request, response=None, error=None) -> None:
        headers = {name.lower(): values for name, values in response.headers.items()}
        asked = (headers.get("retry-after") or [""])[0].strip()
        own = self.interval_calculator.calculate_sleep_duration(state.current_attempt)
        time.sleep(min(float(asked) if asked.isdecimal() else own, self.longest))
        state.next_attempt_requested = True
        state.increment_current_attempt()


class Failing(ServerErrorRetryHandler):
    """Every 5xx, where slack_sdk knows 500 and 503."""

    def _can_retry(self, *, state, request, response=None, error=None) -> bool:
        return response is not None and response.status_code >= 500


def _handlers(retries: int, pause: float, longest: float) -> list[RetryHandler]:
    backoff = BackoffRetryIntervalCalculator(backoff_factor=pause, jitter=Spread())
    broken = [URLError, ConnectionError, RemoteDisconnected, TimeoutError]
    return [
        ConnectionErrorRetryHandler(retries, backoff, error_types=broken),
        Busy(retries, backoff, longest),
        Failing(retries, backoff),
    ]
