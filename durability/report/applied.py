"""A plan on its way to a cluster: found by its id, described for an approver, and what became of its findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from durability.atomic import unfinished
from durability.errors import Refused
from durability.plain import plain, plural
from durability.policy.yamlfile import did_you_mean
from durability.remedies.change.scripts import STEPS
from durability.remedies.plans import folder
from durability.report.change import BEFORE_PLAN, EARLIER, FOLDER, PLAN, read, summary
from durability.report.formats.markdown import block, table

FORMAT = "durability-plan-applied/1"
APPLIED = "applied+plans"
"""In OUT/plan: a file for each plan that was applied. No folder of a cluster has a plus."""
NAMED = 5
"""Plans that an error names."""
GONE, REMAINS, UNKNOWN = "gone", "remains", "unknown"
"""What became of a finding."""


def find(out: Path, plan: str, cluster: str | None = None) -> Path:
    """The folder of the plan with this id, also if a later plan moved it aside. Its hashes are checked.

    Refused if there is none, if it was edited, or if it is for another cluster than `cluster`.
    """
    found = plans(out)
    if plan not in found:
        raise Refused(
            f"{out / FOLDER} has no plan {plan}; the newest there: {newest(found)}{did_you_mean(plan, found)}"
        )
    content = read(found[plan])
    if cluster and content["cluster"] != cluster:
        raise Refused(f"plan {plan} is for cluster {content['cluster']}, not for {cluster}")
    return found[plan]


def plans(out: Path) -> dict[str, Path]:
    """The folder of each plan, by id. No hash is checked."""
    found = {}
    for place in _folders(out / FOLDER):
        try:
            found[str(json.loads((place / PLAN).read_text(encoding="utf-8"))["id"])] = place
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def newest(ids: Iterable[str]) -> str:
    """The newest plans, for a message. Ids begin with the time."""
    return ", ".join(sorted(ids, reverse=True)[:NAMED]) or "none"


def _folders(plans: Path) -> Iterator[Path]:
    yield from (path for path in sorted(plans.glob("*")) if path.name not in (EARLIER, APPLIED))
    yield from sorted(plans.glob(f"{EARLIER}/*/*"))


def page(content: Mapping[str, Any], place: Path, acls: Iterable[str]) -> str:
    """A plan as Markdown, for a log and for an approver. Texts of the cluster are in blocks of code.

    acls: those that changes need, and those that are missing, in lines.
    """
    parts = [block("\n".join(summary(content, place)), "text"), _before_and_after(content)]
    if steps := "\n".join(_changed(content)):
        parts += ["What is changed:", block(steps, "text")]
    if lines := "\n".join(acls):
        parts += ["ACLs:", block(lines, "text")]
    return "\n\n".join(parts)


def _changed(content: Mapping[str, Any]) -> Iterator[str]:
    """What each step changes, in lines. A step names at most NAMED topics and settings."""
    for step in content["steps"]:
        topics, settings = step["topics"], step["settings"]
        more = f" and {len(topics) - NAMED} more" if len(topics) > NAMED else ""
        named = f": {', '.join(topics[:NAMED])}{more}" if topics and not settings else ""
        yield plain(f"{step['id']}{named}")
        for one in settings[:NAMED]:
            was, value = ("none of its own" if text is None else text for text in (one["was"], one["value"]))
            resource = "the cluster" if one["topic"] is None else one["topic"]
            yield plain(f"  {one['name']} of {resource}: {was} to {value}")
        if len(settings) > NAMED:
            yield f"  and {len(settings) - NAMED} more settings"


def _before_and_after(content: Mapping[str, Any]) -> str:
    rows = [["restart waves", *(f"{content['waves'][when]:,}" for when in ("before", "after"))]]
    load, copysets = content["load"], content["copysets"]
    if load:
        largest = [max(load[when].values(), default=0) for when in ("before", "after")]
        rows.append(["replicas on the most loaded broker", *(f"{number:,}" for number in largest)])
    if copysets:
        rows.append(["distinct replica sets", *(f"{copysets[when]:,}" for when in ("before", "after"))])
    return table(["", "before", "after"], rows)


def brief(content: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """The plan in a few values. brokers: those that get replicas, or lose some."""
    return {
        "cluster": content["cluster"],
        "plan": content["id"],
        "sha256": content["sha256"],
        "steps": len(content["steps"]),
        "replicas": content["moved"]["replicas"],
        "bytes": content["moved"]["bytes"],
        "brokers": _moved_brokers(content, place),
        "mends": len(content["proof"]["mends"]),
        "offered": content["proof"]["offered"],
    }


def _moved_brokers(content: Mapping[str, Any], place: Path) -> list[int]:
    stated = json.loads((place / BEFORE_PLAN).read_text(encoding="utf-8"))["placements"]
    before = {(row["topic"], row["partition"]): set(row["replicas"]) for row in stated}
    found: set[int] = set()
    for step in content["steps"]:
        if step["kind"] == "reassign":
            moves = json.loads((place / STEPS / f"{step['id']}.json").read_text(encoding="utf-8"))["partitions"]
            for row in moves:
                found |= before[row["topic"], row["partition"]] ^ set(row["replicas"])
    return sorted(found)


def write(applied: Mapping[str, Any], out: Path) -> Path:
    """Writes what became of a plan, whole, and returns the file. A later check of the same plan replaces it."""
    place = out / FOLDER / APPLIED / folder(applied["cluster"])
    with unfinished(out) as temporary:
        file = temporary / "applied.json"
        file.write_text(json.dumps(applied, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        place.mkdir(parents=True, exist_ok=True)
        return file.replace(place / f"{folder(applied['plan'])}.json")


def counts(targets: Sequence[Mapping[str, Any]]) -> str:
    """How many of the findings that the plan promised to fix are gone, and how many others remain.

    >>> counts([{"state": "gone", "promised": True}, {"state": "remains", "promised": True}])
    '1 of 2 promised findings is gone'
    >>> counts([{"state": "gone", "promised": True}, {"state": "remains", "promised": False}])
    '1 of 1 promised finding is gone; 1 other remains, as the plan says'
    """
    promised = [target["state"] for target in targets if target["promised"]]
    others = sum(target["state"] != GONE and not target["promised"] for target in targets)
    gone = promised.count(GONE)
    text = f"{gone:,} of {plural(len(promised), 'promised finding')} {'is' if gone == 1 else 'are'} gone"
    remain = f"{plural(others, 'other')} {'remains' if others == 1 else 'remain'}, as the plan says"
    return f"{text}; {remain}" if others else text
