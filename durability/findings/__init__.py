"""Verdicts and disagreements become findings: worded once, here, for every reader."""

from durability.findings.build import findings_of, write

__all__ = ["findings_of", "write"]
