"""The settings that controls declare, and the broker settings behind a topic's settings.

A control's YAML file declares a setting under `reads`, with Kafka's default: `reads: {retention.ms: 604800000}`. The
collector then reads the setting, and rules get it through `spark_jobs.frames.settings`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from durability.catalogue.model import CONTROLS, Control

_WITH_LOG = (
    *("segment.bytes", "retention.bytes", "index.interval.bytes", "cleanup.policy", "preallocate"),
    *("message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"),
    *("local.retention.ms", "local.retention.bytes"),
)
_WITH_CLEANER = ("delete.retention.ms", "min.compaction.lag.ms", "max.compaction.lag.ms")
_ON_BROKERS = {
    **{name: f"log.{name}" for name in _WITH_LOG},
    **{name: f"log.cleaner.{name}" for name in _WITH_CLEANER},
    "segment.ms": "log.roll.ms",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.index.bytes": "log.index.size.max.bytes",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "retention.ms": "log.retention.ms",
    "max.message.bytes": "message.max.bytes",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
}
"""A topic's setting and the broker's, from `org.apache.kafka.server.config.ServerTopicConfigSynonyms`; others have one name."""
_OF_TOPICS_ALONE = (
    *("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"),
    *("remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable"),
)
_MINUTES, _HOURS = 60_000, 3_600_000
_UNLESS_STATED = {
    "log.roll.ms": (("log.roll.hours", _HOURS),),
    "log.roll.jitter.ms": (("log.roll.jitter.hours", _HOURS),),
    "log.flush.interval.ms": (("log.flush.scheduler.interval.ms", 1),),
    "log.retention.ms": (("log.retention.minutes", _MINUTES), ("log.retention.hours", _HOURS)),
}
"""The settings that replace a broker setting that isn't stated, each with its factor. The first stated one counts."""

Names = tuple[tuple[str, int], ...]
"""Broker settings, each with the factor for its value. The first stated one counts."""


def broker_names(setting: str) -> Names:
    """A broker setting, and the settings that replace it if it isn't stated.

    >>> broker_names("num.replica.fetchers")
    (('num.replica.fetchers', 1),)
    """
    return ((setting, 1), *_UNLESS_STATED.get(setting, ()))


def names_on_brokers(setting: str) -> Names:
    """The broker settings that a topic without an override inherits. Empty for a setting that only topics have.

    A setting that this module doesn't list has the same name on brokers. Source:
    `org.apache.kafka.server.config.ServerTopicConfigSynonyms`.

    >>> names_on_brokers("max.message.bytes"), names_on_brokers("remote.storage.enable")
    ((('message.max.bytes', 1),), ())
    >>> [name for name, _ in names_on_brokers("retention.ms")]
    ['log.retention.ms', 'log.retention.minutes', 'log.retention.hours']
    """
    return () if setting in _OF_TOPICS_ALONE else broker_names(_ON_BROKERS.get(setting, setting))


@cache
def of_topics() -> dict[str, str | None]:
    """Topic settings that rules read through `spark_jobs.frames.settings`, with Kafka's default (None: no default)."""
    return declared(c for c in CONTROLS.values() if "topic" in c.on)


@cache
def of_brokers() -> dict[str, str | None]:
    """Broker settings that rules read through `spark_jobs.frames.settings`: of every control that isn't only on topics."""
    return declared(c for c in CONTROLS.values() if set(c.on) != {"topic"})


def declared(controls: Iterable[Control]) -> dict[str, str | None]:
    """The defaults that `controls` declare, by setting. ValueError if two controls declare different defaults."""
    found: dict[str, str | None] = {}
    for control in controls:
        for name, default in control.carried.items():
            if found.setdefault(name, default) != default:
                raise ValueError(
                    f"{control.id}: the default of {name} is {found[name]} in another control, {default} here"
                )
    return found


def read_of_topics() -> list[str]:
    """The topic settings that controls on topics read."""
    return sorted({name for c in CONTROLS.values() if "topic" in c.on for name in c.reads})


def read_of_brokers() -> list[str]:
    """The broker settings that controls read, for topics and for brokers."""
    declared_here = {name for setting in of_brokers() for name, _ in broker_names(setting)}
    return sorted(_inherited() | declared_here | {n for c in CONTROLS.values() for n in c.reads if n not in c.carried})


def that_count_for_partitions() -> list[str]:
    """The broker settings that may decide the verdict of a broker's partitions."""
    on_topics = (c for c in CONTROLS.values() if "topic" in c.on)
    return sorted(_inherited() | {name for c in on_topics for name in c.reads if name not in c.carried})


def _inherited() -> set[str]:
    return {name for setting in of_topics() for name, _ in names_on_brokers(setting)}
