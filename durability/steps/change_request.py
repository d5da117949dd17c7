"""What a plan of change is asked for, from options of the command line or params of a DAG run."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from durability.errors import Refused
from durability.plan.chosen import Chosen, check, names
from durability.plan.lose import parse
from durability.remedies.change.model import Limits
from durability.steps.undone import Undone

OF_FINDINGS = ("findings", "control", "topic", "avoid")
"""Options that choose findings, or brokers for them."""
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
SIZE = re.compile(r"([0-9]{1,15})\s*([KMGT]?B)?", re.IGNORECASE)


@dataclass(frozen=True)
class Request:
    """What a plan is made for.

    chosen: the findings to fix. limits: of batches. margin_disk: the part of a broker's disks that stays free.
    undo: a plan to take back; then `chosen` is ignored.
    """

    chosen: Chosen
    limits: Limits
    margin_disk: float = 0.2
    undo: Undone | None = None


@dataclass(frozen=True)
class Texts:
    """Options as texts. text: an option's value, empty if not given. label: how a message names it, such as "--batch "."""

    text: Callable[[str], str]
    label: Callable[[str], str]

    def named(self, name: str) -> str:
        return f"{self.label(name)}{self.text(name)}"


def request(given: Texts, undo: Undone | None = None) -> Request:
    """What the options ask for. undo: a plan to take back. Refused for a value that is none."""
    picked = [name for name in OF_FINDINGS if given.text(name)]
    if undo and picked:
        raise Refused(f"{given.named(picked[0])}: a plan that takes another one back has no choice of findings")
    standard, avoid = Limits(), given.text("avoid")
    chosen = Chosen(
        findings=names(given.text("findings")),
        controls=names(given.text("control")),
        topic=given.text("topic") or None,
        avoid=parse(avoid, given.label("avoid")) if avoid else (),
        labels={name: given.label(name) for name in OF_FINDINGS},
    )
    check(chosen)
    return Request(
        chosen,
        Limits(_number(given, "batch", standard.partitions, 1), _size(given, standard.bytes)),
        _number(given, "margin_disk", 20, 0, 100) / 100,
        undo,
    )


def _number(given: Texts, name: str, otherwise: int, least: int, most: int = 999_999) -> int:
    text = given.text(name)
    if not text:
        return otherwise
    if not text.isdecimal() or len(text) > 6 or not least <= int(text) <= most:
        raise Refused(f"{given.named(name)}: expected a number from {least} to {most:,}")
    return int(text)


def _size(given: Texts, otherwise: int) -> int:
    text = given.text("batch_bytes")
    if not text:
        return otherwise
    matched = SIZE.fullmatch(text)
    if not matched or not int(matched[1]):
        raise Refused(f"{given.named('batch_bytes')}: expected a number of bytes, for instance 500GB")
    return int(matched[1]) * UNITS[(matched[2] or "").upper()]
