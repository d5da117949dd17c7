"""`resolved_policy`: for each resource of the judged snapshots its tier, and the waivers that match its name.

Patterns are matched here, in Python with RE2, since Spark's are Java's; Spark joins the outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.conditions import of_attempts
from durability.lake.tables import BROKERS, GROUPS, RESOLVED_POLICY, TOPICS
from durability.plan import applications as streams
from durability.plan.plan import Plan, SnapshotPart
from durability.policy.match import match_column, matches
from durability.policy.model import Policy, Waiver
from durability.policy.resolve import resolve

if TYPE_CHECKING:
    from durability.lake import Lake

# What a Streams group may have as type, protocol_type and protocol; nothing where that isn't known.
_MAY_BE_STREAMS = (("classic", "streams", "unknown"), ("consumer", "streams"), ("stream",))
_TOLD = ["cluster", "group", "type", "protocol_type", "protocol"]
RESOURCE = ("attempt_id", "resource_type", "resource", "tier", "placement")


def resolve_policy(lake: Lake, plan: Plan, policy: Policy, waivers: Sequence[Waiver]) -> int:
    """Appends the rows of `plan`'s judged snapshots, under its run_id and result_id, in one commit.

    resource_type topic, broker (its id), cluster (its id), tier (its name) and application (its group id, with what its
    placement is judged to be). Returns how many applications have such a judgement.
    """
    snapshots = {s.attempt_id: s for s in plan.judged}
    if not snapshots:
        return 0
    where = of_attempts([{"attempt_id": s.attempt_id, "captured_at": s.moment} for s in plan.judged])
    topics = lake.scan(TOPICS, where, ["attempt_id", "cluster", "topic", "internal"])
    brokers = lake.scan(BROKERS, where, ["attempt_id", "broker"])
    groups = lake.scan(GROUPS, where, list(streams.GROUPS))
    applications = streams.applications(groups, policy)
    teams = {s.cluster: s.team for s in plan.judged}
    tiers = resolve(policy, topics, teams, streams_groups(groups))
    resources = pa.concat_tables(
        [
            _resources("topic", topics["attempt_id"], topics["topic"], tiers),
            _resources("broker", brokers["attempt_id"], brokers["broker"].cast(pa.string())),
            _resources("application", *(applications[n] for n in ("attempt_id", "resource", "tier", "placement"))),
            _clusters_and_tiers(plan.judged, policy),
        ],
        promote_options="default",
    )
    rows = _with_keys(resources, snapshots, plan)
    rows = rows.append_column("waivers", _matching(rows, waivers))
    lake.append(RESOLVED_POLICY, rows.select(RESOLVED_POLICY.arrow.names))
    return rows.num_rows - rows["placement"].null_count


def _resources(
    kind: str,
    attempts: pa.ChunkedArray,
    names: pa.ChunkedArray,
    tiers: pa.Array | pa.ChunkedArray | None = None,
    placements: pa.ChunkedArray | None = None,
) -> pa.Table:
    count = len(names)
    tiers = pa.nulls(count, pa.string()) if tiers is None else tiers
    placements = pa.nulls(count, pa.string()) if placements is None else placements
    columns = (attempts, pa.repeat(pa.scalar(kind), count), names, tiers, placements)
    return pa.table(dict(zip(RESOURCE, columns, strict=True)))


def streams_groups(groups: pa.Table) -> dict[str, set[str]]:
    """By cluster the groups of `groups` that are or may be Kafka Streams applications.

    Of a classic group that isn't stable brokers don't tell the protocol: it may be one.
    """
    found: dict[str, set[str]] = {}
    for row in groups.select(_TOLD).to_pylist():
        known = (row["type"], row["protocol_type"], row["protocol"])
        if all(not value or value.lower() in may for value, may in zip(known, _MAY_BE_STREAMS, strict=True)):
            found.setdefault(row["cluster"], set()).add(row["group"])
    return found


def _clusters_and_tiers(snapshots: list[SnapshotPart], policy: Policy) -> pa.Table:
    rows: list[tuple[str | None, ...]] = [(s.attempt_id, "cluster", s.cluster, None) for s in snapshots]
    rows += [(s.attempt_id, "tier", tier, tier) for s in snapshots for tier in policy.tiers]
    return pa.table({n: pa.array(c, pa.string()) for n, c in zip(RESOURCE[:4], zip(*rows, strict=True), strict=True)})


def _with_keys(resources: pa.Table, snapshots: Mapping[str | None, SnapshotPart], plan: Plan) -> pa.Table:
    """The columns of `resolved_policy` but the waivers; every key is taken from the resource's snapshot."""
    kinds = dict(RESOLVED_POLICY.columns)
    attempts = list(snapshots)
    position = pc.index_in(resources["attempt_id"], value_set=pa.array(attempts, pa.string())).combine_chunks()
    keys = {
        "cluster": [snapshots[a].cluster for a in attempts],
        "captured_at": [snapshots[a].moment for a in attempts],
        "snapshot_id": [snapshots[a].snapshot_id for a in attempts],
    }
    columns = {name: pc.take(pa.array(values, kinds[name]), position) for name, values in keys.items()}
    for name, value in (("run_id", plan.run_id), ("result_id", plan.result_id)):
        columns[name] = pa.repeat(pa.scalar(value, kinds[name]), resources.num_rows)
    return pa.table(columns | {name: resources[name] for name in RESOURCE[1:]})


def _matching(rows: pa.Table, waivers: Sequence[Waiver]) -> pa.Array:
    """For each row the indexes of the waivers whose cluster and resource expressions match, whatever the control."""
    clusters = rows["cluster"].combine_chunks().dictionary_encode()
    names = rows["resource"].combine_chunks().dictionary_encode()
    hit_rows, hit_waivers = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for waiver in waivers:
        here = pa.array([matches(waiver.cluster, c) for c in clusters.dictionary.to_pylist()], pa.bool_())
        if not pc.any(here).as_py():
            continue
        named = pc.take(match_column(waiver.resource, names.dictionary), names.indices)
        hits = np.flatnonzero(pc.and_(pc.take(here, clusters.indices), named).to_numpy(zero_copy_only=False))
        hit_rows.append(hits)
        hit_waivers.append(np.full(len(hits), waiver.index, np.int32))
    by_row, indexes = np.concatenate(hit_rows), np.concatenate(hit_waivers)
    order = np.argsort(by_row, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(by_row, minlength=rows.num_rows))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(indexes[order]))
