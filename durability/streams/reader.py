"""Reads big-endian values from untrusted bytes, never past their end."""

from __future__ import annotations

import struct

OLDEST, NEWEST = 6, 11
"""The supported protocol versions of Kafka Streams (2.5 and later)."""
FORMATS = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment", "SubscriptionInfo", "AssignmentInfo")
"""The formats of members' bytes. Every reason why such bytes can't be read begins with one of these names."""


class Malformed(Exception):
    """The bytes are not of the expected format. The text quotes numbers only."""


class Reader:
    """A position in `data`. format: the format of the data, one of FORMATS.

    >>> reader = Reader(bytes([0, 0, 0, 1, 0, 0, 0, 7]), "AssignmentInfo")
    >>> [reader.i32() for _ in range(reader.count(4))]
    [7]
    >>> Reader(bytes([0x7F, 255, 255, 255]), "AssignmentInfo").count(8)
    Traceback (most recent call last):
    durability.streams.reader.Malformed: AssignmentInfo: 2147483647 elements at byte 4, where 0 bytes are left
    """

    def __init__(self, data: bytes, format: str):
        self.data = data
        self.format = format
        self.position = 0

    def malformed(self, problem: str) -> Malformed:
        return Malformed(f"{self.format}: {problem}")

    @property
    def left(self) -> int:
        """The number of bytes that haven't been read."""
        return len(self.data) - self.position

    def take(self, size: int) -> bytes:
        """The next `size` bytes. Raises Malformed for a negative size."""
        if not 0 <= size <= self.left:
            raise self.malformed(f"{size} bytes at byte {self.position}, where {self.left} bytes are left")
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self, code: str) -> int:
        """A number of one of `struct`'s codes."""
        packing = struct.Struct(f">{code}")
        return packing.unpack(self.take(packing.size))[0]

    def i16(self) -> int:
        return self.number("h")

    def i32(self) -> int:
        return self.number("i")

    def i64(self) -> int:
        return self.number("q")

    def natural(self) -> int:
        """An i32 that isn't negative."""
        value = self.i32()
        if value < 0:
            raise self.malformed(f"{value} at byte {self.position - 4}, where a number from 0 is expected")
        return value

    def version(self) -> int:
        """An i32, the version of the format. Raises Malformed for an unsupported version."""
        version = self.i32()
        if 1 <= version < OLDEST:
            raise self.malformed(f"version {version} is older than {OLDEST}, the oldest that is read")
        if not OLDEST <= version <= NEWEST:
            raise self.malformed(f"version {version} isn't known; {OLDEST} to {NEWEST} are")
        return version

    def count(self, smallest: int) -> int:
        """The i32 length of an array whose elements take at least `smallest` bytes each."""
        value = self.i32()
        if not 0 <= value * smallest <= self.left:
            raise self.malformed(f"{value} elements at byte {self.position}, where {self.left} bytes are left")
        return value

    def text(self, size: int) -> str:
        """`size` bytes of UTF-8."""
        return self.decoded(self.take(size), "utf-8")

    def utf(self) -> str:
        """A u16 length and modified UTF-8 (DataOutputStream.writeUTF): NUL in two bytes, surrogates one by one."""
        value = self.take(self.number("H")).replace(b"\xc0\x80", b"\0")
        found = self.decoded(value, "utf-8", "surrogatepass")
        if max(found, default="") > "\uffff":
            raise self.malformed(f"no modified UTF-8 before byte {self.position}")
        return found

    def decoded(self, value: bytes, encoding: str, errors: str = "strict") -> str:
        """Bytes just taken, as text."""
        try:
            return value.decode(encoding, errors)
        except UnicodeDecodeError as error:
            raise self.malformed(f"no {encoding} text before byte {self.position}") from error

    def end(self) -> None:
        """Raises Malformed unless all bytes were read."""
        if self.left:
            raise self.malformed(f"{self.left} bytes too many")
