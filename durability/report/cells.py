"""Cells of CSV files that no spreadsheet runs as a formula."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

FORMULA = re.compile(
    r"(^|[;,|\t\r\n\v\f\x85\u2028\u2029])([ \"'\u00a0]*)"
    r"(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r])(?![+-]\d+(?:\.\d+)?(?:, ?[+-]?\d+(?:\.\d+)?){0,8}(?:[;\t\r\n\]}]|$))"
)
"""Text that a spreadsheet would run as a formula (OWASP, "CSV Injection"), also in full-width characters.

It matches at the start of a cell. It also matches at the start of what would be a cell with another separator, after quotes and
spaces. Plain numbers and lists of numbers don't match. A comma may be a decimal one, so the text after the number is checked."""

SUSPECT = r'(^|[;,|\t\r\n\v\f\x{85}\x{2028}\x{2029}])[ "\'\x{a0}]*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}\t\r]'
"""FORMULA without its lookaheads, for Arrow: text that FORMULA matches matches this, too."""


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


def safe_column(column: pa.Array) -> pa.Array:
    """`safe` for each cell of a column of strings or integers. Most cells can't be a formula, and Arrow sees that faster."""
    cells = pc.fill_null(column.cast(pa.string()), "").dictionary_encode()
    texts = cells.dictionary
    places = pc.indices_nonzero(pc.match_substring_regex(texts, SUSPECT)).to_pylist()
    if places:
        changed = texts.to_pylist()
        for place in places:
            changed[place] = safe(changed[place])
        texts = pa.array(changed, pa.string())
    return texts.take(cells.indices)
