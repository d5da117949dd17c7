"""Remedies for settings of topics, brokers and the cluster: elections, defaults, throttles, disks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from durability.catalogue.listing import listed, with_noun
from durability.remedies import disks, elr, providers, safety, stuck
from durability.remedies.cluster import ClusterFacts, facts_of
from durability.remedies.commands import (
    LOG_DIRS,
    ONE_BY_ONE,
    Config,
    Show,
    broker_setting,
    cluster_setting,
    lines,
    topic_setting,
)
from durability.remedies.finding import Finding
from durability.remedies.steps import NO_RESTART, Remedy, Step, advice, restart, restart_controllers

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
IGNORED = (
    f"Set {MIN_ISR}={{}} in server.properties of every broker and controller, as it is recorded. Restart none for it: with"
    " eligible leader replicas on, the recorded value counts, and brokers ignore the one in their file"
)
"""Seen on 4.3.1."""
UNCLEAN_OVERRIDE = f"A dynamic {UNCLEAN} on {{}} overrides the cluster-wide value:"
WITHOUT_RESTART = "This sets it on the topic, without a restart:"


def unclean_off(finding: Finding) -> Remedy:
    """Switches unclean leader election off on the topic if it has an override, else cluster-wide.

    Before 1.1 the cluster's value takes a restart of every broker. ZooKeeper's controller reads the topic's own value at each
    election.
    """
    of_topic = topic_setting(finding["resource"], UNCLEAN, "false")
    if finding["evidence"]["own"]:
        return [Step(of_topic)]
    facts = facts_of(finding)
    if facts.before(1, 1) and lines(of_topic, facts):
        return [Step(of_topic, (WITHOUT_RESTART,)), Step(cluster_setting(UNCLEAN, "false"))]
    return _unclean_off(finding)


def _unclean_off(finding: Finding) -> Remedy:
    """Switches unclean leader election off cluster-wide, and on nodes whose own dynamic values override that one."""
    evidence = finding["evidence"]
    brokers, controllers = evidence.get("unclean_brokers") or (), evidence.get("unclean_controllers") or ()
    own = [Step(broker_setting(b, UNCLEAN, "false"), (UNCLEAN_OVERRIDE.format(f"broker {b}"),)) for b in brokers]
    if controllers:
        who = with_noun(controllers, "controller")
        own.insert(0, Step(about=(f"{UNCLEAN_OVERRIDE.format(who)} set it to false over the controllers' listener",)))
    return [*own, Step(cluster_setting(UNCLEAN, "false"))]


def unclean_stated(finding: Finding) -> Remedy:
    """States the value cluster-wide: the controllers' static value can't be read."""
    return [Step(cluster_setting(UNCLEAN, "false"), ("This sets it cluster-wide, where the auditor can read it:",))]


def defaults(finding: Finding) -> Remedy:
    """The remedy for each weak default. It doesn't change min.insync.replicas while that could wipe an ELR or stop writes."""
    weak, required, evidence = finding["observed"]["problems"], finding["required"], finding["evidence"]
    facts = facts_of(finding)
    if facts.led is False:
        return advice(NO_RESTART)
    unsafe = evidence["elr_at_risk"]
    weak_min = MIN_ISR in weak and not unsafe
    waits = unsafe and (MIN_ISR in weak or len(evidence["min_insync_replicas"]) > 1)
    own = _min_isr_of_brokers(finding) if weak_min else []
    steps: Remedy = []
    if UNCLEAN in weak:
        # This step doesn't depend on the others, and an unsafe step ends a remedy. So it goes first.
        steps += _unclean_off(finding)
    if weak_min:
        steps += own
        if evidence["weak_elsewhere"] is not False or facts.elr:
            steps.append(_default_min_isr(evidence, required["min_insync_replicas"]))
    in_files = [step for step in steps if _only_in_files(step, finding)]
    sentences = _in_files(finding, [step.command for step in in_files if isinstance(step.command, Config)])
    if "brokers-disagree" in weak and not waits and not _agree_then(own, finding):
        sentences.append(_same_values(finding, named=bool(sentences)))
    sentences += _internal(evidence.get("uncreatable") or (), evidence.get("brokers"), facts)
    if waits:
        sentences.append(elr.wait(finding))
    return [*(Step(about=(sentence,)) for sentence in sentences), *(step for step in steps if step not in in_files)]


