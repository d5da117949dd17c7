"""One Slack digest per run: three lines in Block Kit, posted to an incoming webhook.

Slack's limits are 50 blocks per message, 3000 characters per section and 150 per header. The webhook's address is a secret. It
is neither logged nor part of an error.
"""

from __future__ import annotations

import html
import logging
import random
import re
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

from slack_sdk.webhook import WebhookClient

from durability.errors import AuditError
from durability.report.data.causes import Cause, Causes
from durability.report.data.headline import changes_text, framework_note, is_first, missed_objectives, overview
from durability.report.words import cause_title, is_command, joined, plural, readable

SECTION, HEADER, LINE = 3_000, 150, 900
CAUSES = 3
RETRIES, TIMEOUT = 4, 10
"""Attempts after the first one, and seconds per attempt."""
PAUSE, LONGEST = 0.5, 60
"""Seconds before the first retry (doubled for each further one, and varied by half), and the longest Retry-After to accept."""
MARKS = {"critical": ":red_circle:", "warning": ":large_yellow_circle:", "unknown": ":grey_question:"}


class NotificationFailed(AuditError):
    """Slack didn't accept the digest. The audit's results aren't affected."""


def digest(document: Mapping[str, Any], paths: Sequence[Path | str] = ()) -> dict[str, Any]:
    """The payload for a findings.json: the headline, the worst cause with its fix, what changed, and what is unknown.

    paths: files to name.
    """
    run = document["run"]
    headline, causes = overview(document)
    mark = MARKS.get(headline.tone, ":large_green_circle:")
    doubt = "" if run["verified"] else "*Not verified.* "
    lines = [
        f"{mark} {doubt}*{escaped(headline.sentence, LINE)}*",
        *_worst(causes),
        _changes(document, headline.waived),
        *([escaped(line, LINE)] if (line := missed_objectives(document)) else []),
    ]
    title = f"Kafka durability, {readable(run['started_at'])}"
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:HEADER]}},
        {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)}},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": _foot(run, paths)}]},
    ]
    return {"text": escaped(f"{title}: {headline.sentence}", SECTION), "blocks": blocks}


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


def _worst(causes: Causes) -> list[str]:
    failing = causes.ranked("FAIL")
    if not failing:
        return []
    line = f"*Worst:* {_cause(failing[0])}, {failing[0].extent}."
    for text, _ in failing[0].first_remediations(1):
        line += f" Fix first: {code(_first_line(text), 400)}"
    others = [_cause(cause) for cause in failing[1:CAUSES]]
    if others:
        line += f" Then {joined(others)}."
    if len(failing) > CAUSES:
        line += f" {plural(len(failing) - CAUSES, 'more cause')} in the report."
    return [line]


def _first_line(remediation: str) -> str:
    """A script's first command, or the advice."""
    return next(filter(is_command, remediation.splitlines()), remediation).removesuffix(" &&")


def _cause(cause: Cause) -> str:
    return f"{escaped(cause_title(cause.cause), 120)} in {escaped(cause.cluster, 80)} ({cause.severity_counts})"


def _changes(document: Mapping[str, Any], waived: int) -> str:
    run, summary = document["run"], document["summary"]
    changed = "First run" if is_first(run) else changes_text(summary["changes"], waived)
    line = f"{changed}, {summary['outcomes']['UNKNOWN']:,} unknown."
    missing = [escaped(s["cluster"], 80) for s in run["snapshots"] if s["status"] != "accepted"]
    return f"{line} Not evaluated: {joined(missing, limit=5)}." if missing else line


def _foot(run: Mapping[str, Any], paths: Sequence[Path | str]) -> str:
    policy = f"policy {escaped(run['policy']['name'], 60)} {code(run['policy']['sha256'][:12], 20)}"
    cut = [escaped(text, 200) for text in framework_note(run)]
    return " · ".join([*cut, *(code(str(path), 200) for path in paths[:4]), policy, f"run {code(run['id'], 80)}"])


def send(webhook_url: str, payload: dict[str, Any]) -> None:
    """Post a digest. After 429, 5xx and failed connections it tries again, up to RETRIES times.

    If a connection breaks after Slack accepted the message, Slack may show it twice.
    Raises NotificationFailed for any failure. The error doesn't contain the address.
    """
    # slack_sdk logs the address, so it gets a logger without handlers and parent.
    silent = logging.Logger("slack digest", level=logging.CRITICAL + 1)
    if not webhook_url.lower().startswith(("https://", "http://")):
        raise NotificationFailed("Slack digest not sent: the webhook's address doesn't begin with https://; check it")
    client = WebhookClient(webhook_url, timeout=TIMEOUT, logger=silent, retry_handlers=[])
    for attempt in range(RETRIES + 1):
        wait = PAUSE * 2**attempt * random.uniform(0.5, 1.5)
        try:
            answer = client.send_dict(payload)
        except Exception as error:
            if attempt < RETRIES and isinstance(error, OSError | HTTPException):
                time.sleep(wait)
                continue
            # These errors may contain the address, so only their type is reported.
            reason = getattr(error, "reason", error)
            kind = type(reason).__name__ if isinstance(reason, Exception) else type(error).__name__
            raise NotificationFailed(f"Slack digest not sent after {plural(attempt + 1, 'attempt')}: {kind}") from None
        if answer.status_code == 200:
            return
        if attempt == RETRIES or (answer.status_code != 429 and answer.status_code < 500):
            word = answer.body if re.fullmatch(r"[a-z_]{1,40}", answer.body or "") else "no reason given"
            raise NotificationFailed(f"Slack rejected the digest: HTTP {answer.status_code}, {word}")
        stated = {name.lower(): value for name, value in answer.headers.items()}.get("retry-after", "")
        if isinstance(stated, list):
            stated = stated[0] if stated else ""
        time.sleep(min(float(stated) if answer.status_code == 429 and stated.isdecimal() else wait, LONGEST))
