"""One file per control, with the control's name: `controls/write_headroom.py` is the rule of control `write-headroom`.

The catalogue lists the controls. A rule has any of these functions, in this order of evaluation:

    of_partition() -> dict    columns that its measures need of each partition, by name
    measures() -> dict        measures over a topic's partitions, by name
    follows() -> dict         columns computed from a topic's measures, by name
    outcome() -> Column       the topic's outcome
    check() -> Column         one comparison of two numbers of the topic, which Great Expectations checks again
    topic_verdicts(plan), cluster_verdicts(plan), broker_verdicts(plan), tier_verdicts(plan), application_verdicts(plan)
                              -> Columns, each made by `base.verdict`, about a resource of that type
    inventory_verdicts(plan), listed_verdicts(plan)
                              -> Columns, each made by `base.verdict`, about an inventory, and about a cluster of it or the fleet
    loss_verdicts(plan)       -> Columns, each made by `base.verdict`, about a topic and what single losses break of it
"""

from importlib import import_module
from types import ModuleType

from durability.catalogue import CONTROLS

OF_VERDICTS = "waiver"
"""The type of resource whose controls judge other verdicts."""
OF_FLEET = "inventory"
"""The type of resource whose controls judge the fleet. They have no verdict on a cluster that could not be read."""


def rules() -> dict[str, ModuleType]:
    """The rules by control id, in the catalogue's order, without those of verdicts and of the fleet.

    ModuleNotFoundError for a control without a rule.
    """
    others = {OF_VERDICTS, OF_FLEET}
    return {c.id: _rule(c.id) for c in CONTROLS.values() if not c.planned and not others.intersection(c.on)}


def _rule(control: str) -> ModuleType:
    name = f"spark_jobs.controls.{control.replace('-', '_')}"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(
            f"control {control} has no rule: expected the file {name.replace('.', '/')}.py", name=name
        ) from None


def having(function: str) -> list[ModuleType]:
    """The rules that have this function."""
    return [rule for rule in rules().values() if hasattr(rule, function)]
