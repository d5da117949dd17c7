"""Observers of Confluent Server: replicas that stay out of the ISR. They are listed among the replicas of their partition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

SETTING, DEFAULT = "confluent.placement.constraints", "confluent.log.placement.constraints"
"""A topic's setting, and the brokers' setting that topics without a value of their own inherit."""
NAME = "observers"
NONE = r'"observers"\s*:\s*(?:\[\s*\]|null)'
"""What the setting's JSON may say of no observers: Confluent's tools write an empty list, too."""


def constrained(value: str | None) -> bool:
    """Does a value of the setting ask for observers? A group of them with count 0 is none.

    >>> [constrained(text) for text in ('{"observers":[{"count":1}]}', '{"observers":[{"count":0}]}', '{"observers": []}', None)]
    [True, False, False, False]
    """
    try:
        listed = json.loads(value or "{}")[NAME]
    except (ValueError, KeyError, TypeError):
        listed = None
    if isinstance(listed, list):
        return any(not isinstance(group, dict) or str(group.get("count")) != "0" for group in listed)
    return NAME in re.sub(NONE, "", value or "")


def has_observers(configs: Mapping[str, str | None] | None, inherited: bool = False) -> bool:
    """Do a topic's configs ask for observers? Unknown configs don't. inherited: does the brokers' default ask for them?

    >>> has_observers({}, inherited=True), has_observers({SETTING: ""}, inherited=True), has_observers(None, inherited=True)
    (True, False, False)
    """
    own = None if configs is None else configs.get(SETTING)
    return constrained(own) if own is not None or configs is None else inherited


def by_default(brokers: Iterable[Mapping[str, str | None] | None]) -> bool:
    """Does a broker's default ask for observers? brokers: the configs of each; unknown ones don't."""
    return any(constrained((configs or {}).get(DEFAULT)) for configs in brokers)
