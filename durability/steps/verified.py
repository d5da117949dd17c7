"""Step verify: after a plan was applied, the cluster is read and evaluated again, and each targeted finding is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from durability.plain import plain
from durability.plan.plan import from_text, to_text
from durability.report import applied, change
from durability.report.applied import GONE, REMAINS, UNKNOWN
from durability.steps.collect import Connect
from durability.steps.drill import read_again, source
from durability.steps.judged import Evaluate, Judged, results_of
from durability.steps.settings import NIGHTLY, Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Lake

RESOURCE = ("id", "control", "resource_type", "resource")
NO_VERDICT = "the cluster has no verdict about it any more; its resource may be deleted"


def verify(
    settings: Settings,
    planned: Mapping[str, Any],
    made: Mapping[str, Any],
    connect: Connect,
    ids: tuple[str, str],
    evaluate: Evaluate,
    summary: StepSummary,
) -> dict[str, Any]:
    """Takes a snapshot, evaluates it, and writes what became of each targeted finding: OUT/plan/applied+plans/….

    planned: names the plan, as `applied.brief` does. made: who approved it, and what was done, for the file. ids: run_id and
    result_id. Returns the content of the file. The folder of the plan isn't changed. Unreachable if the cluster can't be read.
    """
    from durability.steps.evaluate import plan_evaluation

    content = change.read(applied.find(settings.out, planned["plan"], planned["cluster"]))
    lake = settings.open_lake()
    before = _targets(lake, content)
    snapshot = read_again(settings, source(settings, content["cluster"]), connect, summary)
    plan = plan_evaluation(settings, NIGHTLY, *ids, [snapshot], [])
    evaluate(lake, plan)
    after = results_of(lake, plan)
    promised = frozenset(content["proof"]["mends"])
    targets = [{**target, "promised": target["id"] in promised, **_became(target, after)} for target in before]
    found = {
        "format": applied.FORMAT,
        **{name: content[name] for name in ("cluster", "kafka_cluster_id")},
        "plan": content["id"],
        "run_id": ids[0],
        "snapshot_id": snapshot["snapshot_id"],
        "captured_at": to_text(snapshot["captured_at"]),
        **made,
        "targets": targets,
    }
    summary.text = applied.counts(targets)
    summary.problems += [
        plain(f"{one['control']} of {one['resource']} ({one['id']}): {one['state']}: {one['why']}")
        for one in targets
        if one["promised"] and one["state"] != GONE
    ]
    applied.write(found, settings.out)
    return found


def broken_promises(found: Mapping[str, Any]) -> list[str]:
    """Ids of the findings that the plan's proof promised to fix, and that aren't shown to be gone."""
    return [target["id"] for target in found["targets"] if target["promised"] and target["state"] != GONE]


def _targets(lake: Lake, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Id, control and resource of the plan's findings, in its order. The last three are None if the lake has lost them."""
    from pyiceberg.expressions import And, EqualTo, In

    from durability.lake.conditions import captured_within
    from durability.lake.tables import VERDICTS

    if not content["targets"]:
        return []
    captured_at = from_text(content["captured_at"])
    moments = captured_within([captured_at, captured_at + timedelta(seconds=1)])  # the text may have no fraction
    where = And(moments, EqualTo("cluster", content["cluster"]), In("id", content["targets"]))
    known = {row["id"]: row for row in lake.scan(VERDICTS, where, RESOURCE).to_pylist()}
    return [known.get(id) or dict.fromkeys(RESOURCE) | {"id": id} for id in content["targets"]]


def _became(target: Mapping[str, Any], after: Judged) -> dict[str, str | None]:
    """state: GONE, REMAINS or UNKNOWN. why: the finding's message now; None if it is gone."""
    from durability.findings import words

    finding = after.open.get(target["id"])
    if finding is not None:
        state = UNKNOWN if finding["outcome"] == "UNKNOWN" else REMAINS
        return {"state": state, "why": plain(words.message(finding) or finding["outcome"])}
    if after.shows_closed(target):
        return {"state": GONE, "why": None}
    return {"state": UNKNOWN, "why": NO_VERDICT}
