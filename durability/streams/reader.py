"""Big-endian values out of untrusted bytes: never past their end, never more elements than the bytes can hold."""

from __future__ import annotations

import struct

FORMATS = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment", "SubscriptionInfo", "AssignmentInfo")
"""What members' bytes hold; such a name begins every reason why bytes aren't read."""


class Malformed(Exception):
    """Bytes that are not what they should be; the text says what, and names no value of theirs but numbers."""


class Reader:
    """A cursor over `data`; `what` they are stands in every error.

    >>> reader = Reader(bytes([0, 0, 0, 1, 0, 0, 0, 7]), "AssignmentInfo")
    >>> [reader.i32("a task's partition") for _ in range(reader.count(4, "active tasks"))]
    [7]
    >>> Reader(bytes([0x7F, 255, 255, 255]), "AssignmentInfo").count(8, "active tasks")
    Traceback (most recent call last):
    durability.streams.reader.Malformed: AssignmentInfo: 2147483647 active tasks don't fit in the 0 bytes left
    """

    def __init__(self, data: bytes, what: str):
        self.data = data
        self.what = what
        self.position = 0

    @property
    def left(self) -> int:
        """How many bytes haven't been read."""
        return len(self.data) - self.position

    def malformed(self, problem: str) -> Malformed:
        return Malformed(f"{self.what}: {problem}")

    def take(self, size: int, field: str) -> bytes:
        """The next `size` bytes; a negative size is malformed too."""
        if not 0 <= size <= self.left:
            raise self.malformed(f"{field} of {size} bytes where {self.left} are left")
        self.position += size
        return self.data[self.position - size : self.position]

    def _number(self, code: str, field: str) -> int:
        packing = struct.Struct(f">{code}")
        return packing.unpack(self.take(packing.size, field))[0]

    def i8(self, field: str) -> int:
        return self._number("b", field)

    def i16(self, field: str) -> int:
        return self._number("h", field)

    def i32(self, field: str) -> int:
        return self._number("i", field)

    def i64(self, field: str) -> int:
        return self._number("q", field)

    def natural(self, field: str) -> int:
        """An i32 that can't be negative."""
        value = self.i32(field)
        if value < 0:
            raise self.malformed(f"{field} is {value}")
        return value

    def count(self, smallest: int, field: str) -> int:
        """The i32 length of an array whose elements take at least `smallest` bytes each."""
        value = self.i32(f"the number of {field}")
        if not 0 <= value * smallest <= self.left:
            raise self.malformed(f"{value} {field} don't fit in the {self.left} bytes left")
        return value

    def nullable_string(self, field: str) -> str | None:
        """An i16 length and UTF-8, as Kafka's messages have them; length -1 is null."""
        size = self.i16(f"the length of {field}")
        return None if size == -1 else self.text(self.take(size, field), field)

    def sized(self, field: str) -> bytes:
        """An i32 length and that many bytes."""
        return self.take(self.i32(f"the length of {field}"), field)

    def utf(self, field: str) -> str:
        """A u16 length and modified UTF-8 (DataOutputStream.writeUTF): NUL in two bytes, surrogates one by one."""
        value = self.take(self._number("H", f"the length of {field}"), field)
        try:
            found = value.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self.malformed(f"{field} is no modified UTF-8") from error
        if max(found, default="") > "\uffff":
            raise self.malformed(f"{field} is no modified UTF-8")
        return found

    def text(self, value: bytes, field: str) -> str:
        """`value` as UTF-8."""
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.malformed(f"{field} is no UTF-8") from error

    def end(self) -> None:
        """Nothing may be left."""
        if self.left:
            raise self.malformed(f"{self.left} bytes too many")
