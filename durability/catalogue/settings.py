"""The settings that controls declare, which the collector reads, and their names on brokers.

A control's YAML file declares a setting under `reads`, with Kafka's default: `reads: {retention.ms: 604800000}`. Rules read it
through `spark_jobs.frames.settings`.
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
"""What applies if a broker's setting isn't stated: the first stated one, times its factor."""

Names = tuple[tuple[str, int], ...]
"""A broker's settings and their factors; the first stated one applies."""


def broker_names(setting: str) -> Names:
    """A broker's setting, and what applies if it isn't stated.

    >>> broker_names("num.replica.fetchers")
    (('num.replica.fetchers', 1),)
    """
    return ((setting, 1), *_UNLESS_STATED.get(setting, ()))


def names_on_brokers(setting: str) -> Names:
    """The brokers' settings that a topic without an override inherits; empty where it inherits none.

    >>> names_on_brokers("max.message.bytes"), names_on_brokers("remote.storage.enable")
    ((('message.max.bytes', 1),), ())
    >>> [name for name, _ in names_on_brokers("retention.ms")]
    ['log.retention.ms', 'log.retention.minutes', 'log.retention.hours']
    """
    return () if setting in _OF_TOPICS_ALONE else broker_names(_ON_BROKERS.get(setting, setting))


@cache
def of_topics() -> dict[str, str | None]:
    """The settings that controls on topics declare, with Kafka's default (None: it has none)."""
    return declared(c for c in CONTROLS.values() if "topic" in c.on)


@cache
def of_brokers() -> dict[str, str | None]:
    """The same for brokers' settings, which controls on other resources declare."""
    return declared(c for c in CONTROLS.values() if set(c.on) != {"topic"})


def declared(controls: Iterable[Control]) -> dict[str, str | None]:
    """The settings that `controls` declare, by name. ValueError where two of them state different defaults."""
    found: dict[str, str | None] = {}
    for control in controls:
        for name, default in control.carried.items():
            if found.setdefault(name, default) != default:
                raise ValueError(
                    f"{control.id}: the default of {name} is {found[name]} in another control, {default} here"
                )
    return found


def read_of_topics() -> list[str]:
    """All of a topic's settings that controls on topics read."""
    return sorted({name for c in CONTROLS.values() if "topic" in c.on for name in c.reads})


def read_of_brokers() -> list[str]:
    """All of a broker's settings that controls read."""
    declared_here = {name for setting in of_brokers() for name, _ in broker_names(setting)}
    return sorted(_inherited() | declared_here | {n for c in CONTROLS.values() for n in c.reads if n not in c.carried})


def that_count_for_partitions() -> list[str]:
    """The brokers' settings that may apply to partitions."""
    on_topics = (c for c in CONTROLS.values() if "topic" in c.on)
    return sorted(_inherited() | {name for c in on_topics for name in c.reads if name not in c.carried})


def _inherited() -> set[str]:
    return {name for setting in of_topics() for name, _ in names_on_brokers(setting)}
