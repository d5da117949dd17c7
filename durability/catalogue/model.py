"""The control catalogue: one YAML file per control states what it means, requires and reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
SEVERITIES = ("critical", "warning", "info")
TYPES = ("topic", "application", "broker", "cluster", "tier", "waiver")
"""Resource types, in the order in which controls are listed."""
KINDS = ("integer", "number", "boolean", "strings")
"""Types of requirements."""
OUTCOMES = ("FAIL", "UNKNOWN", "NOT_APPLICABLE")


@dataclass(frozen=True)
class Requirement:
    """A key of a policy's tier. kind: one of KINDS; min and max: of an integer or a number; choices: of strings; about: for
    editors."""

    key: str
    kind: str
    min: float | None = None
    max: float | None = None
    choices: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True)
class Control:
    """A control.

    on: resource types. severity: of a FAIL, unless `severities` has one for its category. scalar: the order, ">=" or "<=",
    between observed and required that passes, for controls that Great Expectations checks too; None where
    `not_cross_checked` says why. checked_category: the only category that this order is about. requires: what a tier can
    require. reads: the settings that the rule reads. carried: those that the file declares with Kafka's default, as text
    (None: no default), which rules read through `spark_jobs.frames.settings`; others have their own columns
    (`spark_jobs.frames.facts`). fails_when: the end of that sentence, for the README. active: categories that reject reads
    or writes now (None: any FAIL). per_category: one verdict per category of a resource. own_unknown: an UNKNOWN of a topic
    names the missing fact itself. messages, remedies: templates by outcome, or by outcome and reason or category, as
    "FAIL/offline"; a remedy may be {"planner": name}, see `durability.remedies`. provider_duty: by provider, why the control
    is NOT_APPLICABLE. proposal: about settings that no broker enforces yet. planned: not evaluated yet. source: KIP number or
    Kafka class. remediation: what helps in general.
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
    provider_duty: dict[str, str] = field(default_factory=dict)
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
        """The severity of a FAIL of this category: its own, else the control's.

        >>> CONTROLS["isr-rack-spread"].severity_of("at-min-rack-isr")
        'info'
        """
        return self.severities.get(category or "", self.severity)


def load(path: Path) -> Any:
    """A YAML file's content."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def read(folder: Path) -> dict[str, Control]:
    """The controls of a folder by id, one per file without a leading underscore. ValueError names a wrong file."""
    found = [_control(path) for path in sorted(folder.glob("[!_]*.yaml"))]
    found.sort(key=lambda c: (TYPES.index(c.on[0]), c.planned, c.id))
    return {c.id: c for c in found}


def _control(path: Path) -> Control:
    content = load(path)
    fields: dict[str, Any] = {k: tuple(v) if k in ("on", "reads", "active") else v for k, v in content.items()}
    if isinstance(content.get("reads"), dict):
        fields["carried"] = {name: _as_kafka(default) for name, default in content["reads"].items()}
    try:
        fields["requires"] = tuple(_requirement(key, stated) for key, stated in content.get("requires", {}).items())
        control = Control(id=path.stem, **fields)
    except TypeError as error:
        raise ValueError(f"{path.name}: {error}") from None
    wrong = [t for t in control.on if t not in TYPES] + [s for s in control.severities.values() if s not in SEVERITIES]
    wrong += [key for key in (*control.messages, *control.remedies) if key.partition("/")[0] not in OUTCOMES]
    if wrong or control.severity not in SEVERITIES or not control.on:
        raise ValueError(f"{path.name}: can't be {', '.join(map(str, wrong)) or control.severity}")
    return control


def _as_kafka(default: Any) -> str | None:
    """A setting's value as text.

    >>> [_as_kafka(value) for value in ("604800000", 0.5, True, None)]
    ['604800000', '0.5', 'true', None]
    """
    return None if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _requirement(key: str, stated: dict[str, Any]) -> Requirement:
    if stated.get("type") not in KINDS:
        raise TypeError(f"requires {key}: type must be one of {', '.join(KINDS)}")
    if not stated.get("about"):
        raise TypeError(f"requires {key}: `about` is missing, which editors show beside it")
    kind, choices = stated["type"], tuple(stated.get("choices", ()))
    return Requirement(key, kind, stated.get("min"), stated.get("max"), choices, stated["about"])


CONTROLS: dict[str, Control] = read(FOLDER)
PROVIDERS: dict[str, str] = load(FOLDER / "_providers.yaml")
SCALAR_CONTROLS: dict[str, str] = {c.id: c.scalar for c in CONTROLS.values() if c.scalar and not c.planned}
"""The order of each control that Great Expectations checks too."""


@cache
def requirements() -> dict[str, Requirement]:
    """What a tier can require, by key, in the catalogue's order. ValueError where two controls declare the same key."""
    found: dict[str, Requirement] = {}
    for control in CONTROLS.values():
        for requirement in control.requires:
            if requirement.key in found:
                raise ValueError(f"{control.id} requires {requirement.key}, which another control does too")
            found[requirement.key] = requirement
    return found


def severity_of(control: str, category: str | None = None) -> str:
    """The severity of a FAIL of `control`, of that category; KeyError for an id that isn't in the catalogue.

    >>> severity_of("min-isr-within-replication-factor", "outage")
    'critical'
    """
    return CONTROLS[control].severity_of(category)
