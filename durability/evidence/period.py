"""period.json and period.html: what a lake has about a period, for an auditor who reads and signs it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from durability.atomic import atomic_files
from durability.errors import Refused
from durability.evidence import drills, exceptions, expected, nights, objectives, principals, pulses, waived
from durability.evidence.nights import Period, night
from durability.lake.attempt import FULL
from durability.lake.conditions import captured_from
from durability.lake.drill_table import REHEARSAL
from durability.lake.tables import RUNS, SNAPSHOTS
from durability.plain import plural
from durability.plan.plan import NIGHTLY, to_text
from durability.policy.frameworks import Framework
from durability.report.html import period as page
from durability.report.words import joined
from durability.topology.document import LIVE

FORMAT = "durability-period/1"
FOLDER = "period"
FILES = ("period.json", "period.html")
LATE = timedelta(days=2)
"""How long after a period a run may evaluate a snapshot of it, and end."""
NAMED = 5
REMOVED = 20
"""How many clusters that are no longer expected have a sentence of their own."""
Row = Mapping[str, Any]


def write(
    lake: Any, period: Period, out: Path, framework: Framework | None, now: datetime
) -> tuple[Path, dict[str, Any]]:
    """Write both files into OUT/period/FROM_TO, or FROM_TO_FRAMEWORK. Returns the folder and the content of period.json.

    lake: `durability.lake.Lake`. Raises Refused if it has no nightly run in the period, or if `out` can't be written.
    """
    found = document(lake, period, framework, now)
    text = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
    folder = out / FOLDER / "_".join([str(period.start), str(period.end), *([framework.id] if framework else [])])
    with atomic_files(folder, *FILES) as (json_file, html_file):
        json_file.write(text)
        html_file.writelines(page.render(found, hashlib.sha256(text.encode()).hexdigest()))
    return folder, found


def document(lake: Any, period: Period, framework: Framework | None, now: datetime) -> dict[str, Any]:
    """The content of period.json."""
    all_runs = _runs(lake, period)
    runs = [run for run in _newest(all_runs) if period.has(run["captured_at"])]
    if not runs:
        raise Refused(
            f"the lake at {lake.location} has no nightly run from {period.start} to {period.end} that counts{_has(lake, period)}"
        )
    before = exceptions.open_after(lake, [run for run in _newest(all_runs) if run["captured_at"] < period.since])
    after, during = exceptions.open_after(lake, runs), exceptions.changes(lake, runs)
    before.complete_from(after)
    controls = framework.controls if framework else None
    first, live = _first(lake, all_runs)
    snapshots = _snapshots(lake, period)
    clusters = nights.count(period, snapshots, all_runs, first, live)
    found = {
        "format": FORMAT,
        "from": period.start.isoformat(),
        "to": period.end.isoformat(),
        "made_at": to_text(now.astimezone(UTC).replace(microsecond=0)),
        "lake": lake.location,
        "framework": _framework(framework),
        "unknown": [],
        "inventories": expected.inventories(runs),
        "nights": {name: sum(cluster[name] for cluster in clusters) for name in ("expected", "done", "evaluated")},
        "clusters": clusters,
        "principals": principals.read(lake, period, snapshots),
        "runs": [_run(run) for run in runs],
        "policies": _policies(runs),
        "exceptions": exceptions.document(before, during, after, controls),
        "waivers": waived.read(lake, period, runs, controls),
        "drills": drills.read(lake, period),
        "pulses": pulses.read(lake, period),
        "objectives": objectives.read(lake, period, runs, now),
    }
    found["unknown"] = _unknown(found, period, all_runs, before, during, after)
    return found


def _runs(lake: Any, period: Period) -> list[dict[str, Any]]:
    """Nightly runs until the end of the period, one per result, oldest first."""
    from pyiceberg.expressions import And, EqualTo, LessThan

    late = (period.until + LATE).isoformat()
    until = (LessThan(name, late) for name in ("captured_at", "finished_at"))
    rows = lake.scan(RUNS, And(EqualTo("kind", NIGHTLY), *until)).to_pylist()
    newest = {row["result_id"]: row for row in sorted(rows, key=lambda row: row["finished_at"])}
    return sorted(newest.values(), key=lambda row: (row["captured_at"], row["finished_at"]))


def _newest(runs: Iterable[Row]) -> list[Row]:
    """One result per run: the last one. A run that was repeated has several."""
    newest = {run["run_id"]: run for run in sorted(runs, key=lambda run: run["finished_at"])}
    return sorted(newest.values(), key=lambda run: (run["captured_at"], run["finished_at"]))


def _has(lake: Any, period: Period) -> str:
    """Which nightly runs a lake has, if none of the period counts."""
    runs = lake.runs(NIGHTLY, ("result_id", "captured_at", "finished_at"))
    if not runs:
        return ". It has no nightly run at all"
    late = sum(period.has(run["captured_at"]) for run in runs)
    said = f". {plural(late, 'run')} of the period ended more than {LATE.days} days after it" if late else ""
    days = sorted(night(run["captured_at"]) for run in runs)
    return f"{said}. Its nightly runs are from {days[0]} to {days[-1]}"


def _snapshots(lake: Any, period: Period) -> list[dict[str, Any]]:
    """The full snapshots of the period, with what decides whether they count."""
    from pyiceberg.expressions import And, EqualTo

    during = captured_from(period.since, period.until)
    columns = ("cluster", "captured_at", "attempt_id", "status", "reason", "source", "published_at")
    return lake.scan(SNAPSHOTS, And(EqualTo("kind", FULL), during), columns).to_pylist()


def _first(lake: Any, runs: Iterable[Row]) -> tuple[dict[str, datetime], dict[str, datetime]]:
    """By cluster, the times of its first full snapshot of any status, and of the first one that was read from the cluster."""
    from pyiceberg.expressions import EqualTo

    table = lake.scan(SNAPSHOTS, EqualTo("kind", FULL), ("cluster", "captured_at", "source"))
    rows = table.group_by(["cluster", "source"]).aggregate([("captured_at", "min")]).to_pylist()
    live = {row["cluster"]: row["captured_at_min"] for row in rows if row["source"] == LIVE}
    found: dict[str, datetime] = {}
    for row in rows:
        found[row["cluster"]] = min(row["captured_at_min"], found.get(row["cluster"], row["captured_at_min"]))
    for run in runs:  # their rows stay longer than those of snapshots
        for part in run["snapshots"] or ():
            moment = part["captured_at"] or run["captured_at"]
            found[part["cluster"]] = min(moment, found.get(part["cluster"], moment))
    return found, live


def _run(run: Row) -> dict[str, Any]:
    moments = {name: to_text(run[name]) for name in ("captured_at", "started_at", "finished_at")}
    stated = {name: run[name] for name in ("run_id", "result_id", "status", "verified", "policy_sha256")}
    return {"night": night(run["captured_at"]).isoformat(), **stated, **moments}


def _policies(runs: Sequence[Row]) -> dict[str, Any]:
    """The policies in force. The fingerprint covers policy and waivers. One that returns is a change, too."""
    in_force: list[dict[str, Any]] = []
    for run in runs:
        day = night(run["captured_at"]).isoformat()
        if in_force and in_force[-1]["sha256"] == run["policy_sha256"] and in_force[-1]["name"] == run["policy_name"]:
            in_force[-1].update(last_night=day, runs=in_force[-1]["runs"] + 1)
        else:
            stated = {"name": run["policy_name"], "sha256": run["policy_sha256"]}
            in_force.append({**stated, "first_night": day, "last_night": day, "runs": 1})
    return {"in_force": in_force, "changes": len(in_force) - 1}


def _framework(framework: Framework | None) -> dict[str, Any] | None:
    if framework is None:
        return None
    names = ("id", "title", "strength", "shows", "not_shown")
    requirements = [
        {**{name: getattr(r, name) for name in names}, "controls": list(r.controls)} for r in framework.requirements
    ]
    return {"id": framework.id, "title": framework.title, "requirements": requirements}


def _unknown(
    found: Mapping[str, Any],
    period: Period,
    runs: Sequence[Row],
    before: exceptions.Open,
    during: exceptions.Changes,
    after: exceptions.Open,
) -> list[str]:
    """What the period's evidence doesn't show, as sentences. The page has them on top."""
    said = []
    gaps = found["nights"]["expected"] - found["nights"]["done"]
    if gaps:
        said.append(
            f"{plural(gaps, 'cluster-night')} of {found['nights']['expected']:,} have no complete, verified evaluation."
        )
    said += _from_documents(found)
    said += _population(found)
    said += principals.unknown(found["principals"], found["clusters"])
    last_day = (period.end - nights.DAY).isoformat()
    ended = [c["cluster"] for c in found["clusters"] if c["gaps"] and _vanished(c["gaps"][-1], last_day)]
    if ended:
        said.append(
            f"{joined(ended, NAMED)}: no snapshot at the end of the period. The lake doesn't know if a cluster was retired."
        )
    if night(runs[0]["captured_at"]) > period.start:
        said.append(f"The lake's first nightly run is of {night(runs[0]['captured_at'])}. What was before isn't known.")
    for lost, what in ((during.lost, "opened and closed"), (after.lost, "left open"), (before.lost, "found before")):
        if lost:
            said.append(
                f"The lake no longer has all findings of {plural(len(lost), 'run')}: what they {what} isn't fully counted."
            )
    fresh = sorted(after.as_of.keys() - before.as_of.keys())
    if fresh:
        said.append(f"{joined(fresh, NAMED)}: no run before the period, so what was open at its start isn't known.")
    if unseen := [c["cluster"] for c in found["clusters"] if c["cluster"] not in after.as_of]:
        said.append(f"{joined(unseen, NAMED)}: not evaluated in the period, so exceptions there aren't counted.")
    unknown = sum(row["open_at_end"] or 0 for row in found["exceptions"]["unknown"])
    if unknown:
        said.append(f"{plural(unknown, 'verdict')} at the end of the period are UNKNOWN. They are not compliant.")
    if without := sum(run["waivers"] is None for run in runs if period.has(run["captured_at"])):
        said.append(f"{plural(without, 'run')} have no record of their waivers.")
    if found["drills"]["found"] is None:
        said.append(f"Drills: {found['drills']['reason']}.")
    elif not found["drills"]["found"]:
        said.append("Drills: the lake has none of the period. Rehearsals are recorded where a lake is given.")
    elif all(one["kind"] == REHEARSAL for one in found["drills"]["found"]):
        said.append("Drills: all of the period are rehearsals on an embedded cluster. None is of a cluster itself.")
    for one in [one for one in found["drills"]["found"] or () if not one["compared"]][:NAMED]:
        said.append(f"Drill of {one['cluster']} at {one['seen_at']}: nothing was compared.")
    if found["objectives"]["found"] is None:
        said.append(f"Time one failure away from harm: {found['objectives']['reason']}.")
    elif not found["objectives"]["found"]:
        said.append("Time one failure away from harm: it was not counted in the period.")
    else:
        said += _uncounted(found["objectives"])
    if not found["pulses"]:
        said.append("Pulses: the lake has none in the period, so what happened between nights isn't known.")
    return said


def _uncounted(objectives: Mapping[str, Any]) -> list[str]:
    """What isn't in the time one failure away from harm."""
    said = []
    if clusters := objectives["uncounted"]:
        said.append(f"{joined(clusters, NAMED)}: time one failure away from harm was not counted.")
    if tiers := objectives["other_tiers"]:
        named = joined(tiers, NAMED)
        said.append(f"Time one failure away from harm: no run has a record of tier {named}, so it isn't counted.")
    return said


