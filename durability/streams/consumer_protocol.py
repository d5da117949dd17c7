"""The consumer protocol's frame around a member's bytes (ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json).

Versions only ever add fields after the user data. So every version is read the same way, and later fields are ignored, as
Kafka's own deserializer does with newer versions.
"""

from __future__ import annotations

from durability.streams.reader import Reader


def subscription_user_data(metadata: bytes) -> bytes:
    """The user data of a member's metadata: i16 version, topics, user data. Raises Malformed."""
    reader = _reader(metadata, "ConsumerProtocolSubscription")
    for _ in range(reader.count(2)):
        reader.take(reader.i16())
    return _user_data(reader)


def assignment_user_data(assignment: bytes) -> bytes:
    """The user data of a member's assignment: i16 version, partitions by topic, user data. Raises Malformed."""
    reader = _reader(assignment, "ConsumerProtocolAssignment")
    for _ in range(reader.count(6)):
        reader.take(reader.i16())
        reader.take(4 * reader.count(4))
    return _user_data(reader)


def _reader(data: bytes, format: str) -> Reader:
    reader = Reader(data, format)
    version = reader.i16()
    if version < 0:
        raise reader.malformed(f"version {version}")
    return reader


def _user_data(reader: Reader) -> bytes:
    size = reader.i32()
    if size <= 0:  # -1 is null
        raise reader.malformed("there is no user data")
    return reader.take(size)
