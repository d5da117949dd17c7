"""What a script of a plan asks the cluster before it changes anything, as conditions of bash.

The snapshot of a plan may be days old, and a script may be run after one that failed. Each condition is false, and so ends the
script, if a tool fails or its answer differs. The tools print what is in the way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from durability.remedies.change.model import MIN_ISR, Setting, Step
from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import (
    DYNAMIC_OF_BROKERS,
    OVERRIDES,
    TOPICS,
    UNAVAILABLE,
    UNDER_REPLICATED,
    Command,
    Show,
    Verify,
    lines,
)

COMPLETE = "is complete|completed successfully"
"""kafka-reassign-partitions says the first since 2.6, the second before."""
PER_PATTERN = 200
"""So many topics are in one pattern. Linux limits an argument of a program to 128 KiB."""
INVISIBLE = "{} was deleted, or you may not describe it."
THROTTLES = "replication[.]throttled[.]rate=|log[.]dirs[.]io[.]max"


def complete(variable: str) -> str:
    """The number of partitions that an answer of `--verify` calls complete."""
    return f'$(grep -cE "{COMPLETE}" <<< "${variable}")'


def of_partitions(topics: Iterable[str]) -> str:
    """Matches lines of kafka-topics about these topics. Before 2.4, the line of a topic has no space after the colon."""
    return f"Topic: ?({'|'.join(topic.replace('.', '[.]') for topic in topics)})[[:space:]]"


def _none(command: Command, pattern: str, facts: ClusterFacts) -> list[str]:
    """No line of the command's answer matches. A line that does is printed."""
    return [
        line for shell in lines(command, facts) for line in (f"said=$({shell})", f"! grep -E '{pattern}' <<< \"$said\"")
    ]


def listed(facts: ClusterFacts) -> list[str]:
    """Puts what kafka-topics says of all topics into the variable that `visible` and `same_topics` read."""
    return [f"topics=$({shell})" for shell in lines(TOPICS, facts)]


def visible(topics: Iterable[str]) -> list[str]:
    """Each topic is there, and may be described. Else the tool leaves it out, and every other condition is true of it."""
    checks = []
    for some in _in_patterns(topics):
        said = INVISIBLE.format(f"Topic {some[0]}" if len(some) == 1 else "A topic of this step")
        checks.append(
            f"{{ [[ $(grep -cE '^{of_partitions(some)}' <<< \"$topics\") = {len(some)} ]] || ! echo '{said}'; }}"
        )
    return checks


def same_topics(topics: Iterable[str], ids: Mapping[str, str]) -> list[str]:
    """No topic was deleted and created again since the snapshot. The line of one that was is printed, with its new id.

    ids: Kafka's ids by topic, as far as they are known. kafka-topics prints them since 2.8 (KIP-516). A topic that is gone isn't
    found here.
    """
    checks = []
    for some in _in_patterns(topic for topic in topics if topic in ids):
        same = "|".join(ids[topic] for topic in some)
        checks.append(
            f"! grep -oE '{of_partitions(some)}TopicId: [^[:space:]]+' <<< \"$topics\" | grep -vE 'TopicId: ({same})$'"
        )
    return checks


def _in_patterns(topics: Iterable[str]) -> Iterator[list[str]]:
    """The topics of one pattern each."""
    names = list(topics)
    return (names[start : start + PER_PATTERN] for start in range(0, len(names), PER_PATTERN))


def in_sync(topics: Sequence[str], facts: ClusterFacts) -> list[str]:
    """All replicas of the topics are in sync, and each partition has a leader."""
    return [line for show in (UNDER_REPLICATED, UNAVAILABLE) for line in _none(show, of_partitions(topics), facts)]


def enough_in_sync(settings: Iterable[Setting]) -> list[str]:
    """No partition of these topics has fewer replicas in sync than its new min.insync.replicas. One that has is printed.

    It may have been added since the snapshot, with fewer replicas than the others.
    """
    by_value: defaultdict[int, list[str]] = defaultdict(list)
    for setting in settings:
        if setting.topic is not None and setting.name == MIN_ISR and setting.value is not None:
            by_value[int(setting.value)].append(setting.topic)
    return [
        f"! grep -E '{of_partitions(some)}.*Isr: ?([0-9]+,){{0,{value - 2}}}[0-9]+([[:space:]]|$)' <<< \"$topics\""
        for value, topics in by_value.items()
        if value > 1
        for some in _in_patterns(topics)
    ]


