"""The program with its commands, in the order of its help."""

from __future__ import annotations

from durability.cli.commands import audits, evidence, service
from durability.cli.program import app

COMMANDS = (audits, evidence, service)
"""Their import adds the commands to `app`."""

__all__ = ["COMMANDS", "app"]
