"""Parts that could not be read. They are noted by name while reading, and listed by index in the document."""

from __future__ import annotations

from typing import Any

from durability.topology.unreadable import IDENTITIES, pointer

Place = tuple[str | int, ...]

HIDDEN: Place = ("topics", "hidden")
"""Topics that exist but aren't shown. This place never has an index."""


class Notes:
    """Places that could not be read, each with its first reason."""

    def __init__(self) -> None:
        self._reasons: dict[Place, str] = {}

    def add(self, place: Place, reason: str) -> None:
        """place: members of the document from its root. An element of a list is given by its identity, not its index."""
        self._reasons.setdefault(place, reason)

    def forget(self, place: Place) -> None:
        """Remove the notes on a place and its parts, because it could be read after all."""
        size = len(place)
        self._reasons = {noted: reason for noted, reason in self._reasons.items() if noted[:size] != place}

    def reason(self, place: Place) -> str | None:
        return self._reasons.get(place)

    def listed(self, document: dict) -> list[dict[str, str]]:
        """`unreadable` of this document: JSON Pointers by index, in the document's order.

        Places in elements that the document doesn't have (for example of a deleted topic) are dropped.
        """
        positions = {path: _positions(document, path, key) for path, key in IDENTITIES.items()}
        found = []
        for place, reason in self._reasons.items():
            indexed = _indexed(place, positions)
            if indexed is not None:
                found.append((tuple((isinstance(p, str), p) for p in indexed), pointer(indexed), reason))
        return [{"path": path, "reason": reason} for _, path, reason in sorted(found)]


def _positions(document: dict, path: Place, key: str) -> dict[object, int]:
    here: Any = document
    for part in path:
        here = here.get(part) if isinstance(here, dict) else None
    return {element[key]: index for index, element in enumerate(here or ())}


def _indexed(place: Place, positions: dict[Place, dict[object, int]]) -> Place | None:
    if place == HIDDEN:  # if a topic is called "hidden", the path would mean that topic
        return ("cluster", "hidden_partitions") if "hidden" in positions["topics",] else place
    for path, known in positions.items():
        size = len(path)
        if len(place) > size and place[:size] == path:
            if place[size] in known:
                return (*path, known[place[size]], *place[size + 1 :])
            return None
    return place
