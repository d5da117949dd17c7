"""Which brokers must start before others, by cluster: the verdicts on offline partitions state it for each topic."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pyarrow.compute as pc

from durability.lake.conditions import of_result
from durability.lake.tables import VERDICTS
from durability.plan.plan import Plan
from durability.remedies.cluster import StartsFirst

STATED = '"first":[{'
"""How evidence begins that names brokers. Only such evidence is parsed."""


def read(lake: Any, plan: Plan) -> dict[str, tuple[StartsFirst, ...]]:
    """By cluster the brokers that must start first, where unclean leader election isn't known to be off.

    lake: has `parts(table, where, columns)`.
    """
    from pyiceberg.expressions import And, EqualTo

    where = And(of_result(plan), EqualTo("control", "partition-health"), EqualTo("category", "offline"))
    found: defaultdict[str, dict[tuple[tuple[int, ...], bool | None], list[str]]] = defaultdict(dict)
    for part in lake.parts(VERDICTS, where, columns=("cluster", "resource", "evidence")):
        stated = part.filter(pc.fill_null(pc.match_substring(part["evidence"], STATED), False))
        for row in stated.to_pylist():
            evidence = json.loads(row["evidence"])
            if evidence["unclean"] is False:
                continue
            for first in evidence["first"]:
                names = found[row["cluster"]].setdefault((tuple(first["brokers"]), evidence["unclean"]), [])
                names += (f"{row['resource']}-{partition}" for partition in first["partitions"])
    return {
        cluster: tuple(
            StartsFirst(brokers, len(names), min(names), unclean)
            for (brokers, unclean), names in sorted(of.items(), key=str)
        )
        for cluster, of in found.items()
    }
