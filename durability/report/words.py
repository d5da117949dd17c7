"""Small pieces of text that every report shares: times, numbers, partition ranges, causes in words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime

from durability.catalogue.causes import DISAGREE

OUTCOMES = ("FAIL", "UNKNOWN", "EXEMPT", "PASS", "NOT_APPLICABLE")
COUNTED_ONLY = ("PASS", "NOT_APPLICABLE")
SEVERITIES = ("critical", "warning", "info")
CHANGES = ("new", "persisting", "resolved")

CAVEATS = (
    "Everything said about topics holds for writes with acks=all; what producers really use is not in a cluster's "
    "metadata.",
    "Copies are counted in page caches, not on synced disks: Kafka acknowledges before it syncs.",
    "KIP-1290 (racks), KIP-926 (acks=min.insync.replicas) and KIP-579 (INCONSISTENT_REPLICATION_FACTOR) are proposals. "
    "The audit judges as if their guarantees were wanted; brokers don't enforce them.",
)


def past(finding: dict) -> bool:
    """Is this one no longer so? Resolved ones are; one resolved by a waiver still stands, as EXEMPT.

    >>> past({"change": "resolved", "outcome": "PASS"}), past({"change": "resolved", "outcome": "EXEMPT"})
    (True, False)
    """
    return finding["change"] == "resolved" and finding["outcome"] != "EXEMPT"


def stamp(value: datetime | date | str | None) -> str | None:
    """ISO 8601 in UTC with a Z, to the second unless there is more; text and None are passed through.

    >>> stamp(datetime(2026, 11, 21, 2, tzinfo=UTC))
    '2026-11-21T02:00:00Z'
    """
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def readable(value: datetime | date | str | None) -> str:
    """The same moment for people, to the minute.

    >>> readable("2026-11-21T02:00:00Z"), readable(None), readable("2026-11-21")
    ('2026-11-21 02:00 UTC', 'unknown', '2026-11-21')
    """
    text = stamp(value)
    if not text:
        return "unknown"
    if len(text) >= 16 and text[10] == "T" and text.endswith("Z"):
        return f"{text[:10]} {text[11:16]} UTC"
    return text


def plural(count: int, one: str, many: str | None = None) -> str:
    """
    >>> plural(1, "topic"), plural(1200, "topic"), plural(0, "is", "are")
    ('1 topic', '1,200 topics', '0 are')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def ranges(ids: Iterable[int], limit: int = 12) -> str:
    """Partition ids as ranges, at most `limit` of them.

    >>> ranges([3, 1, 2, 7]), ranges([0, 2, 4, 6], limit=2), ranges([])
    ('1-3, 7', '0, 2, … (4 in all)', '')
    """
    ordered = sorted(set(ids))
    runs: list[list[int]] = []
    for number in ordered:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in runs[:limit]]
    if len(runs) > limit:
        texts.append(f"… ({len(ordered):,} in all)")
    return ", ".join(texts)


def joined(parts: list[str]) -> str:
    """
    >>> joined(["a", "b", "c"]), joined(["a"])
    ('a, b and c', 'a')
    """
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def visible(value: object) -> object:
    """Text in which what isn't seen, controls and marks of direction, stands as its escape; all else as it is.

    Names are strangers' text: U+202E in one would turn around what the page shows after it.

    >>> visible("az\\u202e1\\x07\\n"), visible("Zürich"), visible(3)
    ('az\\\\u202e1\\\\x07\\n', 'Zürich', 3)
    """
    if type(value) is not str or value.isprintable():
        return value
    return _UNUSUAL.sub(lambda found: found[0] if found[0].isprintable() else _escape(found[0]), value)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def clipped(text: str | None, limit: int) -> str:
    """`text`, cut to `limit` characters with an ellipsis; '' for None."""
    text = text or ""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_script(remediation: str) -> bool:
    """Is a remediation shell to be pasted, or else a sentence of advice? A script has a line that is a command.

    >>> is_script("# Start broker 3\\nkafka-topics --list"), is_script("Start broker 3")
    (True, False)
    """
    return any(is_command(line) for line in remediation.splitlines())


def is_command(line: str) -> bool:
    """Is this line of a remediation one of Kafka's tools, or a loop over topics with one?

    >>> is_command("for topic in a b; do kafka-configs --alter; done"), is_command("for topic in a, raise it")
    (True, False)
    """
    return re.match(r"(for topic in [^;]+; do )?kafka-", line) is not None


def clipped_script(remediation: str, limit: int) -> str:
    """`remediation`, cut to `limit` characters: of a script whole lines go, so that what is left can still be pasted.

    >>> clipped_script("kafka-topics --list\\nkafka-topics --version", 30)
    'kafka-topics --list\\n# and 1 more line, in findings.csv'
    """
    if len(remediation) <= limit or not is_script(remediation):
        return clipped(remediation, limit)
    lines = remediation.splitlines()
    kept = lines
    while kept and len("\n".join(kept)) > limit:
        kept = kept[:-1]
    return "\n".join([*kept, f"# and {plural(len(lines) - len(kept), 'more line')}, in findings.csv"])


_UNUSUAL = re.compile(r"[^ -~\n\t]")
_CAUSES = {
    "configuration:topic": "Topics' own configuration",
    "configuration:cluster-default": "Cluster-wide defaults",
    "reassignment": "A running reassignment",
    "unreadable": "Not readable by the auditor",
    DISAGREE: "Spark and expectations disagree",
}
_KINDS = {"policy": "tier", "configuration": "configuration of"}
_KIND = re.compile(r"(^|, | and )(broker|rack|controller|policy|feature|configuration):")


def cause_title(cause: str | None) -> str:
    """A cause, or several joined by commas, as a heading.

    >>> cause_title("configuration:topic"), cause_title("broker:3 down, broker:4 down"), cause_title(None)
    ("Topics' own configuration", 'Broker 3 down, broker 4 down', 'No single cause')
    >>> cause_title("policy:critical can't be met here"), cause_title("configuration:broker.rack")
    ("Tier critical can't be met here", 'Configuration of broker.rack')
    """
    if not cause:
        return "No single cause"
    if cause in _CAUSES:
        return _CAUSES[cause]
    if cause.startswith("waiver:"):  # its patterns stay as they are
        return f"Expired waiver {cause.removeprefix('waiver:')}"
    named = _KIND.sub(lambda m: f"{m[1]}{_KINDS.get(m[2], m[2])} ", cause)
    return named[:1].upper() + named[1:]
