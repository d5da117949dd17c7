"""Commands of Kafka's tools as data, and as text for bash that fits the cluster's release.

A remedy is either a script (commands and comments, one per line) or advice without a command. A command contains topic names,
safe folder names and ids, and no other names. Validation of a document ensures that topic names have no shell characters.

Before these releases a tool needs `--zookeeper`: kafka-topics 2.2 (KIP-377), kafka-configs for topics 2.5 (KIP-543),
kafka-reassign-partitions 2.6 (KIP-455). Brokers have dynamic configurations since 1.1 (KIP-226). kafka-configs came with 0.9
(KIP-21), throttles of replication with 0.10.1 (KIP-73).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from durability.remedies.cluster import UNKNOWN, ClusterFacts

BOOTSTRAP, ZOOKEEPER = '--bootstrap-server "$BOOTSTRAP"', '--zookeeper "$ZOOKEEPER"'
ADMIN = f"zookeeper-shell {ZOOKEEPER.removeprefix('--zookeeper ')} ls /admin"
"""Shows which operations of the controller ZooKeeper has."""
BREAKS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
"""Characters that could end a line of shell: control characters (Unicode category Cc) and line separators."""


@dataclass(frozen=True)
class Config:
    """kafka-configs: sets or deletes settings of a topic, a broker, or all brokers (`name` None).

    values: settings with their new values; None deletes the setting. idle: only while no reassignment runs.
    """

    entity: str
    name: str | None
    values: tuple[tuple[str, str | None], ...]
    idle: bool = False


@dataclass(frozen=True)
class Reassign:
    """kafka-reassign-partitions: executes a plan and verifies it. file: below the report's folder.

    throttle: bytes per second, None for no throttle of the tool's own. checks: how often it is verified, every ten seconds.
    """

    topic: str
    file: str
    throttle: int | None
    checks: int = 300


@dataclass(frozen=True)
class Verify:
    """kafka-reassign-partitions: shows the state of a plan's partitions, and changes no throttle (KIP-455, since 2.6)."""

    file: str


@dataclass(frozen=True)
class Cancel:
    """kafka-reassign-partitions: cancels the reassignments of a plan that are running (KIP-455, since 2.6)."""

    file: str


@dataclass(frozen=True)
class Feature:
    """kafka-features: upgrades a feature to a level."""

    name: str
    level: int


@dataclass(frozen=True)
class Show:
    """A command that only reads. what: a key of SHOWN."""

    what: str
    name: str = ""


@dataclass(frozen=True)
class Elect:
    """kafka-leader-election: asks the controller to elect the preferred leader of a partition (KIP-460).

    only: the one broker that can be elected. It isn't, if it has no record of the partition.
    """

    topic: str
    partition: int
    only: int | None = None


@dataclass(frozen=True)
class ElectListed:
    """kafka-leader-election: asks for the election of the preferred leaders of the partitions that a file lists (KIP-460)."""

    file: str


@dataclass(frozen=True)
class Unregister:
    """kafka-cluster: the controllers forget a broker that is down. Only KRaft remembers such brokers."""

    broker: int


Command = Config | Reassign | Verify | Cancel | Feature | Elect | ElectListed | Unregister | Show
UNAVAILABLE, TOPICS, DYNAMIC_OF_BROKERS = Show("unavailable"), Show("topics"), Show("brokers")
OVERRIDES = "overrides"
OVERRIDES_OF_ALL, UP = Show("overrides of all topics"), Show("brokers that are up")
UNDER_REPLICATED, RUNNING, LOG_DIRS = Show("under-replicated"), Show("reassignments"), "log-dirs"


ONE_BY_ONE = "restart them one after the other"


def needs_controller(command: Command) -> bool:
    """Does the command wait for its timeout and fail while no controller leads?

    kafka-topics --describe does too: it asks the controller for reassignments (`TopicCommand.listAllReassignments`).
    """
    return not (isinstance(command, Show) and command.what == LOG_DIRS)


