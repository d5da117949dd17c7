"""`resolved_policy`: the tier of each resource, and the waivers that match its name.

Patterns are matched here, with Python's RE2, because Spark would match them as Java patterns. Spark joins the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.conditions import of_attempts
from durability.lake.tables import BROKERS, GROUPS, RESOLVED_POLICY, TIMESTAMP, TOPICS
from durability.plan.applications import GROUP_COLUMNS, applications
from durability.plan.inventory import Inventory
from durability.plan.plan import Plan, SnapshotPart, from_text
from durability.policy.match import match_column
from durability.policy.model import Policy, Waiver
from durability.policy.resolve import resolve

if TYPE_CHECKING:
    from durability.lake import Lake

# Possible values of type, protocol_type and protocol for a Streams group. An unknown value is possible, too.
_MAY_BE_STREAMS = (("classic", "streams", "unknown"), ("consumer", "streams"), ("stream",))
_PROTOCOL_COLUMNS = ["cluster", "group", "type", "protocol_type", "protocol"]


def resolve_policy(lake: Lake, plan: Plan, policy: Policy, waivers: Sequence[Waiver]) -> int:
    """Append the rows of the plan's evaluated snapshots to `resolved_policy`, in one commit.

    Rows have resource_type topic, broker (id), cluster (id), tier (name) or application (group id, with its placement verdict).
    Returns the number of applications with a placement verdict.
    """
    if not plan.judged:
        _append(lake, _not_audited(plan), waivers)
        return 0
    where = of_attempts([{"attempt_id": s.attempt_id, "captured_at": s.moment} for s in plan.judged])
    topics = lake.scan(TOPICS, where, ["attempt_id", "cluster", "topic", "internal", "replication_factor"])
    brokers = lake.scan(BROKERS, where, ["attempt_id", "broker"])
    groups = lake.scan(GROUPS, where, list(GROUP_COLUMNS))
    teams = {s.cluster: s.team for s in plan.judged}
    found = resolve(policy, topics, teams, streams_groups(groups))
    resources = pa.concat_tables(
        [
            _resources("topic", topics["attempt_id"], topics["topic"], **found._asdict()),
            _resources("broker", brokers["attempt_id"], brokers["broker"].cast(pa.string())),
            _resources("application", groups["attempt_id"], groups["group"], **applications(groups, policy)),
            _clusters_and_tiers(plan.judged, policy),
        ],
        promote_options="default",
    )
    rows = _with_keys(resources, _keys(plan)).drop_columns("attempt_id")
    _append(lake, pa.concat_tables([rows, _not_audited(plan)], promote_options="default"), waivers)
    return rows.num_rows - rows["placement"].null_count


def _append(lake: Lake, rows: pa.Table, waivers: Sequence[Waiver]) -> None:
    """Append rows without `waivers`."""
    if rows.num_rows:
        lake.append(RESOLVED_POLICY, rows.append_column("waivers", _matching(rows, waivers)))


def _not_audited(plan: Plan) -> pa.Table:
    """Rows of the clusters in an inventory that have no accepted snapshot, since waivers may cover them."""
    judged = {s.cluster for s in plan.judged}
    inventory = plan.inventory or Inventory()
    names = {listed.cluster or listed.id for listed in inventory.clusters} | set(inventory.unlisted)
    stated = {"run_id": plan.run_id, "result_id": plan.result_id, "captured_at": from_text(plan.latest)}
    rows = [
        {"cluster": name, **stated, "resource_type": "cluster", "resource": name} for name in sorted(names - judged)
    ]
    names_of = ("cluster", "run_id", "result_id", "resource_type", "resource")
    schema = pa.schema([*((name, pa.string()) for name in names_of), ("captured_at", TIMESTAMP)])
    return pa.Table.from_pylist(rows, schema)


def _resources(kind: str, attempts: pa.ChunkedArray, names: pa.ChunkedArray, **more: Any) -> pa.Table:
    """Rows of one resource_type. more: the columns tier, undecided and placement, if any."""
    kinds = pa.repeat(pa.scalar(kind), len(names))
    return pa.table({"attempt_id": attempts, "resource_type": kinds, "resource": names, **more})


def streams_groups(groups: pa.Table) -> dict[str, set[str]]:
    """By cluster, the groups that are or may be Kafka Streams applications.

    Brokers name the protocol of a classic group only while the group is stable.
    """
    found: dict[str, set[str]] = {}
    for row in groups.select(_PROTOCOL_COLUMNS).to_pylist():
        known = (row["type"], row["protocol_type"], row["protocol"])
        if all(not value or value.lower() in may for value, may in zip(known, _MAY_BE_STREAMS, strict=True)):
            found.setdefault(row["cluster"], set()).add(row["group"])
    return found


def _clusters_and_tiers(snapshots: list[SnapshotPart], policy: Policy) -> pa.Table:
    rows = [{"attempt_id": s.attempt_id, "resource_type": "cluster", "resource": s.cluster} for s in snapshots]
    of_tiers = [{"resource_type": "tier", "resource": tier, "tier": tier} for tier in policy.tiers]
    rows += [{"attempt_id": s.attempt_id, **tier} for s in snapshots for tier in of_tiers]
    names = ("attempt_id", "resource_type", "resource", "tier")
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in names]))


def _keys(plan: Plan) -> pa.Table:
    """One row per attempt: the columns that `resolved_policy` takes from the snapshot and the run."""
    of_run = {"run_id": plan.run_id, "result_id": plan.result_id}
    rows = [
        {
            "attempt_id": s.attempt_id,
            "cluster": s.cluster,
            "captured_at": s.moment,
            "snapshot_id": s.snapshot_id,
            **of_run,
        }
        for s in plan.judged
    ]
    return pa.Table.from_pylist(rows)


def _with_keys(resources: pa.Table, keys: pa.Table) -> pa.Table:
    """`resources` with the columns of `keys`, joined by attempt_id. Rows of other attempts are dropped.

    Arrow's own join doesn't support list columns.
    """
    at = pc.index_in(resources["attempt_id"], value_set=keys["attempt_id"].combine_chunks())
    rows, at = resources.filter(pc.is_valid(at)), at.drop_null()
    for name in keys.column_names:
        if name not in rows.column_names:
            rows = rows.append_column(name, keys[name].take(at))
    return rows


def _matching(rows: pa.Table, waivers: Sequence[Waiver]) -> pa.Array:
    """For each row, the indexes of the waivers whose cluster and resource patterns match. Controls are not compared."""
    clusters, names = (rows[name].combine_chunks().dictionary_encode() for name in ("cluster", "resource"))
    matched: list[list[int]] = [[] for _ in range(rows.num_rows)]
    for waiver in waivers:
        here = match_column(waiver.cluster, clusters.dictionary).take(clusters.indices)
        named = match_column(waiver.resource, names.dictionary).take(names.indices)
        for row in pc.indices_nonzero(pc.and_(here, named)).to_pylist():
            matched[row].append(waiver.index)
    return pa.array(matched, pa.list_(pa.int32()))
