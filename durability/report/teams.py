"""Writes the teams' pages into OUT/teams, and the list of teams."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from durability.atomic import unfinished, write_whole
from durability.plan.plan import Plan
from durability.report.data.teams import FOLDER, INDEX, may_have
from durability.report.html import team as page
from durability.report.html.facets import Facets
from durability.report.html.rows import FindingRows
from durability.resources import create_private


class TeamPages:
    """Collects the findings of each team, worst first, one at a time.

    pages: by team, the file of its page.
    """

    def __init__(self, pages: Mapping[str, str]):
        self.pages = pages
        quotas = page.quotas(len(pages))
        self._found = {team: page.TeamFindings(team, FindingRows(quotas)) for team in pages}

    def add(self, finding: Mapping[str, Any]) -> None:
        if finding["team"] in self._found:
            self._found[finding["team"]].add(finding)

    def write(self, plan: Plan, run: Mapping[str, Any], facets: Facets, out: Path) -> Path | None:
        """Write the pages and the list. Pages of an earlier run are removed. Each file is replaced atomically.

        run: as in findings.json. facets: of all findings. Returns the pages' folder; None if no team is known.
        """
        folder = out / FOLDER
        if self.pages:
            create_private(folder)
            with unfinished(out) as temporary:
                for team, found in self._found.items():
                    own = may_have(team, plan)
                    snapshots = [snapshot for snapshot in run["snapshots"] if snapshot["cluster"] in own]
                    write_whole(folder / self.pages[team], page.render(run, found, snapshots), temporary)
                # The list comes last. It names no page that isn't there.
                write_whole(folder / INDEX, page.render_index(run, facets.teams()), temporary)
        _remove_others(folder, {INDEX, *self.pages.values()} if self.pages else set())
        return folder if self.pages else None


def files(folder: Path) -> list[Path]:
    """The pages in a folder that `TeamPages.write` wrote, and the list."""
    return sorted(path for path in folder.glob("*.html") if path.is_file() and _is_ours(path))


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove pages of teams that are gone. Files that no run wrote stay."""
    if not folder.is_dir():
        return
    for path in files(folder):
        if path.name not in names:
            path.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return page.MARK.encode() in file.read(2_000)
