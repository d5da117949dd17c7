"""Small texts that several reports use: times, numbers, partition ranges, causes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from durability.catalogue.causes import DISAGREE, WORDED
from durability.plain import plural

OUTCOMES = ("FAIL", "UNKNOWN", "EXEMPT", "PASS", "NOT_APPLICABLE")
COUNTED_ONLY = ("PASS", "NOT_APPLICABLE")
"""Outcomes that findings.json counts but doesn't list."""
SEVERITIES = ("critical", "warning", "info")
CHANGES = ("new", "persisting", "resolved")

CAVEATS = (
    "Statements about topics hold for writes with acks=all. Which acks value producers use is not in a cluster's metadata.",
    "Copies are counted in page caches, not on synced disks: Kafka acknowledges a write before it syncs.",
    "KIP-1290 (racks), KIP-926 (acks=min.insync.replicas) and KIP-579 (INCONSISTENT_REPLICATION_FACTOR) are proposals. "
    "The audit evaluates their guarantees; brokers don't enforce them.",
)


def is_resolved(finding: Mapping[str, Any]) -> bool:
    """Whether a finding no longer applies. A finding resolved by a waiver still applies, as EXEMPT.

    >>> is_resolved({"change": "resolved", "outcome": "PASS"}), is_resolved({"change": "resolved", "outcome": "EXEMPT"})
    (True, False)
    """
    return finding["change"] == "resolved" and finding["outcome"] != "EXEMPT"


def waived(waiver: Mapping[str, Any]) -> str:
    """Who accepts a risk until when, and why.

    >>> waived({"owner": "payments", "expires": "2027-01-31", "reason": "rebuilt every hour"})
    'payments accepts this until 2027-01-31: rebuilt every hour'
    """
    return f"{waiver['owner']} accepts this until {readable(waiver['expires'])}: {waiver['reason']}"


def state(outcome: str, severity: str | None) -> str:
    """What a finding is shown as: a failure's severity, else the outcome.

    >>> state("FAIL", "info"), state("EXEMPT", "critical")
    ('info', 'EXEMPT')
    """
    return severity or "warning" if outcome == "FAIL" else outcome


def readable(moment: str | None) -> str:
    """A time of findings.json, to the minute. Other text is unchanged.

    >>> readable("2026-11-21T02:00:00Z"), readable(None), readable("2026-11-21")
    ('2026-11-21 02:00 UTC', 'unknown', '2026-11-21')
    """
    if not moment:
        return "unknown"
    return f"{moment[:10]} {moment[11:16]} UTC" if moment[10:11] == "T" and moment.endswith("Z") else moment


def numbers(summary: Mapping[str, Any]) -> dict[str, int]:
    """The counts of findings.json's `summary` by name: failures by severity, then the other outcomes."""
    outcomes = summary["outcomes"]
    found = {**summary["severities"], "unknown": outcomes["UNKNOWN"], "exempt": outcomes["EXEMPT"]}
    return found | {"passed": outcomes["PASS"], "not applicable": outcomes["NOT_APPLICABLE"]}


def percent(share: float) -> str:
    """A probability in percent, with three digits. It is 0 or 100 only if it is exactly that.

    >>> percent(0.0), percent(0.0015687), percent(0.5), percent(1.0)
    ('0 %', '0.157 %', '50 %', '100 %')
    >>> percent(1e-9), percent(0.99999)
    ('< 0.001 %', '> 99.9 %')
    """
    if 0 < share < 0.00001:
        return "< 0.001 %"
    return "> 99.9 %" if 0.9995 <= share < 1 else f"{share * 100:.3g} %"


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


def joined(parts: Sequence[str], limit: int | None = None) -> str:
    """Names as a list in a sentence, at most `limit` of them.

    >>> joined(["a", "b", "c"]), joined(["a"]), joined(["a", "b", "c"], limit=1)
    ('a, b and c', 'a', 'a and 2 more')
    """
    shown = list(parts[:limit])
    if len(parts) > len(shown):
        shown.append(f"{len(parts) - len(shown):,} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def visible(value: object) -> object:
    """Text with control and direction characters as escapes. Other values are unchanged.

    Names come from clusters. For example, U+202E in a name would reverse the text after it.

    >>> visible("az\\u202e1\\x07\\n"), visible("Zürich"), visible(3)
    ('az\\\\u202e1\\\\x07\\n', 'Zürich', 3)
    """
    if type(value) is not str or value.isprintable():
        return value
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in value)


