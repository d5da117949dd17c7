"""The settings that controls declare: what is asked of a cluster for them, and under which names brokers have a topic's.

A control's YAML file declares a setting under `reads`, with Kafka's default: `reads: {retention.ms: 604800000}`. Then the
collector asks for it, and rules read it through `spark_jobs.frames.settings`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from durability.catalogue.model import CONTROLS, Control

_LOG, _CLEANER = "log.", "log.cleaner."
_SAME_BUT_FOR_PREFIX = {
    **dict.fromkeys(
        ("segment.bytes", "retention.bytes", "index.interval.bytes", "cleanup.policy", "preallocate"), _LOG
    ),
    **dict.fromkeys(("message.timestamp.type", "message.timestamp.before.max.ms"), _LOG),
    **dict.fromkeys(("message.timestamp.after.max.ms", "local.retention.ms", "local.retention.bytes"), _LOG),
    **dict.fromkeys(("delete.retention.ms", "min.compaction.lag.ms", "max.compaction.lag.ms"), _CLEANER),
}
_NAMED_OTHERWISE = {
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
"""What counts where a broker's setting isn't stated, the first that is, and its factor."""

Names = tuple[tuple[str, int], ...]
"""A broker's settings with the factor that each is to be multiplied by; the first that is stated counts."""


def broker_names(setting: str) -> Names:
    """A broker's setting, and what counts where it isn't stated.

    >>> broker_names("num.replica.fetchers")
    (('num.replica.fetchers', 1),)
    """
    return ((setting, 1), *_UNLESS_STATED.get(setting, ()))


def names_on_brokers(setting: str) -> Names:
    """What brokers call the setting that a topic without an override has from them; empty where it has it from nobody.

    One that isn't known here goes by the same name. From `org.apache.kafka.server.config.ServerTopicConfigSynonyms`.

    >>> names_on_brokers("max.message.bytes"), names_on_brokers("remote.storage.enable")
    ((('message.max.bytes', 1),), ())
    >>> [name for name, _ in names_on_brokers("retention.ms")]
    ['log.retention.ms', 'log.retention.minutes', 'log.retention.hours']
    """
    if setting in _OF_TOPICS_ALONE:
        return ()
    return broker_names(_NAMED_OTHERWISE.get(setting, _SAME_BUT_FOR_PREFIX.get(setting, "") + setting))


@cache
def of_topics() -> dict[str, str | None]:
    """The settings of topics that rules read through `spark_jobs.frames.settings`, with Kafka's default (None: undeclared)."""
    return declared(c for c in CONTROLS.values() if "topic" in c.on)


@cache
def of_brokers() -> dict[str, str | None]:
    """Likewise those of brokers, which controls on anything but topics alone read."""
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
    """All that controls on topics read of a topic's own settings."""
    return sorted({name for c in CONTROLS.values() if "topic" in c.on for name in c.reads})


def read_of_brokers() -> list[str]:
    """All that controls read of brokers' settings, for topics too."""
    found = {name for setting in of_topics() for name, _ in names_on_brokers(setting)}
    found |= {name for setting in of_brokers() for name, _ in broker_names(setting)}
    return sorted(found | {name for c in CONTROLS.values() for name in c.reads if name not in c.carried})


def that_count_for_partitions() -> list[str]:
    """What of brokers' settings may count for the partitions that they hold."""
    found = {name for setting in of_topics() for name, _ in names_on_brokers(setting)}
    return sorted(found | {n for c in CONTROLS.values() if "topic" in c.on for n in c.reads if n not in c.carried})
