"""Makes text safe for a terminal or a log. Names and reasons come from clusters and files. A control character in them could set
the terminal's title, hide text, or forge a line."""

from __future__ import annotations

INDENT = "  "


def plain(text: str) -> str:
    """The text on one line. Control, direction and unpaired surrogate characters become "?".

    >>> plain("orders\\x1b[2J\\nx\\u202ey")
    'orders?[2J?x?y'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def plain_lines(text: str) -> str:
    """The text with its lines, each made `plain`.

    All lines but the first are indented, so that none looks like a separate message or log record.

    >>> print(plain_lines("eu-1:\\x07 no answer\\nerror: forged\\n\\tat java.lang"))
    eu-1:? no answer
      error: forged
        at java.lang
    """
    first, *more = [plain(line) for line in text.replace("\t", 2 * INDENT).split("\n")]
    return "\n".join([first, *(line if line.startswith(INDENT) or not line else INDENT + line for line in more)])


def plural(count: int, one: str, many: str | None = None) -> str:
    """The count with its noun in singular or plural.

    >>> plural(1, "topic"), plural(1200, "topic"), plural(0, "is", "are")
    ('1 topic', '1,200 topics', '0 are')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
