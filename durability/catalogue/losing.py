"""What a single loss breaks, in words: filters for the templates of broker-loss and rack-loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HARM = {
    "data": "acknowledged writes can be lost",
    "availability": "it goes offline: reads and writes fail",
    "writes": "acks=all writes are refused",
}
WHEN = {
    "now": "as things are now",
    "structural": "even with all replicas in sync",
    "worst-case": "in the worst case that min.insync.replicas allows",
}
NAMED = 5
"""The most names in a sentence. A finding's `observed` has more."""


def broken_by(observed: Mapping[str, Any], kind: str, evidence: Mapping[str, Any]) -> str:
    """The end of a message: which loss breaks what, and when.

    observed: of broker-loss or rack-loss. kind: `broker` or `rack`.

    >>> three = {"lost": ["3"], "lost_count": 1, "breaks": "data", "when": ["now", "structural"]}
    >>> broken_by(three, "broker", {"losing_quorum": []})
    'if broker 3 fails, acknowledged writes can be lost (as things are now, even with all replicas in sync)'
    >>> lost = {"lost": ["az1", "az2"], "lost_count": 2, "breaks": "writes", "when": ["worst-case"]}
    >>> broken_by(lost, "rack", {"losing_quorum": ["az1"]})[:52]
    'if any one of racks az1, az2 fails, acks=all writes '
    """
    lost, count = observed["lost"], observed["lost_count"]
    more = f" (+{count - NAMED} more)" if count > NAMED else ""
    names = ", ".join(lost[:NAMED]) + more
    who = f"{kind} {names}" if count == 1 else f"any one of {kind}s {names}"
    when = ", ".join(WHEN[view] for view in observed["when"])
    quorum = evidence["losing_quorum"]
    without = ""
    if quorum:
        which = (
            "the controllers then have" if count == 1 else f"without {', '.join(quorum[:NAMED])} the controllers have"
        )
        without = f"; {which} no majority"
    return f"if {who} fails, {HARM[observed['breaks']]} ({when}){without}"


def unplaced(evidence: Mapping[str, Any]) -> str:
    """The nodes that may stand in any rack.

    >>> unplaced({"unplaced": [4], "unplaced_voters": [101, 102]})
    'broker 4 and controllers 101, 102'
    """
    nodes = (("broker", evidence["unplaced"]), ("controller", evidence["unplaced_voters"]))
    named = (f"{kind}{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}" for kind, ids in nodes if ids)
    return " and ".join(named)


def broken_already(observed: Mapping[str, Any]) -> str:
    """The message of a topic that a loss can't newly break, because it is broken.

    >>> broken_already({"already": {"data": 0, "availability": 1, "writes": 3}})
    'broken without a loss: 1 partition offline, 3 partitions refuse acks=all writes'
    """
    said = {
        "data": "without a copy that is in sync",
        "availability": "offline",
        "writes": "refuse acks=all writes",
    }
    counts = ((observed["already"][name], text) for name, text in said.items())
    found = [f"{n} partition{'' if n == 1 else 's'} {text if n != 1 else _one(text)}" for n, text in counts if n]
    return (
        f"broken without a loss: {', '.join(found)}" if found else "acks=all writes are never accepted, as configured"
    )


def _one(text: str) -> str:
    return text.replace("refuse ", "refuses ")
