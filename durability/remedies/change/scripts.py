"""The files of a plan's steps: moves for kafka-reassign-partitions, elections, and scripts of Kafka's own tools.

A script runs in the plan's folder. It can also be pasted there, as remedies can: it has commands, and comments for all words.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from durability.remedies import plans, safety, throttles
from durability.remedies.change import guards
from durability.remedies.change.assemble import UNCAPPED, WITHOUT_EFFECT
from durability.remedies.change.model import Move, Setting, Step, raised_further
from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import Cancel, Config, ElectListed, Reassign, Verify, comment, in_words, lines

STEPS, UNDO = "steps", "undo"
PAUSE = 10
"""Seconds between two checks of a reassignment."""
SHOWN = "sleep 3"
"""The end of a script that changes the cluster. Until then each broker shows the change to the checks of the next script."""
RECREATED = (
    "If it prints a topic with nothing but its TopicId, that topic was deleted and created again since: it is another topic."
    " Make a new plan."
)
REJECTED_AGAIN = "Brokers before 3.7 then reject acks=all writes to these topics again, as they did before the plan."
TO_UNDO = {
    "wait": "Nothing to take back: this step changes nothing.",
    "elect-leaders": "Nothing to take back: the undo of the moves restores the order of replicas, and so the preferred leaders.",
}


def reassignment(moves: Iterable[Move], *, back: bool = False) -> str:
    """Moves as `plans.written` writes them. back: to the replicas before them."""
    return plans.written((m.topic, m.partition, m.before if back else m.after) for m in moves)


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


def script_files(steps: Iterable[Step], facts: ClusterFacts, ids: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Path and text of the scripts. ids: Kafka's ids by topic, as far as they are known: they change no other topic."""
    steps = list(steps)
    by_id = {step.id: step for step in steps}
    later: dict[str, list[Setting]] = defaultdict(list)  # settings of later steps, by topic
    undone: list[tuple[str, str]] = []
    for step in reversed(steps):
        after = [setting for topic in step.topics for setting in later[topic]]
        undone.append((f"{UNDO}/{step.id}.sh", _undo(step, after, facts, ids)))
        for setting in step.settings:
            later[setting.topic or ""].append(setting)
    for step in steps:
        further = raised_further(step, steps) if step.kind == "raise-min-isr" else []
        yield f"{STEPS}/{step.id}.sh", _script(step, [by_id[id] for id in step.after], further, facts, ids)
    yield from reversed(undone)


def _script(
    step: Step, earlier: Iterable[Step], further: Iterable[Setting], facts: ClusterFacts, ids: Mapping[str, str]
) -> str:
    """further: settings that raise min.insync.replicas above its value from before the plan."""
    said = [f"Step {step.id}. {step.why}"]
    if step.after:
        said.append(f"It changes nothing unless these steps are complete: {', '.join(step.after)}.")
    if step.kind == "wait":
        return _text(said, guards.brokers_back(step.brokers, facts))
    same = guards.same_topics(step.topics, ids)
    said += [RECREATED] if same else []
    checks = [guards.listed(facts) + guards.visible(step.topics), same]
    checks += [guards.done(one, _file(STEPS, one), facts) for one in earlier]
    checks.append(guards.overrides(step.settings, facts) + guards.unchanged(step.settings, facts))
    checks.append(guards.may_change(step.settings, facts, raises=step.kind == "raise-min-isr"))
    if step.kind == "raise-min-isr":
        checks.append(guards.not_higher(step.settings))
        checks.append(guards.with_headroom(further))
    if step.kind == "raise-min-isr" and not safety.caps(facts):
        checks.append(guards.enough_in_sync(step.settings))
    if step.kind == "lower-min-isr" and step.why in WITHOUT_EFFECT:
        checks.append(guards.enforce_no_more(step.settings))
    # Before 2.6, both ask whether the topics are in sync.
    chain = [line for check in dict.fromkeys(map(tuple, checks)) for line in check]
    chain += [_set(setting, setting.command, facts) for setting in step.settings]
    if step.moves:
        chain += _moved(step, facts)
    if step.elections:
        chain += lines(ElectListed(_file(STEPS, step)), facts)
    return _text(said, [*chain, SHOWN])


def _undo(step: Step, later: Sequence[Setting], facts: ClusterFacts, ids: Mapping[str, str]) -> str:
    """later: what later steps set on the topics of this one. Before replicas go, min.insync.replicas must be lower again."""
    said = [f"Takes step {step.id} back. Take later steps back first."]
    if step.kind in TO_UNDO:
        return _text([said[0], TO_UNDO[step.kind]], [])
    same = guards.same_topics(step.topics, ids)
    said += [REJECTED_AGAIN] if step.why == UNCAPPED else []
    said += [RECREATED] if same else []
    chain = guards.listed(facts) + same
    chain += guards.may_change(step.settings, facts, raises=step.kind != "raise-min-isr")
    if step.settings:
        chain += guards.overrides(step.settings, facts)
        # A topic that is gone must not keep the others from getting their values back.
        each = [f"{_restored(setting, facts)} || undone=" for setting in reversed(step.settings)]
        chain.append("\n".join(["{ undone=yes", *each, "[[ $undone ]]; }"]))
    if step.moves:
        chain += guards.visible(step.topics) + guards.not_set(later, facts)
        chain += _moved(step, facts, back=True)
    return _text(said, [*chain, SHOWN])


