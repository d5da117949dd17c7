"""Cells of CSV files that no spreadsheet runs as a formula."""

from __future__ import annotations

import re
from functools import lru_cache

FORMULA = re.compile(
    r"(^|[;,|\t\r\n\v\f\x85\u2028\u2029])([ \"'\u00a0]*)"
    r"(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])(?![+-]\d+(?:\.\d+)?(?:, ?[+-]?\d+(?:\.\d+)?){0,8}(?:[;\t\r\n\]}]|$))"
)
"""Text that a spreadsheet would run as a formula (OWASP, "CSV Injection"), also in full-width characters.

It matches at the start of a cell. It also matches at the start of what would be a cell with another separator, after quotes and
spaces. Plain numbers and lists of numbers don't match. A comma may be a decimal one, so the text after the number is checked."""


def safe(cell: object) -> str:
    """A cell that no spreadsheet runs as a formula, with any separator. None gives an empty cell.

    >>> safe("=1+1"), safe("@cmd"), safe(None), safe(3), safe("orders")
    ("'=1+1", "'@cmd", '', '3', 'orders')
    >>> safe("x;=1+1"), safe("x;-a"), safe("a-b; c=-1")
    ("x;'=1+1", "x;'-a", 'a-b; c=-1')
    >>> safe("-1,5"), safe("x;-1,5+cmd|' /C calc'!A0"), safe("+1,0*HYPERLINK(1)")
    ('-1,5', "x;'-1,5+cmd|' /C calc'!A0", "'+1,0*HYPERLINK(1)")
    """
    return _safe("" if cell is None else str(cell))


@lru_cache(maxsize=4096)
def _safe(text: str) -> str:
    """Cached, because a column has few different cells."""
    return FORMULA.sub(r"\1\2'", text)
