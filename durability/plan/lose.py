"""What is lost in a prediction: `broker:3,rack:az2,controller:101`, resolved against a snapshot's brokers and controllers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from durability.errors import Refused
from durability.plain import plain
from durability.policy.yamlfile import did_you_mean

KINDS = ("broker", "rack", "controller")
_NODE = re.compile(r"[0-9]{1,10}")
LISTED = 30


@dataclass(frozen=True)
class Item:
    """One thing to lose. kind: of KINDS. name: an id, or a rack's name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def stated(self) -> str:
        """The item as `parse` reads it.

        >>> Item("rack", "eu,west").stated
        'rack:eu%2Cwest'
        """
        return f"{self.kind}:{quote(self.name)}"


@dataclass(frozen=True)
class Loss:
    """Ids of all lost brokers and controllers, sorted. down_already: lost brokers that were down. unplaced: brokers and
    controllers whose rack is unset or unknown, by kind: they may be in a lost rack."""

    asked: tuple[Item, ...]
    brokers: tuple[int, ...]
    controllers: tuple[int, ...]
    down_already: tuple[int, ...]
    unplaced: Mapping[str, tuple[int, ...]]

    def to_dict(self) -> dict[str, list[int]]:
        """What the Spark job reads."""
        unplaced = {f"unplaced_{kind}": list(ids) for kind, ids in self.unplaced.items()}
        return {"brokers": list(self.brokers), "controllers": list(self.controllers), **unplaced}

    def described(self) -> dict[str, list[Any]]:
        """`lose` in whatif.json and drill.json."""
        return {
            "asked": [str(item) for item in self.asked],
            "brokers": list(self.brokers),
            "controllers": list(self.controllers),
            "down_already": list(self.down_already),
        }


def parse(text: str, label: str = "--lose ") -> tuple[Item, ...]:
    """The items of a list that commas separate. A comma in a rack's name is written %2C. label: the option in messages.

    Refused for an item that names no broker, rack or controller.

    >>> [str(item) for item in parse("broker:3, rack:eu%2Cwest")]
    ['broker:3', 'rack:eu,west']
    >>> parse("broker:x")
    Traceback (most recent call last):
    durability.errors.Refused: --lose broker:x: expected a broker's id, for instance broker:3
    """
    if not text.strip():
        raise Refused(f"{label.strip()} is empty: name what to lose, for instance broker:3,rack:az2,controller:101")
    return tuple(dict.fromkeys(_item(part.strip(), label) for part in text.split(",")))


def _item(part: str, label: str) -> Item:
    kind, colon, name = part.partition(":")
    if not part:
        raise Refused(f"{label.strip()}: an item between two commas is empty")
    if not colon or kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise Refused(f"{label}{part}: expected broker:ID, rack:NAME or controller:ID{hint}")
    if kind == "rack":
        if not name:
            raise Refused(f"{label}{part}: expected a rack's name; brokers without a rack are never lost as a rack")
        return Item(kind, unquote(name))
    if not _NODE.fullmatch(name):
        raise Refused(f"{label}{part}: expected a {kind}'s id, for instance {kind}:3")
    return Item(kind, str(int(name)))


def resolve(
    asked: Iterable[Item],
    brokers: Iterable[Mapping[str, Any]],
    controllers: Iterable[Mapping[str, Any]],
    label: str = "--lose ",
) -> Loss:
    """All nodes that are lost with the items.

    brokers, controllers: rows of these tables, of one snapshot. A lost rack takes its brokers and controllers. A node that is
    broker and controller at once (equal ids) is lost as both. Refused for an item that the snapshot doesn't have; the message
    lists what there is.
    """
    asked, brokers, controllers = tuple(asked), list(brokers), list(controllers)
    of_brokers = {row["broker"]: row for row in brokers}
    # Brokers fetch the quorum's log as its observers, which makes them no controllers.
    of_controllers = {
        r["controller"]: r for r in controllers if r["role"] == "voter" or r["controller"] not in of_brokers
    }
    racks = {row["rack"] for row in (*brokers, *controllers) if row["rack"]}
    lost: set[int] = set()
    for item in asked:
        if item.kind == "rack":
            _check(item, racks, label)
            lost |= {id for id, row in of_brokers.items() if row["rack"] == item.name}
            lost |= {id for id, row in of_controllers.items() if row["rack"] == item.name}
        else:
            known = of_brokers if item.kind == "broker" else of_controllers
            _check(item, {str(id) for id in known}, label)
            lost.add(int(item.name))
    by_rack = any(item.kind == "rack" for item in asked)
    unplaced = {
        kind: tuple(sorted(id for id, row in rows.items() if not row["rack"] and id not in lost)) if by_rack else ()
        for kind, rows in (("brokers", of_brokers), ("controllers", of_controllers))
    }
    return Loss(
        asked=asked,
        brokers=tuple(sorted(lost & of_brokers.keys())),
        controllers=tuple(sorted(lost & of_controllers.keys())),
        down_already=tuple(sorted(id for id in lost & of_brokers.keys() if of_brokers[id]["live"] is False)),
        unplaced=unplaced,
    )


def _check(item: Item, known: set[str], label: str) -> None:
    if item.name in known:
        return
    ordered = sorted(known, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))
    more = f" and {len(ordered) - LISTED} more" if len(ordered) > LISTED else ""
    there = f"there are {', '.join(ordered[:LISTED])}{more}" if ordered else "there is none"
    raise Refused(plain(f"{label}{item}: the cluster has no such {item.kind}; {there}{did_you_mean(item.name, known)}"))
