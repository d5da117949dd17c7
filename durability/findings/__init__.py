"""Turns verdicts and disagreements into findings. Their texts are written here, once, for all reports."""

from durability.findings.build import findings_of, write

__all__ = ["findings_of", "write"]
