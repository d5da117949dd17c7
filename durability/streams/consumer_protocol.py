"""The consumer protocol's framing of a member's bytes (ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json).

Versions only ever add fields after the user data, so every version is read alike and what follows is passed over, as
Kafka's own deserializer does with versions newer than it knows.
"""

from __future__ import annotations

from durability.streams.reader import Reader


def subscription_user_data(metadata: bytes) -> bytes:
    """The user data of a member's metadata: i16 version, topics, user data. Raises Malformed."""
    reader = Reader(metadata, "ConsumerProtocolSubscription")
    _version(reader)
    for _ in range(reader.count(2, "topics")):
        reader.take(reader.i16("the length of a topic"), "a topic")
    return _user_data(reader)


def assignment_user_data(assignment: bytes) -> bytes:
    """The user data of a member's assignment: i16 version, partitions by topic, user data. Raises Malformed."""
    reader = Reader(assignment, "ConsumerProtocolAssignment")
    _version(reader)
    for _ in range(reader.count(6, "topics")):
        reader.take(reader.i16("the length of a topic"), "a topic")
        reader.take(4 * reader.count(4, "partitions"), "partitions")
    return _user_data(reader)


def _version(reader: Reader) -> None:
    if not reader.data:
        raise reader.malformed("it is empty")
    version = reader.i16("the version")
    if version < 0:
        raise reader.malformed(f"version {version}")


def _user_data(reader: Reader) -> bytes:
    size = reader.i32("the length of the user data")
    if size <= 0:  # -1 is null
        raise reader.malformed("there is no user data")
    return reader.take(size, "user data")