def _internal(uncreatable: Sequence[Mapping[str, Any]], brokers: int | None, facts: ClusterFacts) -> list[str]:
    """Sentences on Kafka's own topics that can't be created. Their settings are only in files."""
    if not uncreatable:
        return []
    most = max(one["value"] for one in uncreatable)
    add = f"Add brokers: {most} are required to create {listed([one['topic'] for one in uncreatable])}, the cluster has {brokers}"
    if providers.refusal(facts.provider, providers.FILES) is not None:
        return [add]
    values = ", ".join(f"{one['setting']}={brokers}" for one in uncreatable)
    return [restart(f"{add}. Or set {values} in server.properties of every broker", ONE_BY_ONE, facts)]


def _same_values(finding: Finding, named: bool) -> str:
    """What makes brokers and controllers agree. named: do sentences before it name a restart?"""
    evidence, facts = finding["evidence"], facts_of(finding)
    dynamic, recorded = evidence.get("differing_brokers") or (), evidence.get("recorded_min_insync_replicas")
    alone = not any(len(evidence[name]) > 1 for name in ("replication_factors", "unclean_leader_elections"))
    if alone and recorded is not None and providers.refusal(facts.provider, providers.FILES) is None:
        return IGNORED.format(recorded)
    if dynamic and alone:
        who = with_noun(dynamic, "broker")
        return f"Delete the dynamic {MIN_ISR} of {who}, which overrides the value that the others have"
    same = f"Set the same values on all brokers{' and controllers' if _controllers(facts) else ''}"
    # Providers restart brokers themselves.
    files = not named and providers.refusal(facts.provider, providers.FILES) is None
    return restart(same, f"where a server.properties states them, {ONE_BY_ONE}", facts) if files else same


def _controllers(facts: ClusterFacts) -> bool:
    """Can there be controllers with files of their own? KRaft came with 2.8."""
    return facts.kraft is not False and not facts.before(2, 8)


def _only_in_files(step: Step, finding: Finding) -> bool:
    """Is this a safe change for which the cluster's release has no command, so that it takes files and a restart?"""
    if step.command is None or step.unless is not None or lines(step.command, facts_of(finding)):
        return False
    provider = facts_of(finding).provider
    return providers.refusal(provider, providers.FILES) is None and safety.reason(step.command, finding) is None


def _agree_then(own: Remedy, finding: Finding) -> bool:
    """Do brokers and controllers have the same values once the other sentences are done?

    own: sets the values of single brokers.
    """
    evidence, required = finding["evidence"], finding["required"]
    factors, minimums = evidence["replication_factors"], evidence["min_insync_replicas"]
    least, copies = required["min_insync_replicas"], required["default_replication_factor"]
    raised = "default.replication.factor" in finding["observed"]["problems"] and not evidence.get("above_maximum")
    same_factors = len(factors) < 2 or (raised and {n for n in factors if n >= copies} <= {copies})
    rest = [value for value in minimums if value >= least]
    by_own = bool(own) and rest == [least] and evidence["weak_elsewhere"] is False
    same_minimums = len(minimums) < 2 or by_own
    return same_factors and same_minimums and len(evidence["unclean_leader_elections"]) < 2