def _from_documents(found: Mapping[str, Any]) -> list[str]:
    """Nights that documents made done, as a sentence: nothing shows that a document is of the cluster, and of that night."""
    named = [c["cluster"] for c in found["clusters"] if c["done_from_documents"]]
    if not named:
        return []
    count = plural(sum(c["done_from_documents"] for c in found["clusters"]), "cluster-night")
    return [f"{joined(named, NAMED)}: {count} done from documents. The audit did not read these clusters itself."]


def _population(found: Mapping[str, Any]) -> list[str]:
    """What inventories say about the clusters of the period, as sentences."""
    said = []
    if not any(source["read"] for source in found["inventories"]):
        said.append("No inventory was compared. Clusters that no one audits aren't counted.")
    for source in found["inventories"]:
        if source["unread"]:
            said.append(
                f"Inventory {source['name']} could not be read in {plural(source['unread'], 'run')}: {source['last_problem']}"
            )
    clusters = found["clusters"]
    if missing := [c["cluster"] for c in clusters if any(g["reason"] == expected.NOT_AUDITED for g in c["gaps"])]:
        said.append(f"{joined(missing, NAMED)}: in the inventory, and not audited on some nights.")
    left = [(cluster, gap) for cluster in clusters for gap in cluster["not_expected"]]
    said += [_not_expected(cluster, gap) for cluster, gap in left[:REMOVED]]
    if len(left) > REMOVED:
        said.append(f"{plural(len(left) - REMOVED, 'more cluster')} stopped being expected, as Not expected lists.")
    return said