def clipped(text: str | None, limit: int) -> str:
    """`text`, cut to `limit` characters with an ellipsis; '' for None."""
    text = text or ""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_script(remediation: str) -> bool:
    """Whether a remediation is a shell script. Otherwise it is advice.

    >>> is_script("# Start broker 3\\nkafka-topics --list"), is_script("Start broker 3")
    (True, False)
    """
    return any(is_command(line) for line in remediation.splitlines())


def is_command(line: str) -> bool:
    """Whether a line of a remediation runs one of Kafka's tools, alone, in a loop, or after it asked the cluster something.

    >>> is_command("for topic in a b; do kafka-configs --alter; done"), is_command("for topic in a, raise it")
    (True, False)
    """
    return re.match(r"(for \w+ in [^;]+; do )?(said=\$\()?(kafka-|zookeeper-shell )", line) is not None


def clipped_script(remediation: str, limit: int) -> str:
    """`remediation`, cut to `limit` characters. Only whole lines of a script are cut, so that the rest can be pasted.

    Commands that `&&` joins go together: a reassignment without its verification leaves its throttle.

    >>> clipped_script("kafka-topics --list\\nkafka-topics --version", 30)
    'kafka-topics --list\\n# and 1 more line, in findings.csv'
    >>> clipped_script("kafka-configs --alter &&\\nkafka-configs --alter", 30)
    '# and 2 more lines, in findings.csv'
    """
    if len(remediation) <= limit or not is_script(remediation):
        return clipped(remediation, limit)
    lines = remediation.splitlines()
    kept = lines
    while kept and (len("\n".join(kept)) > limit or _goes_on(kept)):
        kept = kept[:-1]
    return "\n".join([*kept, f"# and {plural(len(lines) - len(kept), 'more line')}, in findings.csv"])


def _goes_on(lines: Sequence[str]) -> bool:
    """Does `&&` join the last command of these lines to another one?"""
    return next((line.endswith("&&") for line in reversed(lines) if is_command(line)), False)


_CAUSES = {
    "configuration:topic": "Topics' own configuration",
    "configuration:cluster-default": "Cluster-wide defaults",
    "reassignment": "A running reassignment",
    "unreadable": "Not readable by the auditor",
    DISAGREE: "Spark and expectations disagree",
}
_KINDS = {"policy": "tier", "configuration": "configuration of"}
_WHOLE_CLUSTER = re.compile(rf"cluster:.* ({WORDED['rejected']}|unreadable)", re.DOTALL)
_KIND = re.compile(r"(^|, | and )(broker|rack|controller|policy|feature|configuration):")


def cause_title(cause: str | None) -> str:
    """A cause, or several joined by commas, as a heading.

    >>> cause_title("configuration:topic"), cause_title("broker:3 down, broker:4 down"), cause_title(None)
    ("Topics' own configuration", 'Broker 3 down, broker 4 down', 'No single cause')
    >>> cause_title("policy:critical can't be met here"), cause_title("configuration:broker.rack")
    ("Tier critical can't be met here", 'Configuration of broker.rack')
    >>> cause_title("cluster:eu snapshot rejected"), cause_title("cluster:eu unreadable")  # readers name the cluster
    ('Snapshot rejected', 'Unreadable')
    """
    if not cause:
        return "No single cause"
    if cause in _CAUSES:
        return _CAUSES[cause]
    if cause.startswith("waiver:"):  # patterns of a waiver are unchanged
        return f"Expired waiver {cause.removeprefix('waiver:')}"
    whole = _WHOLE_CLUSTER.fullmatch(cause)
    named = whole[1] if whole else _KIND.sub(lambda m: f"{m[1]}{_KINDS.get(m[2], m[2])} ", cause)
    return named[:1].upper() + named[1:]
