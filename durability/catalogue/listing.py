"""The filters of the catalogue's templates: they format lists, durations and codes as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from durability.catalogue.losing import broken_already, broken_by, unplaced
from durability.plain import plural

SHOWN = 10
"""The maximum number of ids or names in a sentence. A finding's `partitions` or `observed` lists all of them."""


def listed(ids: Sequence[object], what: str = "") -> str:
    """The first ids, and the number of the others.

    >>> listed(range(13))
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 (+3 more)'
    """
    more = f" (+{len(ids) - SHOWN} more)" if len(ids) > SHOWN else ""
    return what + ", ".join(str(i) for i in ids[:SHOWN]) + more


def with_noun(ids: Sequence[object], noun: str) -> str:
    """`listed`, after the noun in singular or plural.

    >>> with_noun([3], "broker"), with_noun([1, 2], "broker")
    ('broker 3', 'brokers 1, 2')
    """
    return listed(ids, f"{noun} " if len(ids) == 1 else f"{noun}s ")


def named(partitions: Sequence[int] | None) -> str:
    """The ids of partitions, after the noun.

    >>> named([4]), named([1, 2])
    ('partition 4', 'partitions 1, 2')
    """
    return with_noun(partitions or [], "partition")


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
        plural = "s" if unit == " day" and count > 1 else ""
        parts.append(f"{count}{unit}{plural}" if count else "")
    largest = next(place for place, part in enumerate(parts) if part)
    return " ".join(filter(None, parts[largest : largest + 2]))


def gaps(widest: float | None) -> str:
    """A note about missing pulses. widest: the longest gap in seconds, None if no pulse is missing."""
    if widest is None:
        return ""
    return f"; pulses are missing (longest gap {lasted(widest)}): no duration is counted across a gap"


def copies_in_racks(numbers: Mapping[str, int | None], copies: str, racks: str) -> str:
    """The copies and racks of a guarantee; a number that is None is left out.

    >>> copies_in_racks({"c": 2, "r": 1}, "c", "r"), copies_in_racks({"c": None, "r": 3}, "c", "r")
    ('2 copies in 1 rack', '3 racks')
    """
    said = []
    for number, one, many in ((numbers[copies], "copy", "copies"), (numbers[racks], "rack", "racks")):
        if number is not None:
            said.append(f"{number} {one if number == 1 else many}")
    return " in ".join(said)


ANSWERS = {
    "LEADER_NOT_AVAILABLE": "without a leader, writes fail with LEADER_NOT_AVAILABLE",
    "NOT_ENOUGH_RACKS": "KIP-1290 would return NOT_ENOUGH_RACKS",
    "REQUEST_TIMED_OUT": "while the ISR lists a broker that is down, writes time out with REQUEST_TIMED_OUT",
    "NOT_ENOUGH_REPLICAS": "KIP-1290 checks replicas first: NOT_ENOUGH_REPLICAS",
}


def answered(errors: Sequence[str] | None) -> str:
    """The errors of acks=all writes to partitions below min.insync.racks; empty if they are unknown."""
    said = [text for error, text in ANSWERS.items() if error in (errors or ())]
    return f" ({'; '.join(said)})" if said else ""


def cli_difference(code: str) -> str:
    """How and why kafka-topics shows a partition differently. `spark_jobs.frames.partitions` documents the codes.

    >>> cli_difference("under:3:2")
    'kafka-topics lists it under --under-min-isr-partitions: it compares with the configured 3, brokers since 3.7 enforce 2'
    """
    name, *numbers = code.split(":")
    if name == "leaderless":
        return (
            "kafka-topics also lists leaderless partitions under --under-min-isr-partitions, and depending on their ISR under"
            " --under-replicated-partitions and (without ELR) --at-min-isr-partitions"
        )
    if name == "under" and len(numbers) == 2:
        configured, enforced = numbers
        return (
            f"kafka-topics lists it under --under-min-isr-partitions: it compares with the configured {configured}, brokers since"
            f" 3.7 enforce {enforced}"
        )
    if name == "not-at":
        return "kafka-topics omits it from --at-min-isr-partitions for the same reason"
    return code  # rows of version 0.1 contain the sentence


def cli_sentence(codes: str) -> str:
    """The sentences for `cli_differs` of a row of `partition_health`."""
    return "; ".join(map(cli_difference, codes.split(";"))) if " " not in codes else codes


def cli_differs(of_partitions: Sequence[str] | None) -> str:
    """The end of a message about partitions that kafka-topics shows differently."""
    return "".join(f"; {text}" for text in sorted(cli_sentence(codes) for codes in of_partitions or ()))


def waited_for(brokers: Sequence[int] | None) -> str:
    """The end of a message about partitions whose leaders wait for brokers that are down; empty if there are none.

    >>> waited_for([3]), waited_for([])
    ('; the ISR still lists broker 3, which is down: until it leaves the ISR, acks=all writes time out (REQUEST_TIMED_OUT)', '')
    """
    if not brokers:
        return ""
    which = f"broker {brokers[0]}, which is" if len(brokers) == 1 else f"brokers {listed(brokers)}, which are"
    leave = "it leaves" if len(brokers) == 1 else "they leave"
    return f"; the ISR still lists {which} down: until {leave} the ISR, acks=all writes time out (REQUEST_TIMED_OUT)"


WRONG = {
    "min.insync.replicas": "min.insync.replicas is not a number of at least 1",
    "min.insync.racks": "min.insync.racks is not a number",
    "unclean.leader.election.enable": "unclean.leader.election.enable is neither true nor false",
}


def wrong_setting(setting: str) -> str:
    return WRONG.get(setting, f"{setting} has an invalid value")


def task_standbys(tasks: Sequence[Mapping[str, Any]]) -> str:
    return listed([f"{t['task']} has {t['standbys']}" for t in tasks])


def spread_task(task: Mapping[str, Any]) -> str:
    """The clients of a task, the tags that they share, and the clients where its standby could be."""
    where = f"{task['task']} on {', '.join(task['clients'])} shares {', '.join(task['tags'])}"
    achievable = task.get("achievable")
    return where + (f"; its standby could have been on {listed(achievable)}" if achievable else "")


UNREAD = {
    "bytes": "Check the application's release of Kafka Streams. This audit reads SubscriptionInfo 6 to 11 (tags: only 11) and"
    " AssignmentInfo 6 to 11; the message states what the members write",
    "evidence": "Audit again after the group's next rebalance",
    "access": "Let the auditor describe the group, then audit again",
}


def unread_application(kind: str | None) -> str | None:
    """The remedy if a part of an application could not be read."""
    return UNREAD.get(kind or "")


FILTERS: dict[str, Callable[..., object]] = {
    f.__name__: f
    for f in (
        *(listed, with_noun, named, lasted, gaps, copies_in_racks, answered, waited_for, cli_differs, wrong_setting),
        *(plural, task_standbys, spread_task, unread_application, broken_by, broken_already, unplaced),
    )
}
