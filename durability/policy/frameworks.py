"""Frameworks such as SOC 2: which of their requirements the controls support, how strongly, and what they don't show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from durability import resources
from durability.errors import Refused
from durability.policy.formats import FRAMEWORKS
from durability.policy.yamlfile import Document, Place, did_you_mean, read, shown


@dataclass(frozen=True)
class FrameworkRequirement:
    """A requirement of a framework.

    controls: ids of the controls that support it; empty if it is about the audit's own records.
    strength: direct or supporting.
    shows, not_shown: what findings of these controls show, and what else the requirement asks for.
    """

    id: str
    title: str
    controls: tuple[str, ...]
    strength: str
    shows: str
    not_shown: str


@dataclass(frozen=True)
class Framework:
    """A framework with the requirements that findings support."""

    id: str
    title: str
    requirements: tuple[FrameworkRequirement, ...]

    @property
    def controls(self) -> frozenset[str]:
        """The controls that support any of its requirements."""
        return frozenset(control for requirement in self.requirements for control in requirement.controls)

    def supported_by(self, control: str) -> list[FrameworkRequirement]:
        """The requirements that a control supports, in the file's order."""
        return [requirement for requirement in self.requirements if control in requirement.controls]


def load_frameworks(path: Path | str) -> list[Framework]:
    """The frameworks in the file at `path` (format durability-frameworks/1), in its order. Raises BadInput."""
    document = read(path, "frameworks file", FRAMEWORKS)
    stated = document.content["frameworks"]
    _once(document, ("frameworks",), "framework", [framework["id"] for framework in stated], "id")
    return [_framework(document, index, framework) for index, framework in enumerate(stated)]


@cache
def shipped_frameworks() -> tuple[Framework, ...]:
    """The frameworks in policies/frameworks.yaml. Raises BadInput if the file was edited and is wrong now."""
    return tuple(load_frameworks(resources.shipped("policies", "frameworks.yaml")))


def _framework(document: Document, index: int, stated: dict[str, Any]) -> Framework:
    place = ("frameworks", index, "requirements")
    requirements = stated["requirements"]
    _once(document, place, "requirement", [requirement["id"] for requirement in requirements], "id")
    for at, requirement in enumerate(requirements):
        _once(document, (*place, at, "controls"), "control", requirement["controls"])
    each = tuple(FrameworkRequirement(**{**r, "controls": tuple(r["controls"])}) for r in requirements)
    return Framework(stated["id"], stated["title"], each)


def _once(document: Document, place: Place, what: str, names: Sequence[str], *key: str) -> None:
    """Raises BadInput if a name is there twice. key: where it is in each element of the list at `place`."""
    lines: dict[str, int] = {}
    for index, name in enumerate(names):
        here = (*place, index, *key)
        if name in lines:
            raise document.refuse(here, f"{what} {shown(name)} is there twice, first in line {lines[name]}")
        lines[name] = document.lines[here]


def named(frameworks: Collection[Framework], name: str) -> Framework:
    """The framework with this id. Raises Refused if there is none."""
    by_id = {framework.id: framework for framework in frameworks}
    if name not in by_id:
        known = ", ".join(by_id)
        raise Refused(f"there is no framework {shown(name)}{did_you_mean(name, by_id)} (known: {known})")
    return by_id[name]
