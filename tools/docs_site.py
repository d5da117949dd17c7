"""Hooks of mkdocs: the pages at the top of the repository become pages of the site.

Links are written for the repository. One to `docs/` becomes a link within the site. One to another file of the repository becomes
the file's path as text, since the site has no source to show. One to nothing is left alone: mkdocs reports it as broken.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Page of the site by file at the top of the repository."""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages at the top of the repository."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point the page's links at the site."""
    at_top = page.file.src_uri in PAGES.values()
    folder = ROOT if at_top else (ROOT / "docs" / page.file.src_uri).parent

    def pointed(link: re.Match) -> str:
        image, text, target = link.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path:
            return link[0]
        name = os.path.relpath(folder / path, ROOT)
        if name in PAGES:
            return f"[{text}]({_within(PAGES[name], page)}{'#' if anchor else ''}{anchor})"
        if name.startswith("docs/"):
            return f"{image}[{text}]({_within(name.removeprefix('docs/'), page)}{'#' if anchor else ''}{anchor})"
        if (ROOT / name).exists() and not name.startswith(".."):
            return text if name in text.replace("`", "") else f"{text} (`{name}`)"
        return link[0]

    return _LINK.sub(pointed, markdown)


def _within(name: str, page: Page) -> str:
    """A page or file of the site as a link from this page."""
    return os.path.relpath(name, os.path.dirname(page.file.src_uri) or ".")
