"""From findings and their targets to an assembled plan, before it is proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from durability.remedies import effects, elr, providers, safety
from durability.remedies.change import refusal, regress, settings
from durability.remedies.change.assemble import assemble
from durability.remedies.change.model import (
    MIN_ISR,
    UNCLEAN,
    Change,
    Document,
    Limits,
    Move,
    Setting,
    TopicSettings,
    Wanted,
    topic_ids,
)
from durability.remedies.change.proof import gravity
from durability.remedies.cluster import ClusterFacts
from durability.remedies.finding import Finding
from durability.remedies.moves.model import Broker, Partition, Problem, Solution, Target
from durability.remedies.moves.solve import solve
from durability.remedies.target import impossible

UNCLEAN_CONTROLS = ("unclean-leader-election",)
RECREATED = "it was recreated since the plan was made, so it is another topic"
REJECTING = (
    "before the plan, brokers rejected acks=all writes to it: its min.insync.replicas {0} was above its number of replicas,"
    " {1}. Upgrade them to Kafka 3.7 first, or move its replicas back by hand with a min.insync.replicas of {1} at most"
)
AS_BEFORE = "nothing to take back: placements and settings are as they were"
BACK = "It restores what was there before the plan that is taken back."
RESTORING = ("lower-min-isr", "reassign", "raise-min-isr", "set-config")
"""Kinds of steps of an undo for which this is the reason."""
FEW_RACKS = "few-racks"
RELAXED = (
    "its new replicas don't let it survive the loss of a rack, because the racks of the live brokers don't suffice: add a rack,"
    " or give it a tier that asks for fewer"
)
WHY = {
    "unknown-target": "the number of replicas that it needs is unknown",
    "unknown-replicas": "the replicas of a partition are unknown",
    "few-brokers": "it needs more replicas than there are live brokers: add brokers, or give it a tier that asks for fewer",
    "few-racks": "the racks of the live brokers don't suffice: add a rack, or give it a tier that asks for fewer",
    "avoided": "only the avoided brokers could take its replicas: avoid fewer brokers, or add one",
    "no-room": "the brokers that could take its replicas have no room on their disks: add disks or brokers",
    "too-loaded": "only brokers that have more replicas than most could take its replicas: add a broker",
}
"""Why the planner leaves a topic out, and what else helps (`durability.remedies.moves.model.Code`)."""
Solve = Callable[[Problem], Solution]


@dataclass(frozen=True)
class Inputs:
    """What a plan is drafted from.

    brokers: of the cluster. postures: rows of `topic_posture` by topic. required: the requirements of each tier as numbers.
    targeted: the open findings to fix. reassigning_known: could running reassignments be read? avoid: brokers that get no
    replica. margin_disk: the part of a disk that stays free.
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


@dataclass(frozen=True)
class Draft:
    """A plan before its proof. left_out: topics, or the cluster (None), with the reason. held: by topic, why a setting that its
    target asks for isn't changed. notes: by topic, which part of its target its moves don't reach. solution: of the moves; None
    if the cluster is left out. document: before the plan."""

    document: Document = field(repr=False)
    change: Change
    solution: Solution | None
    left_out: tuple[tuple[str | None, str], ...] = ()
    held: Mapping[str, str] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def why(self, finding: Finding, otherwise: str | None) -> str:
        """Why the finding remains. otherwise: its remediation."""
        whole = next((why for topic, why in self.left_out if topic is None), None)
        own = next((why for topic, why in self.left_out if topic == finding["resource"]), None)
        if finding["resource_type"] != "topic":
            own = None
        held = (self.held or {}).get(finding["resource"]) if finding["resource_type"] == "topic" else None
        of_rack = self.notes.get(finding["resource"]) if finding["control"] == "rack-loss" else None
        said = whole or own or of_rack or held
        if said is not None:
            return said
        if otherwise is None or "\n" in otherwise or not otherwise[:1].isalpha():
            return "no step of a plan fixes it: its remediation in findings.json has the commands"
        return otherwise


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
    racks = {broker.id: broker.rack for broker in inputs.brokers}
    blocked: dict[str, TopicSettings] = {}
    while True:
        solution, relaxed = _solved(inputs, targets, solver)
        moves = _moves(solution, inputs.document)
        made = _settings(of_topics, topics, moves, inputs) | blocked
        stuck = {n: TopicSettings(held=one.held, others=one.others) for n, one in made.items() if one.blocks}
        aims = {name: f["evidence"]["target"] for name, found in of_topics.items() if (f := _with_target(found))}
        if not (stuck := regress.worse(aims, topics, moves, made, inputs.postures, inputs.required, racks) | stuck):
            break
        # Other topics can take the room that their replicas would have taken.
        blocked |= stuck
        targets = {name: target for name, target in targets.items() if name not in stuck}
    held = {name: one.held for name, one in made.items() if one.held is not None}
    left_out |= {left.topic: WHY.get(left.why, left.why) for left in solution.left_out}
    left_out |= {name: held[name] for name in blocked}
    left_out |= {name: WHY[FEW_RACKS] for name in relaxed if name not in moves and name not in left_out}
    notes = {name: RELAXED for name in relaxed if name in moves}
    rank = {name: -max(map(gravity, found)) for name, found in of_topics.items()}
    wanted = Wanted(tuple(move for of in moves.values() for move in of), made, rank, _cluster_wide(inputs))
    change = assemble(inputs.document, wanted, inputs.facts, inputs.limits)
    return Draft(inputs.document, change, solution, tuple(left_out.items()), held, notes)


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
        racks=posture["target_racks"],
        own_racks=bool(posture["target_own_racks"]),
        balanced=bool(posture["target_rack_balance"]),
        acked=None if None in acked else acked,
        survives_rack=survives,
        min_isr=aims["min_insync_replicas_now"] if least is None else least,
    ), None


