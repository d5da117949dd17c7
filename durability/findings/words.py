"""A finding's message and remediation: templates of the catalogue, rendered with the verdict's evidence.

Templates are Jinja's. They may use the finding's fields (cluster, resource, resource_type, control, tier, category, cause,
partitions, observed, required, evidence), the filters of `durability.catalogue.listing`, and the functions topic_config,
broker_config and cluster_config. A missing field is an error; null is rendered as "unknown".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment

from durability.catalogue import listing
from durability.catalogue.model import CONTROLS, FOLDER, load
from durability.remedies import PLANNERS
from durability.remedies.cluster import ClusterFacts, facts_of
from durability.remedies.commands import broker_config, cluster_config, topic_config
from durability.remedies.steps import Remedy, render


def _as_kafka(value: Any) -> Any:
    """A value as Kafka writes it."""
    return "unknown" if value is None else str(value).lower() if isinstance(value, bool) else value


ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, finalize=_as_kafka, autoescape=False)
ENVIRONMENT.filters.update(listing.FILTERS)
COMMANDS = (topic_config, cluster_config, broker_config)
ENVIRONMENT.globals.update({f.__name__: f for f in COMMANDS})


@cache
def _common() -> dict[str, dict[str, Any]]:
    return load(FOLDER / "_common.yaml")


@cache
def _template(text: str) -> Template:
    return ENVIRONMENT.from_string(text)


def _chosen(finding: Mapping[str, Any], of: str) -> Any:
    """The entry of `messages` or `remedies` for a finding, None if it has none; EXEMPT has that of FAIL.

    By reason, else by category, else by outcome; the control's own comes before the common one.
    """
    outcome = {"EXEMPT": "FAIL"}.get(finding["outcome"], finding["outcome"])
    own, common = getattr(CONTROLS[finding["control"]], of), _common()[of]
    for detail in ((finding["evidence"] or {}).get("reason"), finding["category"]):
        for texts in (own, common) if detail else ():
            if f"{outcome}/{detail}" in texts:
                return texts[f"{outcome}/{detail}"]
    return own.get(outcome, common.get(outcome))


def message(finding: Mapping[str, Any]) -> str | None:
    """The sentence of a finding with `observed`, `required` and `evidence` as objects; None for PASS.

    KeyError for a control that isn't in the catalogue; jinja2.UndefinedError for evidence that a template needs.
    """
    duty = CONTROLS[finding["control"]].provider_duty
    if finding["outcome"] == "NOT_APPLICABLE" and finding["provider"] in duty:
        return duty[finding["provider"]]
    hidden = CONTROLS[finding["control"]].provider_hides
    if (finding["evidence"] or {}).get("reason") == "platform" and finding["provider"] in hidden:
        return hidden[finding["provider"]]
    text = _chosen(finding, "messages")
    return None if text is None else _template(text).render(finding)


def remedy(finding: Mapping[str, Any]) -> Remedy | str | None:
    """The fix of a FAIL, EXEMPT or UNKNOWN: the steps of a planner, or the text of a template."""
    chosen = _chosen(finding, "remedies") if finding["outcome"] in ("FAIL", "EXEMPT", "UNKNOWN") else None
    if isinstance(chosen, dict):
        return PLANNERS[chosen["planner"]](finding)
    return None if chosen is None else _template(chosen).render(finding, **_commands(facts_of(finding)))


def remediation(finding: Mapping[str, Any]) -> str | None:
    """The text of `remedy`: a sentence of advice, or a script of Kafka's commands for bash."""
    fix = remedy(finding)
    return render(fix, facts_of(finding)) if isinstance(fix, list) else fix


def _commands(facts: ClusterFacts) -> dict[str, Any]:
    """The functions that templates call, in the dialect of the cluster's release."""
    return {f.__name__: partial(f, facts=facts) for f in COMMANDS}
