"""Writes Great Expectations' Data Docs: small pages that load nothing, for any size of the fleet.

The library's pages don't escape their input, so topic names are escaped here. Its pages load scripts, styles and images from six
hosts. Here they have no scripts and one style sheet, so that they look the same offline. The library's index needs a script to
list its pages, so it is replaced.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from durability.atomic import unfinished, write_whole

if TYPE_CHECKING:
    from expectations.gx import Validation

SHOWN_ROWS = 20
SITE, FOLDER = "audit", "data_docs"
"""The site's name, and its folder in OUT."""
WRITTEN = ".written.json"
"""A file in the site's folder with the paths that were written last, by suite."""
GATE, CROSS_CHECK = "snapshot_gate", "topic_posture"
"""The names of the suites."""
SUITES = {
    GATE: "Gate: does a snapshot contradict itself?",
    CROSS_CHECK: "Cross-check: does a second engine find the same failures?",
}
KINDS = {"expectations": "What is checked", "validations": "What was found"}
POLICY = "default-src 'none'; style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:; font-src 'self' file:"
STYLE = (Path(__file__).parent / "data_docs.css").read_text(encoding="utf-8")
HEAD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<style>\n{STYLE}</style>\n'
_SCRIPT = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
_REMOTE_TAG = re.compile(r"""<(?:link|img|source|iframe)\b[^>]*?["'](?:https?:)?//[^>]*>""", re.IGNORECASE)
_REMOTE_URL = re.compile(r"""url\(\s*["']?(?:https?:)?//[^)]*\)""", re.IGNORECASE)
_HANDLER = re.compile(r"""\son[a-z]+=("[^"]*"|'[^']*')""", re.IGNORECASE)


def write_data_docs(validation: Validation, names: Sequence[tuple[str, ...]], moment: str, folder: Path) -> None:
    """Write the pages of one validation to the site in `folder`. They replace those of its suite. Other files stay.

    validation: trimmed here to SHOWN_ROWS flagged rows per expectation.
    names: the parts of each row's name, such as cluster and topic.
    moment: when the run started.
    """
    result, context = validation.result, validation.context
    for one in result.results:
        rows = validation.failed[one.expectation_config.meta["id"]][:SHOWN_ROWS]
        one.result.pop("unexpected_index_list", None)
        one.result["partial_unexpected_list"] = [html.escape(" / ".join(names[row])) for row in rows]
    context.validation_results_store.set(validation.key, result)
    with unfinished(folder.parent) as temporary:
        made = temporary / "site"
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(made)}
        index = {"class_name": "DefaultSiteIndexBuilder"}
        site = {"class_name": "SiteBuilder", "site_index_builder": index, "store_backend": store}
        context.add_data_docs_site(SITE, site)
        context.build_data_docs(site_names=[SITE], build_index=False)
        for page in (*made.rglob("*.html"), *made.rglob("*.css")):
            page.write_text(without_network(page.read_text(encoding="utf-8")), encoding="utf-8")
        before = _written_before(folder)
        new = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
        others = {suite: files for suite, files in before.items() if suite != validation.name}
        (made / "index.html").write_text(_index({**others, validation.name: new}, moment), encoding="utf-8")
        _replace(made, folder, validation.name, before, new | {"index.html"}, temporary)


def without_network(page: str) -> str:
    """A page or style sheet that runs no script and loads nothing from other hosts.

    >>> without_network('<p onclick="x()">a</p><script src="https://h/x.js"></script><img src="//h/i.png"><a href="https://h">b</a>')
    '<p>a</p><a href="https://h">b</a>'
    """
    for pattern in (_SCRIPT, _REMOTE_TAG, _HANDLER):
        page = pattern.sub("", page)
    return _REMOTE_URL.sub("none", page).replace("</head>", f"{HEAD}</head>", 1)


def _index(files: Mapping[str, Collection[str]], moment: str) -> str:
    """A page that lists the other pages. files: the site's files by suite."""
    parts = []
    for suite, title in SUITES.items():
        pages = sorted(name for name in files.get(suite, ()) if name.endswith(".html") and "/" in name)
        links = "\n".join(
            f'<li><a href="{html.escape(page)}">{html.escape(KINDS.get(page.partition("/")[0], page))}</a></li>'
            for page in pages
        )
        parts += [f"<h2>{html.escape(title)}</h2>\n<ul>\n{links}\n</ul>"] if pages else []
    title = f"Great Expectations' checks, {html.escape(moment)}"
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="UTF-8">\n<title>{title}</title>\n{HEAD}</head>\n'
        f'<body>\n<div class="container-fluid">\n<h1>{title}</h1>\n{body}\n</div>\n</body>\n</html>\n'
    )


def _replace(
    made: Path, folder: Path, suite: str, before: Mapping[str, set[str]], new: set[str], temporary: Path
) -> None:
    """Move the files of `made` into `folder`, and remove those of the suite's earlier runs that no other suite has."""
    kept = {name: files for name, files in before.items() if name != suite}
    old = before.get(suite, set())
    # Write the list before moving files, so that the next run removes them even if this one is killed.
    _note(folder, {**kept, suite: new | old}, temporary)
    for name in sorted(new):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).replace(folder / name)
    for name in old - new - set().union(*kept.values()):
        _remove(folder, name)
    _note(folder, {**kept, suite: new}, temporary)


def _note(folder: Path, files: Mapping[str, set[str]], temporary: Path) -> None:
    write_whole(folder / WRITTEN, [json.dumps({suite: sorted(names) for suite, names in files.items()})], temporary)


def _written_before(folder: Path) -> dict[str, set[str]]:
    """By suite, the paths that earlier runs wrote.

    Versions before the gate had pages recorded a list, and versions up to 0.1 recorded nothing.
    """
    with suppress(OSError, ValueError, TypeError, AttributeError):
        found = json.loads((folder / WRITTEN).read_text(encoding="utf-8"))
        by_suite = {CROSS_CHECK: found} if isinstance(found, list) else found
        return {str(suite): {str(name) for name in names} for suite, names in by_suite.items()}
    pages = folder.glob("validations/topic_posture/*/*/topic_posture.html")
    return {CROSS_CHECK: {page.relative_to(folder).as_posix() for page in pages}}


def _remove(folder: Path, name: str) -> None:
    """Remove a file of an earlier run, and its folders if they are empty."""
    path = folder / name
    if ".." in path.parts or not path.parent.resolve().is_relative_to(folder.resolve()):
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)
        for parent in path.relative_to(folder).parents[:-1]:
            (folder / parent).rmdir()
