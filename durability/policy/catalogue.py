"""The control catalogue, controls.yaml: the one place that says what each control is called, means and weighs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import yaml

SEVERITIES = ("critical", "warning", "info")


@dataclass(frozen=True)
class Control:
    """A control. `on`: resource types. `scalar`: the order, ">=" or "<=", that observed and required must be in to
    pass, for controls that are cross-checked; None where `not_cross_checked` says why not. `provider_duty`: reason by
    provider for which the control is NOT_APPLICABLE. `planned`: not judged yet. `proposal`: about settings that
    no broker knows or enforces yet. `source`: KIP number or Kafka class."""

    id: str
    on: tuple[str, ...]
    title: str
    means: str
    why: str
    source: str
    severity: str
    remediation: str
    severities: dict[str, str] = field(default_factory=dict)
    scalar: str | None = None
    not_cross_checked: str | None = None
    provider_duty: dict[str, str] = field(default_factory=dict)
    planned: bool = False
    proposal: bool = False

    def severity_of(self, category: str | None) -> str:
        """The severity of a FAIL of this category; a category that weighs nothing of its own weighs the default.

        >>> CONTROLS["isr-rack-spread"].severity_of("at-min-rack-isr")
        'info'
        """
        return self.severities.get(category or "", self.severity)


def _read() -> tuple[dict[str, Control], dict[str, str]]:
    path = Path(__file__).with_name("controls.yaml")
    content = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    controls = [Control(**{**entry, "on": tuple(entry["on"])}) for entry in content["controls"]]
    return {c.id: c for c in controls}, content["providers"]


CONTROLS, PROVIDERS = _read()


def severity_of(control: str, category: str | None = None) -> str:
    """The severity of a FAIL of `control`, of that category; KeyError for an id that isn't in the catalogue.

    >>> severity_of("min-isr-within-replication-factor", "outage")
    'critical'
    """
    return CONTROLS[control].severity_of(category)
