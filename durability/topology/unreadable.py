"""Which parts of a topology document could not be read: its `unreadable` paths, resolved.

A path is a JSON Pointer (RFC 6901). A segment that picks from a list and is no index of it is tried as the thing's
name: topic name, broker id, group, node id or partition number. Whatever lies under a path is NULL, stated or not.
"""

from __future__ import annotations

Tokens = tuple[str | int, ...]
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
    """Where in the document a path points, list elements as indexes; None if no such topic, broker or group is there.

    What could not be read may be missing: a member of an object, or an element of a list below a topic or broker, which
    then stands at its end as text.

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
    """The unreadable parts of one document, to be asked by place.

    paths: the path and reason of each entry, as stated.
    unresolved: the paths that point at nothing in the document; kept, since they still say that something is missing.
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
        """Could this place as a whole not be read: is it, or anything around it, listed?"""
        return bool(self._leaves) and any(place[:depth] in self._leaves for depth in range(len(place) + 1))

    def touches(self, *place: str | int) -> bool:
        """Could this place, or any part of it, not be read?"""
        return self.covers(*place) or place in self._inner

    def reasons(self, *place: str | int) -> list[str]:
        """Why this place, or parts of it, could not be read: each reason once, in the document's order."""
        found = [
            reason for leaf, reason in self._leaves.items() if place[: len(leaf)] == leaf or leaf[: len(place)] == place
        ]
        return list(dict.fromkeys(found))

    def parts(self, *place: str | int) -> set[str | int]:
        """The members or indexes directly under this place on the way to something unreadable."""
        return self._inner.get(place, set())
