"""The control catalogue: one YAML file per control, with its texts, severities and requirements."""

from durability.catalogue.model import (
    CONTROLS,
    PROVIDERS,
    SCALAR_CONTROLS,
    SEVERITIES,
    Control,
    Requirement,
    requirements,
)

__all__ = [
    "CONTROLS",
    "PROVIDERS",
    "SCALAR_CONTROLS",
    "SEVERITIES",
    "Control",
    "Requirement",
    "requirements",
]
