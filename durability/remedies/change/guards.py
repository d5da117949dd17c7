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
    OVERRIDES,
    OVERRIDES_OF_ALL,
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
PER_PATTERN, LONGEST = 200, 20_000
"""So many topics, and bytes of their names, are in one pattern. Linux limits an argument of a program to 128 KiB."""
INVISIBLE = "{} was deleted, or you may not describe it."
CHANGED = (
    "It is neither as before this step nor as after it: a later step or another person set it. Take later steps back, or make a"
    " new plan."
)
DELETED = "An override of these topics is gone: another person deleted it. Make a new plan."
HIGHER = "It is above the new value already, here or in the whole cluster. Make a new plan."
LATER = "A later step is not taken back yet."
ENFORCED = "Brokers enforce more than the new min.insync.replicas there: replicas were added since. Make a new plan."
NO_HEADROOM = "The loss of any of its replicas would stop acks=all writes there. Make a new plan."
LISTED = (
    "The tool would delete these lists of throttled replicas. Delete them if a run that was killed left them, else let their"
    " reassignment end."
)


def complete(variable: str) -> str:
    """The number of partitions that an answer of `--verify` calls complete."""
    return f'$(grep -cE "{COMPLETE}" <<< "${variable}")'


def of_partitions(topics: Iterable[str]) -> str:
    """Matches lines of kafka-topics about these topics. Before 2.4, the line of a topic has no space after the colon."""
    return f"Topic: ?({'|'.join(map(_literal, topics))})[[:space:]]"


def none_matches(pattern: str, variable: str) -> str:
    """No line of the variable matches. A line that does is printed. False if grep fails: its status is then not 1."""
    return f"{{ grep -E '{pattern}' <<< \"${variable}\"; [[ $? = 1 ]]; }}"


def all_end(found: str, allowed: str, variable: str) -> str:
    """What matches `found` in the variable ends with `allowed`. The rest is printed. False if grep fails."""
    return f"{{ grep -oE '{found}' <<< \"${variable}\" | grep -vE '{allowed}$'; [[ ${{PIPESTATUS[*]}} = [01]' '1 ]]; }}"


