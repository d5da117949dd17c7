"""The control catalogue as objects: one YAML file per control, with its texts, severities and requirements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
SEVERITIES = ("critical", "warning", "info")
TYPES = ("topic", "application", "broker", "cluster", "tier", "waiver", "inventory")
"""Resource types. Controls are listed in this order of their first type."""
KINDS = ("integer", "number", "boolean", "strings")
"""The types of tier keys."""
RELATIVE = ("all", "rf-N")
"""The forms of a number relative to a topic's replication factor: as many, or N fewer."""
OUTCOMES = ("FAIL", "UNKNOWN", "NOT_APPLICABLE")


@dataclass(frozen=True)
class Requirement:
    """A key of a policy's tier.

    kind: one of KINDS.
    min, max: limits of an integer or a number.
    choices: the allowed strings.
    about: the text that editors show.
    range: may a tier state `{min, max}`? A plain number is a minimum.
    relative: the form of a number relative to a topic's replication factor, one of RELATIVE; empty if there is none.
    """

    key: str
    kind: str
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    about: str = ""
    range: bool = False
    relative: str = ""


@dataclass(frozen=True)
class Control:
    """A control, as its YAML file states it.

    on: resource types.
    severity: the severity of a FAIL without a category in `severities`.
    source: a KIP number or Kafka class.
    remediation: general advice.
    fails_when: a clause for the README's table.
    requires: the tier keys that it declares.
    reads: the settings that decide its verdict.
    carried: the settings in `reads` with Kafka's default as text (None: no default). Rules read them through
        `spark_jobs.frames.settings`. They read other settings from columns of `spark_jobs.frames.facts`.
    scalar: the order of observed and required, ">=" or "<=", that Great Expectations checks. None, with the reason in
        `not_cross_checked`, if there is none.
    checked_category: the only category that this order is about. unchecked: categories that it isn't about.
    per_category: the control gives one verdict per category.
    active: categories that reject reads or writes now (None: any FAIL).
    own_unknown: an UNKNOWN of a topic has its own text.
    messages, remedies: templates by outcome, or by outcome and reason or category, such as "FAIL/offline". A remedy may be
        {"planner": name} of `durability.remedies`.
    provider_duty, provider_hides: the reasons for NOT_APPLICABLE and for UNKNOWN, by provider.
    proposal: about settings that brokers don't enforce yet.
    planned: not evaluated yet.
    """

    id: str
    on: tuple[str, ...]
    title: str
    means: str
    why: str
    fails_when: str
    source: str
    severity: str
    remediation: str
    severities: dict[str, str] = field(default_factory=dict)
    scalar: str | None = None
    not_cross_checked: str | None = None
    checked_category: str | None = None
    unchecked: tuple[str, ...] = ()
    provider_duty: dict[str, str] = field(default_factory=dict)
    provider_hides: dict[str, str] = field(default_factory=dict)
    planned: bool = False
    proposal: bool = False
    requires: tuple[Requirement, ...] = ()
    reads: tuple[str, ...] = ()
    carried: dict[str, str | None] = field(default_factory=dict)
    active: tuple[str | None, ...] = ()
    per_category: bool = False
    own_unknown: bool = False
    messages: dict[str, str] = field(default_factory=dict)
    remedies: dict[str, Any] = field(default_factory=dict)

    def severity_of(self, category: str | None) -> str:
        """The severity of a FAIL of this category: its own, or else the control's.

        >>> CONTROLS["isr-rack-spread"].severity_of("at-min-rack-isr")
        'info'
        """
        return self.severities.get(category or "", self.severity)


