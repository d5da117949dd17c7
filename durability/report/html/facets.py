"""What the findings of a page can be filtered by, and how many findings there are of each kind, listed on the page or not.

The page's script gets numbers only. So no text of a cluster is ever part of a script.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from durability.policy import shipped_frameworks
from durability.report.words import OUTCOMES, SEVERITIES, clipped, is_resolved, state

NAMES = ("cluster", "team", "tier", "control", "severity", "outcome")
"""The members of a finding that a page filters by, in the order of the fields."""
FIXED: Mapping[str, tuple[str, ...]] = {"severity": SEVERITIES, "outcome": OUTCOMES}
"""Values in their own order. Those of the other members are sorted."""
OPTIONS, COMBINATIONS = 2_000, 20_000
"""The most values of a member, and the most combinations whose numbers of findings are written."""
STATES = ("critical", "warning", "info", "UNKNOWN", "EXEMPT")
"""What findings are counted as (`words.state`), worst first."""
LENGTH = 120
NONE = "(none)"
"""How the option for findings without a tier or team is called."""
Key = tuple[Any, ...]


class Facets:
    """Counts findings by their members NAMES. Resolved findings aren't counted.

    pages: by team, the file of its page in the folder of teams.
    """

    def __init__(self, pages: Mapping[str, str] | None = None) -> None:
        self._counts: Counter[Key] = Counter()
        self.pages = pages or {}

    def add(self, finding: Mapping[str, Any]) -> None:
        if not is_resolved(finding):
            self._counts[_key(finding)] += 1

    @cached_property
    def _values(self) -> list[dict[Any, tuple[int, str]]]:
        """For each member its values with their place and name. Places start at 1, because 0 means any value."""
        found = []
        for place, name in enumerate(NAMES):
            there = {key[place] for key in self._counts}
            order = FIXED[name] if name in FIXED else sorted(there - {None})
            listed = [value for value in order if value in there][:OPTIONS]
            named = {value: (n, clipped(value, LENGTH)) for n, value in enumerate(listed, start=1)}
            if None in there and name not in FIXED and named:
                named[None] = (len(named) + 1, NONE)
            found.append(named)
        return found

    @property
    def choices(self) -> list[dict[str, Any]]:
        """For each member its `name` and `options`: a value, the number of findings, and the team's page if there is one."""
        chosen = []
        for place, (name, values) in enumerate(zip(NAMES, self._values, strict=True)):
            counts: Counter[Any] = Counter()
            for key, count in self._counts.items():
                counts[key[place]] += count
            pages = self.pages if name == "team" else {}
            options = [(text, counts[value], pages.get(value)) for value, (_, text) in values.items()]
            chosen.append({"name": name, "options": options})
        return chosen

    @cached_property
    def frameworks(self) -> list[dict[str, Any]]:
        """Each framework (policies/frameworks.yaml) with its `id`, `title`, number of findings, and the places of its controls.

        Frameworks without a finding are left out. A finding belongs to each framework that its control supports.
        """
        place = NAMES.index("control")
        counts: Counter[str] = Counter()
        for key, count in self._counts.items():
            counts[key[place]] += count
        found = []
        for framework in shipped_frameworks():
            named = {control: at for control, (at, _) in self._values[place].items() if control in framework.controls}
            if named:
                number = sum(counts[control] for control in named)
                stated = {"id": framework.id, "title": framework.title, "count": number}
                found.append({**stated, "controls": " ".join(str(at) for at in sorted(named.values()))})
        return found

    def teams(self) -> list[dict[str, Any]]:
        """Each team with its `file`, and by state the number of its findings, most critical ones first.

        If there are teams, the findings without a team come last, with the team None.
        """
        states: dict[str | None, Counter[str]] = {}
        for key, count in self._counts.items():
            of = dict(zip(NAMES, key, strict=True))
            states.setdefault(of["team"], Counter())[state(of["outcome"], of["severity"])] += count
        nothing: Counter[str] = Counter()
        found = [(team, file, states.get(team, nothing)) for team, file in self.pages.items()]
        found.sort(key=lambda row: (*(-row[2][name] for name in STATES), row[0]))
        rows: list[dict[str, Any]] = [{"team": team, "file": file, "states": of} for team, file, of in found]
        nobody = [{"team": None, "file": None, "states": states[None]}] if rows and None in states else []
        return rows + nobody

    @property
    def counts(self) -> str:
        """The number of findings of each combination: the places of its values, and the number. Empty if there are too many."""
        if len(self._counts) > COMBINATIONS:
            return ""
        return " ".join(f"{self._places(key)}.{count}" for key, count in self._counts.items())

    def _places(self, key: Key) -> str:
        known = zip(self._values, key, strict=True)
        return ".".join(str(values[value][0]) if value in values else "0" for values, value in known)

    def mark(self, rows: Iterable[dict[str, Any]]) -> None:
        """Give rows of findings the member `facets`: the places of the values of each finding that the row represents."""
        for row in rows:
            findings = [row, *({**row, **other} for other in row["also"])]
            row["facets"] = " ".join(self._places(_key(finding)) for finding in findings)


def _key(finding: Mapping[str, Any]) -> Key:
    return tuple(finding[name] for name in NAMES)
