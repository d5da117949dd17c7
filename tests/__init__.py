"""The tests; CONTRIBUTING.md says which folder holds which."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The source tree."""
