"""The look of a PDF: fonts, styles, tables, and a line at the foot of each page.

Fonts are those that reportlab ships, and they are embedded. A character that they don't have is written as an escape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import escape

import reportlab
from reportlab.lib.colors import Color, HexColor
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Spacer, Table

from durability.report.words import visible

INK, DIM, LINE, SHADE = HexColor("#1b2430"), HexColor("#5a6572"), HexColor("#c9d0d8"), HexColor("#f1f4f7")
TONES = {
    "critical": HexColor("#a3142c"),
    "warning": HexColor("#8a5a00"),
    "unknown": HexColor("#4a4f9e"),
    "good": HexColor("#1d6b3a"),
}
"""Colours of the headline, readable on white and in print."""
BODY, BOLD, MONO = "Vera", "VeraBd", "Courier"
MARGIN, PADDING = 18 * mm, 6
"""The page's margin, and what reportlab's frame adds to it, in points."""
WIDTH = A4[0] - 2 * MARGIN
"""The width of a page's text, in points."""


@cache
def _fonts() -> dict[str, frozenset[int]]:
    """Registers the fonts. Returns the code points that each has."""
    folder = Path(reportlab.__file__).parent / "fonts"
    known = {}
    for name in (BODY, BOLD):
        font = TTFont(name, str(folder / f"{name}.ttf"))
        pdfmetrics.registerFont(font)
        known[name] = frozenset(font.face.charToGlyph)
    # Courier isn't embedded, so it is used for what every reader's own Courier has.
    known[MONO] = frozenset(range(0x20, 0x7F))
    return known


@cache
def styles() -> dict[str, ParagraphStyle]:
    _fonts()
    body = ParagraphStyle("body", fontName=BODY, fontSize=8.5, leading=12, textColor=INK, splitLongWords=1)
    return {
        "body": body,
        "dim": ParagraphStyle("dim", parent=body, textColor=DIM),
        "cell": ParagraphStyle("cell", parent=body, fontSize=7.5, leading=9.5),
        "number": ParagraphStyle("number", parent=body, fontSize=7.5, leading=9.5, alignment=TA_RIGHT),
        "head": ParagraphStyle("head", parent=body, fontName=BOLD, fontSize=7.5, leading=9.5),
        "numbers": ParagraphStyle("numbers", parent=body, fontName=BOLD, fontSize=7.5, leading=9.5, alignment=TA_RIGHT),
        "mono": ParagraphStyle("mono", parent=body, fontName=MONO, fontSize=6.5, leading=9),
        "command": ParagraphStyle(
            "command",
            parent=body,
            fontName=MONO,
            fontSize=7,
            leading=9,
            backColor=SHADE,
            borderPadding=3,
            spaceBefore=4,
        ),
        "h1": ParagraphStyle("h1", parent=body, fontName=BOLD, fontSize=15, leading=19, spaceAfter=6),
        "h2": ParagraphStyle(
            "h2", parent=body, fontName=BOLD, fontSize=11, leading=14, spaceBefore=14, spaceAfter=5, keepWithNext=1
        ),
        "h3": ParagraphStyle("h3", parent=body, fontName=BOLD, spaceBefore=7, spaceAfter=2, keepWithNext=1),
    }


def shown(value: object, font: str = BODY) -> str:
    """Text of strangers as a paragraph's markup: nothing in it is a tag, each character has a glyph, and it begins no line.

    >>> shown("a<b> & c"), shown("\\u4e2d"), shown("a\\nb")
    ('a&lt;b&gt; &amp; c', '\\\\u4e2d', 'a b')
    """
    known = _fonts()[font]
    text = str(visible("" if value is None else str(value)))
    drawn = (c if ord(c) in known or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
    return escape("".join(drawn)).replace("\t", "    ").replace("\n", " ")


def text(value: object, style: str = "body", color: Color | None = None) -> Paragraph:
    """A paragraph. value: its text, or a list of its lines."""
    chosen = styles()[style]
    if color is not None:
        chosen = ParagraphStyle(style, parent=chosen, textColor=color)
    lines = value if isinstance(value, list) else [value]
    return Paragraph("<br/>".join(shown(line, chosen.fontName) for line in lines), chosen)


def script(lines: str) -> Paragraph:
    """A remediation's commands."""
    return text(lines.split("\n"), "command")


def gap(points: float) -> Flowable:
    return Spacer(1, points)


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    shares: Sequence[float],
    kinds: str,
    height: float | None = None,
) -> Table:
    """A table whose heads repeat on each page.

    shares: of the page's width, one per column. kinds: one letter per column: t text, n number, m monospaced. height: of each
    row, in points; by default as high as its text.
    """
    of_kind = {"t": "cell", "n": "number", "m": "mono"}
    first = [text(head, "numbers" if kind == "n" else "head") for head, kind in zip(heads, kinds, strict=True)]
    cells = [[text(cell, of_kind[kind]) for cell, kind in zip(row, kinds, strict=True)] for row in rows]
    style = [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LINEBELOW", (0, 0), (-1, 0), 0.8, INK),
        ("LINEBELOW", (0, 1), (-1, -1), 0.3, LINE),
        ("LEFTPADDING", (0, 0), (-1, -1), 2),
        ("RIGHTPADDING", (0, 0), (-1, -1), 4),
        ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2),
    ]
    widths, heights = [share * WIDTH for share in shares], [None, *[height] * len(cells)]
    return Table([first, *cells], widths, heights, repeatRows=1, splitInRow=1, style=style)


def write(file: BinaryIO, parts: list[Flowable], title: str, foot: str, made: datetime) -> None:
    """Write the document. foot: the text at the foot of each page, before its number and the number of pages.

    made: the date in the document's properties, in UTC.

    The same parts give the same bytes.
    """
    document = SimpleDocTemplate(
        file,
        pagesize=A4,
        leftMargin=MARGIN - PADDING,
        rightMargin=MARGIN - PADDING,
        topMargin=MARGIN,
        bottomMargin=MARGIN,
        title=title,
        author="Kafka durability audit",
        lang="en",
        invariant=1,
    )
    document.build(parts, canvasmaker=_numbered(foot, made))


def _numbered(foot: str, made: datetime) -> Callable[..., Canvas]:
    class Numbered(Canvas):
        """Draws the foot of the pages at the end, when their number is known."""

        def __init__(self, *args: Any, **options: Any):
            super().__init__(*args, **options)
            self.setDateFormatter(lambda *_: f"D:{made:%Y%m%d%H%M%S}+00'00'")
            self._pages: list[dict[str, Any]] = []

        def showPage(self) -> None:
            self._pages.append(dict(self.__dict__))
            self._startPage()

        def save(self) -> None:
            for number, page in enumerate(self._pages, 1):
                self.__dict__.update(page)
                self.setFont(BODY, 6.5)
                self.setFillColor(DIM)
                self.drawString(MARGIN, 10 * mm, foot)
                self.drawRightString(A4[0] - MARGIN, 10 * mm, f"page {number} of {len(self._pages)}")
                super().showPage()
            super().save()

    return Numbered
