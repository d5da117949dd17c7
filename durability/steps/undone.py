"""A plan of change that is to be taken back: from its folder, else from what the lake's table `changes` says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.errors import Refused
from durability.plain import plain
from durability.policy.yamlfile import did_you_mean
from durability.report import applied, change
from durability.steps.settings import Settings

if TYPE_CHECKING:
    from durability.lake import Lake


@dataclass(frozen=True)
class Undone:
    """A plan that is to be taken back.

    before: `placements` and `settings`, as before.json has them. findings: ids of those that the cluster had before the plan, as
    far as it names them: they may come back. changed_at: as `Recorded` has it.
    """

    id: str
    cluster: str
    kafka_cluster_id: str | None
    before: Mapping[str, Any]
    findings: frozenset[str]
    changed_at: datetime | None = None


def find(settings: Settings, named: str, label: str, cluster: str | None = None) -> Undone:
    """The plan that is named by its folder or by its id. label: how a message names the option, such as "--undo ".

    Refused for an unknown id, with those that there are, for a folder that was edited, and for a plan of another cluster.
    """
    lake = settings.open_lake()
    if Path(named).is_dir():
        found = of_folder(Path(named).absolute(), lake)
    else:
        plans = applied.plans(settings.out)
        found = _of_id(plans[named], lake) if named in plans else _recorded(settings, lake, named, label, plans)
    if cluster and found.cluster != cluster:
        raise Refused(f"{label}{plain(named)}: plan {found.id} is for cluster {found.cluster}, not for {cluster}")
    return found


def _of_id(place: Path, lake: Lake) -> Undone:
    """`of_folder`. A folder that was edited isn't needed if the lake has what was changed."""
    try:
        return of_folder(place, lake)
    except Refused as error:
        raise Refused(f"{error}. If it was applied, move {place} away: then the lake's record takes it back") from error


def of_folder(place: Path, lake: Lake | None = None) -> Undone:
    """The plan in a folder. lake: has the time of its last change."""
    from durability.apply.plan_files import findings

    content = change.read(place)
    before = json.loads((place / change.BEFORE_PLAN).read_text(encoding="utf-8"))
    stated = content["id"], content["cluster"], content["kafka_cluster_id"]
    return Undone(*stated, before, findings(content), None if lake is None else _changed_at(lake, content))


def _changed_at(lake: Lake, content: Mapping[str, Any]) -> datetime | None:
    from durability.apply import recorded

    found = recorded.plan(lake, content["id"])
    return None if found is None else found.changed_at


def _recorded(settings: Settings, lake: Lake, id: str, label: str, folders: Mapping[str, Path]) -> Undone:
    """The plan as the lake's table `changes` has it: what was changed, and what it was before."""
    from durability.apply import recorded

    found = recorded.plan(lake, id)
    if found is None:
        known = {*folders, *recorded.plans(lake)}
        raise Refused(
            f"{label}{plain(id)}: neither the folder nor the id of a plan; the newest plans in"
            f" {settings.out / change.FOLDER} and in the lake {settings.lake}: {applied.newest(known)}{did_you_mean(id, known)}"
        )
    stated = found.cluster, found.kafka_cluster_id
    return Undone(id, *stated, found.before, found.findings, found.changed_at)
