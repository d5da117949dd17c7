"""A tier's requirements as plain numbers: a range becomes two bounds, a relation the distance to the replication factor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from durability.catalogue import Requirement, requirements

AT_MOST, BELOW_RF = "_at_most", "_below_rf"
"""The ends of the keys that `numbers` adds."""


def numbers(stated: Mapping[str, Any]) -> dict[str, Any]:
    """A tier's requirements with one key per number.

    `<key>`: the minimum. `<key>_at_most`: the maximum of a range. `<key>_below_rf`: the minimum is the topic's replication factor
    minus this number. A key that isn't required is left out.

    >>> numbers({"replication_factor": {"min": 3, "max": 5}, "min_insync_replicas": "rf-1", "replica_racks": "all"})
    {'replication_factor': 3, 'replication_factor_at_most': 5, 'min_insync_replicas_below_rf': 1, 'replica_racks_below_rf': 0}
    """
    found: dict[str, Any] = {}
    for key, value in stated.items():
        if isinstance(value, Mapping):
            bounds = {key: value.get("min"), key + AT_MOST: value.get("max")}
            found |= {name: bound for name, bound in bounds.items() if bound is not None}
        elif isinstance(value, str):
            found[key + BELOW_RF] = 0 if value == "all" else int(value.removeprefix("rf-"))
        else:
            found[key] = value
    return found


def keys() -> dict[str, Requirement]:
    """The keys that `numbers` can give, in the catalogue's order, each with its type."""
    found: dict[str, Requirement] = {}
    for key, requirement in requirements().items():
        found[key] = requirement
        if requirement.range:
            found[key + AT_MOST] = replace(requirement, key=key + AT_MOST)
        if requirement.relative:
            found[key + BELOW_RF] = replace(requirement, key=key + BELOW_RF)
    return found
