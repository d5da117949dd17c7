"""From findings and their targets to an assembled plan, before it is proven."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from durability.remedies import effects, providers, safety
from durability.remedies.change import quorum, refusal, regress, settings, states, surviving
from durability.remedies.change.assemble import assemble
from durability.remedies.change.model import (
    UNCLEAN,
    Change,
    Document,
    Limits,
    Move,
    Setting,
    TopicSettings,
    Wanted,
)
from durability.remedies.change.proof import severity_rank
from durability.remedies.cluster import ClusterFacts
from durability.remedies.finding import Finding
from durability.remedies.moves import copysets
from durability.remedies.moves.model import Broker, Copysets, Partition, Problem, Solution, Target
from durability.remedies.moves.solve import solve
from durability.remedies.target import UNEVEN, impossible

UNCLEAN_CONTROLS = ("unclean-leader-election",)
FEW_RACKS = "few-racks"
OF_RACKS = ("replica_racks", "min_insync_racks", "acked_racks")
"""Keys of a tier that ask for a number of racks. `target_racks` is 1 without them."""
RELAXED = "its new replicas don't let it survive the loss of a rack, because "
"""The beginning of a note; the reason follows."""
REMAINS = "the steps bring the topic to its target, which doesn't fix this"
WHY = {
    "unknown-target": "the number of replicas that it needs is unknown",
    "unknown-replicas": "the replicas of a partition are unknown",
    "few-brokers": "it needs more replicas than there are live brokers: add brokers, or give it a tier that asks for fewer",
    FEW_RACKS: surviving.FEW_RACKS,
    "avoided": "only the avoided brokers could take its replicas: avoid fewer brokers, or add one",
    "no-room": "the brokers that could take its replicas have full or failed disks: add or replace disks, or add brokers",
    "too-loaded": "only brokers that have more replicas than most could take its replicas: add a broker",
}
"""Why the planner leaves a topic out, and what else helps (`durability.remedies.moves.model.Code`)."""
Solve = Callable[[Problem], Solution]


@dataclass(frozen=True)
class Inputs:
    """What a plan is drafted from.

    brokers: of the cluster. postures: rows of `topic_posture` by topic. required: the requirements of each tier as numbers.
    targeted: the open findings to fix. reassigning_known: could running reassignments be read? avoid: brokers that get no
    replica. margin_disk: the part of a disk that stays free. barred: topics whose replicas and min.insync.replicas stay,
    with the reason.
    """

    document: Document
    brokers: Sequence[Broker]
    postures: Mapping[str, Mapping[str, Any]]
    required: Mapping[str, Mapping[str, Any]]
    targeted: Sequence[Finding]
    facts: ClusterFacts
    limits: Limits
    reassigning_known: bool = True
    avoid: frozenset[int] = frozenset()
    margin_disk: float = 0.2
    barred: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Draft:
    """A plan before its proof. left_out: topics, or the cluster (None), with the reason. held: by topic, why a setting that its
    target asks for isn't changed. notes: by topic that steps change, which part of its target its moves don't reach, or why none
    of its replicas moves. solution: of the moves; None if the cluster is left out. document: before the plan."""

    document: Document = field(repr=False)
    change: Change
    solution: Solution | None
    left_out: tuple[tuple[str | None, str], ...] = ()
    held: Mapping[str, str] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def why(self, finding: Finding, otherwise: str | None, later: str | None = None) -> str:
        """Why the finding remains. otherwise: its remediation. later: its message after the plan; None if it isn't known."""
        whole = next((why for topic, why in self.left_out if topic is None), None)
        said = whole or (self._of_topic(finding, later) if finding["resource_type"] == "topic" else None)
        if said is not None:
            return said
        if otherwise is None or "\n" in otherwise or not otherwise[:1].isalpha():
            return "no step of a plan fixes it: its remediation in an audit's findings.json has the commands"
        return otherwise

    def _of_topic(self, finding: Finding, later: str | None) -> str | None:
        topic = finding["resource"]
        note = self.notes.get(topic)
        if note is not None and note.startswith(RELAXED) and finding["control"] != "rack-loss":
            note = None
        said = dict(self.left_out).get(topic) or note or (self.held or {}).get(topic)
        remains = REMAINS if later is None else f"{REMAINS}. After them: {later}"
        return said or (remains if topic in self._moved else None)

    @cached_property
    def _moved(self) -> frozenset[str]:
        return frozenset(move.topic for step in self.change.steps for move in step.moves)


