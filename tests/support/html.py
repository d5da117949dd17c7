"""Parses HTML pages for tests."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from durability.report.html import page

OWN_SCRIPT = (Path(page.__file__).parent / "find.js").read_text(encoding="utf-8")
"""The script of the pages."""
VOID = {"meta", "br", "wbr", "hr", "img", "input", "link"}
SCRIPT = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
"""A name that would be run if it weren't escaped."""


class Reader(HTMLParser):
    """Collects a page's text, ids, links, tags and scripts. Fails on a tag that isn't closed in the right place.

    The pages' own script, at the end, is in `scripts` and not in `tags`, so that tests can look for others.
    """

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.may_break = False
        self.open, self.text, self.ids, self.tags, self.attributes, self.scripts = [], [], [], set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.may_break = tag == "wbr"
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif not self.open or self.open[-1] != "style":
            # A word goes on after a place where it may break.
            self.text.append(self.text.pop() + data if self.may_break else data)
        self.may_break = False


def parse(html: str) -> tuple[str, Reader]:
    """The words of a page, separated by single blanks, and its reader."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    if reader.scripts == [OWN_SCRIPT]:
        reader.tags.discard("script")
    words = re.sub(r"\s+", " ", " ".join(reader.text))
    return words, reader


def without_script(html: str) -> str:
    """The page without its own script."""
    return html.replace(f"<script>{OWN_SCRIPT}</script>", "")
