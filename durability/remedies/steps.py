"""A remedy as an ordered list of steps, and its text.

A step is a command or advice. A command is printed only if its precondition holds in the evaluated snapshot: a script can be
pasted whole, and a comment doesn't stop bash. After a step whose precondition doesn't hold, no command is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from durability.catalogue.listing import with_noun
from durability.remedies.cluster import ClusterFacts, Fragile
from durability.remedies.commands import Command, Config, Show, comment, in_words, lines, needs_controller

AGAIN = "Then audit again"
UNDO, WHEN = "To undo it", "when all replicas are in sync"
"""Before that a higher min.insync.replicas can reject writes, or wipe an ELR. Replicas being added count, too."""
NO_CONTROLLER = "No controller leads, so nothing can be changed now. First restore the controller quorum"
NO_RESTART = "No controller leads: a broker that restarts now stays down. First restore the controller quorum"

NO_SPARE_VOTER = (
    "Restart no controller while the quorum can't do without one more voter: first bring back the voters that are missing, or add"
    " voters"
)
SEE_FIRST = (
    "Before each restart, see that the broker is in the ISR of no partition that is at or under its min.insync.replicas"
)
CAUGHT_UP = "Before each restart, see that every voter has caught up with the leader"
IN_SYNC_FIRST = "First bring replicas back in sync there, or add one"


@dataclass(frozen=True)
class Step:
    """One step of a remedy.

    command: None for advice. about: sentences on the step, such as what it changes or costs. unless: why the command must not run
    now; None if its precondition holds. undo: the command that takes the step back. harm: what that does, if it harms.
    alone: may its command run although the one before failed? Otherwise it runs only if that one succeeded.
    """

    command: Command | None = None
    about: tuple[str, ...] = ()
    unless: str | None = None
    undo: Command | None = None
    harm: str | None = None
    alone: bool = False


Remedy = list[Step]


def advice(*sentences: str) -> Remedy:
    """A remedy without a command."""
    return [Step(about=sentences)]


def restart(change: str, act: str, facts: ClusterFacts, brokers: Sequence[int] | None = None) -> str:
    """Advice on a change that needs a restart of live brokers, with what has to be seen or done before the restart.

    act: the restart, such as "restart it". brokers: those that restart; None: all. If all of them are down, they only start.
    A broker's replicas leave the ISR while it restarts. So a partition with a single replica in sync goes offline, and one with
    no more than min.insync.replicas rejects acks=all writes.

    >>> one = ClusterFacts((2, 3), fragile=Fragile(single=1, first_single="t-0"))
    >>> restart("Set a=1 on broker 4", "restart it", one)  # doctest: +ELLIPSIS
    "Set a=1 on broker 4. Don't restart yet. A restart can take partition t-0 offline: a single replica is in sync. ..."
    """
    change, last = change.rstrip("."), SEE_FIRST
    if facts.led is False:
        return NO_RESTART
    if brokers and set(brokers) <= set(facts.down):
        return f"{change}, before {'it is' if len(brokers) == 1 else 'they are'} started"
    if facts.spare_voter is False:
        last = f"{NO_SPARE_VOTER}. {last}"
    if facts.down:
        its = "its" if len(facts.down) == 1 else "their"
        first = f"First start {with_noun(facts.down, 'broker')}, or move {its} replicas: until then a restart can stop writes"
        return f"{change}, and {act}. {first}. {last}"
    harmed = [] if facts.fragile is None else [facts.fragile] if brokers is None else facts.fragile.of(brokers)
    harms = _harms(harmed)
    if harms:
        return ". ".join([change, "Don't restart yet", *harms, IN_SYNC_FIRST, f"Then {act}", last])
    return f"{change}, and {act}. {last}"


def restart_controllers(change: str, act: str, facts: ClusterFacts) -> str:
    """Advice on a change that needs a restart of controllers alone. act: the restart, such as "restart it".

    >>> restart_controllers("Set a=1 on controller 7", "restart it", ClusterFacts())
    'Set a=1 on controller 7, and restart it. Before each restart, see that every voter has caught up with the leader'
    """
    last = f"{NO_SPARE_VOTER}. {CAUGHT_UP}" if facts.spare_voter is False else CAUGHT_UP
    return f"{change}, and {act}. {last}"


def _harms(harmed: Sequence[Fragile]) -> list[str]:
    """What a restart would do now, as sentences. harmed: the partitions that each restart harms."""

    def some(kind: str) -> str:
        """The partitions of this kind that the worst of the restarts harms; empty if none does."""
        number, first = max(((getattr(one, kind), getattr(one, f"first_{kind}")) for one in harmed), default=(0, None))
        return "" if not number else f"partition {first}" if number == 1 else f"{number:,} partitions (such as {first})"

    harms = {
        f"A restart can take {some('single')} offline: a single replica is in sync": some("single"),
        f"A restart can stop acks=all writes to {some('least')}: no more replicas are in sync than min.insync.replicas": some(
            "least"
        ),
        f"It is unknown what a restart does to {some('unknown')}: not all of their state could be read": some(
            "unknown"
        ),
    }
    return [harm for harm, there in harms.items() if there]


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
            words, act = in_words(step.command)
            broker = None if step.command.name is None or act is None else [int(step.command.name)]
            parts.append((False, words if act is None else restart(words, act, facts, broker)))
        if step.undo is not None:
            parts += [(False, f"{UNDO}, {step.harm or WHEN}: {line}") for line in lines(step.undo, facts) if shell]
    if any(runs for runs, _ in parts):
        return "\n".join(text if runs else comment(text) for runs, text in parts)
    return ". ".join(text.rstrip(".") if n + 1 < len(parts) else text for n, (_, text) in enumerate(parts))