def lines(command: Command, facts: ClusterFacts = UNKNOWN) -> list[str]:
    """The command's lines of shell; none if the cluster's release has no such command, or can't run it now."""
    if facts.led is False and needs_controller(command):
        return []
    if isinstance(command, Config):
        return _config(command, facts)
    if isinstance(command, Reassign):
        tool = f"kafka-reassign-partitions {ZOOKEEPER if facts.before(2, 6) else BOOTSTRAP}"
        plan = f"--reassignment-json-file {command.file}"
        unlimited = command.throttle is None or facts.before(0, 10, 1)  # KIP-73
        throttle = "" if unlimited else f"--throttle {command.throttle} "
        return [f"{tool} --execute {throttle}{plan} &&", _until_complete(f"{tool} --verify {plan}", command.checks)]
    if isinstance(command, Verify | Cancel):
        act = "--verify --preserve-throttles" if isinstance(command, Verify) else "--cancel"
        shell = f"kafka-reassign-partitions {BOOTSTRAP} {act} --reassignment-json-file {command.file}"
        return [] if facts.before(2, 6) else [shell]
    if isinstance(command, Feature):
        return [f"kafka-features {BOOTSTRAP} upgrade --feature {command.name}={command.level}"]
    if isinstance(command, Unregister):
        known = facts.kraft is not False and not facts.before(2, 8)
        return [f"kafka-cluster unregister {BOOTSTRAP} --id {command.broker}"] if known else []
    if isinstance(command, ElectListed):
        if facts.before(2, 4):
            return [f"kafka-preferred-replica-election {ZOOKEEPER} --path-to-json-file {command.file}"]
        return [f"kafka-leader-election {BOOTSTRAP} --election-type preferred --path-to-json-file {command.file}"]
    if isinstance(command, Elect):
        # Before 2.4 kafka-preferred-replica-election does it.
        tool = f"kafka-leader-election {BOOTSTRAP} --election-type preferred"
        elect = f"{tool} --topic {command.topic} --partition {command.partition}"
        return [] if facts.before(2, 4) else [*_has_records(command), elect]
    return _show(command, facts)


def _has_records(command: Elect) -> list[str]:
    """Ends the line if the broker to elect has no record of the partition: its disk may be new."""
    if command.only is None:
        return []
    show = f"kafka-log-dirs {BOOTSTRAP} --describe --broker-list {command.only} --topic-list {command.topic}"
    replica = f'"partition":"{command.topic}-{command.partition}","size":'
    empty = f"broker {command.only} shows no record of {command.topic}-{command.partition}: its disk may be new"
    return [f"said=$({show}) && {{ [[ $said = *'{replica}'[1-9]* ]] || ! echo '{empty}'; }} &&"]


def _until_complete(verify: str, times: int) -> str:
    """Repeats the verification until the reassignment is complete, at most so many times. It then removes the throttle.

    The tool fails while no controller leads, and if it asks a broker that hangs. Its error is printed, and the loop goes on: else
    the throttle would stay. If the last verification failed, the line ends with a status other than 0.

    The controller states which reassignments run, and a broker states the replicas. Right after the end, the broker may state
    the replicas of before, "rather than" the new ones (seen on 3.6.2). Then the tool runs once more.
    """
    failed = '|| { echo "$said"; said=Error; sleep 10; continue; }'
    loop = (
        f'for n in {{1..{times}}}; do said=$({verify}) {failed}; [[ $said = *"in progress"* ]] || break; sleep 10; done'
    )
    again = f'{{ [[ $said != *"rather than"* ]] || {{ sleep 10; said=$({verify}); }}; }}'
    return f'{loop} && {again} && [[ $said != Error ]] && echo "$said"'


def _config(command: Config, facts: ClusterFacts) -> list[str]:
    if facts.before(0, 9):
        return []
    of_topics, old = command.entity == "topics", facts.before(1, 1)
    # Throttles are older than other dynamic settings of brokers, and than a default of all brokers.
    throttles = all(key.endswith(".replication.throttled.rate") for key, _ in command.values)
    if not of_topics and old and not (throttles and command.name is not None):
        return []
    tool = f"kafka-configs {ZOOKEEPER if old or (of_topics and facts.before(2, 5)) else BOOTSTRAP} --alter"
    name = "--entity-default" if command.name is None else f"--entity-name {command.name}"
    words = [tool, f"--entity-type {command.entity}", name]
    added = ",".join(f"{key}={value}" for key, value in command.values if value is not None)
    deleted = ",".join(key for key, value in command.values if value is None)
    if added:
        words.append(f"--add-config {added}")
    if deleted:
        words.append(f"--delete-config {deleted}")
    shell = " ".join(words)
    if not command.idle:
        return [shell]
    show, none = none_running(facts)
    return [f'said=$({show}) && {{ [[ {none} ]] || ! echo "$said"; }} &&', *_no_log_moves(command), shell]


