"""The parts of a topology document that could not be read: its `unreadable` paths, resolved.

A path is a JSON Pointer (RFC 6901). In a list, a segment that is no index is taken for the element's identity: topic name,
broker id, group, node id or partition number. Everything under a path is NULL, even if the document states it.
"""

from __future__ import annotations

Tokens = tuple[str | int, ...]
"""Members of objects and elements of lists from the document's root."""
IDENTITIES: dict[Tokens, str] = {
    ("topics",): "name",
    ("brokers",): "id",
    ("streams",): "group",
    ("groups",): "group",
    ("cluster", "controllers"): "id",
    ("cluster", "quorum", "voters"): "id",
    ("cluster", "quorum", "observers"): "id",
}

DEEPEST = 32
"""The most segments of a path that count. The format is less deep, and everything below an unreadable place is unreadable."""


def tokens(path: str) -> tuple[str, ...] | None:
    """The segments of a JSON Pointer, unescaped; None if it is none.

    >>> tokens("/topics/a~1b/isr"), tokens(""), tokens("topics")
    (('topics', 'a/b', 'isr'), (), None)
    """
    if path == "":
        return ()
    if not path.startswith("/"):
        return None
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/"))


def pointer(segments: Tokens) -> str:
    """The JSON Pointer of these segments.

    >>> pointer(("topics", 0, "a/b"))
    '/topics/0/a~1b'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in segments)


def resolve(document: dict, path: str) -> Tokens | None:
    """The place in the document that a path points at, with list elements by index.

    None if there is no such topic, broker or group.

    A member of an object may be missing, and so may an element of a list below a topic or broker. A missing element is the
    place's last segment, as text.

    >>> doc = {"brokers": [{"id": 7}], "cluster": {}}
    >>> resolve(doc, "/brokers/7/configs"), resolve(doc, "/brokers/0"), resolve(doc, "/brokers/8")
    (('brokers', 0, 'configs'), ('brokers', 0), None)
    >>> resolve(doc, "/cluster/quorum/leader")
    ('cluster', 'quorum', 'leader')
    >>> resolve({"topics": [{"name": "t", "partitions": []}]}, "/topics/t/partitions/4")
    ('topics', 0, 'partitions', '4')
    """
    return Places(document).resolve(path)


class Places:
    """The places in one document that paths point at. Identities in a list are read once for all paths."""

    def __init__(self, document: dict):
        self._document = document
        self._named: dict[Tokens, dict[str, int]] = {}  # list -> identity, as text -> first index

    def resolve(self, path: str) -> Tokens | None:
        """See `durability.topology.unreadable.resolve`."""
        segments = tokens(path)
        if segments is None:
            return None
        here: object = self._document
        found: list[str | int] = []
        for part in segments[:DEEPEST]:
            if isinstance(here, list):
                place = tuple(found)
                index = self._index(place, here, part)
                if index is None and place in IDENTITIES:
                    return None
                if index is None:  # an element that the list should have had: the list isn't whole
                    return (*found, part)
                found.append(index)
                here = here[index]
            else:
                found.append(part)
                here = here.get(part) if isinstance(here, dict) else None
        return tuple(found)

    def _index(self, place: Tokens, elements: list, part: str) -> int | None:
        is_index = part.isascii() and part.isdigit() and (part == "0" or part[0] != "0") and len(part) < 10
        if is_index and int(part) < len(elements):
            return int(part)
        name = _name_of(place)
        if name is None:
            return None
        if place not in self._named:
            named = self._named[place] = {}
            for index, element in enumerate(elements):
                if isinstance(element, dict) and isinstance(element.get(name), str | int):
                    named.setdefault(str(element[name]), index)
        return self._named[place].get(part)


def _name_of(found: Tokens) -> str | None:
    if len(found) == 3 and found[0] == "topics" and found[2] == "partitions":
        return "partition"
    return IDENTITIES.get(found)


class Unreadable:
    """The unreadable parts of one document, by place.

    paths: the path and reason of each entry, as stated.
    places: by path, the place that it points at; see `resolve`.
    unresolved: paths that point at nothing in the document. They still mean that something is missing.
    """

    def __init__(self, document: dict):
        entries = document.get("unreadable") or []
        self.paths: list[tuple[str, str]] = [(entry["path"], entry["reason"]) for entry in entries]
        self.unresolved: list[str] = []
        self.places: dict[str, Tokens | None] = {}
        self._reasons: list[str] = []  # of each place its first
        self._inner: dict[Tokens, set[str | int]] = {}
        self._numbers: dict[Tokens, int] = {}  # place -> its index in `_reasons`
        self._below: dict[Tokens, list[int]] = {}  # place -> the numbers of the places in it
        places = Places(document)
        for path, reason in self.paths:
            place = self.places[path] = places.resolve(path)
            if place is None:
                self.unresolved.append(path)
            elif place not in self._numbers:
                self._add(place, reason)

    def _add(self, place: Tokens, reason: str) -> None:
        number = self._numbers[place] = len(self._reasons)
        self._reasons.append(reason)
        for depth in range(len(place)):
            self._inner.setdefault(place[:depth], set()).add(place[depth])
            self._below.setdefault(place[:depth], []).append(number)

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def covers(self, *place: str | int) -> bool:
        """Is this place, or anything around it, unreadable?"""
        return bool(self._numbers) and any(place[:depth] in self._numbers for depth in range(len(place) + 1))

    def touches(self, *place: str | int) -> bool:
        """Is this place, any part of it or anything around it unreadable?"""
        return self.covers(*place) or place in self._inner

    def reasons(self, *place: str | int) -> list[str]:
        """The distinct reasons why this place or parts of it are unreadable, in the document's order."""
        around = (self._numbers.get(place[:depth]) for depth in range(len(place) + 1))
        numbers = sorted([*(n for n in around if n is not None), *self._below.get(place, ())])
        return list(dict.fromkeys(self._reasons[n] for n in numbers))

    def parts(self, *place: str | int) -> set[str | int]:
        """The members or indexes directly under this place that are unreadable or have unreadable parts."""
        return self._inner.get(place, set())
