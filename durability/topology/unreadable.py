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
    """The place in the document that a path points at, list elements by index; None if there is no such topic, broker or
    group.

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
    segments = tokens(path)
    if segments is None:
        return None
    here: object = document
    found: list[str | int] = []
    for part in segments:
        if isinstance(here, list):
            index = _index(here, part, _name_of(tuple(found)))
            if index is None and tuple(found) in IDENTITIES:
                return None
            if index is None:  # an element that the list should have had: the list isn't whole
                return (*found, part)
            found.append(index)
            here = here[index]
        else:
            found.append(part)
            here = here.get(part) if isinstance(here, dict) else None
    return tuple(found)


def _name_of(found: Tokens) -> str | None:
    if len(found) == 3 and found[0] == "topics" and found[2] == "partitions":
        return "partition"
    return IDENTITIES.get(found)


def _index(elements: list, part: str, name: str | None) -> int | None:
    is_index = part.isascii() and part.isdigit() and (part == "0" or part[0] != "0") and len(part) < 10
    if is_index and int(part) < len(elements):
        return int(part)
    if name is None:
        return None
    for index, element in enumerate(elements):
        if isinstance(element, dict) and name in element and str(element[name]) == part:
            return index
    return None


class Unreadable:
    """The unreadable parts of one document, by place.

    paths: the path and reason of each entry, as stated.
    unresolved: paths that point at nothing in the document; they still mean that something is missing.
    """

    def __init__(self, document: dict):
        entries = document.get("unreadable") or []
        self.paths: list[tuple[str, str]] = [(entry["path"], entry["reason"]) for entry in entries]
        self.unresolved: list[str] = []
        self._leaves: dict[Tokens, str] = {}  # place -> its first reason
        self._inner: dict[Tokens, set[str | int]] = {}
        for path, reason in self.paths:
            place = resolve(document, path)
            if place is None:
                self.unresolved.append(path)
                continue
            self._leaves.setdefault(place, reason)
            for depth in range(len(place)):
                self._inner.setdefault(place[:depth], set()).add(place[depth])

    def __bool__(self) -> bool:
        return bool(self._leaves)

    def covers(self, *place: str | int) -> bool:
        """Is this place, or anything around it, unreadable?"""
        return bool(self._leaves) and any(place[:depth] in self._leaves for depth in range(len(place) + 1))

    def touches(self, *place: str | int) -> bool:
        """Is this place, any part of it or anything around it unreadable?"""
        return self.covers(*place) or place in self._inner

    def reasons(self, *place: str | int) -> list[str]:
        """The distinct reasons why this place or parts of it are unreadable, in the document's order."""
        found = [
            reason for leaf, reason in self._leaves.items() if place[: len(leaf)] == leaf or leaf[: len(place)] == place
        ]
        return list(dict.fromkeys(found))

    def parts(self, *place: str | int) -> set[str | int]:
        """The members or indexes directly under this place that are unreadable or have unreadable parts."""
        return self._inner.get(place, set())
