"""Which findings a plan of change is for, and which brokers it leaves alone: FINDINGS=, CONTROL=, TOPIC= and AVOID=."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from durability.catalogue import CONTROLS
from durability.errors import NotOfCluster, Refused
from durability.plain import plain
from durability.plan.lose import Item
from durability.policy.match import matches, pattern_problem
from durability.policy.yamlfile import did_you_mean

LABELS = {"findings": "--findings ", "control": "--control ", "topic": "--topic ", "avoid": "--avoid "}


@dataclass(frozen=True)
class Chosen:
    """What a user asked a plan for. No findings, control and topic: all open findings.

    topic: an RE2 expression for the whole name. avoid: brokers, or the brokers of racks, that get no new replica.
    several: several clusters are planned, so the findings may be of different ones. labels: the options in messages.
    """

    findings: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    topic: str | None = None
    avoid: tuple[Item, ...] = ()
    several: bool = False
    labels: Mapping[str, str] = field(default_factory=lambda: LABELS)


def names(text: str) -> tuple[str, ...]:
    """The names of a list that commas separate.

    >>> names("a, b,,a")
    ('a', 'b')
    """
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def check(chosen: Chosen) -> None:
    """Refuses a control that doesn't exist, and an expression that isn't one."""
    for control in chosen.controls:
        if control not in CONTROLS:
            raise Refused(
                plain(f"{chosen.labels['control']}{control}: no such control{did_you_mean(control, CONTROLS)}")
            )
    if chosen.topic is not None and (problem := pattern_problem(chosen.topic)) is not None:
        raise Refused(plain(f"{chosen.labels['topic']}{chosen.topic}: {problem}"))


def check_topic(chosen: Chosen, topics: Sequence[str]) -> None:
    """Raises NotOfCluster if the expression matches none of the cluster's topics."""
    if chosen.topic is not None and not any(matches(chosen.topic, name) for name in topics):
        hint = did_you_mean(chosen.topic, topics)
        raise NotOfCluster(plain(f"{chosen.labels['topic']}{chosen.topic}: matches no topic of the cluster{hint}"))


def targeted(
    chosen: Chosen, findings: Sequence[Mapping[str, Any]], closed: Iterable[str] = ()
) -> list[Mapping[str, Any]]:
    """The open findings that were asked for. Refused for a finding that isn't open.

    Raises NotOfCluster for an id that the cluster doesn't have. With several clusters: only if it has none of them.
    findings: the open ones of the cluster. closed: ids of its other verdicts.
    """
    by_id, others = {finding["id"]: finding for finding in findings}, frozenset(closed)
    here = any(id in by_id or id in others for id in chosen.findings)
    for id in chosen.findings:
        if id not in by_id and not (chosen.several and here and id not in others):
            label = f"{chosen.labels['findings']}{id}"
            if id in others:
                raise Refused(plain(f"{label}: this finding isn't open, so nothing has to be fixed"))
            raise NotOfCluster(plain(f"{label}: the cluster has no such finding{did_you_mean(id, by_id)}"))
    return [finding for finding in findings if _is_chosen(chosen, finding)]


def _is_chosen(chosen: Chosen, finding: Mapping[str, Any]) -> bool:
    of_topic = finding["resource_type"] == "topic"
    return (
        (not chosen.findings or finding["id"] in chosen.findings)
        and (not chosen.controls or finding["control"] in chosen.controls)
        and (chosen.topic is None or (of_topic and matches(chosen.topic, finding["resource"])))
    )
