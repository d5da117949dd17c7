"""Reads and changes settings, for plans and throttles alike."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from durability.apply.cluster import Cluster, Resource, ResourceType, SettingChange
from durability.errors import Unreachable
from durability.plain import plain
from durability.remedies.change.model import MIN_ISR

CLUSTER_WIDE = Resource(ResourceType.BROKER, "")
LOOKS, PAUSE = 30, 1.0
"""How often to look whether a change is shown, and seconds between two looks."""
Overrides = Mapping[Resource, Mapping[str, str]]
Key = tuple[str | None, str]
"""Topic and name of a setting. Topic None: the dynamic default of the whole cluster."""


def of_topic(name: str | None) -> Resource:
    return CLUSTER_WIDE if name is None else Resource(ResourceType.TOPIC, name)


def described(resource: Resource) -> str:
    """The resource in a sentence.

    >>> described(CLUSTER_WIDE), described(Resource(ResourceType.BROKER, "3")), described(of_topic("t"))
    ('the whole cluster', 'broker 3', 'topic t')
    """
    if resource.type is ResourceType.BROKER:
        return f"broker {plain(resource.name)}" if resource.name else "the whole cluster"
    return f"topic {plain(resource.name)}"


def values(cluster: Cluster, keys: Iterable[Key]) -> dict[Key, str | None]:
    """The values now; None where there is none. Topics that don't exist are left out."""
    keys = list(keys)
    own = cluster.overrides(dict.fromkeys(of_topic(topic) for topic, _ in keys)) if keys else {}
    return {(topic, name): own[of_topic(topic)].get(name) for topic, name in keys if of_topic(topic) in own}


def make(cluster: Cluster, wanted: Sequence[SettingChange]) -> list[str]:
    """Makes changes, and returns when the cluster shows them: brokers learn of them later than the controller.

    Returns the errors as sentences. Raises Unreachable if the changes aren't shown in time.
    """
    if not wanted:
        return []
    errors = cluster.change(wanted)
    made = [change for change in wanted if change.resource not in errors]
    for look in range(LOOKS):
        own = cluster.overrides(dict.fromkeys(change.resource for change in made))
        if all(own[c.resource].get(c.name) == c.value for c in made if c.resource in own):
            return [f"{described(resource)}: {plain(text)}" for resource, text in sorted(errors.items())]
        time.sleep(PAUSE if look < LOOKS - 1 else 0)
    raise Unreachable("the cluster took changes of settings, but doesn't show them. Check its brokers, and try again")


def minimums(overrides: Overrides, topics: Iterable[str], inherited: int | None) -> dict[str, int | None]:
    """The configured min.insync.replicas of topics; None if unknown.

    overrides: of these topics and CLUSTER_WIDE. inherited: what applies without these.
    """
    default = _number(overrides.get(CLUSTER_WIDE, {}).get(MIN_ISR), inherited)
    return {name: _number(overrides.get(of_topic(name), {}).get(MIN_ISR), default) for name in topics}


def _number(stated: str | None, otherwise: int | None) -> int | None:
    if stated is None:
        return otherwise
    return int(stated) if stated.isdecimal() else None