def _no_log_moves(command: Config) -> list[str]:
    """A move between log dirs of a broker is no reassignment. Only kafka-log-dirs shows it (KIP-113)."""
    if not any(key.startswith("replica.alter.log.dirs.") for key, _ in command.values):
        return []
    of = "" if command.name is None else f" --broker-list {command.name}"
    moves = """[[ $said != *'"isFuture":true'* ]] || ! echo 'replicas move between log dirs'"""
    return [f"said=$(kafka-log-dirs {BOOTSTRAP} --describe{of}) && {{ {moves}; }} &&"]


def none_running(facts: ClusterFacts) -> tuple[str, str]:
    """A command that shows the running reassignments, and the condition of bash that its answer `$said` has none.

    An answer without either text isn't taken for none. Before 2.6 the tool lists none. A reassignment is then in ZooKeeper,
    below /admin, where brokers always keep delete_topics.
    """
    if facts.before(2, 6):
        return ADMIN, "$said = *delete_topics* && $said != *reassign_partitions*"
    return f"kafka-reassign-partitions {BOOTSTRAP} --list", '$said = *"No partition reassignments found"*'


def _show(command: Show, facts: ClusterFacts) -> list[str]:
    if command.what == "topics":
        return [f"kafka-topics {ZOOKEEPER if facts.before(2, 2) else BOOTSTRAP} --describe"]
    if command.what == OVERRIDES:
        server = ZOOKEEPER if facts.before(2, 5) else BOOTSTRAP
        of_topic = f"kafka-configs {server} --describe --entity-type topics --entity-name {command.name}"
        return [
            of_topic if command.name else f"kafka-configs {BOOTSTRAP} --describe --entity-type brokers --entity-default"
        ]
    if command == OVERRIDES_OF_ALL:
        return [] if facts.before(2, 5) else [f"kafka-configs {BOOTSTRAP} --describe --entity-type topics"]
    if command == UP:
        return [] if facts.before(0, 10, 2) else [f"kafka-broker-api-versions {BOOTSTRAP}"]
    if command.what == "brokers":
        return [] if facts.before(2, 6) else [f"kafka-configs {BOOTSTRAP} --describe --entity-type brokers"]
    if command.what in ("under-replicated", "unavailable"):
        server = ZOOKEEPER if facts.before(2, 2) else BOOTSTRAP
        return [f"kafka-topics {server} --describe --{command.what}-partitions"]
    if command.what == "reassignments":
        return [] if facts.before(2, 6) else [none_running(facts)[0]]
    return [] if facts.before(1, 0) else [f"kafka-log-dirs {BOOTSTRAP} --describe --broker-list {command.name}"]


def in_words(command: Config) -> tuple[str, str | None]:
    """The change as a sentence, for a release that has no command for it, and the restart that it takes.

    >>> in_words(Config("brokers", None, (("min.insync.replicas", "2"),)))
    ('Set min.insync.replicas=2 in server.properties of every broker', 'restart them one after the other')
    """
    if command.entity == "topics":
        set_ = ", ".join(key if value is None else f"{key}={value}" for key, value in command.values)
        return f"{'Delete' if command.values[0][1] is None else 'Set'} {set_} on topic {command.name}", None
    one = command.name is not None
    where, act = (f"broker {command.name}", "restart it") if one else ("every broker", ONE_BY_ONE)
    stated = ", ".join(f"{key}={value}" for key, value in command.values if value is not None)
    if not stated:
        return f"Delete {', '.join(key for key, _ in command.values)} from server.properties of {where}", act
    return f"Set {stated} in server.properties of {where}", act


def comment(text: str) -> str:
    """`text` as one line of shell comment; characters that could end the line become spaces.

    >>> comment("rack:a\\nrm -r / down")
    '# rack:a rm -r / down'
    """
    return "# " + BREAKS.sub(" ", text)


def topic_setting(topic: str, setting: str, value: object) -> Config:
    """Sets a topic override, or deletes it if `value` is None."""
    return Config("topics", topic, ((setting, None if value is None else str(value)),))


def cluster_setting(setting: str, value: object) -> Config:
    """Sets a cluster-wide dynamic default."""
    return Config("brokers", None, ((setting, str(value)),))


def broker_setting(broker: object, setting: str, value: object) -> Config:
    """Sets one broker's dynamic value."""
    return Config("brokers", str(broker), ((setting, str(value)),))
