"""Observers of Confluent Server: replicas that stay out of the ISR. They are listed among the replicas of their partition."""

from __future__ import annotations

import re
from collections.abc import Mapping

SETTING = "confluent.placement.constraints"
NAME = "observers"
NONE = r'"observers"\s*:\s*(?:\[\s*\]|null)'
"""What the setting's JSON may say of no observers: Confluent's tools write an empty list, too."""


def has_observers(configs: Mapping[str, str | None] | None) -> bool:
    """Do a topic's configs ask for observers? Unknown configs don't.

    >>> [has_observers({SETTING: value}) for value in ('{"observers":[{"count":1}]}', '{"observers": []}', None)]
    [True, False, False]
    """
    return NAME in re.sub(NONE, "", (configs or {}).get(SETTING) or "")