def _solved(inputs: Inputs, targets: Mapping[str, Target], solver: Solve) -> tuple[Solution, frozenset[str]]:
    """The moves, and the topics that racks don't let survive the loss of one: these get what else their target asks for."""
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
        min_isr=_min_isr(inputs),
        avoid=inputs.avoid,
        margin_disk=inputs.margin_disk,
    )
    solution = solver(problem)
    strict = frozenset(
        left.topic for left in solution.left_out if left.why == FEW_RACKS and targets[left.topic].survives_rack
    )
    if not strict:
        return solution, strict
    relaxed = {
        name: replace(target, survives_rack=False) if name in strict else target for name, target in targets.items()
    }
    return solver(replace(problem, targets=relaxed)), strict


def _min_isr(inputs: Inputs) -> dict[str, int]:
    """By topic its configured min.insync.replicas, as far as it is one number."""
    default = _default_min_isr(inputs.document)
    stated = {t["name"]: (t.get("configs") or {}).get(MIN_ISR) for t in inputs.document["topics"]}
    found = {
        name: default if value is None else int(value) if value.isdecimal() else None for name, value in stated.items()
    }
    return {name: value for name, value in found.items() if value is not None}


def _default_min_isr(document: Document) -> int | None:
    """The min.insync.replicas of the brokers; None if they have different ones. Kafka's default is 1."""
    stated = {(broker.get("configs") or {}).get(MIN_ISR, "1") for broker in document["brokers"]}
    value = stated.pop() if len(stated) == 1 else ""
    return int(value) if value.isdecimal() else None


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
    inputs: Inputs,
) -> dict[str, TopicSettings]:
    live = effects.live(inputs.document)
    made: dict[str, TopicSettings] = {}
    for name, findings in of_topics.items():
        finding, topic = _with_target(findings), topics[name]
        one = TopicSettings()
        if finding is not None and impossible(finding["evidence"]["target"]) is None:
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
            if known and safety.reason(setting.command, finding) is None:
                return (setting,)
    return ()