def _none(command: Command, topics: Iterable[str], rest: str, facts: ClusterFacts) -> list[str]:
    """No line of the command's answer is about one of the topics and goes on so. A line that does is printed."""
    patterns = [f"{of_partitions(some)}{rest}" for some in _in_patterns(topics)]
    return [
        line
        for shell in lines(command, facts)
        for line in (f"said=$({shell})", *(none_matches(pattern, "said") for pattern in patterns))
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
        checks.append(all_end(f"{of_partitions(some)}TopicId: [^[:space:]]+", f"TopicId: ({same})", "topics"))
    return checks


def _in_patterns(topics: Iterable[str]) -> Iterator[list[str]]:
    """The topics of one pattern each."""
    some: list[str] = []
    size = 0
    for topic in topics:
        longer = size + len(topic) + 2 * topic.count(".")
        if some and (len(some) == PER_PATTERN or longer > LONGEST):
            yield some
            some, longer = [], longer - size
        some.append(topic)
        size = longer
    if some:
        yield some


def in_sync(topics: Sequence[str], facts: ClusterFacts) -> list[str]:
    """All replicas of the topics are in sync, and each partition has a leader."""
    return [line for show in (UNDER_REPLICATED, UNAVAILABLE) for line in _none(show, topics, "", facts)]


def enough_in_sync(settings: Iterable[Setting]) -> list[str]:
    """No partition of these topics has fewer replicas in sync than its new min.insync.replicas. One that has is printed.

    It may have been added since the snapshot, with fewer replicas than the others.
    """
    return [
        none_matches(f"{of_partitions(some)}.*Isr: ?([0-9]+,){{0,{value - 2}}}[0-9]+([[:space:]]|$)", "topics")
        for value, topics in _by_value(settings).items()
        if value > 1
        for some in _in_patterns(topics)
    ]


def with_headroom(settings: Iterable[Setting]) -> list[str]:
    """Each partition of these topics has more replicas than its new min.insync.replicas. One that hasn't is printed.

    It may have been added since the snapshot, with fewer replicas than the others.
    """
    return [
        f"{{ {none_matches(f'{of_partitions(some)}{_at_most(value)}', 'topics')} || ! echo '{NO_HEADROOM}'; }}"
        for value, topics in _by_value(settings).items()
        for some in _in_patterns(topics)
    ]


def enforce_no_more(settings: Iterable[Setting]) -> list[str]:
    """No partition of these topics has more replicas than its new min.insync.replicas. One that has is printed.

    Replicas may have been added since the snapshot. Brokers then enforce more, and the new value would guarantee fewer copies.
    """
    return [
        f"{{ {none_matches(f'{of_partitions(some)}.*Replicas: ?([0-9]+,){{{value},}}[0-9]', 'topics')} || ! echo '{ENFORCED}'; }}"
        for value, topics in _by_value(settings).items()
        for some in _in_patterns(topics)
    ]


def _by_value(settings: Iterable[Setting]) -> dict[int, list[str]]:
    """The topics that get a min.insync.replicas of their own, by its value."""
    by_value: defaultdict[int, list[str]] = defaultdict(list)
    for setting in settings:
        if setting.topic is not None and setting.name == MIN_ISR and setting.value is not None:
            by_value[int(setting.value)].append(setting.topic)
    return by_value


def overrides(settings: Iterable[Setting], facts: ClusterFacts) -> list[str]:
    """Puts what `unchanged` reads into variables: what topics have of their own, and the cluster-wide defaults.

    Before 2.5, the tool shows it in another form, which isn't read.
    """
    if facts.before(2, 5):
        return []
    settings = list(settings)
    found = []
    if any(setting.topic is not None for setting in settings):
        of_topic = """awk '/^Dynamic configs for topic /{topic=$5} /^  /{print topic, $1}' <<< "$said\""""
        found += [
            line for shell in lines(OVERRIDES_OF_ALL, facts) for line in (f"said=$({shell})", f"own=$({of_topic})")
        ]
    if any(setting.topic is None for setting in settings):
        found += [f"defaults=$({shell})" for shell in lines(Show(OVERRIDES), facts)]
    return found


def unchanged(settings: Iterable[Setting], facts: ClusterFacts) -> list[str]:
    """Each setting is as before the step, or as after it. What another person set is printed. Reads what `overrides` read.

    An override that the step changes to another one must be there: without it, the topic has the cluster's value.
    """
    if facts.before(2, 5):
        return []
    settings = list(settings)
    by_values: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    checks = []
    for setting in settings:
        allowed = "|".join(sorted({value for value in (setting.was, setting.value) if value is not None}))
        if setting.topic is None:
            checks.append(all_end(f"^  {_literal(setting.name)}=[^[:space:]]+", f"=({allowed})", "defaults"))
        else:
            by_values[setting.name, allowed].append(setting.topic)
    for (name, allowed), topics in by_values.items():
        for some in _in_patterns(topics):
            of_topics = f"^({'|'.join(map(_literal, some))}) {_literal(name)}=[^[:space:]]+"
            checks.append(all_end(of_topics, f"=({allowed})", "own"))
    return [*(f"{{ {check} || ! echo '{CHANGED}'; }}" for check in checks), *_still_there(settings)]


def _still_there(settings: Iterable[Setting]) -> Iterator[str]:
    changed = [setting for setting in settings if setting.was is not None and setting.value is not None]
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    for setting in changed:
        if setting.topic is not None:
            by_name[setting.name].append(setting.topic)
        else:
            yield f"{{ grep -qE '^  {_literal(setting.name)}=' <<< \"$defaults\" || ! echo '{DELETED}'; }}"
    for name, topics in by_name.items():
        for some in _in_patterns(topics):
            pattern = f"^({'|'.join(map(_literal, some))}) {_literal(name)}="
            yield f"{{ [[ $(grep -cE '{pattern}' <<< \"$own\") = {len(some)} ]] || ! echo '{DELETED}'; }}"


def not_higher(settings: Iterable[Setting]) -> list[str]:
    """No topic has a min.insync.replicas above its new one, inherited or its own. One that has is printed."""
    return [
        f"{{ {none_matches(f'{of_partitions(some)}.*min[.]insync[.]replicas={_above(value)}', 'topics')} || ! echo '{HIGHER}'; }}"
        for value, topics in _by_value(settings).items()
        for some in _in_patterns(topics)
    ]


def _at_most(replicas: int) -> str:
    return f".*Replicas: ?([0-9]+,){{0,{replicas - 1}}}[0-9]+[[:space:]]"


def _above(number: int) -> str:
    """Matches the numbers above this one.

    >>> [_above(n) for n in (1, 9, 12)]
    ['([2-9]|[0-9]{2,})', '([0-9]{2,})', '([0-9]{3,})']
    """
    digits = len(str(number))
    more = f"[0-9]{{{digits + 1},}}"
    return f"([{number + 1}-9]|{more})" if number < 9 else f"({more})"


def _literal(text: str) -> str:
    return text.replace(".", "[.]")


def nothing_eligible(topics: Sequence[str], facts: ClusterFacts) -> list[str]:
    """No partition of the topics has an ELR, which a new min.insync.replicas would delete (KIP-966), or lacks a leader.

    Members of an ELR that are no replicas don't count (`durability.topology.elr`): \\3 is one of the replicas.
    """
    if facts.elr is False or facts.before(4, 0):
        return []
    elr = r".*Replicas: ?([0-9]+,)*([0-9]+)[,[:space:]].*[[:space:]]Elr: ([0-9]+,)*\3(,|[[:space:]]|$)"
    return _none(TOPICS, topics, elr, facts) + _none(UNAVAILABLE, topics, "", facts)


def brokers_back(brokers: Iterable[int], facts: ClusterFacts) -> list[str]:
    """No partition with replicas on these brokers has replicas out of sync."""
    there = f"Replicas: ([0-9]+,)*({'|'.join(map(str, brokers))})(,|[[:space:]])"
    return [
        line for shell in lines(UNDER_REPLICATED, facts) for line in (f"said=$({shell})", none_matches(there, "said"))
    ]


def no_throttled_replicas(topics: Iterable[str]) -> list[str]:
    """No topic has a list of throttled replicas. The tool would replace it, and delete it at the end."""
    checks = [
        none_matches(f"{of_partitions(some)}.*replication[.]throttled[.]replicas=", "topics")
        for some in _in_patterns(topics)
    ]
    return [f"{{ {check} || ! echo '{LISTED}'; }}" for check in checks]


def may_change(settings: Iterable[Setting], facts: ClusterFacts, *, raises: bool) -> list[str]:
    """min.insync.replicas of these topics may change now. raises: all replicas must be in sync first."""
    topics = sorted({s.topic for s in settings if s.topic is not None and s.name == MIN_ISR})
    if not topics:
        return []
    return in_sync(topics, facts) if raises else nothing_eligible(topics, facts)


def _with_value(settings: Iterable[Setting]) -> Iterator[tuple[str, str, list[str]]]:
    """Name, value and topics of the overrides after the step, as many topics as one pattern has."""
    by_value: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for setting in settings:
        if setting.topic is not None and setting.value is not None:
            by_value[setting.name, setting.value].append(setting.topic)
    for (name, value), topics in by_value.items():
        for some in _in_patterns(topics):
            yield name, value, some


def _in_description(name: str, value: str, topics: Iterable[str]) -> str:
    """Matches kafka-topics' lines about those of the topics that have the value, of their own or inherited."""
    return f"{of_partitions(topics)}.*Configs:.*{_literal(name)}={value}(,|[[:space:]]|$)"


def are_set(settings: Iterable[Setting], facts: ClusterFacts) -> list[str]:
    """The topics have these values, else they are printed. What has become an inherited value isn't asked."""
    return [
        line
        for name, value, topics in _with_value(settings)
        for shell in lines(TOPICS, facts)
        for line in (
            f"said=$({shell} | grep -E '{of_partitions(topics)}')",
            f'{{ [[ $(grep -cE \'{_in_description(name, value, topics)}\' <<< "$said") = {len(topics)} ]] || ! echo "$said"; }}',
        )
    ]


def not_set(settings: Sequence[Setting], facts: ClusterFacts) -> list[str]:
    """No topic has these values of its own, so later steps are taken back. A topic that has one is printed.

    Before 2.5, an inherited value counts, too.
    """
    found = list(_with_value(settings))
    if facts.before(2, 5):
        checks = [none_matches(_in_description(*one), "topics") for one in found]
        return [*listed(facts), *checks] if checks else []
    own = [
        none_matches(f"^({'|'.join(map(_literal, topics))}) {_literal(name)}={value}$", "own")
        for name, value, topics in found
    ]
    checks = [f"{{ {check} || ! echo '{LATER}'; }}" for check in own]
    return [*overrides(settings, facts), *checks] if checks else []


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
