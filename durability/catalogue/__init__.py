"""The controls: what each means, requires and reports, from one YAML file per control."""

from durability.catalogue.model import (
    CONTROLS,
    PROVIDERS,
    SCALAR_CONTROLS,
    SEVERITIES,
    Control,
    Requirement,
    requirements,
    severity_of,
)

__all__ = [
    "CONTROLS",
    "PROVIDERS",
    "SCALAR_CONTROLS",
    "SEVERITIES",
    "Control",
    "Requirement",
    "requirements",
    "severity_of",
]