def _in_files(finding: Finding, more: Sequence[Config]) -> list[str]:
    """Sentences on settings that only files of brokers have, and on the restart that they take.

    more: changes for which the cluster's release has no command.
    """
    weak, required, evidence, facts = (
        finding["observed"]["problems"],
        finding["required"],
        finding["evidence"],
        facts_of(finding),
    )
    instead, sentences = providers.refusal(facts.provider, providers.FILES), []
    stated, first, nodes = [], "", "every broker"
    only: list[int] = []  # the controllers, if no broker needs the change
    if "default.replication.factor" in weak:
        key = "default_replication_factor" + ("_at_most" if evidence.get("above_maximum") else "")
        wanted, there = required[key], evidence.get("brokers")
        if there is not None and wanted > there:
            enough = f"Add brokers first ({wanted} required, the cluster has {there})"
            first = f"{enough}: until then topics can't be created with it. "
        stated.append(f"default.replication.factor={wanted}")
        nodes += " and controller" if _controllers(facts) else ""
    stated += [f"{key}={value}" for command in more for key, value in command.values]
    if stated:
        change = f"{first}Set {', '.join(stated)}"
        if not (instead or more or evidence.get("short_brokers")):
            only = evidence.get("short_controllers") or []
        if only:
            act = "restart it" if len(only) == 1 else ONE_BY_ONE
            change = f"{change} in server.properties of {with_noun(only, 'controller')}"
            sentences.append(restart_controllers(change, act, facts))
        else:
            of_all = restart(f"{change} in server.properties of {nodes}", ONE_BY_ONE, facts)
            sentences.append(change if instead else of_all)
    if "auto.create.topics.enable" in weak:
        too = bool(sentences) and not only
        where = " there too" if too else "" if instead else " in server.properties of every broker"
        change = (
            f"Set auto.create.topics.enable=false{where}, unless producers should create topics with these defaults"
        )
        sentences.append(change if too or instead else restart(change, ONE_BY_ONE, facts))
    return [*sentences, instead] if instead and sentences else sentences


def _min_isr_of_brokers(finding: Finding) -> Remedy:
    """Raises the dynamic values of single brokers, which override the cluster-wide one; advice if that isn't safe now.

    With ELR on there are none in force, and Kafka refuses to change them (KAFKA-16540).
    """
    brokers, value = finding["evidence"]["overriding_brokers"], finding["required"]["min_insync_replicas"]
    if not brokers or facts_of(finding).elr:
        return []
    overrides = "A dynamic min.insync.replicas on broker {} overrides the cluster-wide value:"
    steps = [Step(broker_setting(b, MIN_ISR, value), (overrides.format(b),), alone=True) for b in brokers]
    raises = _default_min_isr(finding["evidence"], value).unless is None
    if raises and not any(safety.reason(step.command, finding) for step in steps if step.command is not None):
        return steps
    who = with_noun(brokers, "broker")
    return advice(
        f"A dynamic min.insync.replicas on {who} overrides the cluster-wide value: set it to {value}, or delete it (kafka-configs"
        f" --entity-type brokers --entity-name). First give each topic that inherits it more than {value} replicas in sync."
    )


def _default_min_isr(evidence: dict[str, Any], value: int) -> Step:
    """Raises the cluster's min.insync.replicas, unless a topic that inherits it would reject acks=all writes at once."""
    least, short = evidence["inherited_least"], evidence["inherited_short"] or 0
    command = cluster_setting(MIN_ISR, value)
    if not short and (least is None or least > value):
        return Step(command, alone=True)
    if not short and not evidence.get("all_topics_shown", True):
        return Step(
            command,
            unless=f"Don't set min.insync.replicas={value} for the whole cluster now: topics that aren't shown to the auditor may"
            " inherit it and have too few replicas for it. First let the auditor see all topics",
        )
    first = evidence["inherited_first"]
    who = f"topic {first}" if short == 1 else f"topics {first} and {short - 1} more"
    unless = (
        f"Don't set min.insync.replicas={value} for the whole cluster now: {who} would inherit it and"
        f" {'has' if short == 1 else 'have'} too few replicas, or replicas in sync, for it: acks=all writes would be rejected"
        " at once, or after fewer losses than required. First give these topics more replicas, bring replicas back, or set"
        " their own value"
    )
    return Step(command, unless=unless)


def log_dirs(finding: Finding) -> Remedy:
    """Shows the broker's offline log directories."""
    broker, shows = finding["resource"], "This shows the offline log dir."
    about = disks.replaced("Replace its disk", "restart the broker", facts_of(finding), [int(broker)])
    return [Step(Show(LOG_DIRS, broker), (f"{shows} {about}",))]


def reassignments_unread(finding: Finding) -> Remedy:
    """What it takes to read reassignments and throttles: a controller that leads answers, and only to who may ask.

    Brokers that are down and failed disks can have topics that the auditor may not see.
    """
    failed = facts_of(finding).failed_disks
    return _unread(
        finding,
        "reassignments are read from the controller that leads",
        "Describe and DescribeConfigs on cluster and topics",
        [f"bring back the offline log dirs of {with_noun(failed, 'broker')}"] if failed else [],
    )


