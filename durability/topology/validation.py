"""Validates a `kafka-topology/1` document. Every problem names its JSON path and what was expected there.

A large cluster has a million partitions. So each is first checked as a whole (`_sound`), and member by member only if that
fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import chain
from typing import Any, cast

from durability.errors import BadInput
from durability.shapes import ListOf, MapOf, Object, Shape
from durability.topology import kinds
from durability.topology.diskless import is_diskless
from durability.topology.document import FORMAT, Topology, canonical
from durability.topology.kinds import PARTITION_LISTS, shown
from durability.topology.unreadable import Unreadable, pointer

SHOWN_PROBLEMS = 5
_INT32 = 2**31
_INTEGERS = {int}
_LISTS = {list}
_NO_OTHERS: tuple[list, ...] = ([], [], [], [])


def validate(document: Any, source: str) -> Topology:
    """The topology of this document, which isn't changed.

    document: a parsed `kafka-topology/1` document.
    source: "live", or the file it came from; errors name it.
    Raises BadInput with up to five problems, each with its JSON path and what was expected. A member may be missing
    or null where it lies under an `unreadable` path. Members that the format doesn't know are ignored.
    """
    return Topology(document, source, check(document, source))


def check(document: Any, source: str) -> str:
    """The SHA-256 of the document's canonical JSON. Raises BadInput as `validate` does."""
    checker = _Checker()
    try:
        checker.document(document)
    except _Enough:
        checker.problems.append(("", "further problems aren't listed"))
    digest = ""
    if not checker.problems:
        try:
            digest = hashlib.sha256(canonical(document)).hexdigest()
        except (ValueError, TypeError, RecursionError) as error:
            checker.problems.append(("", f"no JSON in UTF-8 can be made of it ({error})"))
    if checker.problems:
        where, problem = checker.problems[0]
        more = "".join(f"\n  {place + ': ' if place else ''}{text}" for place, text in checker.problems[1:])
        raise BadInput(source, where, problem + more)
    return digest


class _Enough(Exception):
    """As many problems were found as are shown."""


