"""What the loss of each broker and rack would cost: the entries of losses.json, a cluster at a time."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.conditions import of_result
from durability.lake.loss_tables import WHOLE_SETS
from durability.lake.table import RESULT_KEYS, Table
from durability.lake.tables import BROKERS, CLUSTERS, CONTROLLERS, FAILURE_COSTS, FINDINGS, LOSS_SETS, TOPICS, VIEWS
from durability.plan.plan import Plan, SnapshotPart
from durability.report.data import loss_sets, waves
from durability.report.data.loss_sets import LossSets
from durability.restart.nodes import nodes

ROWS = 1_000_000
"""The most rows of `loss_sets` that are read at once, if no single cluster has more."""
KINDS = {"broker": "brokers", "rack": "racks"}
REASSIGNMENTS = "reassignment-leftovers"
"""The control whose findings count the partitions that are reassigned."""
COSTS = ("cluster", *(name for name in FAILURE_COSTS.arrow.names if name not in dict(RESULT_KEYS)))
"""The columns of `failure_costs` that are read."""
ERRORS = {"kept": "NOT_ENOUGH_REPLICAS", "lost": "REQUEST_TIMED_OUT"}
"""What leaders answer acks=all writes that a loss breaks, by the quorum after it. Without a majority no ISR shrinks."""
Row = Mapping[str, Any]


class FailureCosts:
    """The entries of losses.json of a run's clusters that have rows in `failure_costs`. Each iteration reads them again.

    The sets of many clusters don't fit into memory together, so the clusters are read in groups of at most ROWS sets.
    """

    def __init__(self, lake: Any, plan: Plan):
        self.lake, self.plan = lake, plan

    def __iter__(self) -> Iterator[dict[str, Any]]:
        from pyiceberg.expressions import And, In

        snapshots = {part.cluster: part for part in self.plan.judged}
        result = of_result(self.plan)
        costs: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self.lake.scan(FAILURE_COSTS, result, columns=COSTS).to_pylist():
            if row["cluster"] in snapshots:
                costs[row["cluster"]].append(row)
        if not costs:
            return
        brokers = self._facts(BROKERS, ("broker", "rack", "live"))
        controllers = self._facts(CONTROLLERS, ("controller", "role", "leader", "rack", "live", "caught_up"))
        untold = self._untold(controllers)
        for names in groups(self._sizes(result, costs), ROWS):
            where = And(result, In("cluster", names))
            parts = self.lake.parts(LOSS_SETS, where, columns=loss_sets.COLUMNS)
            sets = by_cluster(pa.concat_tables([pa.schema(_fields()).empty_table(), *parts]), names)
            for name in names:
                of_waves = None if name in untold else controllers[name]
                yield entry(snapshots[name], costs[name], sets.pop(name), brokers[name], of_waves)

    def _sizes(self, result: Any, clusters: Iterable[str]) -> Counter[str]:
        """The number of rows in `loss_sets` of each cluster."""
        sizes = Counter(dict.fromkeys(clusters, 0))
        for part in self.lake.parts(LOSS_SETS, result, columns=("cluster",)):
            counted = {value["values"]: value["counts"] for value in pc.value_counts(part["cluster"]).to_pylist()}
            sizes.update({name: count for name, count in counted.items() if name in sizes})
        return sizes

    def _facts(self, table: Table, columns: Sequence[str]) -> defaultdict[str, list[Row]]:
        """Rows of a table of facts by cluster."""
        found: defaultdict[str, list[Row]] = defaultdict(list)
        if attempts := self._attempts():
            for row in self.lake.scan(table, attempts, columns=("cluster", *columns)).to_pylist():
                found[row["cluster"]].append(row)
        return found

    def _untold(self, controllers: Mapping[str, Sequence[Row]]) -> set[str]:
        """The clusters of whose restarts nothing is said, because what was not seen may limit waves.

        That is a topic that is hidden or unread, voters that are unknown, or so many replicas that `loss_sets` hasn't all sets.
        Or it is a running reassignment: if no broker can be spared before its end, `loss_sets` has no set for the time after it.
        """
        from pyiceberg.expressions import And, EqualTo, GreaterThan, IsNull, Or

        everyone = {part.cluster for part in self.plan.judged}
        attempts = self._attempts()
        if not attempts:
            return everyone
        unread = Or(EqualTo("partitions_known", False), IsNull("partitions_known"))
        where = And(attempts, Or(GreaterThan("replication_factor", WHOLE_SETS), unread))
        untold = {*self.lake.scan(TOPICS, where, columns=("cluster",))["cluster"].to_pylist()} | self._reassigning()

        def seen(name: str, row: Row) -> bool:
            voters = any(controller["role"] == "voter" for controller in controllers.get(name, ()))
            quorum = voters or row["quorum_mode"] == "zookeeper"
            return bool(row["topics_known"] and row["hidden_partitions"] == 0 and quorum)

        facts = self._facts(CLUSTERS, ("topics_known", "hidden_partitions", "quorum_mode"))
        whole = {name for name, rows in facts.items() if all(seen(name, row) for row in rows)}
        return (everyone - whole) | untold

    def _reassigning(self) -> set[str]:
        """The clusters in which replicas move, as the findings about reassignments say."""
        from pyiceberg.expressions import And, EqualTo

        where = And(of_result(self.plan), EqualTo("control", REASSIGNMENTS))
        rows = self.lake.scan(FINDINGS, where, columns=("cluster", "observed")).to_pylist()
        return {row["cluster"] for row in rows if json.loads(row["observed"] or "{}").get("reassigning")}

    def _attempts(self) -> Any:
        """The condition on facts of the evaluated snapshots; None if there are none."""
        from pyiceberg.expressions import In

        attempts = {part.attempt_id for part in self.plan.judged if part.attempt_id}
        return In("attempt_id", attempts) if attempts else None


def _fields() -> list[pa.Field]:
    return [LOSS_SETS.arrow.field(name) for name in loss_sets.COLUMNS]


def by_cluster(sets: pa.Table, names: Sequence[str]) -> dict[str, pa.Table]:
    """The rows of each of these clusters. A filter per cluster would compare each row with each cluster."""
    of_row = pc.index_in(sets["cluster"], pa.array(names, pa.string())).to_numpy()
    order = np.argsort(of_row, kind="stable")
    ends = np.searchsorted(of_row[order], np.arange(len(names) + 1))
    return {name: sets.take(order[ends[n] : ends[n + 1]]) for n, name in enumerate(names)}


def groups(sizes: Mapping[str, int], limit: int) -> list[list[str]]:
    """Names in groups whose sizes add up to at most `limit`. A name with a larger size is a group by itself.

    >>> groups({"a": 1, "b": 9, "c": 2, "d": 3}, 5)
    [['a', 'c'], ['d'], ['b']]
    """
    found: list[list[str]] = []
    filled = limit + 1
    for name in sorted(sizes, key=lambda name: (sizes[name], name)):
        if filled + sizes[name] > limit:
            found.append([])
            filled = 0
        found[-1].append(name)
        filled += sizes[name]
    return found


def entry(
    snapshot: SnapshotPart,
    costs: Sequence[Row],
    sets: pa.Table,
    brokers: Sequence[Row],
    controllers: Sequence[Row] | None = None,
) -> dict[str, Any]:
    """A cluster's entry in losses.json.

    costs, brokers, controllers: its rows of `failure_costs` and of these tables. sets: its rows of `loss_sets`, with
    `loss_sets.COLUMNS`. Without controllers, nothing is said of restarts.
    """
    live = {row["broker"]: row["live"] for row in brokers}
    of_rack: defaultdict[str, list[bool | None]] = defaultdict(list)
    for row in brokers:
        of_rack[row["rack"] or ""].append(row["live"])
    lost = {
        "brokers": [_cost(row, int(row["name"])) for row in costs if row["kind"] == "broker"],
        "racks": [_cost(row, row["name"]) for row in costs if row["kind"] == "rack"],
    }
    # What is down already can't fail again. A rack without brokers has controllers, which can.
    down = {
        "brokers": {id for id, up in live.items() if up is False},
        "racks": {rack for rack, ups in of_rack.items() if all(up is False for up in ups)},
    }
    for row in lost["brokers"]:
        row["live"] = live.get(row["lost"])
    already = next((row for row in costs if row["kind"] == "already"), None)
    unknown = [row["unknown"] for row in costs]
    found: dict[str, Any] = {
        **{name: getattr(snapshot, name) for name in ("cluster", "snapshot_id", "captured_at")},
        "already": None if already is None else _views(already),
        "unknown": None if None in unknown else max(unknown, default=0),
        **{name: sorted(rows, key=worst_first) for name, rows in lost.items()},
    }
    of_live = {}
    for kind, label in KINDS.items():
        live_nodes = sorted(row["lost"] for row in lost[label] if row["lost"] not in down[label])
        of_live[kind] = of_kind = LossSets(live_nodes, sets.filter(pc.equal(sets["kind"], kind)))
        suffix = "" if kind == "broker" else "_racks"
        found[f"k{suffix}"], found[f"minimal{suffix}"] = of_kind.k(), of_kind.smallest(label)
    # Waves consist of brokers, whatever their racks.
    of_brokers = {row["unknown"] for row in costs if row["kind"] != "rack"}
    known = controllers is not None and found["unknown"] is not None and of_brokers <= {0}
    found["restart"] = _restart(of_live["broker"], sets, brokers, controllers or ()) if known else None
    return found


def _restart(of_live: LossSets, sets: pa.Table, brokers: Sequence[Row], controllers: Sequence[Row]) -> dict[str, int]:
    """The waves in which all nodes restart, also those that are down. of_live: the sets of live brokers."""
    ids = sorted(row["broker"] for row in brokers)
    of_all = of_live if of_live.nodes == ids else LossSets(ids, sets.filter(pc.equal(sets["kind"], "broker")))
    # What one broker stops, no waves spare. It may be a part of larger sets, which other partitions need.
    stopping = of_all.of("structural", "writes", least=2)
    return waves.fewest(nodes(brokers, controllers), ids, stopping)


def worst_first(cost: Row) -> tuple[Any, ...]:
    """A sort key for brokers or racks of a cluster, as in losses.json: ascending is worst first.

    A lost quorum comes first, because nothing else can be fixed without a majority of the controllers.
    """
    counts = [cost["views"][view][name] for view, names in VIEWS.items() for name in names]
    broken = [-(count["partitions"] or 0) if count else 0 for count in counts]
    place = [-(cost[name] or 0) for name in ("unknown", "led", "held")]
    return (cost["quorum"] != "lost", *broken, *place, cost["lost"])


def _cost(row: Row, name: object) -> dict[str, Any]:
    facts = {key: row[key] for key in ("held", "led", "quorum", "unknown")}
    return {"lost": name, **facts, "writes_error": ERRORS.get(row["quorum"]), "views": _views(row)}


def _views(row: Row) -> dict[str, Any]:
    return {view: {name: row[f"{view}_{name}"] for name in names} for view, names in VIEWS.items()}
