"""Errors that a user can cause or fix; each names the thing, where it is, and what to do.

The program prints the text of an `AuditError` and exits non-zero. Any other exception is a defect and keeps its traceback.
"""

from durability.plain import plain_lines


class AuditError(Exception):
    """Base of every error whose text is meant for the person who ran the audit. `str` gives it without control characters."""

    def __str__(self) -> str:
        return plain_lines(super().__str__())


class BadInput(AuditError):
    """A file that can't be used as it stands.

    `where` is a line ("line 7"), a JSON path ("/topics/0/partitions/2/isr") or a key; the text reads
    "policy.yaml, line 7: what is wrong; what was expected".
    """

    def __init__(self, file: object, where: str, problem: str):
        self.file, self.where, self.problem = str(file), where, problem
        super().__init__(f"{file}, {where}: {problem}" if where else f"{file}: {problem}")


class Unreachable(AuditError):
    """A cluster, lake or service that didn't answer, with its name and what to check."""


class Refused(AuditError):
    """A request that can't be carried out as said (missing tool, conflicting options, locked lake)."""
