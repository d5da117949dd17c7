"""What could not be read, noted by name and listed by index."""

from __future__ import annotations

from typing import Any

from durability.topology.unreadable import pointer

Place = tuple[str | int, ...]

# List -> the member that identifies its elements; in a noted place the identity stands where the index will.
IDENTITIES = {
    ("brokers",): "id",
    ("topics",): "name",
    ("groups",): "group",
    ("streams",): "group",
    ("cluster", "controllers"): "id",
    ("cluster", "quorum", "voters"): "id",
    ("cluster", "quorum", "observers"): "id",
}


HIDDEN: Place = ("topics", "hidden")  # topics that exist and aren't shown: no element, so never an index


class Notes:
    """Places that could not be read, each with its first reason."""

    def __init__(self) -> None:
        self._reasons: dict[Place, str] = {}

    def add(self, place: Place, reason: str) -> None:
        """place: members of the document from its root; after a list the element's identity, not its index."""
        self._reasons.setdefault(place, reason)

    def reason(self, place: Place) -> str | None:
        return self._reasons.get(place)

    def __contains__(self, place: Place) -> bool:
        return place in self._reasons

    def __len__(self) -> int:
        return len(self._reasons)

    def listed(self, document: dict) -> list[dict[str, str]]:
        """`unreadable` of this document: JSON Pointers by index, in the document's order.

        Places in elements that the document doesn't have (a topic deleted meanwhile) are dropped.
        """
        positions = {path: _positions(document, path, key) for path, key in IDENTITIES.items()}
        found = []
        for place, reason in self._reasons.items():
            indexed = _indexed(place, positions)
            if indexed is not None:
                found.append((tuple((isinstance(p, str), p) for p in indexed), pointer(indexed), reason))
        return [{"path": path, "reason": reason} for _, path, reason in sorted(found)]


def _positions(document: dict, path: tuple[str, ...], key: str) -> dict[object, int]:
    here: Any = document
    for part in path:
        here = here.get(part) if isinstance(here, dict) else None
    return {element[key]: index for index, element in enumerate(here or ())}


def _indexed(place: Place, positions: dict[tuple[str, ...], dict[object, int]]) -> Place | None:
    if place == HIDDEN:  # a topic of that name would be meant by the path: then the count alone says it
        return None if "hidden" in positions["topics",] else place
    for path, known in positions.items():
        size = len(path)
        if len(place) > size and place[:size] == path:
            if place[size] in known:
                return (*place[:size], known[place[size]], *place[size + 1 :])
            return None
    return place