def draft(inputs: Inputs, solver: Solve = solve) -> Draft:
    """The plan for the targeted findings."""
    if (why := refusal.of_cluster(inputs.document, inputs.facts, inputs.reassigning_known)) is not None:
        change = assemble(inputs.document, Wanted(), inputs.facts, inputs.limits)
        return Draft(inputs.document, change, None, ((None, why),))
    topics = {topic["name"]: topic for topic in inputs.document["topics"]}
    of_topics = _by_topic(inputs.targeted)
    left_out: dict[str | None, str] = {}
    targets: dict[str, Target] = {}
    for name, found in list(of_topics.items()):
        if (why := settings.odd(topics[name])) is not None:
            left_out[name] = why
            del of_topics[name]
            continue
        target, why = _target(name, found, inputs)
        if why is not None:
            left_out[name] = why
        elif target is not None:
            targets[name] = target
    unknown = states.unknown_offline(inputs.document, inputs.facts)
    of_brokers = states.of_brokers(inputs.document, inputs.facts)
    rank = {name: -max(map(severity_rank, found)) for name, found in of_topics.items()}
    barred = {name: found for name, found in of_topics.items() if name in inputs.barred}
    blocked = {
        name: TopicSettings(held=inputs.barred[name], others=one.others)
        for name, one in _settings(barred, topics, {}, left_out, inputs).items()
    }
    targets = {name: target for name, target in targets.items() if name not in blocked}
    unplaced: dict[str, str] = {}
    while True:
        solution, relaxed = _solved(inputs, targets, solver)
        unplaced |= {left.topic: WHY.get(left.why, left.why) for left in solution.left_out}
        moves = _moves(solution, inputs.document)
        made = _settings(of_topics, topics, moves, left_out, inputs) | blocked
        stuck = {n: TopicSettings(held=one.held, others=one.others) for n, one in made.items() if one.blocks}
        aims = {name: f["evidence"]["target"] for name, found in of_topics.items() if (f := _with_target(found))}
        stuck = regress.unknown_minimum(aims, topics, moves, made, unknown, of_brokers) | stuck
        if not stuck:
            wanted = Wanted(tuple(move for of in moves.values() for move in of), made, rank, _cluster_wide(inputs))
            change = assemble(inputs.document, wanted, inputs.facts, inputs.limits)
            stuck = regress.harmed(change.harms, made, blocked)
        if not stuck:
            break
        # Other topics can take the room that their replicas would have taken.
        blocked |= stuck
        targets = {name: target for name, target in targets.items() if name not in stuck}
    held = {name: one.held for name, one in made.items() if one.held is not None}
    left_out |= {left.topic: WHY.get(left.why, left.why) for left in solution.left_out}
    left_out |= {name: unplaced.get(name, held[name]) for name in blocked}
    left_out |= {name: why for name, why in relaxed.items() if name not in moves and name not in left_out}
    notes = {name: RELAXED + why for name, why in relaxed.items() if name in moves}
    changed = {name for name, one in made.items() if one.before or one.after or one.others}
    notes |= {name: left_out.pop(name) for name in changed & left_out.keys() if name is not None}
    solution = replace(solution, copysets=_copysets(solution, change.planned))
    return Draft(inputs.document, change, solution, tuple(left_out.items()), held, notes)


def _copysets(solution: Solution, planned: Document) -> Copysets:
    """With the min.insync.replicas that the steps lead to: the solver knows the targets of topics that move, and no other."""
    place = {broker: number for number, broker in enumerate(sorted(solution.load.before))}
    least = settings.min_isr(planned)
    then = [
        (tuple(sorted(place[broker] for broker in p["replicas"])), least.get(topic["name"]))
        for topic in planned["topics"]
        for p in topic["partitions"]
    ]
    after, losses = copysets.losses(then, len(place))
    return replace(solution.copysets, after=after, losses_after=losses)


