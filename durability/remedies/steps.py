"""A remedy as an ordered list of steps, and its text.

A step is a command or advice. A command is printed only if its precondition holds in the evaluated snapshot: a script can be
pasted whole, and a comment doesn't stop bash. After a step whose precondition doesn't hold, no command is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from durability.catalogue.listing import listed
from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import Command, Config, Show, comment, in_words, lines, needs_controller

AGAIN = "Then audit again"
UNDO = "To undo it, when all replicas are in sync"
"""Before that a higher min.insync.replicas can reject writes, or wipe an ELR. Replicas being added count, too."""
NO_CONTROLLER = "No controller leads, so nothing can be changed now. First bring back a majority of the controllers"
NO_RESTART = (
    "No controller leads: a broker that restarts now stays down. First bring back a majority of the controllers"
)


@dataclass(frozen=True)
class Step:
    """One step of a remedy.

    command: None for advice. about: sentences on the step, such as what it changes or costs. unless: why the command must not run
    now; None if its precondition holds. undo: the command that takes the step back. alone: may its command run although the one
    before failed? Otherwise it runs only if that one succeeded.
    """

    command: Command | None = None
    about: tuple[str, ...] = ()
    unless: str | None = None
    undo: Command | None = None
    alone: bool = False


Remedy = list[Step]


def advice(*sentences: str) -> Remedy:
    """A remedy without a command."""
    return [Step(about=sentences)]


def restart(change: str, facts: ClusterFacts) -> str:
    """Advice to restart live brokers. While others are down, each restart takes one more replica out of sync.

    >>> restart("Set a=1 on broker 4, and restart it", ClusterFacts(down=(5,)))
    'Set a=1 on broker 4, and restart it. First start broker 5, or move its replicas: until then a restart can stop writes'
    """
    if facts.led is False:
        return NO_RESTART
    if not facts.down:
        return change
    what, its = ("broker ", "its") if len(facts.down) == 1 else ("brokers ", "their")
    names = listed(facts.down, what)
    return f"{change.rstrip('.')}. First start {names}, or move {its} replicas: until then a restart can stop writes"


def offered(remedy: Sequence[Step]) -> list[Step]:
    """The steps whose commands are printed: those before the first one whose precondition doesn't hold."""
    at = next((n for n, step in enumerate(remedy) if step.unless is not None), len(remedy))
    return [step for step in remedy[:at] if step.command is not None]


def render(remedy: Sequence[Step], facts: ClusterFacts) -> str:
    """The text of a remedy: a script of comments and commands, or sentences of advice if there is no command to run.

    In a script, `&&` joins a command that changes the cluster to the next one that does.
    """
    parts: list[tuple[bool, str]] = []
    last = None  # the index of the last line that changes the cluster
    for step in remedy:
        changes = step.command is not None and not isinstance(step.command, Show)
        halted = facts.led is False and step.command is not None and needs_controller(step.command)
        unless = step.unless or (NO_CONTROLLER if halted else None)
        # A colon announces the command, which isn't printed then.
        parts += [(False, sentence) for sentence in step.about if unless is None or not sentence.endswith(":")]
        if unless is not None:
            parts += [(False, unless), (False, AGAIN)]
            break
        if step.command is None:
            continue
        shell = lines(step.command, facts)
        if shell and changes:
            if last is not None and not step.alone:
                parts[last] = (True, f"{parts[last][1]} &&")
            last = len(parts) + len(shell) - 1
        parts += [(True, line) for line in shell]
        if not shell and isinstance(step.command, Config):
            words = in_words(step.command)
            parts.append((False, words if step.command.entity == "topics" else restart(words, facts)))
        if step.undo is not None:
            parts += [(False, f"{UNDO}: {line}") for line in lines(step.undo, facts) if shell]
    if any(runs for runs, _ in parts):
        return "\n".join(text if runs else comment(text) for runs, text in parts)
    return ". ".join(text.rstrip(".") if n + 1 < len(parts) else text for n, (_, text) in enumerate(parts))