def load(path: Path) -> Any:
    """A YAML file's content."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def read(folder: Path) -> dict[str, Control]:
    """The controls of a folder, by id. Files that start with an underscore are skipped. Raises ValueError for an invalid file."""
    found = [_control(path) for path in sorted(folder.glob("[!_]*.yaml"))]
    found.sort(key=lambda c: (TYPES.index(c.on[0]), c.planned, c.id))
    return {c.id: c for c in found}


def _control(path: Path) -> Control:
    content = load(path)
    if True in content:
        raise ValueError(f'{path.name}: write "on" in quotes: YAML reads it as true otherwise')
    fields: dict[str, Any] = {
        k: tuple(v) if k in ("on", "reads", "active", "unchecked") else v for k, v in content.items()
    }
    if isinstance(content.get("reads"), dict):
        fields["carried"] = {name: _as_text(default) for name, default in content["reads"].items()}
    try:
        fields["requires"] = tuple(_requirement(key, stated) for key, stated in content.get("requires", {}).items())
        control = Control(id=path.stem, **fields)
    except TypeError as error:
        raise ValueError(f"{path.name}: {error}") from None
    wrong = [t for t in control.on if t not in TYPES] + [s for s in control.severities.values() if s not in SEVERITIES]
    wrong += [key for key in (*control.messages, *control.remedies) if key.partition("/")[0] not in OUTCOMES]
    if wrong or control.severity not in SEVERITIES or not control.on:
        raise ValueError(f"{path.name}: {', '.join(map(str, wrong)) or control.severity} is not allowed")
    return control


def _as_text(default: Any) -> str | None:
    """A setting's value as text, as Kafka writes it.

    >>> [_as_text(value) for value in ("604800000", 0.5, True, None)]
    ['604800000', '0.5', 'true', None]
    """
    if default is None:
        return None
    return str(default).lower() if isinstance(default, bool) else str(default)


def _requirement(key: str, stated: dict[str, Any]) -> Requirement:
    if stated.get("type") not in KINDS:
        raise TypeError(f"requires {key}: type must be one of {', '.join(KINDS)}")
    if not stated.get("about"):
        raise TypeError(f"requires {key}: `about` is missing, the text that editors show")
    kind, choices = stated["type"], tuple(stated.get("choices", ()))
    ranged, relative = stated.get("range", False), stated.get("relative", "")
    if (ranged or relative) and (kind != "integer" or relative not in ("", *RELATIVE)):
        raise TypeError(f"requires {key}: an integer may have `range: true` and `relative: {' or '.join(RELATIVE)}`")
    return Requirement(key, kind, stated.get("min"), stated.get("max"), choices, stated["about"], ranged, relative)


def on_platforms(controls: Mapping[str, Control], platforms: Mapping[str, dict[str, Any]]) -> dict[str, Control]:
    """The controls with what `platforms` hide or do themselves. Raises ValueError for a control that doesn't exist."""
    found = dict(controls)
    for platform, stated in platforms.items():
        for member, of in (("hidden", "provider_hides"), ("duty", "provider_duty")):
            entry = stated.get(member) or {"controls": [], "reason": ""}
            for name in controls if entry["controls"] == "all" else entry["controls"]:
                if name not in found:
                    raise ValueError(f"_platforms.yaml: {platform} names {name}, which is no control")
                reasons = getattr(found[name], of) | {platform: entry["reason"]}
                found[name] = replace(found[name], **{of: reasons})
    return found


CONTROLS: dict[str, Control] = on_platforms(read(FOLDER), load(FOLDER / "_platforms.yaml"))
PROVIDERS: dict[str, str] = load(FOLDER / "_providers.yaml")
REFUSED: dict[str, dict[str, Any]] = load(FOLDER / "_refused.yaml")
"""What providers don't let their customers do with Kafka's tools, by provider and kind of command."""
DISKLESS = "diskless"
"""The platform of a diskless topic (`durability.topology.diskless`), instead of its cluster's provider."""
CONTRADICTED = "contradicted"
"""The provider of a cluster whose answers contradict its declared provider."""
SCALAR_CONTROLS: dict[str, str] = {c.id: c.scalar for c in CONTROLS.values() if c.scalar and not c.planned}
"""The order of observed and required, by control that Great Expectations checks."""


@cache
def requirements() -> dict[str, Requirement]:
    """The tier keys, in the catalogue's order. Raises ValueError if two controls declare the same key."""
    found: dict[str, Requirement] = {}
    for control in CONTROLS.values():
        for requirement in control.requires:
            if requirement.key in found:
                raise ValueError(
                    f"{control.id} declares the tier key {requirement.key}, which another control declares already"
                )
            found[requirement.key] = requirement
    return found
