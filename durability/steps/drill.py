"""Step drill: waits until a predicted loss has happened, reads the cluster again, and compares. It stops no broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from durability.errors import Refused, Unreachable
from durability.lake.drill_table import DRILL, DRILLS
from durability.plan.plan import from_text, to_text
from durability.policy.yamlfile import did_you_mean
from durability.report import drill as report
from durability.steps.collect import Connect
from durability.steps.settings import NIGHTLY, Settings
from durability.steps.sources import Source
from durability.steps.summary import StepSummary
from durability.steps.whatif import Submit, chosen

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.report.data.drill import Comparison

READ_SECONDS = 1_200.0
"""For reading the cluster again."""
NAMED = 20
PROBLEMS = 10
"""Differences that the task's log names. drill.json has more."""


@dataclass(frozen=True)
class Predicted:
    """A prediction that has been made. run_id, result_id: of its rows in the lake. file: its whatif.json."""

    run_id: str
    result_id: str
    file: Path

    def stated(self) -> dict[str, Any]:
        """The content of whatif.json. Refused if it can't be read."""
        try:
            return json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Refused(f"{self.file}: the prediction can't be read: {error}") from error


def source(settings: Settings, cluster: str) -> Source:
    """The cluster as the clusters file has it. Refused if it isn't there: without a Connection it can't be read again."""
    from durability.steps import sources

    listed = sources.from_clusters(settings.clusters)
    for found in listed:
        if found["name"] == cluster:
            return {**found, "partitions": sources.UNKNOWN_SIZE}
    names = [str(found["name"]) for found in listed]
    raise Refused(
        f"{settings.clusters} doesn't list cluster {cluster}{did_you_mean(cluster, names)}: add it there. It lists:"
        f" {', '.join(names) or 'none'}"
    )


def comparable(predicted: Mapping[str, Any]) -> None:
    """Refused if the loss can't be seen in the cluster's metadata. predicted: the content of whatif.json."""
    if not predicted["lose"]["brokers"]:
        raise Refused(
            "nothing to wait for: `lose` names no broker, and metadata doesn't show whether a controller is down"
        )
    if (predicted["quorum"] or {}).get("kept") is False:
        raise Refused(
            "nothing to compare: the loss takes the controllers' majority, so no broker is fenced and metadata goes on "
            "showing dead leaders. `kafka-durability drill` rehearses it on an embedded cluster"
        )


def live(cluster: Source, connect: Connect) -> frozenset[int]:
    """Ids of the brokers that are up, from one Metadata request. Unreachable if no bootstrap server answers."""
    from durability.collect.probe import probe

    return probe(str(cluster["name"]), connect(str(cluster["connection"]))).live


def late(lost: frozenset[int], still: frozenset[int] | None, minutes: int, why: str = "") -> Refused:
    """The error when the brokers weren't fenced in time. still: the live ones among them; None: the cluster didn't answer.

    >>> print(late(frozenset({3, 4}), frozenset({4}), 30))
    the loss didn't happen within 30 minutes: broker 4 is still live. Nothing was compared
    """
    if still is None:
        return Refused(f"the loss could not be seen within {minutes} minutes: {why}. Nothing was compared")
    ids = sorted(still & lost)
    named = ", ".join(map(str, ids[:NAMED])) + (f" and {len(ids) - NAMED} more" if len(ids) > NAMED else "")
    verb = f"broker {named} is" if len(ids) == 1 else f"brokers {named} are"
    return Refused(f"the loss didn't happen within {minutes} minutes: {verb} still live. Nothing was compared")


def compare(
    settings: Settings,
    predicted: Predicted,
    connect: Connect,
    run_id: str,
    result_id: str,
    submit: Submit,
    summary: StepSummary,
    started_by: str | None = None,
) -> Path:
    """Reads the cluster again, compares each partition's leader and whether it serves, and writes drill.json.

    The new snapshot is judged by the same Spark job, with nothing lost. Returns the file's path. Unreachable if the cluster
    can't be read; a retry may help. The lake's table `drills` gets a row, which the evidence of a period lists.

    started_by: who started the run, if known.
    """
    from durability.report import whatif
    from durability.report.data import drill as data
    from durability.steps.evaluate import plan_evaluation

    stated = predicted.stated()
    cluster = stated["cluster"]
    snapshot = read_again(settings, source(settings, cluster), connect, summary)
    plan = plan_evaluation(settings, NIGHTLY, run_id, result_id, [snapshot], [])
    lake = settings.open_lake()
    submit(lake, plan, {cluster: {"brokers": [], "controllers": []}})
    seen = dict(data.as_they_are(whatif.rows(lake, plan)))
    found = data.compare(whatif.rows(lake, predicted), seen)
    captured_at: datetime = snapshot["captured_at"]
    path = report.write(report.document(stated, to_text(captured_at), found), settings.out)
    record(lake, stated, snapshot, (run_id, result_id), found, started_by)
    summary.text = (
        f"{found.agreed:,} of {found.compared:,} partitions agree" if found.compared else "nothing was compared"
    )
    summary.problems += _problems(found)
    return path


def record(
    lake: Lake,
    predicted: Mapping[str, Any],
    seen: Mapping[str, Any],
    run: tuple[str, str],
    found: Comparison,
    started_by: str | None,
    kind: str = DRILL,
) -> None:
    """Append a row to `drills`.

    predicted: the content of whatif.json, or of drill.json. run: run_id and result_id.
    seen: the row of the snapshot after the loss. A rehearsal has none: its `snapshot_id` is None.
    """
    row = {
        **{name: seen[name] for name in ("cluster", "captured_at", "snapshot_id")},
        "run_id": run[0],
        "result_id": run[1],
        "kind": kind,
        "predicted_from": predicted["snapshot_id"],
        "predicted_at": from_text(predicted["captured_at"]),
        **{name: predicted["lose"][name] for name in ("asked", "brokers", "controllers")},
        "compared": found.compared,
        "agreed": found.agreed,
        "started_by": started_by,
        "recorded_at": datetime.now(UTC),
    }
    lake.ensure()
    lake.append(DRILLS, pa.Table.from_pylist([row], DRILLS.arrow))


def read_again(settings: Settings, cluster: Source, connect: Connect, summary: StepSummary) -> dict[str, Any]:
    """The row of the new snapshot, accepted and committed."""
    from durability.steps import collect, gate, publish

    step = StepSummary(progress=summary.progress)
    collected = collect.collect(settings, [cluster], connect, READ_SECONDS, step, keep=True)  # plans of change need it
    gated = gate.gate(settings, [[cluster]], [collected], step)
    rows = publish.publish(settings, NIGHTLY, gated, step)
    try:
        return chosen(rows, str(cluster["name"]))
    except Refused as error:
        raise Unreachable(str(error)) from error


def _problems(found: Comparison) -> list[str]:
    """The first differences, for the task's log."""
    return [
        f"{entry['topic']}-{entry['partition']}: {entry['field']} predicted {entry['predicted']}, seen {entry['seen']}"
        for entry in found.differs[:PROBLEMS]
    ]
