"""Lists, durations and codes as text: the filters of the catalogue's templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

SHOWN = 10
"""Ids or names in a sentence, at most. The finding's `partitions` or `observed` has all."""


def listed(ids: Sequence[object], what: str = "") -> str:
    """The first ids, and how many more there are.

    >>> listed(range(13))
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 (+3 more)'
    """
    more = f" (+{len(ids) - SHOWN} more)" if len(ids) > SHOWN else ""
    return what + ", ".join(str(i) for i in ids[:SHOWN]) + more


def named(partitions: Sequence[int] | None) -> str:
    """
    >>> named([4]), named([1, 2])
    ('partition 4', 'partitions 1, 2')
    """
    ids = partitions or []
    return listed(ids, "partition " if len(ids) == 1 else "partitions ")


def lasted(seconds: float) -> str:
    """A length of time for people, in its two largest units.

    >>> [lasted(s) for s in (42.0, 1800, 5430.0, 86400, 180000)]
    ['42 s', '30 min', '1 h 30 min', '1 day', '2 days 2 h']
    """
    rest = int(seconds)
    if rest < 60:
        return f"{rest} s"
    parts = []
    for unit, size in ((" day", 86_400), (" h", 3_600), (" min", 60)):
        count, rest = divmod(rest, size)
        parts.append(f"{count}{unit}{'s' if unit == ' day' and count > 1 else ''}" if count else "")
    largest = next(place for place, part in enumerate(parts) if part)
    return " ".join(filter(None, parts[largest : largest + 2]))


def gaps(widest: float | None) -> str:
    """A note on missing pulses; widest: the longest gap in seconds, None for none."""
    if widest is None:
        return ""
    return f"; pulses are missing (for {lasted(widest)} at most): nothing is said to last across that"


def copies_in_racks(numbers: Mapping[str, int | None], copies: str, racks: str) -> str:
    """
    >>> copies_in_racks({"c": 2, "r": 1}, "c", "r"), copies_in_racks({"c": None, "r": 3}, "c", "r")
    ('2 copies in 1 rack', '3 racks')
    """
    said = []
    for number, one, many in ((numbers[copies], "copy", "copies"), (numbers[racks], "rack", "racks")):
        if number is not None:
            said.append(f"{number} {one if number == 1 else many}")
    return " in ".join(said)


ANSWERS = {
    "LEADER_NOT_AVAILABLE": "without a leader writes are answered LEADER_NOT_AVAILABLE",
    "NOT_ENOUGH_RACKS": "KIP-1290 would answer NOT_ENOUGH_RACKS",
    "NOT_ENOUGH_REPLICAS": "KIP-1290 checks replicas first: NOT_ENOUGH_REPLICAS",
}


def answered(errors: Sequence[str] | None) -> str:
    """The answer to acks=all writes to partitions below min.insync.racks; '' where it is unknown."""
    said = [text for error, text in ANSWERS.items() if error in (errors or ())]
    return f" ({'; '.join(said)})" if said else ""


def cli_difference(code: str) -> str:
    """How kafka-topics differs on a partition, and why; codes: see `spark_jobs.frames.partitions`.

    >>> cli_difference("under:3:2")
    'kafka-topics lists it under --under-min-isr-partitions: it compares the configured 3, brokers since 3.7 enforce 2'
    """
    name, *numbers = code.split(":")
    if name == "leaderless":
        return (
            "kafka-topics counts leaderless partitions under --under-min-isr-partitions, and where their ISR fits under"
            " --under-replicated-partitions and (without ELR) --at-min-isr-partitions"
        )
    if name == "under" and len(numbers) == 2:
        configured, enforced = numbers
        return (
            f"kafka-topics lists it under --under-min-isr-partitions: it compares the configured {configured}, brokers since"
            f" 3.7 enforce {enforced}"
        )
    if name == "not-at":
        return "kafka-topics leaves it out of --at-min-isr-partitions for the same reason"
    return code


def cli_sentence(codes: str) -> str:
    """The sentence for a row of `partition_health`; a row of an earlier version has the sentence already."""
    return "; ".join(map(cli_difference, codes.split(";"))) if " " not in codes else codes


def cli_differs(of_partitions: Sequence[str] | None) -> str:
    """The end of a message about partitions on which kafka-topics differs."""
    return "".join(f"; {text}" for text in sorted(cli_sentence(codes) for codes in of_partitions or ()))


WRONG = {
    "min.insync.replicas": "min.insync.replicas is no number from 1 on",
    "min.insync.racks": "min.insync.racks is not a number",
    "unclean.leader.election.enable": "unclean.leader.election.enable is neither true nor false",
}


def wrong_setting(setting: str) -> str:
    return WRONG.get(setting, f"{setting} has a value that means nothing")


def task_standbys(tasks: Sequence[Mapping[str, Any]]) -> str:
    return listed([f"{t['task']} has {t['standbys']}" for t in tasks])


def spread_task(task: Mapping[str, Any]) -> str:
    """The tags that a task's clients share, and the clients where its standby could have been."""
    where = f"{task['task']} on {', '.join(task['clients'])} shares {', '.join(task['tags'])}"
    achievable = task.get("achievable")
    return where + (f"; its standby could have been on {listed(achievable)}" if achievable else "")


UNREAD = {
    "bytes": "Look at the release of Kafka Streams that the application runs: its members write what this audit doesn't read"
    " (SubscriptionInfo 6 to 11, with tags 11 alone, and AssignmentInfo 6 to 11 it does); the message says what it found",
    "evidence": "Audit again after the group's next rebalance",
    "access": "Let the auditor describe the group, then audit again",
}


def unread_application(kind: str | None) -> str | None:
    """The fix where a part of an application could not be read."""
    return UNREAD.get(kind or "")


FILTERS: dict[str, Callable[..., object]] = {
    f.__name__: f
    for f in (
        *(listed, named, lasted, gaps, copies_in_racks, answered, cli_differs, wrong_setting),
        *(task_standbys, spread_task, unread_application),
    )
}