def _not_expected(cluster: Row, gap: Row) -> str:
    nights_ = f"{plural(gap['nights'], 'night')} {'is' if gap['nights'] == 1 else 'are'} not expected."
    still = cluster["evaluated_unexpected"]
    more = f" It was still audited on {plural(still, 'night')}." if still else ""
    return f"{cluster['cluster']}: {gap['reason']} on {gap['first']}. {nights_}{more}"


def _vanished(gap: Row, last_day: str) -> bool:
    return gap["last"] == last_day and gap["reason"] in (nights.NO_SNAPSHOT, nights.NO_RUN)


def summary(found: Mapping[str, Any], folder: Path) -> list[str]:
    """The period in a few lines for a terminal."""
    counts, exceptional = found["nights"], found["exceptions"]

    def number(name: str) -> str:
        return "unknown" if exceptional[name] is None else f"{exceptional[name]:,}"

    closed = exceptional["closed"]
    lines = [
        f"{found['from']} to {found['to']}: {counts['done']:,} of {plural(counts['expected'], 'cluster-night')} done",
        f"Exceptions: {number('opened')} opened, {'unknown' if closed is None else f'{sum(closed.values()):,}'} closed, "
        f"{number('open_at_end')} open at the end",
        "",
        "Unknown",
        *(f"  {said}" for said in found["unknown"]),
        "",
    ]
    return lines + [f"{folder / name}" for name in FILES]
