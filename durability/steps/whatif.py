"""Step whatif: predicts from a snapshot what a loss of brokers, racks and controllers does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.errors import Refused
from durability.plain import plural
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.plan.lose import Item, Loss
    from durability.report.data.clients import Known
    from durability.steps.results import Gated

Submit = Callable[["Lake", "Plan", Mapping[str, Any]], None]
"""Submits the Spark job for a plan and what each cluster loses. Waits for its end."""
NOTHING = "{} has no accepted snapshot: audit the cluster first, or name --bootstrap or --topology"


def newest(settings: Settings, cluster: str | None, snapshot_id: str | None = None) -> dict[str, Any]:
    """The row of the lake's newest accepted snapshot of the cluster, or of the one with this id.

    cluster: None if the lake has only one cluster. Refused, with the names that there are, if no snapshot fits.
    """
    lake = _lake(settings)
    accepted = lake.snapshots(status="accepted", kind="full")
    if snapshot_id is not None:
        accepted = [row for row in accepted if row["snapshot_id"] == snapshot_id]
        if not accepted:
            raise Refused(f"the lake {settings.lake} has no accepted snapshot {snapshot_id}")
    names = sorted({row["cluster"] for row in accepted})
    name = _one_of(names, cluster, f"the lake {settings.lake}")
    return max((row for row in accepted if row["cluster"] == name), key=lambda row: row["captured_at"])


def chosen(rows: Sequence[Mapping[str, Any]], cluster: str | None) -> dict[str, Any]:
    """The accepted one of the snapshots just taken. Refused, with the reason, for a snapshot that was rejected."""
    name = _one_of(sorted({row["cluster"] for row in rows}), cluster, "the input", "cluster")
    [row] = [dict(row) for row in rows if row["cluster"] == name]
    check_accepted(row)
    return row


def every(settings: Settings) -> list[dict[str, Any]]:
    """The rows of the lake's newest accepted snapshots, one for each cluster, by name. Refused without any."""
    lake = _lake(settings)
    newest_of: dict[str, dict[str, Any]] = {}
    for row in sorted(lake.snapshots(status="accepted", kind="full"), key=lambda row: row["captured_at"]):
        newest_of[row["cluster"]] = row
    if not newest_of:
        raise Refused(NOTHING.format(f"the lake {settings.lake}"))
    return [newest_of[name] for name in sorted(newest_of)]


def _lake(settings: Settings) -> Lake:
    """The lake, with the tables of this version. Refused, and not set up, if it was never written to."""
    from durability.lake.tables import SNAPSHOTS

    lake = settings.open_lake()
    if not lake.has(SNAPSHOTS):
        raise Refused(NOTHING.format(f"the lake {settings.lake}"))
    lake.ensure()
    return lake


def check_accepted(row: Mapping[str, Any]) -> None:
    """Refused, with the reason, for a snapshot that was rejected."""
    if row["status"] != "accepted":
        raise Refused(f"{row['cluster']}: its snapshot can't be used: {row['reason']}")


def _one_of(
    names: Sequence[str], cluster: str | None, where: str, what: str = "accepted snapshot of the cluster"
) -> str:
    if not names:
        raise Refused(NOTHING.format(where))
    if cluster is None and len(names) > 1:
        raise Refused(f"{where} has several clusters; name one with --cluster: {', '.join(names)}")
    if cluster is not None and cluster not in names:
        raise Refused(f"{where} has no {what} {cluster}; there are {', '.join(names)}")
    return cluster or names[0]


def lost(settings: Settings, snapshot: Mapping[str, Any], asked: Sequence[Item], label: str) -> Loss:
    """What is lost with the items, by the snapshot's brokers and controllers."""
    from durability.lake.tables import BROKERS, CONTROLLERS
    from durability.plan import lose

    lake = settings.open_lake()
    brokers, controllers = (lake.facts(table, snapshot).to_pylist() for table in (BROKERS, CONTROLLERS))
    return lose.resolve(asked, brokers, controllers, label)