def _file(folder: str, step: Step) -> str:
    return f"{folder}/{step.id}.json"


def _set(setting: Setting, command: Config, facts: ClusterFacts) -> str:
    """The command that sets or restores a setting. False, after a comment, if the cluster's release has no such command."""
    shell = lines(command, facts)
    if not shell:
        return f"{comment(in_words(command)[0])}\nfalse"
    [(_, value)] = command.values
    return guards.deleted(setting, shell[0], facts) if value is None else shell[0]


def _restored(setting: Setting, facts: ClusterFacts) -> str:
    """The command that restores a setting that is still as the step set it, of a topic only if it is visible."""
    visible = [] if setting.topic is None else guards.visible([setting.topic])
    chain = [*visible, *guards.unchanged([setting], facts), _set(setting, setting.undo, facts)]
    return chain[0] if len(chain) == 1 else f"{{ {' && '.join(chain)}; }}"


def _moved(step: Step, facts: ClusterFacts, *, back: bool = False) -> list[str]:
    """Starts a step's moves unless they run already, and waits until they are complete. back: takes them back.

    They start only if each partition has the replicas from before the step or those after it, and if no topic or broker has
    throttles of others. Those that a killed run left are set again and then deleted. Before 2.6, the tool can't show this
    without deleting throttles.
    """
    there, here = (_file(UNDO, step), _file(STEPS, step)) if back else (_file(STEPS, step), _file(UNDO, step))
    checks = max(300, 2 * step.bytes // throttles.RATE // PAUSE)
    started, *waiting = lines(Reassign("", there, throttles.RATE, checks), facts) or ["", ""]
    if not started:
        return ["false"]
    number = len(step.moves)
    whole = f'[[ $said != *"in progress"* && {guards.complete("said")} = {number} ]]'
    verify = [lines(Verify(file), facts) for file in (here, there)]
    if not all(verify):
        return [started.removesuffix(" &&"), *waiting, whole]
    cancel = []
    if back:
        [running], [stop] = lines(Verify(here), facts), lines(Cancel(here), facts)
        # What kafka-topics said has the throttled replicas of what is cancelled.
        again = guards.listed(facts)
        cancel = [
            f"said=$({running})",
            f'{{ [[ $said != *"in progress"* ]] || {{ {stop} && {" && ".join(again)}; }}; }}',
        ]
    known = f"[[ $(({guards.complete('before')} + {guards.complete('said')})) = {number} ]]"
    unthrottled = " && ".join([throttles.none(), *guards.no_throttled_replicas(step.topics)])
    free = f"{{ {throttles.left()} || {{ {unthrottled}; }} || ! echo '{throttles.FOREIGN}'; }}"
    runs = f'[[ $said = *"in progress"* || {guards.complete("said")} = {number} ]]'
    checks_before = [f'{{ {known} || ! echo "$before"; }}', *_kept_in_sync(step, facts, back)]
    start = f"{{ {' && '.join(checks_before)} && {started.removesuffix(' &&')}; }}"
    [shown] = throttles.read(facts)
    gone = f"{{ {throttles.none()} || ! echo '{throttles.STAYED}'; }}"
    kept = f"{{ {{ {unthrottled}; }} || echo '{throttles.KEPT}'; }}"
    return [
        *cancel,
        f"before=$({verify[0][0]})",
        f"said=$({verify[1][0]})",
        shown,
        f"{{ {{ {whole} && ! {throttles.left()} && {kept}; }} ||\n{{ {free} && {{ {runs} ||\n{start}; }} &&\n"
        + " &&\n".join(waiting)
        + f" &&\n{whole} && {shown} && {gone}; }}; }}",
    ]


def _kept_in_sync(step: Step, facts: ClusterFacts, back: bool) -> list[str]:
    """Where a move leaves fewer replicas, those that stay are in sync.

    Kafka 3.6 doesn't wait for them. It removes replicas at once, and too few may be left in sync. 3.9 waits.
    """
    ends = [(move.topic, *((move.after, move.before) if back else (move.before, move.after))) for move in step.moves]
    fewer = sorted({topic for topic, was, becomes in ends if len(becomes) < len(was)})
    return guards.in_sync(fewer, facts) if fewer and facts.before(3, 9) else []


def _text(said: Iterable[str], chain: Iterable[str]) -> str:
    """A script: comments, and a chain in which no command follows one that failed."""
    body = " &&\n".join(chain)
    return "\n".join([*map(comment, said), *([body] if body else [])]) + "\n"


def as_dict(step: Step, offered: bool) -> Mapping[str, object]:
    """The step as plan.json has it."""
    return {
        "id": step.id,
        "kind": step.kind,
        "topics": step.topics,
        "partitions": step.partitions,
        "bytes": step.bytes,
        "unknown_bytes": step.unknown_bytes,
        "why": step.why,
        "undo": f"{UNDO}/{step.id}.sh" if offered else None,
        "after": list(step.after),
        "brokers": list(step.brokers),
        "settings": [{"topic": s.topic, "name": s.name, "was": s.was, "value": s.value} for s in step.settings],
    }