def undo(
    document: Document,
    before: Mapping[str, Any],
    facts: ClusterFacts,
    limits: Limits,
    *,
    reassigning_known: bool = True,
) -> Draft:
    """The way back to the placements and settings of before.json. Topics that are gone or were recreated since are left out.

    before: that of an earlier release has no `topic_ids`.
    """
    inputs = Inputs(document, (), {}, {}, (), facts, limits, reassigning_known)
    if (why := refusal.of_cluster(document, facts, reassigning_known)) is not None:
        return Draft(document, assemble(document, Wanted(), facts, limits), None, ((None, why),))
    topics = {topic["name"]: topic for topic in document["topics"]}
    ids, then_ids = topic_ids(document), before.get("topic_ids", {})
    recreated = {name for name in ids.keys() & then_ids.keys() if ids[name] != then_ids[name]}
    left_out: dict[str | None, str] = dict.fromkeys(sorted(recreated), RECREATED)
    moves: list[Move] = []
    for row in before["placements"]:
        name, number, then = row["topic"], row["partition"], tuple(row["replicas"])
        partition = next((p for p in topics.get(name, {}).get("partitions", ()) if p["partition"] == number), None)
        if name in recreated:
            continue
        if partition is None:
            left_out[name] = f"partition {number} doesn't exist any more"
        elif tuple(partition["replicas"]) != then:
            if partition["leader"] is None:
                left_out[name] = safety.NO_LEADER
            moves.append(Move(name, number, tuple(partition["replicas"]), then, partition.get("bytes")))
    moves = [move for move in moves if move.topic not in left_out]
    made: dict[str, TopicSettings] = {}
    cluster: list[Setting] = []
    unread, at_risk = settings.unread(document, MIN_ISR, UNCLEAN), settings.elr_at_risk(document, facts)
    for row in before["settings"]:
        name, key, value = row["topic"], row["name"], row["value"]
        if name in recreated:
            continue
        if name in topics and (odd := settings.odd(topics[name])) is not None:
            left_out[name] = odd
        elif name in unread:
            left_out[name] = f"its {key} could not be read: let the auditor read the topic's settings, then audit again"
        elif name is None and not settings.cluster_wide_known(document, key):
            left_out[name] = f"the cluster-wide {key} could not be read: let the auditor read the brokers' settings"
        elif name is None:
            was = settings.cluster_wide(document, key)
            cluster += [Setting(None, key, was, value)] if was != value else []
        elif name not in topics:
            left_out[name] = "the topic doesn't exist any more"
        elif (own := settings.override(topics[name], key)) != value and name not in left_out:
            if key == MIN_ISR and name in at_risk:
                left_out[name] = elr.WAIT.rstrip(".")
                continue
            made[name] = _restored(made.get(name, TopicSettings()), Setting(name, key, own, value), inputs)
    changing = {*made, *(move.topic for move in moves)} - left_out.keys()
    left_out |= {name: why for name, why in _rejecting(before, inputs).items() if name in changing}
    moves = [move for move in moves if move.topic not in left_out]
    made = {name: one for name, one in made.items() if name not in left_out}
    if not (moves or made or cluster or left_out):
        left_out[None] = AS_BEFORE
    change = assemble(document, Wanted(tuple(moves), made, {}, tuple(cluster)), facts, limits)
    steps = tuple(replace(step, why=BACK) if step.kind in RESTORING else step for step in change.steps)
    harms = tuple(f"{harm}: bring back its replicas that are out of sync first" for harm in change.harms)
    return Draft(document, replace(change, steps=steps, harms=harms), None, tuple(left_out.items()))


def _rejecting(before: Mapping[str, Any], inputs: Inputs) -> dict[str, str]:
    """The topics whose state of before.json rejects acks=all writes, with the reason: no way back leads there."""
    if inputs.facts.newest is None or inputs.facts.newest >= safety.CAPPED:
        return {}
    default, least = _default_min_isr(inputs.document), _min_isr(inputs)
    for row in before["settings"]:
        if row["name"] == MIN_ISR and row["topic"] in least:
            least[row["topic"]] = int(row["value"]) if row["value"] is not None else default or 1
    then = {(row["topic"], row["partition"]): row["replicas"] for row in before["placements"]}
    copies = {
        t["name"]: min(len(then.get((t["name"], p["partition"]), p["replicas"])) for p in t["partitions"])
        for t in inputs.document["topics"]
    }
    return {name: REJECTING.format(n, copies[name]) for name, n in least.items() if n > copies[name]}


def _restored(so_far: TopicSettings, setting: Setting, inputs: Inputs) -> TopicSettings:
    """The settings with one more that is restored.

    A lower min.insync.replicas comes after the moves: acks=all guarantees more copies until then. Before 3.7 it comes first,
    because brokers reject all writes if it is above the number of replicas.
    """
    if setting.name != MIN_ISR:
        return replace(so_far, others=(*so_far.others, setting))
    default = (_default_min_isr(inputs.document) or 1,) * 2
    was, value = (
        int(stated) if stated is not None and stated.isdecimal() else otherwise
        for stated, otherwise in zip((setting.was, setting.value), default, strict=True)
    )
    if value >= was:
        return replace(so_far, after=setting)
    first = inputs.facts.newest is None or inputs.facts.newest < safety.CAPPED
    return replace(so_far, before=setting) if first else replace(so_far, after=setting, raises=False)
