"""Errors that a user can cause or fix. Each names the thing, its place, and what to do.

The program prints the text of an `AuditError` and exits non-zero. Any other exception is a defect and keeps its traceback.
"""

from durability.plain import plain, plain_lines


def printable(text: str) -> str:
    r"""Text that any UTF-8 file, log and terminal accepts: half of a surrogate pair becomes an escape.

    JSON can contain one, and Python decodes each byte of a file name that isn't UTF-8 as one.

    >>> printable("b\udcff.json")
    'b\\udcff.json'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class AuditError(Exception):
    """Base of all errors whose text is meant for the user.

    The text is always `printable`. `str` returns it without control characters.
    """

    def __init__(self, text: str = ""):
        super().__init__(printable(text))

    def __str__(self) -> str:
        return plain_lines(super().__str__())


class BadInput(AuditError):
    """A file that can't be used as it is.

    `where` is a line ("line 7"), a JSON path ("/topics/0/partitions/2/isr") or a key. The text reads
    "policy.yaml, line 7: what is wrong; what was expected". A file's name is on one line in it.

    >>> str(BadInput("a\\nb.json", "line 7", "not JSON"))
    'a?b.json, line 7: not JSON'
    """

    def __init__(self, file: object, where: str, problem: str):
        self.file, self.where, self.problem = printable(str(file)), printable(where), printable(problem)
        name = plain(self.file)
        super().__init__(f"{name}, {where}: {problem}" if where else f"{name}: {problem}")


class Unreachable(AuditError):
    """A cluster, lake or service that didn't answer, with its name and what to check."""


class Refused(AuditError):
    """A request that can't be carried out as stated (missing tool, conflicting options, locked lake)."""


class NotOfCluster(Refused):
    """A request names nothing that the cluster has. Of several clusters, another one may have it."""


class Rejected(AuditError):
    """A receiver that answers refuses one message, which may be wrong or too long. It may take others."""

    STATUS = frozenset({400, 413, 422})
    """HTTP statuses that say so."""
