"""What providers of managed clusters don't let their customers do with Kafka's tools, and what works there instead.

A command that the provider refuses isn't printed, and no sentence advises it (`durability/catalogue/_refused.yaml`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from durability.catalogue import CONTROLS
from durability.catalogue.model import REFUSED
from durability.remedies.commands import RUNNING, Command, Config, Elect, ElectListed, Feature, Reassign, Unregister
from durability.remedies.finding import Finding
from durability.remedies.steps import Remedy

REASSIGN, BROKERS, FILES = "reassign", "brokers", "files"
DUTIES = {REASSIGN: "reassignment-leftovers", BROKERS: "broker-defaults", FILES: "broker-defaults"}
"""By kind of command the control that isn't applicable where the provider does all of it."""
NAMED = {
    REASSIGN: re.compile(
        r"kafka-reassign-partitions|--cancel|kafka-cluster|kafka-leader-election|brokers\+gone|/controller"
    ),
    FILES: re.compile(r"server\.properties|\brestart"),
    BROKERS: re.compile(r"--entity-type brokers"),
}
"""How a sentence names something of a kind."""
GROWS = re.compile(r"\b[Aa]dd (?:brokers|racks)\b")
"""How a sentence advises to add brokers or racks."""
OWN_BROKERS = frozenset(("redpanda", "object-storage"))
"""Platforms that customers also run themselves. Their brokers refuse some of Kafka's tools, whoever runs them."""
RUNS_BROKERS = {
    ": start the broker, repair its disk, or find why none is elected": ". The cluster's provider runs the brokers",
    "Start these brokers": "Let the cluster's provider start these brokers",
    "Start the brokers that are down": "Let the cluster's provider start the brokers that are down",
}
"""What to do about brokers, and the words for customers whose provider runs them."""


def refusal(provider: str | None, kind: str) -> str | None:
    """Why this kind of command is refused, and what works instead; None if it isn't known to be.

    >>> refusal("confluent", "reassign")
    "This can't be changed with Kafka's tools here: Confluent moves partitions itself. Use the provider's own tools"
    >>> refusal("self", "reassign") is None and refusal("msk", "reassign") is None
    True
    """
    stated = REFUSED.get(provider or "", {})
    if (instead := stated.get(kind) or (stated.get(BROKERS) if kind == FILES else None)) is not None:
        return str(instead)
    duty = CONTROLS[DUTIES[kind]].provider_duty.get(provider or "")
    return (
        None if duty is None else f"This can't be changed with Kafka's tools here: {duty}. Use the provider's own tools"
    )


def runs_brokers(provider: str | None) -> bool:
    """Does the provider start brokers and replace their disks, and not its customer?

    >>> runs_brokers("msk"), runs_brokers("redpanda"), runs_brokers(None)
    (True, False, False)
    """
    return provider not in OWN_BROKERS and refusal(provider, FILES) is not None


def moves_replicas(provider: str | None) -> bool:
    """Does only the provider move replicas, elect leaders and see its controllers' logs?"""
    return runs_brokers(provider) and refusal(provider, REASSIGN) is not None


def against(command: Command, provider: str | None) -> str | None:
    """Why the provider refuses the command; None if it isn't known to."""
    if isinstance(command, Reassign | Unregister | Elect | ElectListed) or command == RUNNING:
        return refusal(provider, REASSIGN)
    if isinstance(command, Feature):
        return refusal(provider, BROKERS)
    if not isinstance(command, Config):
        return None
    if command.entity == "brokers":
        wanted = ", ".join(key if value is None else f"{key}={value}" for key, value in command.values)
        instead = refusal(provider, BROKERS)
        return None if instead is None else f"Wanted: {wanted}. {instead}"
    fixed = REFUSED.get(provider or "", {}).get("topics", {})
    return next((str(fixed[key]) for key, _ in command.values if key in fixed), None)


def _zones(provider: str | None) -> str | None:
    """What adding brokers or racks takes at this provider; None if nothing is known."""
    zones = REFUSED.get(provider or "", {}).get("zones")
    return None if zones is None else str(zones)


def fixes(setting: str, finding: Finding) -> bool:
    """Does the provider fix this setting of topics, or ignore it?"""
    return setting in REFUSED.get(finding.get("provider") or "", {}).get("topics", {})


def delegated(sentence: str, finding: Finding) -> str:
    """The sentence with what only the provider can do in its place.

    >>> delegated("Start these brokers, then audit again", {"provider": "msk"})
    "Let the cluster's provider start these brokers, then audit again"
    """
    if runs_brokers(finding.get("provider")):
        for words, instead in RUNS_BROKERS.items():
            sentence = sentence.replace(words, instead)
    return sentence


def reworded(remedy: Remedy, finding: Finding) -> Remedy:
    """The remedy with the provider's own way, once, in place of sentences that advise what the provider refuses.

    A sentence that advises a topic's setting which the provider fixes is left out: nothing replaces it.
    """
    provider, said = finding.get("provider"), set[str]()
    steps: Remedy = []
    for step in remedy:
        about: list[str] = []
        for sentence in step.about:
            if any(
                f"set {setting}=" in sentence.lower() for setting in REFUSED.get(provider or "", {}).get("topics", {})
            ):
                continue
            kind = next((kind for kind, named in NAMED.items() if named.search(sentence)), None)
            instead = refusal(provider, kind) if kind else None
            if instead is None:
                about.append(sentence)
                if (zones := _zones(provider)) and GROWS.search(sentence) and zones not in said:
                    about.append(zones)
                    said.add(zones)
            elif instead not in said:
                about.append(instead)
                said.add(instead)
        # A planner may have stated it as its reason.
        steps.append(replace(step, about=tuple(about)))
    return [step for step in steps if step.about or step.command is not None or step.unless is not None]
