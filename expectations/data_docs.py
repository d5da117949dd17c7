"""Writes Great Expectations' Data Docs for one validation: small pages that load nothing, for any size of the fleet.

The library's pages don't escape their input, so topic names are escaped here. Its pages load scripts, styles and images from six
hosts. Here they have no scripts and one style sheet, so that they look the same offline. The library's index needs a script to
list its pages, so it is replaced.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from durability.atomic import unfinished, write_whole

if TYPE_CHECKING:
    from durability.plan import Plan
    from expectations.gx import Validation

SHOWN_ROWS = 20
SITE = "audit"
WRITTEN = ".written.json"
"""A file in the site's folder with the paths that the last run wrote."""
POLICY = "default-src 'none'; style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:; font-src 'self' file:"
STYLE = (Path(__file__).parent / "data_docs.css").read_text(encoding="utf-8")
HEAD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<style>\n{STYLE}</style>\n'
_SCRIPT = re.compile(r"<script\b.*?</script\s*>", re.DOTALL | re.IGNORECASE)
_REMOTE_TAG = re.compile(r"""<(?:link|img|source|iframe)\b[^>]*?["'](?:https?:)?//[^>]*>""", re.IGNORECASE)
_REMOTE_URL = re.compile(r"""url\(\s*["']?(?:https?:)?//[^)]*\)""", re.IGNORECASE)
_HANDLER = re.compile(r"""\son[a-z]+=("[^"]*"|'[^']*')""", re.IGNORECASE)


def write_data_docs(validation: Validation, names: list[tuple[str, str]], plan: Plan, folder: Path) -> None:
    """Write the site of one validation run to `folder`. It replaces files of earlier runs. Other files stay.

    validation: trimmed here to SHOWN_ROWS flagged rows per expectation.
    names: cluster and topic by row.
    """
    from great_expectations.core.run_identifier import RunIdentifier
    from great_expectations.data_context.types.resource_identifiers import (
        ExpectationSuiteIdentifier,
        ValidationResultIdentifier,
    )

    result, context = validation.result, validation.context
    for one in result.results:
        rows = validation.failed[one.expectation_config.meta["id"]][:SHOWN_ROWS]
        one.result.pop("unexpected_index_list", None)
        one.result["partial_unexpected_list"] = [html.escape(" / ".join(names[row])) for row in rows]
    # The id becomes a folder's name, and some file systems allow no colons.
    run = RunIdentifier(run_name=plan.run_id.replace(":", "-"), run_time=plan.started_at)
    result.meta["run_id"] = run
    key = ValidationResultIdentifier(ExpectationSuiteIdentifier(result.suite_name), run, "topic_posture")
    context.validation_results_store.set(key, result)
    with unfinished(folder.parent) as temporary:
        made = temporary / "site"
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(made)}
        index = {"class_name": "DefaultSiteIndexBuilder"}
        site = {"class_name": "SiteBuilder", "site_index_builder": index, "store_backend": store}
        context.add_data_docs_site(SITE, site)
        context.build_data_docs(site_names=[SITE])
        for page in (*made.rglob("*.html"), *made.rglob("*.css")):
            page.write_text(without_network(page.read_text(encoding="utf-8")), encoding="utf-8")
        pages = sorted(page.relative_to(made).as_posix() for page in made.glob("*/**/*.html"))
        (made / "index.html").write_text(_index(pages, plan), encoding="utf-8")
        _replace(made, folder, temporary)


def without_network(page: str) -> str:
    """A page or style sheet that runs no script and loads nothing from other hosts.

    >>> without_network('<p onclick="x()">a</p><script src="https://h/x.js"></script><img src="//h/i.png"><a href="https://h">b</a>')
    '<p>a</p><a href="https://h">b</a>'
    """
    for pattern in (_SCRIPT, _REMOTE_TAG, _HANDLER):
        page = pattern.sub("", page)
    return _REMOTE_URL.sub("none", page).replace("</head>", f"{HEAD}</head>", 1)


def _index(pages: Iterable[str], plan: Plan) -> str:
    """A page that lists the other pages."""
    kinds = {"expectations": "What is checked", "validations": "What was found"}
    links = "\n".join(
        f'<li><a href="{html.escape(page)}">{html.escape(kinds.get(page.partition("/")[0], page))}</a></li>'
        for page in pages
    )
    title = f"Second check of the verdicts, {html.escape(plan.started_at)}"
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="UTF-8">\n<title>{title}</title>\n{HEAD}</head>\n'
        f'<body>\n<div class="container-fluid">\n<h1>{title}</h1>\n<ul>\n{links}\n</ul>\n</div>\n</body>\n</html>\n'
    )


def _replace(made: Path, folder: Path, temporary: Path) -> None:
    """Move the files of `made` into `folder` and remove those of earlier runs."""
    new = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    old = _written_before(folder, new)
    # Write the list before moving files, so that the next run removes them even if this one is killed.
    write_whole(folder / WRITTEN, json.dumps(sorted(new | old)), temporary)
    for name in sorted(new):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).replace(folder / name)
    for name in old - new:
        _remove(folder, name)
    write_whole(folder / WRITTEN, json.dumps(sorted(new)), temporary)


def _written_before(folder: Path, new: set[str]) -> set[str]:
    """The paths that earlier runs wrote. Versions up to 0.1 didn't record them."""
    with suppress(OSError, ValueError, TypeError):
        return {str(name) for name in json.loads((folder / WRITTEN).read_text(encoding="utf-8"))}
    pages = folder.glob("validations/topic_posture/*/*/topic_posture.html")
    return {name for name in new if (folder / name).is_file()} | {p.relative_to(folder).as_posix() for p in pages}


def _remove(folder: Path, name: str) -> None:
    """Remove a file of an earlier run, and its folders if they are empty."""
    path = folder / name
    if ".." in path.parts or not path.parent.resolve().is_relative_to(folder.resolve()):
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)
        for parent in path.relative_to(folder).parents[:-1]:
            (folder / parent).rmdir()
