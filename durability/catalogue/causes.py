"""Causes: the codes in verdicts, and their names in findings."""

from __future__ import annotations

import re

DISAGREE = "spark and expectations disagree"

CONTROLLER_QUORUM = "controller quorum"
"""The cause of what is wrong with the controllers."""

HOLDS_MAJORITY = " holds the quorum's majority"
"""The end of a cause: without this broker or rack, the controllers have no majority."""

WORDED = {
    "infeasible": "can't be met here",
    "rejected": "snapshot rejected",
    "disk-offline": "log dir offline",
    "replicas-flapping": "replicas in and out of sync",
    "flapping": "in and out of sync",
    "no-leader": "no leader elected",
    "controllers-unreadable": "controllers can't be asked",
    "release-unknown": "unknown release",
    "topics-hidden": "topics may be hidden",
    "streams-unsettled": "unreadable or moving Streams application",
    "streams-instances": "too few instances of a Streams application",
    "contradiction": "facts contradict each other",
    "brokers-down": "brokers of a partition without a leader are down",
    "observers": "observers among the replicas",
    "reassignments-unread": "unreadable reassignments",
    "standby-placement": "placement of standbys",
}
# A code is at the end of a cause, or of one of several causes. The text before it may be any name, such as a tier's.
_CODE = re.compile(rf"(?:(?<=\s)|(?<![^,\s]))({'|'.join(sorted(WORDED, key=len, reverse=True))})(?=,|$)")


# A rack's name may have a comma in it.
_SEPARATOR = re.compile(r", (?=broker:\d|rack:|[a-z-]+(?:, |$))")


def split(text: str) -> list[str]:
    """The causes of a row of `partition_health`, each once.

    >>> split("broker:3 down, rack:a, b down, no-leader, broker:3 down")
    ['broker:3 down', 'rack:a, b down', 'no-leader']
    """
    return list(dict.fromkeys(_SEPARATOR.split(text)))


def worded(cause: str | None) -> str | None:
    """The cause as findings show it: codes become names, all other text stays.

    >>> worded("policy:critical infeasible"), worded("broker:1 flapping, broker:2 flapping"), worded("broker:3 down")
    ("policy:critical can't be met here", 'broker:1 in and out of sync, broker:2 in and out of sync', 'broker:3 down')
    """
    return None if cause is None else _CODE.sub(lambda match: WORDED[match[1]], cause)
