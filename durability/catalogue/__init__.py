"""The controls: what each is called, means, requires and says. One YAML file a control."""

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
