"""One file a control, named like it: `controls/write_headroom.py` is the rule of control `write-headroom`.

A rule is found through the catalogue. It may have any of:

    of_partition() -> dict    what its measures need of each partition, by name
    measures() -> dict        measures over a topic's partitions, by name
    follows() -> dict         what follows of a topic's measures, by name
    outcome() -> Column       the outcome of a topic, computed once, beside its measures
    check() -> Column         the topic's one comparison of two numbers, which Great Expectations checks again
    topic_verdicts(plan), cluster_verdicts(plan), broker_verdicts(plan), tier_verdicts(plan), application_verdicts(plan)
                              -> list[Column], each made by `base.verdict`, of a resource of that type
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from durability.catalogue import CONTROLS

OF_VERDICTS = "waiver"
"""Controls on these come of other controls' verdicts."""


def rules() -> dict[str, ModuleType]:
    """The rules of the controls that are judged, by control id, in the catalogue's order.

    ModuleNotFoundError for a control that has none.
    """
    judged = [c for c in CONTROLS.values() if not c.planned and OF_VERDICTS not in c.on]
    return {c.id: import_module(f"spark_jobs.controls.{c.id.replace('-', '_')}") for c in judged}


def having(function: str) -> list[ModuleType]:
    """The rules that have this function."""
    return [rule for rule in rules().values() if hasattr(rule, function)]
