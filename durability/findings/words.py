"""Renders the message and remediation of a finding, from templates of the catalogue and the verdict's evidence.

Templates are Jinja's. They may use the finding's fields (cluster, resource, resource_type, control, tier, category, cause,
partitions, observed, required, evidence) and the filters of `durability.catalogue.listing`. Templates of remedies may also use
the functions of COMMANDS. A missing field is an error. Null is rendered as "unknown".
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment

from durability.catalogue import listing
from durability.catalogue.model import CONTROLS, FOLDER, load
from durability.remedies import PLANNERS, safety, starts
from durability.remedies.cluster import facts_of
from durability.remedies.commands import Command, broker_setting, cluster_setting, topic_setting
from durability.remedies.steps import Remedy, Step, advice, render


def _as_kafka(value: Any) -> Any:
    """A value as Kafka writes it."""
    if value is None:
        return "unknown"
    return str(value).lower() if isinstance(value, bool) else value


ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, finalize=_as_kafka, autoescape=False)
ENVIRONMENT.filters.update(listing.FILTERS)
COMMANDS: dict[str, Callable[..., Command]] = {
    "topic_config": topic_setting,
    "cluster_config": cluster_setting,
    "broker_config": broker_setting,
}
"""Functions for templates of remedies. Each returns a command."""
SECRET = secrets.token_hex(8)
MARK = re.compile(f"<{SECRET} ([0-9]+)>")
"""The place of a command in the text of a template. No text of a cluster can contain it."""


@cache
def _common() -> dict[str, dict[str, Any]]:
    return load(FOLDER / "_common.yaml")


@cache
def _template(text: str) -> Template:
    return ENVIRONMENT.from_string(text)


def _chosen(finding: Mapping[str, Any], of: str) -> Any:
    """The entry of `messages` or `remedies` for a finding; None if it has none. EXEMPT uses that of FAIL.

    It is chosen by reason, else by category, else by outcome. The control's own entry has precedence over the common one.
    """
    outcome = {"EXEMPT": "FAIL"}.get(finding["outcome"], finding["outcome"])
    own, common = getattr(CONTROLS[finding["control"]], of), _common()[of]
    for detail in ((finding["evidence"] or {}).get("reason"), finding["category"]):
        for texts in (own, common) if detail else ():
            if f"{outcome}/{detail}" in texts:
                return texts[f"{outcome}/{detail}"]
    return own.get(outcome, common.get(outcome))


def message(finding: Mapping[str, Any]) -> str | None:
    """The message of a finding with `observed`, `required` and `evidence` as objects; None for PASS.

    Raises KeyError for a control that isn't in the catalogue, and jinja2.UndefinedError for missing evidence.
    """
    duty = CONTROLS[finding["control"]].provider_duty
    if finding["outcome"] == "NOT_APPLICABLE" and finding["provider"] in duty:
        return duty[finding["provider"]]
    hidden = CONTROLS[finding["control"]].provider_hides
    if (finding["evidence"] or {}).get("reason") == "platform" and finding["provider"] in hidden:
        return hidden[finding["provider"]]
    text = _chosen(finding, "messages")
    return None if text is None else _template(text).render(finding)


def remedy(finding: Mapping[str, Any]) -> Remedy | None:
    """The fix of a FAIL, EXEMPT or UNKNOWN: steps of a planner or template, without commands that are unsafe now."""
    chosen = _chosen(finding, "remedies") if finding["outcome"] in ("FAIL", "EXEMPT", "UNKNOWN") else None
    if chosen is None:
        return None
    planned = PLANNERS[chosen["planner"]](finding) if isinstance(chosen, dict) else _steps(chosen, finding)
    return starts.ordered(safety.checked(planned, finding), finding)


def remediation(finding: Mapping[str, Any]) -> str | None:
    """The text of `remedy`: advice, or a bash script of Kafka's commands."""
    fix = remedy(finding)
    return None if fix is None else render(fix, facts_of(finding))


def _steps(template: str, finding: Mapping[str, Any]) -> Remedy:
    """The steps of a template: each command with the text before it, and the text after the last command."""
    commands: list[Command] = []

    def marked(make: Callable[..., Command]) -> Callable[..., str]:
        def mark(*arguments: Any) -> str:
            commands.append(make(*arguments))
            return f"<{SECRET} {len(commands) - 1}>"

        return mark

    text = _template(template).render(finding, **{name: marked(make) for name, make in COMMANDS.items()})
    if not commands:
        return advice(text)
    *pairs, rest = MARK.split(text)
    steps = [
        Step(commands[int(number)], _sentences(about)) for about, number in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    return [*steps, *([Step(about=_sentences(rest))] if rest.strip() else [])]


def _sentences(text: str) -> tuple[str, ...]:
    """The lines of a text without comment marks."""
    return tuple(line for part in text.splitlines() if (line := part.strip().lstrip("# ")))