def _by_topic(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding["resource_type"] == "topic":
            found.setdefault(finding["resource"], []).append(finding)
    return found


def _with_target(findings: Sequence[Finding]) -> Finding | None:
    """One of the findings with the topic's target. All of them have the same."""
    return next((finding for finding in findings if (finding["evidence"] or {}).get("target")), None)


def _target(name: str, findings: Sequence[Finding], inputs: Inputs) -> tuple[Target | None, str | None]:
    """What the topic's replicas must become, or why they can't be moved now; None and None if nothing is asked of them."""
    finding, posture = _with_target(findings), inputs.postures.get(name)
    if finding is None or posture is None:
        return None, None
    required = inputs.required.get(posture["tier"] or "", {})
    survives = "rack" in (required.get("survive") or ())
    by_racks = survives and any(f["control"] == "rack-loss" and f["outcome"] == "FAIL" for f in findings)
    aims = finding["evidence"]["target"]
    if (why := impossible(aims)) is not None:
        return None, why
    if not posture["reassign"] and not by_racks:
        return None, None
    if (why := settings.refusal(finding)) is not None:
        return None, why
    acked = (posture["target_acked_racks"], posture["target_min_insync_replicas"])
    least = posture["target_min_insync_replicas"]
    return Target(
        replication_factor=posture["target_replication_factor"],
        racks=_racks(posture["target_racks"], required),
        own_racks=bool(posture["target_own_racks"]),
        balanced=bool(posture["target_rack_balance"]),
        acked=None if None in acked else acked,
        survives_rack=survives,
        min_isr=aims["min_insync_replicas_now"] if least is None else least,
    ), None


def _racks(span: int | None, required: Mapping[str, Any]) -> int | None:
    """The racks that replicas must span; None if nothing asks for one: a replica on a broker without a rack may stay then."""
    return None if span == 1 and not any(required.get(key) for key in OF_RACKS) else span


def _not_led(inputs: Inputs, targets: Iterable[str]) -> dict[str, tuple[frozenset[int], ...]]:
    """By topic, the brokers that the quorum's majority is lost with, for each kind of loss that its tier says it survives."""
    tiers = {name: inputs.postures[name]["tier"] or "" for name in targets}
    survived = {tier: inputs.required.get(tier, {}).get("survive") or () for tier in tiers.values()}
    barred = {tier: quorum.takes_majority(inputs.document, losses) for tier, losses in survived.items()}
    return {name: barred[tier] for name, tier in tiers.items() if barred[tier]}


def _solved(inputs: Inputs, targets: Mapping[str, Target], solver: Solve) -> tuple[Solution, dict[str, str]]:
    """The moves, and why no placement of some topics survives the loss of a rack: these get what else their target asks for."""
    problem = Problem(
        brokers=inputs.brokers,
        partitions=[
            Partition(
                topic["name"],
                p["partition"],
                tuple(p["replicas"]),
                p["leader"],
                tuple(p["isr"]),
                p.get("bytes"),
            )
            for topic in inputs.document["topics"]
            for p in topic["partitions"]
        ],
        targets=targets,
        min_isr=settings.min_isr(inputs.document),
        avoid=inputs.avoid,
        margin_disk=inputs.margin_disk,
        not_led=_not_led(inputs, targets),
    )
    solution = solver(problem)
    strict = frozenset(
        left.topic for left in solution.left_out if left.why == FEW_RACKS and targets[left.topic].survives_rack
    )
    if not strict:
        return solution, {}
    relaxed = {
        name: replace(target, survives_rack=False) if name in strict else target for name, target in targets.items()
    }
    return solver(replace(problem, targets=relaxed)), {name: _unsurvived(name, problem, inputs) for name in strict}


def _unsurvived(name: str, problem: Problem, inputs: Inputs) -> str:
    """Why no placement of the topic survives the loss of a rack."""
    target = problem.targets[name]
    sizes = {max(len(p.replicas or ()), target.replication_factor or 0) for p in problem.partitions if p.topic == name}
    required = inputs.required.get(inputs.postures[name]["tier"] or "", {})
    most = required.get("replication_factor_at_most")
    return surviving.without_placement(target, sizes, problem.brokers, problem.avoid, most)


def _moves(solution: Solution, document: Document) -> dict[str, list[Move]]:
    """By topic, the partitions that change."""
    found: dict[str, list[Move]] = {}
    for topic in document["topics"]:
        for p in topic["partitions"]:
            after = solution.replicas.get((topic["name"], p["partition"]))
            if after is not None and list(after) != p["replicas"]:
                move = Move(topic["name"], p["partition"], tuple(p["replicas"]), tuple(after), p.get("bytes"))
                found.setdefault(topic["name"], []).append(move)
    return found


def _settings(
    of_topics: Mapping[str, Sequence[Finding]],
    topics: Mapping[str, Document],
    moves: Mapping[str, Sequence[Move]],
    left_out: Mapping[str | None, str],
    inputs: Inputs,
) -> dict[str, TopicSettings]:
    live = effects.live(inputs.document)
    made: dict[str, TopicSettings] = {}
    for name, findings in of_topics.items():
        finding, topic = _with_target(findings), topics[name]
        one = TopicSettings()
        if left_out.get(name) == UNEVEN:
            one = TopicSettings(held=UNEVEN)
        elif finding is not None and impossible(finding["evidence"]["target"]) is None:
            one = settings.of_target(finding, topic, moves.get(name, ()), live)
        others = [
            setting
            for f in findings
            if f["control"] in UNCLEAN_CONTROLS and f["outcome"] == "FAIL" and f["evidence"].get("own")
            for setting in [settings.unclean_off(f, inputs.document, topic)]
        ]
        one = replace(one, others=tuple(dict.fromkeys(others)))
        refused = _refused(one, inputs.facts)
        if refused is not None:
            one = TopicSettings(held=refused, blocks=one.blocks or one.before is not None)
        made[name] = one
    return made


def _refused(one: TopicSettings, facts: ClusterFacts) -> str | None:
    """Why the provider refuses one of the changes; None if it doesn't."""
    changed = [setting for setting in (one.before, one.after, *one.others) if setting is not None]
    return next((why for s in changed if (why := providers.against(s.command, facts.provider)) is not None), None)


def _cluster_wide(inputs: Inputs) -> tuple[Setting, ...]:
    """Unclean leader election off for the whole cluster, if a finding asks for it and it is safe."""
    for finding in inputs.targeted:
        of_unclean = finding["control"] in UNCLEAN_CONTROLS and finding["outcome"] in ("FAIL", "UNKNOWN")
        if of_unclean and not (finding["evidence"] or {}).get("own"):
            setting = settings.unclean_off(finding, inputs.document, None)
            known = settings.cluster_wide_known(inputs.document, UNCLEAN)
            # It may be off already, where a node's own value overrides it.
            if known and setting.was != setting.value and safety.reason(setting.command, finding) is None:
                return (setting,)
    return ()
