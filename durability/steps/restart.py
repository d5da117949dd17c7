"""Step restart: from a snapshot, in which waves brokers may restart; and whether a wave may restart now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.lake.conditions import of_result
from durability.steps.settings import NIGHTLY, Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.lake import Lake
    from durability.plan import Plan
    from durability.restart.constraints import Partitions
    from durability.restart.nodes import Node
    from durability.restart.plan import Limits, Unread


def plan_waves(
    settings: Settings,
    snapshot: Mapping[str, Any],
    limits: Limits,
    run_id: str,
    submit: Callable[[Lake, Plan], None],
    summary: StepSummary,
) -> dict[str, Path]:
    """Runs the Spark job for a row of `snapshots`, computes the waves and writes restart.json; returns the file by name."""
    from durability.report import restart as report
    from durability.restart.plan import plan
    from durability.steps.evaluate import plan_evaluation

    lake = settings.open_lake()
    evaluated = plan_evaluation(settings, NIGHTLY, run_id, f"{run_id}:1", [snapshot], [])
    submit(lake, evaluated)
    lacking = unread(settings, snapshot)
    made = plan(list(_partitions(lake, evaluated)), nodes(lake, snapshot), limits, lacking)
    summary.text = f"{len(made.waves)} waves"
    return report.write(evaluated.judged[0], made, limits, settings.out)


def unread(settings: Settings, snapshot: Mapping[str, Any]) -> Unread:
    """What the snapshot lacks for a restart plan."""
    from durability.lake.tables import CLUSTERS, CONTROLLERS
    from durability.restart.plan import Unread
    from durability.steps import whatif

    lake = settings.open_lake()
    [cluster] = lake.facts(CLUSTERS, snapshot).to_pylist()
    voters = "voter" in lake.facts(CONTROLLERS, snapshot)["role"].to_pylist()
    quorum = cluster["quorum_mode"] != "zookeeper" and not voters
    lacking = whatif.unread(settings, snapshot)
    return Unread(lacking["topics"] or 0, lacking["hidden_partitions"], quorum)


def nodes(lake: Lake, snapshot: Mapping[str, Any]) -> list[Node]:
    """The brokers and voters of a snapshot."""
    from durability.lake.tables import BROKERS, CONTROLLERS
    from durability.restart import nodes

    return nodes.nodes(*(lake.facts(table, snapshot).to_pylist() for table in (BROKERS, CONTROLLERS)))


def _partitions(lake: Lake, evaluated: Plan) -> Iterator[Partitions]:

    from durability.lake.tables import RESTART_CAPACITY
    from durability.restart.constraints import Partitions

    result = of_result(evaluated)
    for part in lake.parts(RESTART_CAPACITY, result):
        for batch in part.to_batches(max_chunksize=20_000):
            for row in batch.to_pylist():
                replicas = frozenset(row["replicas"] or ())
                known = row["isr"] is not None and row["replicas"] is not None
                yield Partitions(
                    replicas=replicas,
                    isr=frozenset(row["isr"] or ()) if known else replicas,
                    minimum=row["minimum"] if known else None,
                    count=row["partitions"],
                    example=(row["topic"], row["partition"]),
                )
