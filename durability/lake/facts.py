"""A topology document with its unreadable parts. A part that could not be read is None, even if the document has a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from durability.streams.groups import completed
from durability.topology.document import Topology
from durability.topology.unreadable import Unreadable


class Facts:
    """A topology and its unreadable parts. `streams` includes groups that the document has only as bytes in `groups`."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.document = completed(topology.document)
        self.unreadable = Unreadable(self.document)

    def cluster(self, name: str, absent: object = None) -> Any:
        """A member of the document's `cluster`: `absent` if it isn't stated, None if it could not be read."""
        return self.value(("cluster",), self.document["cluster"], name, absent)

    def value(self, place: tuple, element: dict, name: str, absent: object = None) -> Any:
        """A member of the object at `place`: `absent` if it isn't stated, None if it could not be read."""
        return None if self.unreadable.touches(*place, name) else element.get(name, absent)

    def listed(self, *place: str | int) -> Iterable[tuple[tuple, dict]]:
        """The objects of the list at `place`, with their places. Empty if the list isn't stated."""
        here: Any = self.document
        for part in place:
            here = here[part] if isinstance(part, int) else (here or {}).get(part)
        for index, element in enumerate(here or []):
            yield (*place, index), element if isinstance(element, dict) else {}

    def named(self, identity: str, *place: str | int) -> list[tuple[tuple, dict]]:
        """The objects of the list at `place` that have an identity, with their places, sorted by identity."""
        found = [(where, element) for where, element in self.listed(*place) if element.get(identity) is not None]
        return sorted(found, key=lambda pair: pair[1][identity])

    def whole(self, *place: str | int) -> bool:
        """Whether the list at `place` could be read completely."""
        lacking = any(isinstance(part, str) for part in self.unreadable.parts(*place))
        return not lacking and not self.unreadable.covers(*place)

    def all_named(self, identity: str, *place: str | int) -> bool:
        """Whether the list at `place` is complete and every object in it has an identity."""
        return self.whole(*place) and all(element.get(identity) is not None for _, element in self.listed(*place))

    def configs(self, place: tuple, element: dict) -> tuple[dict | None, dict | None, list[str] | None]:
        """configs, config_sources and the names of unreadable configs of the object at `place`."""
        where = (*place, "configs")
        if self.unreadable.covers(*where):
            return None, None, None
        unread = {str(name) for name in self.unreadable.parts(*where)}
        configs = {name: value for name, value in sorted((element.get("configs") or {}).items()) if name not in unread}
        sources = self.value(place, element, "config_sources", {})
        return configs, sources and dict(sorted(sources.items())), sorted(unread)
