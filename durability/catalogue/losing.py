"""What a single loss breaks, in words: filters for the templates of broker-loss and rack-loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HARM = {
    "data": "acknowledged writes can be lost",
    "availability": "it goes offline: reads and writes fail",
}
REJECTED, TIMED_OUT = "are rejected with NOT_ENOUGH_REPLICAS", "time out with REQUEST_TIMED_OUT"
"""What acks=all writes do where a partition stops accepting them. Without the controllers' majority no ISR shrinks, so its leader
waits for the lost members. A leader with too few members in sync rejects at once."""
WHEN = {
    "now": "as things are now",
    "structural": "even with all replicas in sync and preferred leaders",
    "worst-case": "in the worst case that min.insync.replicas allows",
}
NAMED = 5
"""The most names in a sentence. A finding's `observed` has more."""


def broken_by(observed: Mapping[str, Any], kind: str, evidence: Mapping[str, Any]) -> str:
    """The end of a message: which losses break the worst class, and when.

    observed: of broker-loss or rack-loss. kind: `broker` or `rack`.

    >>> def lost(breaks, quorum=(), down=(), **views):
    ...     observed = {"breaks": breaks, "when": [*views], "views": {v: {breaks: {"lost": n}} for v, n in views.items()}}
    ...     timed_out = {view: len({*names} & {*quorum}) for view, names in views.items()}
    ...     refused = {view: len(names) - timed_out[view] for view, names in views.items()}
    ...     evidence = {"losing_quorum": list(quorum), "down": list(down), "refused": refused, "timed_out": timed_out}
    ...     return broken_by(observed, "broker", evidence)
    >>> lost("data", now=["3"], structural=["3"])
    'if broker 3 fails, acknowledged writes can be lost (as things are now, even with all replicas in sync and preferred leaders)'
    >>> lost("availability", quorum=["1", "2"], now=["2", "3"])  # doctest: +NORMALIZE_WHITESPACE
    'if any one of brokers 2, 3 fails, it goes offline: reads and writes fail (as things are now); without 2 the controllers have
    no majority'
    >>> lost("writes", now=["2"], structural=["2", "4"])  # doctest: +NORMALIZE_WHITESPACE
    'if broker 2 fails, acks=all writes are rejected with NOT_ENOUGH_REPLICAS (as things are now); if any one of brokers 2, 4
    fails, the same happens (even with all replicas in sync and preferred leaders)'
    >>> lost("writes", quorum=["2"], now=["2"])  # doctest: +NORMALIZE_WHITESPACE
    'if broker 2 fails, acks=all writes time out with REQUEST_TIMED_OUT (as things are now); the controllers then have no
    majority'
    >>> lost("writes", quorum=["2"], now=["2", "4"])  # doctest: +NORMALIZE_WHITESPACE
    'if any one of brokers 2, 4 fails, acks=all writes are rejected with NOT_ENOUGH_REPLICAS or time out with
    REQUEST_TIMED_OUT (as things are now); without 2 the controllers have no majority'
    >>> lost("data", down=["4"], now=["2", "4"])  # doctest: +NORMALIZE_WHITESPACE
    'if broker 2 fails, or broker 4, which is down, is lost for good, acknowledged writes can be lost (as things are now)'
    """
    said: list[str] = []
    shown: list[str] = []
    last = None
    for views, names, count in _by_names(observed, evidence):
        when = ", ".join(WHEN[view] for view in views)
        of_class = HARM.get(observed["breaks"]) or _failing_writes(views[0], count, evidence)
        harm = "the same happens" if of_class == last else of_class
        last = of_class
        # The other views suppose that all brokers are up.
        down = [name for name in names if name in (evidence.get("down") or ())] if "now" in views else []
        said.append(f"if {_fails(names, count, down, kind)}, {harm} ({when})")
        shown += [name for name in names[:NAMED] if name not in shown]
    return "; ".join(said) + _without_majority(shown, evidence)


