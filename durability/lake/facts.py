"""A topology document to be asked for facts: what could not be read is None, whatever the document says there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from durability.streams.groups import completed
from durability.topology.document import Topology
from durability.topology.unreadable import Unreadable


class Facts:
    """A topology with its unreadable places; its `streams` has what only raw bytes in `groups` tell."""

    def __init__(self, topology: Topology):
        self.topology = topology
        self.document = completed(topology.document)
        self.unreadable = Unreadable(self.document)

    def cluster(self, name: str, absent: object = None) -> Any:
        """A member of the document's `cluster`: `absent` where it isn't stated, None where it couldn't be read."""
        if self.unreadable.touches("cluster", name):
            return None
        return self.document["cluster"].get(name, absent)

    def value(self, place: tuple, element: dict, name: str, absent: object = None) -> Any:
        """A member of the object at `place`, likewise."""
        if self.unreadable.touches(*place, name):
            return None
        return element.get(name, absent)

    def listed(self, *place: str | int) -> Iterable[tuple[tuple, dict]]:
        """The objects of the list at `place`, with their places; none where it isn't stated."""
        here: Any = self.document
        for part in place:
            here = here[part] if isinstance(part, int) else (here or {}).get(part)
        for index, element in enumerate(here or []):
            yield (*place, index), element if isinstance(element, dict) else {}

    def named(self, identity: str, *place: str | int) -> list[tuple[tuple, dict]]:
        """Those of them that say which thing they are, sorted by that."""
        found = [(where, element) for where, element in self.listed(*place) if element.get(identity) is not None]
        return sorted(found, key=lambda pair: pair[1][identity])

    def all_named(self, identity: str, *place: str | int) -> bool:
        """Could the list be read, and does everything in it say which thing it is?"""
        whole = not any(isinstance(part, str) for part in self.unreadable.parts(*place))
        return (
            whole
            and not self.unreadable.covers(*place)
            and all(element.get(identity) is not None for _, element in self.listed(*place))
        )

    def configs(self, place: tuple, element: dict) -> tuple[dict | None, dict | None, list[str] | None]:
        """configs, config_sources and the names of those that couldn't be read, of the thing at `place`."""
        where = (*place, "configs")
        sources = self.value(place, element, "config_sources", {})
        if self.unreadable.covers(*where):
            return None, None, None
        unread = sorted(str(name) for name in self.unreadable.parts(*where))
        configs = {name: value for name, value in (element.get("configs") or {}).items() if name not in unread}
        return configs, sources, unread