def check_staged(settings: Settings, gated: Gated, cluster: str | None, asked: Sequence[Item], label: str) -> None:
    """Refused, as `chosen` and `lost` refuse it, before the snapshots are committed. A rejected snapshot is refused later."""
    from durability.lake.tables import BROKERS, CONTROLLERS
    from durability.plan import lose

    accepted = {verdict.attempt_id for verdict in gated.verdicts if verdict.accepted}
    lake, staged = settings.open_lake(), {attempt.cluster: attempt for attempt in gated.attempts}
    if not staged:
        return
    attempt = staged[_one_of(sorted(staged), cluster, "the input", "cluster")]
    if attempt.attempt_id in accepted:
        brokers, controllers = (
            lake.read_files(table, attempt.files.get(table.name, [])).to_pylist() for table in (BROKERS, CONTROLLERS)
        )
        lose.resolve(asked, brokers, controllers, label)


def unread(settings: Settings, snapshot: Mapping[str, Any]) -> dict[str, int | None]:
    """What the snapshot lacks: `topics`, how many have unread partitions; `hidden_partitions`, those of topics that the auditor
    may not see, None if that is unknown."""
    from durability.lake.tables import CLUSTERS, TOPICS

    lake = settings.open_lake()
    [cluster] = lake.facts(CLUSTERS, snapshot).to_pylist()
    topics = [known for known in lake.facts(TOPICS, snapshot)["partitions_known"].to_pylist() if not known]
    hidden = cluster["hidden_partitions"] if cluster["topics_known"] else None
    return {"topics": len(topics), "hidden_partitions": hidden}


def clients(settings: Settings, snapshot: Mapping[str, Any]) -> Known:
    """What the snapshot knows of clients: groups, and what their places depend on."""
    from durability.lake.tables import BROKERS, CLUSTERS, GROUPS, TOPICS
    from durability.plan.applications import GROUP_COLUMNS
    from durability.report.data.clients import Known

    lake = settings.open_lake()
    [cluster] = lake.facts(CLUSTERS, snapshot).to_pylist()
    topics = lake.facts(TOPICS, snapshot).select(["topic", "partitions_known"]).to_pylist()
    return Known(
        groups=lake.facts(GROUPS, snapshot).select(GROUP_COLUMNS).to_pylist(),
        all_groups=bool(cluster["streams_known"]),
        racks=frozenset(rack for rack in lake.facts(BROKERS, snapshot)["rack"].to_pylist() if rack),
        unread=frozenset(row["topic"] for row in topics if not row["partitions_known"]),
    )


@dataclass(frozen=True)
class Prediction:
    """What is predicted: the loss of nodes of the snapshot's cluster, with the plan for the Spark job."""

    snapshot: Mapping[str, Any]
    loss: Loss
    plan: Plan


def prepare(
    settings: Settings, snapshot: Mapping[str, Any], asked: Sequence[Item], label: str, run_id: str, result_id: str
) -> Prediction:
    """The prediction for a row of `snapshots`. label: the option that named `asked`, for messages.

    Refused for a broker, rack or controller that the snapshot doesn't have. Nothing is written before that.
    """
    from durability.steps.evaluate import plan_evaluation
    from durability.steps.settings import NIGHTLY

    loss = lost(settings, snapshot, asked, label)
    return Prediction(snapshot, loss, plan_evaluation(settings, NIGHTLY, run_id, result_id, [snapshot], []))


def predict(settings: Settings, prediction: Prediction, submit: Submit, summary: StepSummary) -> dict[str, Path]:
    """Runs the Spark job of a prediction and writes its files; returns them by name."""
    from durability.report import whatif

    lake, loss = settings.open_lake(), prediction.loss
    submit(lake, prediction.plan, {prediction.snapshot["cluster"]: loss.to_dict()})
    snapshot = prediction.snapshot
    files = whatif.write(
        lake, prediction.plan, loss, unread(settings, snapshot), settings.out, clients(settings, snapshot)
    )
    summary.text = f"{plural(len(loss.brokers), 'broker')}, {plural(len(loss.controllers), 'controller')}"
    return files