class _Checker:
    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []
        self.unreadable = Unreadable({})
        self.brokers: set[int] | None = None  # ids of the described brokers; None: the list could not be read
        self.topics: list[Any] = []

    def problem(self, place: tuple, text: str) -> None:
        if len(self.problems) == SHOWN_PROBLEMS:
            raise _Enough
        self.problems.append((pointer(place), text))

    def document(self, document: object) -> None:
        if not isinstance(document, dict):
            return self.problem((), f"expected an object with format {FORMAT}, found {shown(document)}")
        if document.get("format") != FORMAT:
            stated = shown(document["format"]) if "format" in document else "no such member"
            return self.problem(("format",), f'expected "{FORMAT}", found {stated}')
        if (entries := document.get("unreadable")) is not None:
            self.value(("unreadable",), entries, kinds.ROOT.members["unreadable"].shape)
        if self.problems:
            return None
        self.unreadable = Unreadable(document)
        brokers, topics = document.get("brokers"), document.get("topics")
        self.topics = topics if isinstance(topics, list) else []
        if isinstance(brokers, list) and not self.unreadable.covers("brokers"):
            stated_ids = (broker.get("id") for broker in brokers if isinstance(broker, dict))
            self.brokers = {number for number in stated_ids if type(number) is int}
        return self.members((), document, kinds.ROOT)

    def value(self, place: tuple, value: object, shape: Shape) -> None:
        """Checks a value, and whatever is in it."""
        if not shape.fits(value):
            self.problem(place, f"expected {shape.words}, found {shown(value)}")
        elif shape is kinds.PARTITION:
            if not _sound(value, self.brokers):
                self.partition(place, cast(dict, value))
        elif isinstance(shape, Object):
            self.members(place, cast(dict, value), shape)
        elif isinstance(shape, ListOf):
            self.listed(place, cast(list, value), shape)
        elif isinstance(shape, MapOf):
            values = cast(dict, value).values()
            if not (shape.value.scalar and all(map(shape.value.fits, values))):  # quick for a million settings
                self.elements(place, cast(dict, value).items(), shape.value)

    def elements(self, place: tuple, elements: Iterable[tuple], shape: Shape) -> None:
        for key, element in elements:
            if not (element is None and self.unreadable.covers(*place, key)):
                self.value((*place, key), element, shape)

    def listed(self, place: tuple, value: list, shape: ListOf) -> None:
        if len(value) < shape.least and not self.unreadable.touches(*place):
            self.problem(place, f"expected at least one {_title(shape.element)}, found an empty list")
        if shape.most and len(value) > shape.most:
            self.problem(place, f"expected at most {shape.most:,} elements, found {len(value):,}")
            return
        self.elements(place, enumerate(value), shape.element)
        if shape.identity:
            self.identities(place, value, shape.element, shape.identity)

    def identities(self, place: tuple, elements: list, shape: Shape, identity: str) -> None:
        """Checks that no two objects of a list have the same identity."""
        assert isinstance(shape, Object)
        kind, first = shape.members[identity].shape, dict[object, int]()
        for index, element in enumerate(elements):
            name = element.get(identity) if isinstance(element, dict) else None
            if kind.fits(name) and first.setdefault(name, index) != index:
                before = f"{pointer(place)}/{first[name]}"
                self.problem((*place, index, identity), f"{shape.title} {name} is described twice, first at {before}")

    def members(self, place: tuple, value: dict, shape: Object) -> None:
        for name, member in shape.members.items():
            stated = value.get(name)
            if stated is not None:
                if not (member.shape.scalar and member.shape.fits(stated)):
                    self.value((*place, name), stated, member.shape)
            elif (member.nullable and name in value) or (member.optional and name not in value):
                continue
            elif not self.unreadable.covers(*place, name):
                found = "null" if name in value else "no such member"
                self.problem((*place, name), f"expected {member.shape.words}, found {found}")
            elif member.vital:
                self.problem((*place, name), "a snapshot can't do without it, readable or not")

    def partition(self, place: tuple, partition: dict) -> None:
        self.members(place, partition, kinds.PARTITION)
        if partition.get("replicas") == [] and not self.may_lack_replicas(place):
            self.problem((*place, "replicas"), "expected at least one broker, found an empty list")
        self.described((*place, "leader"), partition.get("leader"))
        for name in PARTITION_LISTS:
            ids = partition.get(name)
            for index, broker in enumerate(ids if isinstance(ids, list) else ()):
                self.described((*place, name, index), broker)

    def may_lack_replicas(self, place: tuple) -> bool:
        """Whether a partition may have no replicas: its topic is diskless, or they could not be read."""
        configs = self.topics[place[1]].get("configs")
        return is_diskless(configs if _texts(configs) else None) or self.unreadable.touches(*place, "replicas")

    def described(self, place: tuple, broker: object) -> None:
        """Checks that a broker id is one of `brokers`."""
        if self.brokers is None or not kinds.ID.fits(broker) or broker in self.brokers:
            return
        known = sorted(self.brokers)
        listed = ", ".join(map(str, known[:10])) + (", ..." if len(known) > 10 else "")
        self.problem(place, f"broker {broker} is not described under /brokers; expected one of {listed or 'none'}")


def _texts(configs: object) -> bool:
    return isinstance(configs, dict) and all(isinstance(value, str) for value in configs.values())


def _title(shape: Shape) -> str:
    """The word for an element of a list."""
    if isinstance(shape, Object):
        return shape.title
    return "broker" if shape is kinds.BROKER_ID else "element"


def _sound(partition: Any, brokers: set[int] | None) -> bool:
    """Is this partition valid in every member? Quick; False where it has to be checked member by member."""
    try:
        replicas, isr = partition["replicas"], partition["isr"]
        others = (partition["elr"], partition["last_known_elr"], partition["adding"], partition["removing"])
        leader, number, size = partition["leader"], partition["partition"], partition.get("bytes")
    except (KeyError, TypeError, AttributeError):
        return False
    if not (type(replicas) is list and type(isr) is list and type(number) is int and 0 <= number < _INT32):
        return False
    lists = [replicas, isr]
    if others != _NO_OTHERS:
        lists += others
        if set(map(type, others)) != _LISTS:
            return False
    ids = list(chain.from_iterable(lists))
    if leader is not None:
        ids.append(leader)
    if not replicas or max(map(len, lists)) > kinds.MOST_REPLICAS:
        return False
    if brokers is None or set(map(type, ids)) != _INTEGERS or not brokers.issuperset(ids):
        return False
    return size is None or (type(size) is int and 0 <= size < 2**63)