def _by_names(observed: Mapping[str, Any], evidence: Mapping[str, Any]) -> list[tuple[list[str], list[str], int]]:
    """The views in which the worst class breaks, together if the same losses break it, with these losses and their number."""
    groups: list[tuple[list[str], list[str], int]] = []
    for view in observed["when"]:
        names = observed["views"][view][observed["breaks"]]["lost"]
        count = (evidence.get("breaking") or {}).get(view, len(names))
        same = next((g for g in groups if set(g[1]) == set(names) and g[2] == count), None)
        if same is None:
            groups.append(([view], list(names), count))
        else:
            same[0].append(view)
    return groups


def _failing_writes(view: str, count: int, evidence: Mapping[str, Any]) -> str:
    """What acks=all writes do after any of these losses, of which there are `count`."""
    answers = {REJECTED: evidence["timed_out"].get(view) != count, TIMED_OUT: evidence["refused"].get(view) != count}
    return f"acks=all writes {' or '.join(answer for answer, possible in answers.items() if possible)}"


def _fails(names: Sequence[str], count: int, down: Sequence[str], kind: str) -> str:
    """The losses, and that they fail. down: those that are down already."""
    up = [name for name in names if name not in down]
    parts = []
    if up:
        parts.append(f"{_one_of(up, count - len(down), kind)} fails")
    if down:
        what = f"{_one_of(down, len(down), kind)}, which {'is' if len(down) == 1 else 'are'} down,"
        parts.append(f"{what} is lost for good")
    return ", or ".join(parts)


def _one_of(names: Sequence[str], count: int, kind: str) -> str:
    more = f" (+{count - NAMED} more)" if count > NAMED else ""
    listed = ", ".join(names[:NAMED]) + more
    return f"{kind} {listed}" if count == 1 else f"any one of {kind}s {listed}"


def _without_majority(names: Sequence[str], evidence: Mapping[str, Any]) -> str:
    """The end of the sentence if the controllers have no majority, after the loss of one of these names or already."""
    if evidence.get("majority_lost"):
        already = "; no controller leads now, so no leader is elected and no ISR shrinks"
        return already if evidence.get("by_quorum") else ""
    quorum = [name for name in names if name in evidence["losing_quorum"]]
    if not quorum:
        return ""
    which = "the controllers then have" if len(names) == 1 else f"without {' or '.join(quorum)} the controllers have"
    return f"; {which} no majority"


def unplaced(evidence: Mapping[str, Any]) -> str:
    """The nodes that may be in any rack.

    >>> unplaced({"unplaced": [4], "unplaced_voters": [101, 102]})
    'broker 4 and controllers 101, 102'
    """
    nodes = (("broker", evidence["unplaced"]), ("controller", evidence["unplaced_voters"]))
    named = (f"{kind}{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}" for kind, ids in nodes if ids)
    return " and ".join(named)


def broken_already(observed: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    """The message of a topic that a loss can't newly break, because it is broken.

    evidence: `waiting`, the number of partitions whose leaders wait for brokers that are down.

    >>> def broken(data, availability, writes, waiting):
    ...     already = {"data": data, "availability": availability, "writes": writes}
    ...     return broken_already({"already": already}, {"waiting": waiting})
    >>> broken(0, 1, 3, 1)  # doctest: +NORMALIZE_WHITESPACE
    'broken without a loss: 1 partition offline, in 1 partition acks=all writes are rejected with NOT_ENOUGH_REPLICAS, in 1
    partition acks=all writes time out with REQUEST_TIMED_OUT'
    >>> broken(0, 0, 0, 0)
    'acks=all writes are never accepted, as configured'
    """
    already, waiting = observed["already"], evidence["waiting"]
    # Partitions without a leader accept no writes either.
    rejected = already["writes"] - already["availability"] - waiting
    parts = [f"{_many(already['data'])} without a copy that is in sync"] if already["data"] else []
    parts += [f"{_many(already['availability'])} offline"] if already["availability"] else []
    answers = ((rejected, REJECTED), (waiting, TIMED_OUT))
    parts += [f"in {_many(count)} acks=all writes {answer}" for count, answer in answers if count > 0]
    return (
        f"broken without a loss: {', '.join(parts)}" if parts else "acks=all writes are never accepted, as configured"
    )


def _many(partitions: int) -> str:
    return f"{partitions} partition{'' if partitions == 1 else 's'}"
