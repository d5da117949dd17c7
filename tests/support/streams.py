"""Members of classic Streams groups, from bytes that Kafka's own classes encoded."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path

from durability.streams.assignment_info import NO_REBALANCE

SUPPORT = Path(__file__).parent
LONG_MAX = NO_REBALANCE.to_bytes(8, "big")


@cache
def published(what: str | None = None, version: int | None = None) -> list[dict]:
    """The cases of streams_bytes.jsonl (what, hex, member, facts), filtered by kind and version if given.

    Written by `StreamsBytes.java encode 708 2` with Kafka 4.3.1's jars.
    """
    lines = (SUPPORT / "streams_bytes.jsonl").read_text("utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    return [c for c in cases if what in (None, c["what"]) and version in (None, c["facts"]["version"])]


def recorded() -> dict:
    """A row of `groups` from WordCountDemo on 4.3.1: one instance per zone, one standby, three input partitions."""
    return json.loads((SUPPORT / "streams_group.json").read_text("utf-8"))


def member(subscription: bytes | None, assignment: bytes | None, client_id: str = "c") -> dict:
    """A row of `members` with these SubscriptionInfo and AssignmentInfo; None for not stated."""
    no_topics = bytes(2 + 4)
    framed = [
        None if data is None else base64.b64encode(no_topics + len(data).to_bytes(4, "big") + data).decode()
        for data in (subscription, assignment)
    ]
    return {"member_id": f"{client_id}-1", "client_id": client_id, "metadata": framed[0], "assignment": framed[1]}


def group(*members: dict, name: str = "app", state: str = "Stable", **changes: object) -> dict:
    """A row of `groups`."""
    row = {"group": name, "type": "classic", "state": state, "protocol_type": "consumer", "protocol": "stream"}
    return {**row, "members": list(members), **changes}


def settled(assignment: bytes) -> bytes:
    """An AssignmentInfo of version 7 or later without error and planned rebalance, otherwise unchanged."""
    return assignment[:-12] + bytes(4) + LONG_MAX
