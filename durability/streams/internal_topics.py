"""Internal topics of Streams applications. Their names begin with the application's id."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

# The end of an internal topic's name: the name of a store or operator, then a suffix, as in Kafka's own reset tool
# (org.apache.kafka.tools.StreamsResetter, matchesInternalTopicFormat).
ENDING = (
    r"-.+-(?:changelog|repartition|subscription-registration-topic|subscription-response-topic)"
    r"|-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-[0-9]+-topic"
)
_REST = re.compile(ENDING)
_LAST = ("-changelog", "-repartition", "-topic")


def application_of(topic: str, groups: Container[str]) -> str | None:
    """The application whose internal topic this is, by its name: the longest matching one of `groups`; None if there is none.

    >>> application_of("pay-eu-store-changelog", {"pay", "pay-eu"})
    'pay-eu'
    >>> application_of("pay-changelog", {"pay"}) is None  # no store is named
    True
    """
    end = topic.rfind("-") if topic.endswith(_LAST) else 0
    while end > 0:
        if topic[:end] in groups and _REST.fullmatch(topic, end):
            return topic[:end]
        end = topic.rfind("-", 0, end)
    return None


def by_application(topics: Iterable[str], groups: Container[str]) -> dict[str, list[str]]:
    """The internal topics of each of `groups` that has any, sorted."""
    found: dict[str, list[str]] = {}
    for topic in sorted(topics):
        group = application_of(topic, groups)
        if group is not None:
            found.setdefault(group, []).append(topic)
    return found
