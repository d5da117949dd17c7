"""The files of a plan's steps: moves for kafka-reassign-partitions, elections, and scripts of Kafka's own tools.

A script runs in the plan's folder. It can also be pasted there, as remedies can: it has commands, and comments for all words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from durability.remedies.change.model import Move, Step
from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import (
    UNDER_REPLICATED,
    Config,
    ElectListed,
    Reassign,
    comment,
    in_words,
    lines,
)
from durability.remedies.target import THROTTLE

STEPS, UNDO = "steps", "undo"
COMPLETE = '[[ $said != *"in progress"* && $said = *complete* ]]'
"""Is the reassignment whose verification was the last one complete? As in `durability.remedies.gone`."""
TO_UNDO = {
    "wait": "Nothing to take back: this step changes nothing.",
    "elect-leaders": "Nothing to take back: the undo of the moves restores the order of replicas, and so the preferred leaders.",
}


def reassignment(moves: Iterable[Move], *, back: bool = False) -> str:
    """Moves in the format of kafka-reassign-partitions, version 1. back: to the replicas before them."""
    rows = [
        {"topic": m.topic, "partition": m.partition, "replicas": list(m.before if back else m.after)} for m in moves
    ]
    return json.dumps({"version": 1, "partitions": rows}, indent=1) + "\n"


def elections(step: Step) -> str:
    """The partitions of an election, in the format of kafka-leader-election."""
    rows = [{"topic": topic, "partition": number} for topic, number in step.elections]
    return json.dumps({"partitions": rows}, indent=1) + "\n"


def data_files(steps: Iterable[Step]) -> Iterator[tuple[str, str]]:
    """Path and text of the JSON files that the scripts name."""
    for step in steps:
        if step.moves:
            yield f"{STEPS}/{step.id}.json", reassignment(step.moves)
            yield f"{UNDO}/{step.id}.json", reassignment(step.moves, back=True)
        if step.elections:
            yield f"{STEPS}/{step.id}.json", elections(step)


def script_files(steps: Iterable[Step], facts: ClusterFacts) -> Iterator[tuple[str, str]]:
    """Path and text of the scripts."""
    for step in steps:
        yield f"{STEPS}/{step.id}.sh", _script(step, facts)
        yield f"{UNDO}/{step.id}.sh", _undo(step, facts)


def _script(step: Step, facts: ClusterFacts) -> str:
    said = [f"Step {step.id}. {step.why}"]
    if step.after:
        said.append(f"Run it when these steps are complete: {', '.join(step.after)}.")
    if step.kind == "wait":
        return _text(said, _wait(step, facts))
    commands: list[Config | Reassign | ElectListed] = [setting.command for setting in step.settings]
    if step.moves:
        commands.append(Reassign("", f"{STEPS}/{step.id}.json", THROTTLE))
    if step.elections:
        commands.append(ElectListed(f"{STEPS}/{step.id}.json"))
    return _text(said, *_commands(commands, facts))


def _undo(step: Step, facts: ClusterFacts) -> str:
    said = [f"Takes step {step.id} back. Take later steps back first."]
    if step.kind in TO_UNDO:
        return _text([said[0], TO_UNDO[step.kind]])
    commands: list[Config | Reassign | ElectListed] = [setting.undo for setting in reversed(step.settings)]
    if step.moves:
        commands.append(Reassign("", f"{UNDO}/{step.id}.json", THROTTLE))
    return _text(said, *_commands(commands, facts))


def _wait(step: Step, facts: ClusterFacts) -> list[str]:
    """Fails while a partition with replicas on these brokers has replicas out of sync."""
    shown = lines(UNDER_REPLICATED, facts)
    if not shown:
        return []
    named = f'grep -E "Replicas: ([0-9]+,)*({"|".join(map(str, step.brokers))})(,|[[:space:]])"'
    return [f"said=$({shown[0]}) &&", f'! {named} <<< "$said"']


def _commands(commands: Iterable[Config | Reassign | ElectListed], facts: ClusterFacts) -> Iterator[list[str]]:
    """Each command's lines of shell, or a comment if the cluster's release has no such command."""
    for command in commands:
        shell = lines(command, facts)
        if isinstance(command, Reassign) and shell:
            shell = [*shell[:-1], f"{shell[-1]} &&", COMPLETE]
        if not shell:
            words = in_words(command)[0] if isinstance(command, Config) else "This release has no such command"
            shell = [comment(words)]
        yield shell


def _text(said: Iterable[str], *commands: list[str]) -> str:
    """A script. `&&` joins each command to the next one, so that none follows one that failed."""
    running = [n for n, command in enumerate(commands) if command and not command[-1].startswith("#")]
    body: list[str] = []
    for number, command in enumerate(commands):
        more = number in running and number != running[-1]
        body += [*command[:-1], f"{command[-1]} &&"] if more else command
    return "\n".join([*map(comment, said), *body]) + "\n"


def as_dict(step: Step, offered: bool) -> Mapping[str, object]:
    """The step as plan.json has it."""
    return {
        "id": step.id,
        "kind": step.kind,
        "topics": step.topics,
        "partitions": step.partitions,
        "bytes": step.bytes,
        "why": step.why,
        "undo": f"{UNDO}/{step.id}.sh" if offered else None,
        "after": list(step.after),
        "brokers": list(step.brokers),
        "settings": [{"topic": s.topic, "name": s.name, "was": s.was, "value": s.value} for s in step.settings],
    }