def nothing_eligible(topics: Sequence[str], facts: ClusterFacts) -> list[str]:
    """No partition of the topics has an ELR, which a new min.insync.replicas would delete (KIP-966), or lacks a leader."""
    if facts.elr is False or facts.before(4, 0):
        return []
    elr = f"{of_partitions(topics)}.*[[:space:]]Elr: [0-9]"
    return _none(TOPICS, elr, facts) + _none(UNAVAILABLE, of_partitions(topics), facts)


def brokers_back(brokers: Iterable[int], facts: ClusterFacts) -> list[str]:
    """No partition with replicas on these brokers has replicas out of sync."""
    return _none(UNDER_REPLICATED, f"Replicas: ([0-9]+,)*({'|'.join(map(str, brokers))})(,|[[:space:]])", facts)


def no_throttles(facts: ClusterFacts) -> list[str]:
    """No broker has a throttle. The tool would replace it, and delete it at the end (since 2.6)."""
    return _none(DYNAMIC_OF_BROKERS, THROTTLES, facts)


def no_throttled_replicas(topics: Iterable[str]) -> list[str]:
    """No topic has a list of throttled replicas. The tool would replace it, and delete it at the end."""
    return [
        f"! grep -E '{of_partitions(some)}.*replication[.]throttled[.]replicas=' <<< \"$topics\""
        for some in _in_patterns(topics)
    ]


def may_change(settings: Iterable[Setting], facts: ClusterFacts, *, raises: bool) -> list[str]:
    """min.insync.replicas of these topics may change now. raises: all replicas must be in sync first."""
    topics = sorted({s.topic for s in settings if s.topic is not None and s.name == MIN_ISR})
    if not topics:
        return []
    return in_sync(topics, facts) if raises else nothing_eligible(topics, facts)


def _with_value(settings: Iterable[Setting]) -> dict[str, int]:
    """Patterns of kafka-topics' lines for topics with these overrides, each with the number of topics."""
    by_value: dict[tuple[str, str], list[str]] = defaultdict(list)
    for setting in settings:
        if setting.topic is not None and setting.value is not None:
            by_value[setting.name, setting.value].append(setting.topic)
    return {
        f"{of_partitions(topics)}.*Configs:.*{name.replace('.', '[.]')}={value}(,|[[:space:]]|$)": len(topics)
        for (name, value), topics in by_value.items()
    }


def are_set(settings: Iterable[Setting], facts: ClusterFacts) -> list[str]:
    """The topics have these values, else they are printed. What has become an inherited value isn't asked."""
    settings = list(settings)
    topics = of_partitions(dict.fromkeys(s.topic for s in settings if s.topic is not None))
    return [
        line
        for pattern, number in _with_value(settings).items()
        for shell in lines(TOPICS, facts)
        for line in (
            f"said=$({shell} | grep -E '{topics}')",
            f'{{ [[ $(grep -cE \'{pattern}\' <<< "$said") = {number} ]] || ! echo "$said"; }}',
        )
    ]


def not_set(settings: Iterable[Setting], facts: ClusterFacts) -> list[str]:
    """No topic has these values, so later steps are taken back. A topic that has one is printed."""
    return [line for pattern in _with_value(settings) for line in _none(TOPICS, pattern, facts)]


def done(step: Step, file: str, facts: ClusterFacts) -> list[str]:
    """The step is complete. file: of its moves."""
    if step.kind == "wait":
        return brokers_back(step.brokers, facts)
    if not step.moves:
        return are_set(step.settings, facts)
    verify = lines(Verify(file), facts)
    if not verify:
        return in_sync(step.topics, facts)
    return [f"said=$({verify[0]})", f'{{ [[ {complete("said")} = {len(step.moves)} ]] || ! echo "$said"; }}']


def deleted(setting: Setting, shell: str, facts: ClusterFacts) -> str:
    """Deletes an override if there is one: kafka-configs fails if there is none."""
    [show] = lines(Show(OVERRIDES, setting.topic or ""), facts)
    return f'said=$({show}) && {{ [[ $said != *"{setting.name}="* ]] || {shell}; }}'
