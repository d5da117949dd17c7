"""Is this a `kafka-topology/1` document? Every problem names its JSON path and what was expected there.

The partitions of a large cluster are a million objects, so each is first tried as a whole (`_sound`) and only one that
doesn't fit is looked at member by member.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import chain
from typing import Any

from durability.errors import BadInput
from durability.topology import kinds
from durability.topology.document import FORMAT, Topology, canonical
from durability.topology.kinds import PARTITION_LISTS, Member, shown
from durability.topology.unreadable import Unreadable, pointer, tokens

SHOWN_PROBLEMS = 5
_INT32 = 2**31
_INTEGERS = {int}
_LISTS = {list}
_NO_OTHERS: tuple[list, ...] = ([], [], [], [])


def validate(document: Any, source: str) -> Topology:
    """The topology of this document, which is kept as it is.

    document: a parsed `kafka-topology/1` document.
    source: "live", or the file it came from; errors name it.
    Raises BadInput with up to five problems, each with its JSON path and what was expected. A member may be missing
    or null where it lies under an `unreadable` path; members that the format doesn't know are left alone.
    """
    return Topology(document, source, check(document, source))


def check(document: Any, source: str) -> str:
    """The SHA-256 of the document's canonical JSON; raises BadInput unless it is a topology document (`validate`)."""
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
        if not self.unreadable_entries(document.get("unreadable")):
            return None
        self.unreadable = Unreadable(document)
        self.members((), document, kinds.ROOT)
        cluster = document.get("cluster")
        if isinstance(cluster, dict):
            self.cluster(cluster)
        brokers = self.each(("brokers",), document.get("brokers"), kinds.BROKER, "broker", "id")
        for place, broker in brokers:
            list(self.each((*place, "log_dirs"), broker.get("log_dirs"), kinds.LOG_DIR))
        if isinstance(document.get("brokers"), list) and not self.unreadable.covers("brokers"):
            self.brokers = {b["id"] for _, b in brokers if type(b.get("id")) is int}
        for place, topic in self.each(("topics",), document.get("topics"), kinds.TOPIC_MEMBERS, "topic", "name"):
            self.partitions((*place, "partitions"), topic.get("partitions"))
        for place, stream in self.each(("streams",), document.get("streams"), kinds.STREAM, "group", "group"):
            list(self.each((*place, "clients"), stream.get("clients"), kinds.CLIENT))
        for place, group in self.each(("groups",), document.get("groups"), kinds.GROUP, "group", "group"):
            list(self.each((*place, "members"), group.get("members"), kinds.GROUP_MEMBER))
        return None

    def unreadable_entries(self, entries: object) -> bool:
        for place, entry in self.each(("unreadable",), entries, kinds.UNREADABLE):
            path = entry.get("path")
            if isinstance(path, str) and tokens(path) is None:
                self.problem((*place, "path"), f"expected a JSON Pointer like /brokers/0/configs, found {shown(path)}")
        if entries is not None and not isinstance(entries, list):
            self.problem(("unreadable",), f"expected a list, found {shown(entries)}")
        return not self.problems

    def cluster(self, cluster: dict) -> None:
        place: tuple[str, ...] = ("cluster",)
        self.members(place, cluster, kinds.CLUSTER)
        for name in ("id", "captured_at"):
            if cluster.get(name) is None and self.unreadable.covers("cluster", name):
                self.problem(("cluster", name), "a snapshot can't do without it, readable or not")
        if isinstance(cluster.get("declared"), dict):
            self.members((*place, "declared"), cluster["declared"], kinds.DECLARED)
        list(self.each((*place, "controllers"), cluster.get("controllers"), kinds.CONTROLLER, "controller", "id"))
        quorum = cluster.get("quorum")
        if isinstance(quorum, dict):
            place = (*place, "quorum")
            self.members(place, quorum, kinds.QUORUM)
            list(self.each((*place, "voters"), quorum.get("voters"), kinds.VOTER, "voter", "id"))
            list(self.each((*place, "observers"), quorum.get("observers"), kinds.VOTER, "observer", "id"))

    def each(self, place: tuple, elements: object, members: Mapping, what: str = "", identity: str = "") -> list:
        """The objects of a list with their places, each checked; `identity` names the member that may not recur."""
        if not isinstance(elements, list):
            return []
        first: dict[object, int] = {}
        found = []
        for index, element in enumerate(elements):
            here = (*place, index)
            if not isinstance(element, dict):
                if not (element is None and self.unreadable.covers(*here)):
                    self.problem(here, f"expected an object, found {shown(element)}")
                continue
            found.append((here, element))
            self.members(here, element, members)
            name = element.get(identity) if identity else None
            if name is None or not members[identity].kind.fits(name):
                continue
            if first.setdefault(name, index) != index:
                self.problem(
                    (*here, identity), f"{what} {name} is described twice, first at {pointer(place)}/{first[name]}"
                )
        return found

    def members(self, place: tuple, value: dict, members: Mapping[str, Member]) -> None:
        for name, member in members.items():
            stated = value.get(name)
            if stated is None:
                if (member.nullable and name in value) or (member.optional and name not in value):
                    continue
                if not self.unreadable.covers(*place, name):
                    found = "null" if name in value else "no such member"
                    self.problem((*place, name), f"expected {member.kind.text}, found {found}")
            elif not member.kind.fits(stated):
                self.misfit((*place, name), stated, member.kind)

    def misfit(self, place: tuple, value: object, kind: kinds.Kind) -> None:
        """Says what is wrong with a value: the elements that don't fit, where it is a list or map at all."""
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
        if kind.element is None or inner is None or isinstance(value, dict) != kind.text.startswith("an object"):
            self.problem(place, f"expected {kind.text}, found {shown(value)}")
            return
        for key, element in inner:
            unread = element is None and self.unreadable.covers(*place, key)
            if not unread and not kind.element.fits(element):
                self.problem((*place, key), f"expected {kind.element.text}, found {shown(element)}")

    def partitions(self, place: tuple, partitions: object) -> None:
        if not isinstance(partitions, list):
            return
        if not partitions and not self.unreadable.covers(*place):
            self.problem(place, "expected at least one partition, found an empty list")
        numbers: set[int] = set()
        for index, partition in enumerate(partitions):
            if not _sound(partition, self.brokers):
                self.partition((*place, index), partition)
            number = partition.get("partition") if isinstance(partition, dict) else None
            if type(number) is int:
                if number in numbers:
                    self.problem((*place, index, "partition"), f"partition {number} is described twice in this topic")
                numbers.add(number)

    def partition(self, place: tuple, partition: object) -> None:
        if not isinstance(partition, dict):
            if not (partition is None and self.unreadable.covers(*place)):
                self.problem(place, f"expected an object, found {shown(partition)}")
            return
        self.members(place, partition, kinds.PARTITION)
        if kinds.ID.fits(partition.get("leader")):
            self.described((*place, "leader"), partition["leader"])
        for name in PARTITION_LISTS:
            ids = partition.get(name)
            if not isinstance(ids, list):
                continue
            if name == "replicas" and not ids and not self.unreadable.touches(*place, name):
                self.problem((*place, name), "expected at least one broker id, found an empty list")
            for index, broker in enumerate(ids):
                here = (*place, name, index)
                if broker is None and self.unreadable.covers(*here):
                    continue
                if not kinds.ID.fits(broker):
                    self.problem(here, f"expected a broker id ({kinds.ID.text}), found {shown(broker)}")
                elif broker in ids[:index]:
                    self.problem(here, f"broker {broker} stands twice in this list")
                else:
                    self.described(here, broker)

    def described(self, place: tuple, broker: int) -> None:
        if self.brokers is None or broker in self.brokers:
            return
        known = sorted(self.brokers)
        listed = ", ".join(map(str, known[:10])) + (", ..." if len(known) > 10 else "")
        self.problem(place, f"broker {broker} is not described under /brokers; expected one of {listed or 'none'}")


def _sound(partition: Any, brokers: set[int] | None) -> bool:
    """Is this partition right in every member? Quick, and False whenever a closer look is needed."""
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
    if not replicas or brokers is None or set(map(type, ids)) != _INTEGERS or not brokers.issuperset(ids):
        return False
    if any(len(set(few)) != len(few) for few in lists if few):
        return False
    return size is None or (type(size) is int and 0 <= size < 2**63)
