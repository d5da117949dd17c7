"""What a verdict says and what fixes it: templates of the catalogue, filled in with the verdict's evidence.

Templates are Jinja's. They see the finding's fields (cluster, resource, resource_type, control, tier, category, cause,
partitions), `observed`, `required` and `evidence`, FILTERS, and the commands topic_config, broker_config and
cluster_config of `durability.remedies.commands`. What is missing is an error; what is null is "unknown".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment

from durability.catalogue import listing
from durability.catalogue.model import CONTROLS, FOLDER, Control, load
from durability.remedies import PLANNERS
from durability.remedies.commands import broker_config, cluster_config, topic_config


def _shown(value: Any) -> Any:
    """As Kafka writes it."""
    return "unknown" if value is None else str(value).lower() if isinstance(value, bool) else value


ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, finalize=_shown, autoescape=False)
ENVIRONMENT.filters.update(listing.FILTERS)
ENVIRONMENT.globals.update({f.__name__: f for f in (topic_config, cluster_config, broker_config)})


@cache
def _common() -> dict[str, dict[str, Any]]:
    return load(FOLDER / "_common.yaml")


@cache
def _template(text: str) -> Template:
    return ENVIRONMENT.from_string(text)


def _said_of(outcome: str) -> str | None:
    """The outcome whose text a finding has; None: it has none."""
    return {"EXEMPT": "FAIL", "PASS": None}.get(outcome, outcome)


def _chosen(control: Control, of: str, outcome: str, finding: Mapping[str, Any]) -> Any:
    """The text for an outcome: by reason, by category, or for the outcome as such; the control's own before the common one."""
    reason, category = (finding["evidence"] or {}).get("reason"), finding["category"]
    keys = [f"{outcome}/{reason}"] if reason else []
    keys += [f"{outcome}/{category}"] if category else []
    own = getattr(control, of)
    for key in (*keys, outcome):
        if key in own:
            return own[key]
        if key in _common()[of] and key != outcome:
            return _common()[of][key]
    return _common()[of].get(outcome)


def message(finding: Mapping[str, Any]) -> str | None:
    """The sentence of a finding. `observed`, `required` and `evidence` are objects; None: it says nothing, as PASS does.

    KeyError for a control that isn't in the catalogue; jinja2.UndefinedError for evidence that a template misses.
    """
    control = CONTROLS[finding["control"]]
    outcome = finding["outcome"]
    if outcome == "NOT_APPLICABLE" and finding["provider"] in control.provider_duty:
        return control.provider_duty[finding["provider"]]
    said = _said_of(outcome)
    if said is None:
        return None
    text = _chosen(control, "messages", said, finding)
    return None if text is None else _template(text).render(finding)


def remediation(finding: Mapping[str, Any]) -> str | None:
    """What fixes a finding: a sentence of advice, or a script of Kafka's commands that bash takes as it is."""
    said = _said_of(finding["outcome"])
    if said not in ("FAIL", "UNKNOWN"):
        return None
    chosen = _chosen(CONTROLS[finding["control"]], "remedies", said, finding)
    if chosen is None:
        return None
    if isinstance(chosen, dict):
        return PLANNERS[chosen["planner"]](finding)
    return _template(chosen).render(finding)
