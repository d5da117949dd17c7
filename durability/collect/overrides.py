"""Compares what leaders have as a topic's own settings with what another broker answered.

A broker that starts may keep overrides of a topic that was deleted and created again: since KAFKA-16206 (3.7),
ConfigurationsDelta drops only those that the broker's last snapshot has. The broker enforces them where it leads, until they are
set again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from durability.collect import configs
from durability.collect.notes import Notes
from durability.collect.reasons import Unread
from durability.collect.topics import TOPICS_PER_REQUEST, Reading
from durability.collect.wire import Wire, batches

ENFORCED = ("min.insync.replicas", "unclean.leader.election.enable")
"""The settings that are compared: those that leaders and controllers enforce."""


async def compare(
    wire: Wire, reading: Reading, brokers: Collection[int], found: Mapping[str, configs.Configs], notes: Notes
) -> None:
    """Note the settings of topics that differ between the broker that answered `found` and a leader.

    brokers: those that are asked, if they lead. A broker that can't be reached any more isn't compared.
    """
    if len(brokers) < 2:
        return
    led: defaultdict[int, set[str]] = defaultdict(set)
    for name, topic in reading.topics.items():
        for row in topic.partitions.values():
            if row["leader"] in brokers and name in found:
                led[row["leader"]].add(name)
    answers: defaultdict[str, dict[int, configs.Configs]] = defaultdict(dict)

    async def ask(broker: int, batch: Sequence[str]) -> None:
        try:
            response = await wire.ask(broker, configs.request(configs.TOPIC, batch, ENFORCED))
        except Unread as exc:
            if not exc.connection:
                for name in batch:
                    for key in ENFORCED:
                        notes.add(("topics", name, "configs", key), exc.reason)
            return
        for result in response.results:
            if not result.error_code:  # a broker may not know the topic yet
                answers[result.resource_name][broker] = configs.parsed(result)

    await wire.gather(
        [
            partial(ask, broker, batch)
            for broker, names in sorted(led.items())
            for batch in batches(sorted(names), TOPICS_PER_REQUEST)
        ]
    )
    for name, by_broker in answers.items():
        for key in ENFORCED:
            first = _own(found[name], key)
            others = {broker: own for broker, of in sorted(by_broker.items()) if (own := _own(of, key)) != first}
            if others:
                values = ", ".join(f"{own or 'none'} on broker {broker}" for broker, own in others.items())
                notes.add(
                    ("topics", name, "configs", key),
                    f"brokers differ: the topic's own value is {values}, and {first or 'none'} on another broker. Set it again",
                )


def _own(of: configs.Configs, key: str) -> str | None:
    """The topic's override; None if it has none."""
    return of.values.get(key) if of.sources.get(key) == "topic" else None