def configs_unread(finding: Finding) -> Remedy:
    """What it takes to read the configs of brokers and controllers."""
    facts = facts_of(finding)
    voters = [voter for voter in facts.missing_voters if voter not in facts.down]
    return _unread(
        finding,
        "the configs of controllers that are down can't be read",
        "DescribeConfigs on the cluster",
        [f"start {with_noun(voters, 'controller')}"] if voters else [],
    )


def features_unread(finding: Finding) -> Remedy:
    """What it takes to read the cluster's features, which brokers know from the quorum's leader."""
    return _unread(finding, "features are read from the controller that leads", "Describe on the cluster")


def _unread(finding: Finding, why: str, permission: str, more: Sequence[str] = ()) -> Remedy:
    """In an outage nodes come back first. A permission is missing only where nothing else explains what is unread.

    more: what explains it beside brokers that are down.
    """
    facts, grant = facts_of(finding), f"rant the auditor {permission}"
    if facts.led is False:
        return advice(f"First restore the controller quorum: {why}")
    start = [f"start {with_noun(facts.down, 'broker')}"] if facts.down else []
    first = ", and ".join([*start, *more])
    # KRaft's controllers remember a broker until it is unregistered. ZooKeeper's know live ones only.
    removed = ["Unregister a broker that was removed for good and has no replica"] if facts.down and facts.kraft else []
    return advice(first[0].upper() + first[1:], *removed, f"If it stays, g{grant}") if first else advice(f"G{grant}")


WHILE_IDLE = (
    "A command deletes nothing while a reassignment runs, and prints it then: its throttle protects the brokers."
)
DELETED_ALREADY = (
    "A command that answers Invalid config(s) has nothing left to delete: kafka-reassign-partitions --verify deletes"
    " throttles, too."
)


def leftovers(finding: Finding) -> Remedy:
    """Advice on a stuck reassignment, or the commands that delete leftover throttles.

    kafka-configs fails if it should delete a setting that isn't set (until KAFKA-20506). So each command names set ones only.
    A reassignment may have begun since the snapshot, and needs its throttle. So each asks for running ones first.
    """
    if finding["observed"]["stuck"]:
        return stuck.remedy(finding, facts_of(finding))
    default, brokers = finding["evidence"]["default_throttles"], finding["evidence"]["brokers"]
    down = [b["broker"] for b in brokers if b.get("live") is False]
    named: list[tuple[str, str | None, list[str]]] = [("brokers", None, default)] if default else []
    named += [("topics", t["topic"], t["throttles"]) for t in finding["evidence"]["topics"]]
    live = [b for b in brokers if b["broker"] not in down]
    named += [("brokers", str(b["broker"]), _dynamic(b)) for b in live if _dynamic(b)]
    steps = [
        Step(Config(kind, name, tuple((key, None) for key in keys), idle=True), alone=True)
        for kind, name, keys in named
    ]
    if steps:
        steps[0] = replace(steps[0], about=(DELETED_ALREADY, WHILE_IDLE))
    return [*steps, *_throttles_in_files(live, facts_of(finding)), *_throttles_of_down(down)]


def _dynamic(broker: Mapping[str, Any]) -> list[str]:
    """A broker's throttles that kafka-configs can delete."""
    return [key for key in broker["throttles"] if key not in broker.get("in_file", ())]


def _throttles_in_files(brokers: Iterable[Mapping[str, Any]], facts: ClusterFacts) -> Remedy:
    """Advice: kafka-configs deletes no setting that a broker's file states."""
    sentences = []
    for broker in brokers:
        if keys := broker.get("in_file"):
            change = f"Delete {listed(keys)} from server.properties of broker {broker['broker']}"
            sentences.append(restart(change, "restart it", facts, [broker["broker"]]))
    return advice(*sentences) if sentences else []


def _throttles_of_down(brokers: list[int]) -> Remedy:
    """Advice: kafka-configs sends a change of a broker's own settings to this broker."""
    if not brokers:
        return []
    who, are = with_noun(brokers, "broker"), "it is" if len(brokers) == 1 else "they are"
    return advice(f"The throttle of {who} can't be deleted while {are} down. When {are} back, audit again.")
