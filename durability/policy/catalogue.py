"""Where the catalogue was: `durability.catalogue`."""

from durability.catalogue import CONTROLS, PROVIDERS, SEVERITIES, Control, severity_of

__all__ = ["CONTROLS", "PROVIDERS", "SEVERITIES", "Control", "severity_of"]
