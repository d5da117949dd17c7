"""Killing sets of a cluster from rows of `loss_sets`: how likely k failures break something, and the smallest sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from durability.lake.tables import VIEWS
from durability.losses import counting
from durability.losses.killing_sets import Ints, KillingSets, killing_sets, minimal

COUNTED = ("now", "structural")
"""The views that `loss_sets` has. It has no sets for the worst case."""
CLASSES = VIEWS["now"]
COLUMNS = ("cluster", "kind", "members", *(f"{view}_{name}" for view in COUNTED for name in CLASSES))
LISTED = 100
"""The most minimal sets of a view and class that are listed."""


class LossSets:
    """The killing sets of one kind of nodes, for each view and class.

    nodes: the names that may fail, in order: brokers or racks that aren't down. Sets with another member are left out, because
    no k of these nodes contain them.
    rows: of `loss_sets`, of one cluster and kind, with COLUMNS.
    """

    def __init__(self, nodes: Sequence[Any], rows: pa.Table):
        self.nodes = nodes
        self._rows = list(_by_size(nodes, rows))

    @cached_property
    def minimal(self) -> dict[str, dict[str, KillingSets]]:
        """The minimal sets by view and class."""
        return {view: {name: self.of(view, name) for name in CLASSES} for view in COUNTED}

    def k(self) -> list[dict[str, Any]]:
        """An entry for each k up to 3: the number of sets of k nodes, and by view and class how many break something.

        Further entries are estimates, without numbers of sets.
        """
        total = len(self.nodes)
        counted = {view: {name: counting.bad(sets) for name, sets in of.items()} for view, of in self.minimal.items()}
        found: list[dict[str, Any]] = []
        for k in (*(k for k in counting.EXACT if k <= total), *counting.larger(total)):
            exact = k in counting.EXACT
            views = {
                view: {name: _share(sets, k, counted[view][name].get(k)) for name, sets in of.items()}
                for view, of in self.minimal.items()
            }
            found.append({"k": k, "estimate": not exact, "sets": comb(total, k) if exact else None, **views})
        return found

    def smallest(self, label: str) -> dict[str, Any]:
        """The first LISTED minimal sets by view and class, as `label` (brokers, racks) and `partitions`; `count`: of all."""
        listed = {
            view: {
                name: [
                    {label: [self.nodes[node] for node in members], "partitions": partitions}
                    for members, partitions in sets.first(LISTED)
                ]
                for name, sets in of.items()
            }
            for view, of in self.minimal.items()
        }
        return {
            **listed,
            "count": {view: {n: len(sets) for n, sets in of.items()} for view, of in self.minimal.items()},
        }

    def of(self, view: str, name: str, least: int = 1) -> KillingSets:
        """The minimal ones among the sets of at least so many nodes, of a view and class."""
        column = f"{view}_{name}"

        def breaking() -> Iterable[tuple[Ints, Ints]]:
            for members, counts in self._rows:
                if members.shape[1] >= least:
                    breaks = counts[column] > 0
                    yield members[breaks], counts[column][breaks]

        return minimal(killing_sets(len(self.nodes), breaking()))


def _share(sets: KillingSets, k: int, count: int | None) -> dict[str, Any]:
    """count: the number of k-sets that break something; None if it is estimated."""
    share = counting.estimate(sets, k) if count is None else counting.probability(count, sets.nodes, k)
    return {"sets": count, "probability": share}


def _by_size(nodes: Sequence[Any], rows: pa.Table) -> Iterator[tuple[Ints, dict[str, Ints]]]:
    """For each size of sets a matrix of their members as places in `nodes`, and by column their numbers of partitions."""
    places = {str(name): place for place, name in enumerate(nodes)}
    names = pc.list_flatten(rows["members"].combine_chunks()).dictionary_encode()
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    of_name = np.array([places.get(name, -1) for name in names.dictionary.to_pylist()], np.int64)
    members = of_name[names.indices.to_numpy(zero_copy_only=False).astype(np.int64)] if len(names) else of_name
    sizes = pc.fill_null(pc.list_value_length(rows["members"]), 0).to_numpy()
    ends = np.cumsum(sizes)
    counts = {name: pc.fill_null(rows[name], 0).to_numpy().astype(np.int64) for name in COLUMNS[3:]}
    for size in np.unique(sizes[sizes > 0]).tolist():
        of_size = np.flatnonzero(sizes == size)
        matrix = members[(ends[of_size] - size)[:, None] + np.arange(size)]
        known = (matrix >= 0).all(axis=1)
        yield matrix[known], {name: of_column[of_size][known] for name, of_column in counts.items()}
